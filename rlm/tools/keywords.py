"""Keywords of JSON Schema as this library checks them: six whose usual code is unsafe or inexact, all of them counted.

``jsonschema`` matches patterns by Python's ``re``, which a pattern can keep busy for years; compares items pair by
pair; and divides floats. A schema may also be small and its check endless (``allOf`` of ``allOf`` of ``$ref``): every
step is counted, and the processor time of one check is bounded.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from jsonschema.exceptions import ValidationError
from referencing.jsonschema import lookup_recursive_ref

from rlm.tools.patterns import search

STEPS_BETWEEN_LOOKS = 64

Keyword = Callable[[Any, Any, Any, Any], Any]


class TooMuchWork(Exception):
    """A check that took more processor time than it may."""


_work = threading.local()


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Checks inside raise TooMuchWork once this thread has used so many seconds of processor time."""
    _work.steps, _work.end = 0, time.thread_time() + seconds
    try:
        yield
    finally:
        _work.end = None


def counted(keyword: Keyword) -> Keyword:
    """The keyword, as one step of a bounded check."""

    def step(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        _work.steps += 1
        if _work.steps % STEPS_BETWEEN_LOOKS == 0 and _work.end is not None and time.thread_time() > _work.end:
            raise TooMuchWork
        return keyword(validator, value, instance, schema)

    return step


def pattern(validator: Any, value: str, instance: Any, _: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string") and not search(value)(instance):
        yield ValidationError(f"does not match {value!r}")


def pattern_properties(validator: Any, value: Mapping[str, Any], instance: Any, _: Any) -> Iterator[Any]:
    if validator.is_type(instance, "object"):
        for text, inner in value.items():
            occurs = search(text)
            for name, item in instance.items():
                if occurs(name):
                    yield from validator.descend(item, inner, path=name, schema_path=text)


def additional_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if validator.is_type(instance, "object"):
        named = schema.get("properties", {})
        patterns = [search(text) for text in schema.get("patternProperties", {})]
        for name, item in instance.items():
            if name not in named and not any(occurs(name) for occurs in patterns):
                yield from _further(validator, value, name, item)


def unevaluated_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if validator.is_type(instance, "object"):
        seen = _evaluated(validator, instance, {name: s for name, s in schema.items() if name != _UNEVALUATED})
        for name, item in instance.items():
            if name not in seen:
                yield from _further(validator, value, name, item)


_UNEVALUATED = "unevaluatedProperties"


def _further(validator: Any, value: Any, name: str, item: Any) -> Iterator[Any]:
    if value is False:
        yield ValidationError("no such property", path=[name])
    else:
        yield from validator.descend(item, value, path=name)


def _evaluated(validator: Any, instance: Mapping[str, Any], schema: Any) -> set[str]:
    """The properties that a schema looks at where the instance is valid (2020-12, section 11.3)."""
    if not isinstance(schema, Mapping):
        return set()
    seen = set(schema.get("properties", {})) & set(instance)
    patterns = [search(text) for text in schema.get("patternProperties", {})]
    seen |= {name for name in instance if any(occurs(name) for occurs in patterns)}
    if "additionalProperties" in schema or _UNEVALUATED in schema:
        return set(instance)
    for inner, resolver in _beside(validator, instance, schema):
        seen |= _evaluated(validator.evolve(schema=inner, _resolver=resolver), instance, inner)
    return seen


def _beside(validator: Any, instance: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The subschemas that hold of the same instance, each with the resolver of its place."""
    here = validator._resolver
    targets = [here.lookup(schema[keyword]) for keyword in ("$ref", "$dynamicRef") if keyword in schema]
    targets += [lookup_recursive_ref(here)] if "$recursiveRef" in schema else []
    for found in targets:
        yield found.contents, found.resolver
    branches = [inner for keyword in ("allOf", "anyOf", "oneOf") for inner in schema.get(keyword, ())]
    branches += [inner for name, inner in schema.get("dependentSchemas", {}).items() if name in instance]
    if "if" in schema:
        holds = validator.evolve(schema=schema["if"]).is_valid(instance)
        branches += [schema["if"], schema.get("then", True)] if holds else [schema.get("else", True)]
    for inner in branches:
        if validator.evolve(schema=inner).is_valid(instance):
            yield inner, here


def unique_items(validator: Any, value: bool, instance: Any, _: Any) -> Iterator[ValidationError]:
    if value and validator.is_type(instance, "array"):
        seen: set[Any] = set()
        for place, item in enumerate(instance):
            key = _key(item)
            if key in seen:
                yield ValidationError("stands twice", path=[place])
                return
            seen.add(key)


def _key(value: Any) -> Any:
    """Equal for values that JSON Schema calls equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, list):
        return ("list", *map(_key, value))
    if isinstance(value, Mapping):
        return ("object", frozenset((name, _key(item)) for name, item in value.items()))
    return (isinstance(value, bool), value)


def multiple_of(validator: Any, value: float, instance: Any, _: Any) -> Iterator[ValidationError]:
    """In decimal, as it is written: 0.3 is a multiple of 0.1."""
    if validator.is_type(instance, "number") and Fraction(str(instance)) % Fraction(str(value)) != 0:
        yield ValidationError(f"is not a multiple of {value!r}")


OWN: dict[str, Keyword] = {
    "pattern": pattern,
    "patternProperties": pattern_properties,
    "additionalProperties": additional_properties,
    _UNEVALUATED: unevaluated_properties,
    "uniqueItems": unique_items,
    "multipleOf": multiple_of,
}
