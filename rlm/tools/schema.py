"""JSON Schema: a schema is read once with all its keywords, then checks arguments and results.

The dialect is Draft 2020-12 unless ``$schema`` names draft 4, 6, 7 or 2019-09. A schema is bounded in size and depth.
It refers to nothing outside itself, so nothing is ever fetched. RE2 matches its patterns. A third party's schema can
therefore be wrong, but it cannot open a connection or keep the processor busy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from jsonschema import FormatChecker, validators
from jsonschema.exceptions import SchemaError, ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import specification_with

from rlm.errors import ConfigurationError, did_you_mean
from rlm.model.base import digest_of
from rlm.model.unit import plain_json
from rlm.tools.formats import FORMATS
from rlm.tools.keywords import OWN, TooMuchWork, bounded, counted
from rlm.tools.patterns import BadPattern

DEFAULT_DIALECT = "json-schema.org/draft/2020-12/schema"
ARGUMENT_SECONDS = 0.25
MAX_CACHED = 1024
MAX_PROBLEMS = 32
MAX_SHOWN = 200

_OLD_KEYWORDS = {"dependencies": validators.Draft7Validator.VALIDATORS["dependencies"]}  # newer drafts still allow it
_UNKNOWN = ({"additionalProperties": False}, {"unevaluatedProperties": False})
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
_IN_PLACE = ("not", "if", "then", "else")


@dataclass(frozen=True)
class Mismatch:
    """A place in a value that breaks the schema.

    ``path`` is the place, such as ``items[0].name``; it is empty for the whole value. ``expected`` is the keyword that
    failed, with its value. ``got`` is the value at the place, shortened if it is long. ``missing``: there is no value.
    """

    path: str
    expected: dict[str, Any]
    got: Any
    missing: bool = False
    hint: str = ""

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        if self.missing:
            return f"{where}is missing"
        if self.expected in _UNKNOWN:
            return f"{where}no such property{self.hint}"
        return f"{where}expected {_short(self.expected)}, got {_short(self.got)}{self.hint}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON data: ``path``, ``expected``, and ``got`` or ``missing``."""
        actual = {"missing": True} if self.missing else {"got": self.got}
        return {"path": self.path, "expected": self.expected, **actual}


class Check:
    """The check of one schema. ``problem(value)`` returns the first mismatch, ``errors(value)`` all errors."""

    def __init__(self, schema: Any) -> None:
        self._validator = _validator(schema)

    def problem(self, value: Any, seconds: float = ARGUMENT_SECONDS) -> Mismatch | None:
        """Return the first mismatch, or None.

        Args:
            value: JSON data.
            seconds: limit of processor time.
        """
        try:
            with bounded(seconds):
                return self._problem(value)
        except (TooMuchWork, RecursionError, Unresolvable, BadPattern):
            return Mismatch("", {"check": "one that ends in time"}, _clipped(value))

    def errors(self, value: Any, seconds: float = ARGUMENT_SECONDS) -> list[ValidationError] | None:
        """Return all errors of ``jsonschema``, or None if the check does not end in time."""
        try:
            with bounded(seconds):
                return list(self._validator.iter_errors(value))
        except (TooMuchWork, RecursionError, Unresolvable, BadPattern):
            return None

    def _problem(self, value: Any) -> Mismatch | None:
        errors = self._validator.iter_errors(value)
        first = next(errors, None)
        if first is None:
            return None
        return _mismatch(_deepest([first, *islice(errors, MAX_PROBLEMS)]))


def check_of(schema: Any, subject: str) -> Check:
    """Return the check of a schema. Each digest has one check.

    Args:
        schema: a JSON Schema; an object or a boolean.
        subject: the name in errors, such as a tool's id.

    Raises:
        ConfigurationError: ``invalid_schema``, with the subject, the place in the schema and the reason.
    """
    try:
        key = digest_of(plain_json(schema, "schema"))
        if key not in _checks:
            if len(_checks) >= MAX_CACHED:
                _checks.pop(next(iter(_checks)), None)
            _checks[key] = Check(schema)
        return _checks[key]
    except BadSchema as problem:
        where = f" at {problem.path}" if problem.path else ""
        raise ConfigurationError(
            "invalid_schema", f"{subject}: the schema{where}: {problem}", {"subject": subject, "path": problem.path}
        ) from None
    except ValueError as problem:
        raise ConfigurationError("invalid_schema", f"{subject}: {problem}", {"subject": subject}) from None


