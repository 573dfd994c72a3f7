"""Keywords that a schema shows and that the schema check leaves to a tool's preflight.

A range that a policy of its own answers for is one: the model reads ``exclusiveMinimum: 0``, and a call with -1 is
answered by the policy, not by the schema.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from rlm.errors import ConfigurationError


def enforced(schema: dict[str, Any], pointers: Iterable[str], subject: str) -> dict[str, Any]:
    """The schema without the keywords that JSON Pointers name.

    Raises: ConfigurationError ``invalid_tool``, where a pointer leads to no keyword.
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
