"""A tool as one wire takes it: the schema and the description that are sent in place of its own. Pure.

The copy never allows more arguments than the tool: the executor checks them against the full schema. Where the wire
takes less, the copy says less, and a sentence in the description says the rest.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rlm.model.unit import CALLABLE, Unit
from rlm.model.wire_limits import WireLimits

_MOST_KEPT = 8_192
_KEY_DIGEST = 12
_SENTENCE = 400
_ALTERNATIVES = ("anyOf", "oneOf")
_NAMED = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
_WITH_NAMES = frozenset({*_NAMED, "dependencies"})
_IN_LISTS = frozenset({*_LISTED, "items"})
_WITH_ONE = frozenset(
    {
        *("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"),
        *("unevaluatedProperties", "unevaluatedItems", "additionalItems"),
    }
)
_UNTOUCHED = frozenset(
    {
        *("type", "title", "description", "default", "enum", "const", "examples", "format", "pattern"),
        *("minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "minimum", "maximum", "multipleOf"),
    }
)
"""Words whose values no wire renames or rewrites."""
_LONGEST_NAME = 256
"""Characters of a property's name that one look is for; no wire takes a longer one."""
_DEPTH = 32
"""Levels below which one look is no longer enough."""
_MAPPING = (dict, Mapping)
"""A plain dict is looked for first: to ask an abstract class takes ten times as long, and a catalog has 100,000."""


@dataclass(frozen=True)
class WireTool:
    """The part of a tool that is sent.

    Attributes:
        schema: the parameters; to be read only.
        description: the description.
        keys: property names on the wire, with the tool's own names, where they differ.
        findings: ``(kind, message)`` for each thing that was mended.
        refused: why this tool cannot be sent at all; empty where it can.
    """

    schema: dict[str, Any]
    description: str
    keys: dict[str, str]
    findings: tuple[tuple[str, str], ...]
    refused: str = ""


def wire_tool(unit: Unit, limits: WireLimits) -> WireTool:
    """Return the schema and description of a tool within ``limits``. They are made once for each content of a unit."""
    key = (unit.digest, limits.name)
    made = _made.get(key)
    if made is None:
        if len(_made) >= _MOST_KEPT:
            _made.clear()
        made = _made[key] = _Mending(unit, limits).made()
    return made


_made: dict[tuple[str, str], WireTool] = {}


def refusal(unit: Unit, limits: WireLimits) -> str:
    """Why a unit cannot be sent as a tool; empty where it can, or is no tool."""
    if unit.kind not in CALLABLE or not unit.schema:
        return ""
    ordinary = unit.schema.get("type", "object") == "object" and "$ref" not in unit.schema
    if ordinary and limits.root_words.isdisjoint(unit.schema):
        return ""  # only the top can make a tool unsendable; most tools are mended when they are shown
    return wire_tool(unit, limits).refused


def own_names(value: Any, keys: Mapping[str, str]) -> Any:
    """Arguments of a call with the tool's own property names in place of those on the wire."""
    if not keys:
        return value
    if isinstance(value, dict):
        return {keys.get(key, key): own_names(item, keys) for key, item in value.items()}
    return [own_names(item, keys) for item in value] if isinstance(value, list) else value


@lru_cache(maxsize=8_192)
def wire_key(name: str) -> str:
    """The name that stands for a property that a wire does not take: a legible stem and a digest, 64 characters at
    most. It depends on the name alone."""
    stem = re.sub(r"[^A-Za-z0-9]+", "_", name.encode("ascii", "ignore").decode()).strip("_") or "property"
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_KEY_DIGEST]
    return f"{stem[: 63 - _KEY_DIGEST]}-{digest}"


