"""Schema keywords that a model reads and that a tool's preflight enforces instead of the schema check.

For example, a model reads ``exclusiveMinimum: 0``, and the preflight, not the schema check, refuses a call with -1.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from rlm.errors import ConfigurationError


def enforced(schema: dict[str, Any], pointers: Iterable[str], subject: str) -> dict[str, Any]:
    """Return the schema without the keywords at the JSON Pointers.

    Args:
        schema: a JSON Schema; it is not changed.
        pointers: for example ``/properties/seconds/exclusiveMinimum``.
        subject: the tool's id, for the error.

    Raises:
        ConfigurationError: ``invalid_tool``, if a pointer leads to no keyword.
    """
    pointers = tuple(pointers)
    if not pointers:
        return schema
    schema = copy.deepcopy(schema)
    for pointer in pointers:
        *parents, keyword = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]] or [""]
        place: Any = schema
        for part in parents:
            place = _inside(place, part)
        if not isinstance(place, dict) or keyword not in place:
            raise ConfigurationError(
                "invalid_tool",
                f"{subject}: preflight_enforces {pointer!r} leads to no keyword of the schema; "
                "write it like '/properties/seconds/exclusiveMinimum'",
                {"tool": subject, "pointer": pointer},
            )
        del place[keyword]
    return schema


def _inside(place: Any, part: str) -> Any:
    if isinstance(place, dict):
        return place.get(part)
    if isinstance(place, list) and part.isdigit() and int(part) < len(place):
        return place[int(part)]
    return None