_checks: dict[str, Check] = {}


class BadSchema(Exception):
    """A schema that cannot be used; ``path`` is the place in it."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.path = path


# -- reading ----------------------------------------------------------------------------------------


def _formats() -> FormatChecker:
    checker = FormatChecker(formats=())
    for name, holds in FORMATS.items():
        checker.checks(name)(lambda value, holds=holds: not isinstance(value, str) or holds(value))
    return checker


def _dialects() -> dict[str, Any]:
    known = {
        "json-schema.org/draft-04/schema": validators.Draft4Validator,
        "json-schema.org/draft-06/schema": validators.Draft6Validator,
        "json-schema.org/draft-07/schema": validators.Draft7Validator,
        "json-schema.org/draft/2019-09/schema": validators.Draft201909Validator,
        DEFAULT_DIALECT: validators.Draft202012Validator,
    }
    made = {}
    for name, dialect in known.items():
        keywords: dict[str, Any] = {**_OLD_KEYWORDS, **dialect.VALIDATORS}
        keywords = {word: counted(OWN.get(word, check)) for word, check in keywords.items()}
        made[name] = (dialect, validators.extend(dialect, keywords))  # type: ignore[no-untyped-call]
    return made


_FORMATS = _formats()
_DIALECTS = _dialects()


def _validator(schema: Any) -> Any:
    """Check a schema and return its validator."""
    if isinstance(schema, bool):
        return _DIALECTS[DEFAULT_DIALECT][1](schema, registry=Registry())
    if not isinstance(schema, Mapping):
        raise BadSchema("a schema must be an object")
    root = dict(schema)
    named = root.pop("$schema", DEFAULT_DIALECT)  # jsonschema would let it choose another validator
    plain, checked = _DIALECTS.get(_dialect_name(named), (None, None))
    if plain is None:
        raise BadSchema(f"$schema {named!r} is not a supported dialect: draft 4, 6, 7, 2019-09 or 2020-12")
    try:
        plain.check_schema(root, format_checker=_FORMATS)
    except SchemaError as problem:
        raise BadSchema(_reason(problem), _path(problem.absolute_path)) from None
    _walk(root, plain)
    return checked(root, registry=Registry(), format_checker=_FORMATS)


def _dialect_name(named: Any) -> str:
    return str(named).removeprefix("https://").removeprefix("http://").removesuffix("#").removesuffix("/")


def _reason(problem: SchemaError) -> str:
    if problem.validator == "format" and problem.validator_value == "regex":
        from rlm.tools.patterns import search

        try:
            search(str(problem.instance))
        except BadPattern as bad:
            return f"pattern {problem.instance!r} is not accepted by RE2: {bad}"
    if problem.path and problem.path[-1] == "type" and isinstance(problem.instance, str):
        meant = _PYTHON_TYPES.get(problem.instance)
        hint = f"; did you mean {meant!r}?" if meant else did_you_mean(problem.instance, _TYPES)
        return f"{problem.instance!r} is none of {', '.join(_TYPES)}{hint}"
    return str(problem.message)[:MAX_SHOWN]


_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_PYTHON_TYPES = {
    "bool": "boolean",
    "dict": "object",
    "float": "number",
    "int": "integer",
    "list": "array",
    "str": "string",
    "None": "null",
    "any": "object",
    "text": "string",
}
"""Common wrong names of types, with the names of JSON Schema."""


def _walk(root: dict[str, Any], dialect: Any) -> None:
    """Check every subschema: references stay inside, no reference loops back to itself, and there is one dialect."""
    specification = specification_with(dialect.META_SCHEMA.get("$schema") or dialect.META_SCHEMA["id"])
    top = specification.create_resource(root)
    waiting: list[tuple[Any, Any]] = [(root, Registry().resolver_with_root(top))]
    same_value: dict[int, list[int]] = {}  # each subschema with those that apply to the same value
    while waiting:
        schema, resolver = waiting.pop()
        if not isinstance(schema, dict) or id(schema) in same_value:
            continue
        if "$schema" in schema:
            raise BadSchema("$schema is allowed at the top only")
        same = same_value[id(schema)] = [id(inner) for inner in _in_place(schema)]
        for word in _REFERENCES:
            if isinstance(schema.get(word), str):
                target = _look_up(resolver, schema[word])
                same.append(id(target.contents))
                waiting.append((target.contents, target.resolver))
        inners = [*specification.create_resource(schema).subresources()]
        inners += [specification.create_resource(inner) for inner in _depending(schema)]
        waiting += [(inner.contents, resolver.in_subresource(inner)) for inner in inners]
    _check_ends(same_value)


def _in_place(schema: Mapping[str, Any]) -> Iterator[Any]:
    for word in _IN_PLACE_LISTS:
        if isinstance(schema.get(word), list):
            yield from schema[word]
    yield from (schema[word] for word in _IN_PLACE if word in schema)
    yield from _depending(schema)


def _depending(schema: Mapping[str, Any]) -> Iterator[Any]:
    for word in ("dependentSchemas", "dependencies"):
        if isinstance(schema.get(word), dict):
            yield from (inner for inner in schema[word].values() if isinstance(inner, dict))


def _look_up(resolver: Any, reference: str) -> Any:
    try:
        return resolver.lookup(reference)
    except (Unresolvable, ValueError):
        raise BadSchema(f"$ref {reference!r} leads to nothing in the schema; nothing is ever fetched") from None


def _check_ends(same: Mapping[int, list[int]]) -> None:
    """Raise if a schema holds for a value only if the same schema holds for it: its check would never end."""
    done: set[int] = set()
    for start in same:
        trail = [(start, iter(same[start]))]
        above = {start}
        while trail:
            place, rest = trail[-1]
            step = next((inner for inner in rest if inner in same and inner not in done), None)
            if step is None:
                done.add(place)
                above.discard(place)
                trail.pop()
            elif step in above:
                raise BadSchema("a $ref leads back to itself with nothing in between")
            else:
                above.add(step)
                trail.append((step, iter(same[step])))


# -- mismatches -------------------------------------------------------------------------------------


def _deepest(errors: Sequence[ValidationError]) -> ValidationError:
    """Return the most informative error: one inside the nearest branch of an ``anyOf``, if there is such a branch."""
    error = min(errors, key=lambda error: len(error.absolute_path))
    while error.context:
        branches: dict[Any, list[ValidationError]] = {}
        for inner in error.context:
            branches.setdefault(next(iter(inner.relative_schema_path), None), []).append(inner)
        nearest = min(branches.values(), key=_distance)
        if not nearest[0].relative_path and nearest[0].validator in ("type", "const", "enum"):
            break
        error = nearest[0]
    return error


def _distance(errors: Sequence[ValidationError]) -> tuple[bool, bool, int]:
    return (
        any(not error.relative_path and error.validator == "type" for error in errors),
        any(error.validator in ("const", "enum") for error in errors),
        len(errors),
    )


def _mismatch(error: ValidationError) -> Mismatch:
    path = list(error.absolute_path)
    schema: Any = error.schema
    value: Any = error.validator_value
    got: Any = error.instance
    if error.validator == "required":
        name = next(str(name) for name in value if name not in got)
        property_schema = schema.get("properties", {}).get(name, {})
        return Mismatch(_path([*path, name]), _clipped(property_schema), None, missing=True)
    hint = ""
    if error.validator == "additionalProperties" and value is False:
        hint = did_you_mean(str(path[-1]), schema.get("properties", {}))
        got = got.get(path[-1]) if isinstance(got, Mapping) else got
    expected = {str(error.validator): value} if error.validator else {"allowed": False}
    return Mismatch(_path(path), _clipped(expected), _clipped(got), hint=hint)


def _path(parts: Any) -> str:
    path = ""
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return path


def _clipped(value: Any) -> Any:
    """Return the value, or the beginning of its JSON if that is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= MAX_SHOWN:
        return value
    if isinstance(value, dict) and len(value) == 1:  # a keyword keeps its name
        name, inner = next(iter(value.items()))
        return {name: json.dumps(inner, ensure_ascii=False, default=str)[:MAX_SHOWN] + "..."}
    return text[:MAX_SHOWN] + "..."


def _short(value: Any) -> str:
    if isinstance(value, dict) and len(value) == 1:
        name, inner = next(iter(value.items()))
        return f"{name} {json.dumps(inner, ensure_ascii=False, default=str)}"
    return json.dumps(value, ensure_ascii=False, default=str)