class _Mending:
    """One tool on its way to one wire."""

    def __init__(self, unit: Unit, limits: WireLimits) -> None:
        self._unit, self._limits = unit, limits
        self._root: Mapping[str, Any] = unit.schema or {}
        self._keys: dict[str, str] = {}
        self._findings: list[tuple[str, str]] = []
        self._sentences: list[str] = []

    def made(self) -> WireTool:
        if self._is_taken_as_it_is():
            schema: dict[str, Any] = {"type": "object", "properties": {}, **self._root}
            schema["type"] = "object"
            description = self._description()
            return WireTool(schema, description, {}, tuple(self._findings))
        try:
            schema = self._object(dict(self._root))
            if self._limits.property_key is not None:
                self._name_keys(schema)
            schema = self._mended(schema)
        except _Refused as problem:
            return WireTool({}, "", {}, (), str(problem))
        except RecursionError:
            return WireTool({}, "", {}, (), "its schema is nested too deeply")
        if self._keys:
            names = ", ".join(sorted(self._keys.values()))
            self._findings.append(("property_keys", f"properties that the wire does not take are renamed: {names}"))
        return WireTool(schema, self._description(), self._keys, tuple(self._findings))

    def _is_taken_as_it_is(self) -> bool:
        """Whether nothing has to be mended; one look at most schemas, and no copy of them."""
        root, limits = self._root, self._limits
        return _may_be_object(root) and limits.root_words.isdisjoint(root) and _is_taken(root, limits, 0)

    # -- the top ------------------------------------------------------------------------------------

    def _object(self, root: dict[str, Any]) -> dict[str, Any]:
        """The schema as one object with properties, without the words that may not stand at the top."""
        root = self._in_place(root)
        if not _may_be_object(root):
            raise _Refused(f"its schema is not an object but {json.dumps(root.get('type'))}")
        words = [word for word in root if word in self._limits.root_words]
        merged = {word: value for word, value in root.items() if word not in words}
        for word in (word for word in ("allOf", *_ALTERNATIVES) if word in words):
            merged = self._merged(merged, word, root[word])
        for word in words:
            if word not in _LISTED and word not in ("then", "else"):
                rule = {name: root[name] for name in ("if", "then", "else") if name in root} if word == "if" else None
                self._condition(word, root[word] if rule is None else rule)
        if words:
            message = f"{', '.join(words)} at the top of the schema: sent as one object, checked in full when called"
            self._findings.append(("root_combinator", message))
        ordered: dict[str, Any] = {"type": "object", "properties": {}}
        return ordered | merged | {"type": "object"}

    def _in_place(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema with what its own ``$ref`` leads to, through any number of steps."""
        seen: set[str] = set()
        while isinstance(reference := schema.get("$ref"), str):
            if reference in seen:
                raise _Refused(f"$ref {reference!r} leads back to itself")
            seen.add(reference)
            found = looked_up(self._root, reference)
            if not isinstance(found, Mapping):
                raise _Refused(f"$ref {reference!r} leads to nothing in the schema")
            schema = {**found, **{word: value for word, value in schema.items() if word != "$ref"}}
        return schema

    def _merged(self, base: dict[str, Any], word: str, branches: Any) -> dict[str, Any]:
        """``base`` with the properties of all branches; required is what every way of meeting them requires."""
        parts = [self._in_place(dict(part)) for part in branches if isinstance(part, Mapping)]
        parts = [self._flat(part) for part in parts if _may_be_object(part)]
        if not parts:
            raise _Refused(f"no branch of {word} at the top of its schema is an object")
        properties: dict[str, list[Any]] = {name: [value] for name, value in base.get("properties", {}).items()}
        for part in parts:
            for name, value in part.get("properties", {}).items():
                known = properties.setdefault(name, [])
                if value not in known:
                    known.append(value)
        required = [set(part.get("required", ())) for part in parts]
        every = set.union(*required) if word == "allOf" else set.intersection(*required)
        joined = every | set(base.get("required", ()))
        made = {**base, "properties": {name: _either(found) for name, found in properties.items()}}
        for part in parts:
            for name in ("$defs", "definitions"):
                if name in part:
                    made[name] = {**part[name], **made.get(name, {})}
        if base.get("additionalProperties") is False and set(properties) - set(base.get("properties", {})):
            del made["additionalProperties"]
        if joined:
            made["required"] = [name for name in properties if name in joined] + sorted(joined - set(properties))
        if word in _ALTERNATIVES:
            sets = [f"({', '.join(sorted(names))})" if names else "(nothing more)" for names in required]
            how = "exactly one" if word == "oneOf" else "at least one"
            self._sentences.append(f"Arguments must meet {how} of these sets: {' or '.join(dict.fromkeys(sets))}.")
        return made

    def _flat(self, part: dict[str, Any]) -> dict[str, Any]:
        """A branch without branches of its own."""
        for word in ("allOf", *_ALTERNATIVES):
            if word in part:
                rest = {name: value for name, value in part.items() if name != word}
                part = self._merged(rest, word, part[word])
        return part

    def _condition(self, word: str, value: Any) -> None:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        text = text if len(text) <= _SENTENCE else text[:_SENTENCE] + "…"
        self._sentences.append(f"Arguments must also meet this JSON Schema: {{{json.dumps(word)}:{text}}}.")

    # -- below --------------------------------------------------------------------------------------

    def _name_keys(self, schema: Any) -> None:
        legal = self._limits.property_key
        for part in subschemas(schema):
            for word in ("properties", "dependentSchemas", "dependentRequired", "dependencies"):
                for name in _mapping(part.get(word)):
                    if legal is not None and not legal.fullmatch(name):
                        self._keys[wire_key(name)] = name

    def _mended(self, schema: Any) -> Any:
        """A copy of a schema with all that is below it, as the wire takes it."""
        if not isinstance(schema, _MAPPING):
            return _copied(schema)
        made: dict[str, Any] = {}
        for word, value in schema.items():
            if word in _NAMED and isinstance(value, _MAPPING):
                rename = word in ("properties", "dependentSchemas")
                made[word] = {self._key(name) if rename else name: self._mended(part) for name, part in value.items()}
            elif word in _WITH_ONE and isinstance(value, (*_MAPPING, bool)):
                made[word] = self._mended(value)
            elif word in _IN_LISTS and isinstance(value, list):
                made[word] = [self._mended(part) for part in value]
            elif word == "required" and isinstance(value, list):
                made[word] = [self._key(name) for name in value]
            elif word == "dependentRequired" and isinstance(value, _MAPPING):
                made[word] = {self._key(name): [self._key(other) for other in names] for name, names in value.items()}
            elif word == "dependencies" and isinstance(value, _MAPPING):
                made[word] = {
                    self._key(name): [self._key(other) for other in part]
                    if isinstance(part, list)
                    else self._mended(part)
                    for name, part in value.items()
                }
            elif word == "$ref" and isinstance(value, str):
                made[word] = self._reference(value)
            else:
                made[word] = _copied(value)
        if self._limits.newest_draft:
            _newest(made)
        if self._limits.array_items and "array" in _types(made) and "items" not in made:
            made["items"] = {}
        return made

    def _key(self, name: Any) -> Any:
        legal = self._limits.property_key
        return name if legal is None or not isinstance(name, str) or legal.fullmatch(name) else wire_key(name)

    def _reference(self, reference: str) -> str:
        """A pointer that goes through a renamed property follows it."""
        if not self._keys or not reference.startswith("#/"):
            return reference
        steps = reference.split("/")
        for place in range(2, len(steps)):
            name = steps[place].replace("~1", "/").replace("~0", "~")
            if steps[place - 1] == "properties" and wire_key(name) in self._keys:
                steps[place] = wire_key(name)
        return "/".join(steps)

    # -- the description ----------------------------------------------------------------------------

    def _description(self) -> str:
        """Return the description with the sentences that replace parts of the schema, within the wire's length."""
        own, most = self._unit.description, self._limits.description
        more = " ".join(self._sentences)
        if most is not None and len(more) > most // 2:
            more = cut(more, most // 2)
        whole = "\n".join(part for part in (own, more) if part)
        if most is None or len(whole) <= most:
            return whole
        shorter = cut(own, most - len(more) - bool(more))
        message = f"a description of {len(own)} characters is sent up to {len(shorter)}: the wire takes {most} in all"
        self._findings.append(("description_cut", message))
        return "\n".join(part for part in (shorter, more) if part)


def _is_taken(schema: Any, limits: WireLimits, depth: int) -> bool:
    """Whether a wire surely takes a schema unchanged. ``False`` means that it has to be looked at in full."""
    if type(schema) is bool:
        return True
    if type(schema) is not dict or depth > _DEPTH:
        return False
    for word, value in schema.items():
        if word in _UNTOUCHED:
            if value == "array" and word == "type" and limits.array_items and "items" not in schema:
                return False
            if type(value) is list and word == "type" and "array" in value and limits.array_items:
                return False
            continue
        if word == "properties":
            if type(value) is not dict or not _are_legal(value, limits):
                return False
            parts: Any = value.values()
        elif word == "required":
            if type(value) is not list or not _are_legal(value, limits):
                return False
            continue
        elif word == "items" or word == "additionalProperties":
            parts = (value,)
        elif word in _LISTED and type(value) is list:
            parts = value
        else:
            return False
        for part in parts:
            if not _is_taken(part, limits, depth + 1):
                return False
    return True


def _are_legal(names: Iterable[Any], limits: WireLimits) -> bool:
    """Whether a wire takes all these names of properties."""
    legal = limits.property_key
    if legal is not None:
        for name in names:
            if type(name) is not str or len(name) > _LONGEST_NAME or not _is_legal(legal, name):
                return False
    return True


@lru_cache(maxsize=65_536)
def _is_legal(legal: re.Pattern[str], name: str) -> bool:
    return legal.fullmatch(name) is not None


class _Refused(Exception):
    """The tool cannot be mended; the text says why."""


def cut(text: str, most: int) -> str:
    """The beginning of a text, up to the end of a word, with an ellipsis; ``most`` characters in all."""
    if len(text) <= most:
        return text
    beginning = text[: most - 1]
    space = max(beginning.rfind(mark) for mark in (" ", "\n", "\t"))
    if space > most // 2:
        beginning = beginning[:space]
    return beginning.rstrip() + "…"


def looked_up(root: Any, reference: str) -> Any:
    """Return the value that a ``$ref`` into the same document leads to, or None."""
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return next((part for part in subschemas(root) if f"#{part.get('$anchor')}" == reference), None)
    value = root
    for step in reference[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, _MAPPING) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


def subschemas(schema: Any) -> Iterator[Mapping[str, Any]]:
    """A schema and every schema inside it."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if not isinstance(part, _MAPPING):
            continue
        yield part
        for word, value in part.items():
            if word in _WITH_NAMES:
                waiting.extend(_mapping(value).values())
            elif word in _IN_LISTS and isinstance(value, list):
                waiting.extend(value)
            elif word in _WITH_ONE:
                waiting.append(value)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, _MAPPING) else {}


def _may_be_object(schema: Mapping[str, Any]) -> bool:
    return "type" not in schema or "object" in _types(schema)


def _types(schema: Mapping[str, Any]) -> list[Any]:
    found = schema.get("type", [])
    return found if isinstance(found, list) else [found]


def _either(schemas: list[Any]) -> Any:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _newest(schema: dict[str, Any]) -> None:
    """Older spellings in those of JSON Schema 2020-12."""
    schema.pop("$schema", None)
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive) and bound in schema:
            schema[exclusive] = schema.pop(bound)
    if isinstance(schema.get("items"), list):
        schema["prefixItems"] = schema.pop("items")
        if "additionalItems" in schema:
            schema["items"] = schema.pop("additionalItems")
    if isinstance(schema.get("required"), bool):
        del schema["required"]


def _copied(value: Any) -> Any:
    if isinstance(value, _MAPPING):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value
