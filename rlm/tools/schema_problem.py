"""A quick check of tool schemas, before a tool is registered.

A catalog may have many thousands of tools, and a full check of a schema takes about a millisecond. Most schemas use
few keywords, and a shallow check is enough for these. Only other schemas are read in full.
"""

from __future__ import annotations

import json
from typing import Any

from rlm.errors import ConfigurationError
from rlm.model.unit import CALLABLE, Unit

_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_TEXTS = frozenset({"title", "description"})
_DEPTH = 8


def schema_problem(unit: Unit) -> tuple[str, str] | None:
    """Return the place of a problem in a tool's schema, and the problem with its remedy.

    Returns:
        None if the schema is usable or the unit is not a tool. For example, a schema of type ``array`` is a problem
        at ``type``.
    """
    schema = unit.schema
    if unit.kind not in CALLABLE or not schema:
        return None
    kind = schema.get("type")
    if "type" in schema and "object" not in (kind if isinstance(kind, list) else [kind]) and _is_type(kind):
        return "type", f'a tool\'s arguments are an object, not {json.dumps(kind)}: write {{"type": "object", ...}}'
    if _is_ordinary(schema, 0):
        return None
    from rlm.tools.schema import check_of

    try:
        check_of(schema, unit.id)
    except ConfigurationError as problem:
        path = str(problem.detail.get("path", ""))
        return path, problem.message.removeprefix(f"{unit.id}: ")
    return None


def _is_type(kind: Any) -> bool:
    return all(isinstance(one, str) and one in _TYPES for one in (kind if isinstance(kind, list) else [kind]))


def _is_ordinary(schema: Any, depth: int) -> bool:
    """Return whether a shallow check shows that the schema is usable."""
    if type(schema) is not dict or depth > _DEPTH:
        return False
    for word, value in schema.items():
        if word == "type":
            good = type(value) is str and value in _TYPES
        elif word in _TEXTS:
            good = type(value) is str
        elif word == "properties":
            good = type(value) is dict and all(_is_ordinary(part, depth + 1) for part in value.values())
        elif word == "required":
            good = type(value) is list and all(type(name) is str for name in value) and len(set(value)) == len(value)
        elif word == "items":
            good = _is_ordinary(value, depth + 1)
        elif word == "enum":
            good = type(value) is list and bool(value)
        elif word == "additionalProperties":
            good = type(value) is bool or _is_ordinary(value, depth + 1)
        else:
            good = word == "default"
        if not good:
            return False
    return True
