"""What keeps a tool's schema from ever being used, found before the tool is registered.

A catalog may have many thousands of tools, and reading a schema in full takes about a millisecond. Most schemas use
few keywords, and one look tells that these are in order; only others are read in full.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rlm.errors import ConfigurationError
from rlm.model.unit import CALLABLE, Unit

_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_TEXTS = frozenset({"title", "description"})
_SIMPLE = frozenset({"type", "properties", "required", "items", "enum", "additionalProperties", "default"}) | _TEXTS
_DEPTH = 8


def schema_problem(unit: Unit) -> tuple[str, str] | None:
    """The place in a tool's schema, and what is wrong there and the remedy; None where nothing is, or the unit is no
    tool."""
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
    """Whether one look tells that a schema is in order."""
    if not isinstance(schema, Mapping) or depth > _DEPTH or not schema.keys() <= _SIMPLE:
        return False
    if "type" in schema and not (isinstance(schema["type"], str) and schema["type"] in _TYPES):
        return False
    if not all(isinstance(schema[word], str) for word in _TEXTS & schema.keys()):
        return False
    properties, required, values = schema.get("properties", {}), schema.get("required", []), schema.get("enum", [0])
    if not (isinstance(properties, Mapping) and isinstance(required, list) and isinstance(values, list) and values):
        return False
    if not all(isinstance(name, str) for name in required) or len(set(required)) < len(required):
        return False
    inner = [*properties.values(), *([schema["items"]] if "items" in schema else [])]
    more = schema.get("additionalProperties", True)
    inner += [] if isinstance(more, bool) else [more]
    return all(_is_ordinary(part, depth + 1) for part in inner)
