"""Which JSON Schemas OpenAI takes with ``strict``: a subset, and a request with any other is refused (HTTP 400). Pure.

https://platform.openai.com/docs/guides/structured-outputs, "Supported schemas". Without ``strict`` the schema guides
the reply and binds it no further; other endpoints of this format follow it all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST_PROPERTIES = 5000
MOST_LEVELS = 10

_KEYWORDS = frozenset(
    "type properties required additionalProperties items enum const anyOf $ref $defs definitions title description "
    "pattern format multipleOf minimum maximum exclusiveMinimum exclusiveMaximum minItems maxItems".split()
)
_FORMATS = frozenset("date-time time date duration email hostname ipv4 ipv6 uuid".split())
_TELLING = ("type", "enum", "const", "anyOf", "$ref")
"""One of these says what a value is; a schema that leaves it open is outside."""


def is_strict(schema: Any) -> bool:
    """Whether a schema is inside the subset: an object at the top, closed and complete wherever there is one."""
    if not isinstance(schema, Mapping) or schema.get("type") != "object" or "anyOf" in schema:
        return False
    count = _Count()
    return count.holds(schema, 0) and count.properties <= MOST_PROPERTIES


class _Count:
    """One look at a schema."""

    def __init__(self) -> None:
        self.properties = 0

    def holds(self, schema: Any, level: int) -> bool:
        """Whether a schema and all below it are inside; ``level`` counts the objects and lists around it."""
        if not isinstance(schema, Mapping) or level > MOST_LEVELS or not schema.keys() <= _KEYWORDS:
            return False
        if not any(word in schema for word in _TELLING) or schema.get("format", "date") not in _FORMATS:
            return False
        if not str(schema.get("$ref", "#")).startswith("#"):
            return False
        if "array" in _types(schema) and "items" not in schema:
            return False
        if ("object" in _types(schema) or "properties" in schema) and not self._closed(schema):
            return False
        below = [*_named(schema, "properties"), *([schema["items"]] if "items" in schema else [])]
        beside = [*schema.get("anyOf", ()), *_named(schema, "$defs"), *_named(schema, "definitions")]
        return all(self.holds(part, level + 1) for part in below) and all(self.holds(part, level) for part in beside)

    def _closed(self, schema: Mapping[str, Any]) -> bool:
        properties = schema.get("properties", {})
        self.properties += len(properties)
        return schema.get("additionalProperties") is False and set(schema.get("required", ())) == set(properties)


def _types(schema: Mapping[str, Any]) -> list[Any]:
    said = schema.get("type", [])
    return said if isinstance(said, list) else [said]


def _named(schema: Mapping[str, Any], word: str) -> list[Any]:
    return list(schema.get(word, {}).values())
