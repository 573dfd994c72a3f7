"""The JSON Schemas that OpenAI takes with ``strict``. A request with any other schema is refused (HTTP 400). Pure.

https://platform.openai.com/docs/guides/structured-outputs, "Supported schemas". Without ``strict`` the schema guides
the reply and binds it no further; other endpoints of this format follow it all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlm.model.wire_limits import OPENAI
from rlm.model.wire_schema import looked_up

MOST_PROPERTIES = 5000
MOST_LEVELS = 10
MOST_VALUES = 1000
"""Values of all enums together."""

MOST_CHARACTERS = 120_000
"""Characters of all names of properties and definitions, and of all values of enums and constants."""

_KEYWORDS = frozenset(
    "type properties required additionalProperties items enum const anyOf $ref $defs definitions title description "
    "pattern format multipleOf minimum maximum exclusiveMinimum exclusiveMaximum minItems maxItems".split()
)
_FORMATS = frozenset("date-time time date duration email hostname ipv4 ipv6 uuid".split())
_RESTRICTING = ("type", "enum", "const", "anyOf", "$ref")
"""One of these keywords restricts a value; a schema without any is outside."""


def without_siblings(schema: Any) -> Any:
    """Return the schema with each ``$ref`` that has keywords beside it replaced by its target.

    Strict schemas take a ``$ref`` alone. A ``$ref`` that leads back to itself stays, and the schema is not strict.
    """
    if not _has_sibling(schema):
        return schema
    try:
        return _inlined(schema, schema, ())
    except RecursionError:
        return schema


_SCALARS = frozenset({str, bool, int, float, type(None)})


def _has_sibling(schema: Any) -> bool:
    """Whether any ``$ref`` has a keyword beside it. Most schemas have none, and need no copy."""
    parts = [schema]
    while parts:
        part = parts.pop()
        kind = type(part)
        if kind is dict:
            if "$ref" in part and len(part) > 1:
                return True
            parts += part.values()
        elif kind is list:
            parts += part
        elif kind not in _SCALARS:  # another kind of mapping or list: copied into plain ones
            return True
    return False


def _inlined(value: Any, root: Any, above: tuple[str, ...]) -> Any:
    if isinstance(value, list):
        return [_inlined(item, root, above) for item in value]
    if not isinstance(value, Mapping):
        return value
    reference = value.get("$ref")
    if isinstance(reference, str) and len(value) > 1 and reference not in above:
        found = looked_up(root, reference)
        beside = {word: part for word, part in value.items() if word != "$ref"}
        if isinstance(found, Mapping) and not (beside.keys() - _ABOUT) & found.keys():
            return _inlined({**found, **beside}, root, (*above, reference))
    return {
        word: part if word in ("enum", "const", "default", "examples") else _inlined(part, root, above)
        for word, part in value.items()
    }


_ABOUT = frozenset({"title", "description"})
"""Keywords beside a ``$ref`` that may replace the keywords of its target."""


def has_object_root(schema: Any) -> bool:
    """Whether ``response_format`` takes the top of a schema, strict or not: it must be an object by itself."""
    return isinstance(schema, Mapping) and schema.get("type") == "object" and not OPENAI.root_words & schema.keys()


def is_strict(schema: Any) -> bool:
    """Whether a schema is inside the subset: an object at the top, closed and complete wherever there is one."""
    if not isinstance(schema, Mapping) or schema.get("type") != "object" or "anyOf" in schema:
        return False
    count = _StrictCount()
    within = count.holds(schema, 0) and count.properties <= MOST_PROPERTIES
    return within and count.values <= MOST_VALUES and count.characters <= MOST_CHARACTERS


class _StrictCount:
    """The counts of one check of a schema."""

    def __init__(self) -> None:
        self.properties = self.values = self.characters = 0

    def holds(self, schema: Any, level: int) -> bool:
        """Whether a schema and all below it are inside; ``level`` counts the objects and lists around it."""
        if not isinstance(schema, Mapping) or level > MOST_LEVELS or not schema.keys() <= _KEYWORDS:
            return False
        if not any(word in schema for word in _RESTRICTING) or schema.get("format", "date") not in _FORMATS:
            return False
        if "$ref" in schema and (len(schema) > 1 or not str(schema["$ref"]).startswith("#")):
            return False
        values = [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else [])]
        self.values += len(schema.get("enum", ()))
        names = [name for word in ("properties", "$defs", "definitions") for name in schema.get(word, ())]
        self.characters += sum(len(text) for text in (*values, *names) if isinstance(text, str))
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
    types = schema.get("type", [])
    return types if isinstance(types, list) else [types]


def _named(schema: Mapping[str, Any], word: str) -> list[Any]:
    return list(schema.get(word, {}).values())
