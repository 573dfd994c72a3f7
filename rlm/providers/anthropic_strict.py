"""The part of JSON Schema that Anthropic's ``output_config`` takes. A request with any other schema is refused. Pure.

Claude documentation, "Structured outputs", "JSON Schema limitations": every object is closed
(``additionalProperties: false``), no bounds of numbers, strings or lists (but ``minItems`` 0 or 1), no recursion, no
reference to the outside. As in Anthropic's own SDKs, the bounds move into the description. The caller still
checks the reply against the full schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rlm.model.wire_schema import looked_up

_KEYWORDS = frozenset(
    "type properties required additionalProperties items enum const anyOf allOf $ref $defs definitions title "
    "description default format pattern minItems".split()
)
_BOUNDS = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
    *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
)
_FORMATS = frozenset("date-time time date duration email hostname uri ipv4 ipv6 uuid".split())
_PLAIN = (str, int, float, bool, type(None))


class _Outside(Exception):
    """The schema is outside this part."""


def output_schema(schema: Any) -> dict[str, Any] | None:
    """Return the schema in the form of ``output_config``, or None. It admits no more values, apart from bounds."""
    try:
        made: dict[str, Any] = _taken(schema, schema, ())
        return made
    except (_Outside, RecursionError):
        return None


def _taken(schema: Any, root: Any, above: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        raise _Outside
    bounds = {word: schema[word] for word in _BOUNDS if word in schema and not _small(word, schema[word])}
    made = {word: value for word, value in schema.items() if word not in bounds and word != "$schema"}
    if made.get("format", "date") not in _FORMATS:
        bounds["format"] = made.pop("format")
    if bounds:
        bounds_text = ", ".join(f"{word}: {json.dumps(value, ensure_ascii=False)}" for word, value in bounds.items())
        made["description"] = " ".join(part for part in (made.get("description"), f"({bounds_text})") if part)
    if not made.keys() <= _KEYWORDS or not all(isinstance(value, _PLAIN) for value in made.get("enum", ())):
        raise _Outside
    if "$ref" in made:
        _follow(made["$ref"], root, above)
    if "object" in _types(made) or "properties" in made:
        if made.get("additionalProperties", False) is not False or not made.get("properties"):
            raise _Outside
        made["additionalProperties"] = False
    for word in ("properties", "$defs", "definitions"):
        if word in made:
            made[word] = {name: _taken(part, root, above) for name, part in made[word].items()}
    for word in ("anyOf", "allOf"):
        if word in made:
            made[word] = [_taken(part, root, above) for part in made[word]]
    if any("$ref" in part for part in made.get("allOf", ())):
        raise _Outside
    if "items" in made:
        made["items"] = _taken(made["items"], root, above)
    return made


def _follow(reference: Any, root: Any, above: tuple[str, ...]) -> None:
    """Check that a reference stays in the document and does not lead back to itself. Raises: _Outside."""
    if not isinstance(reference, str) or not reference.startswith("#/") or reference in above:
        raise _Outside
    found = looked_up(root, reference)
    if not isinstance(found, Mapping):
        raise _Outside
    _taken(found, root, (*above, reference))


def _small(word: str, value: Any) -> bool:
    return word == "minItems" and value in (0, 1)


def _types(schema: Mapping[str, Any]) -> list[Any]:
    found = schema.get("type", [])
    return found if isinstance(found, list) else [found]
