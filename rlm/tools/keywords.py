"""Replacements for six JSON Schema keywords that ``jsonschema`` checks unsafely or inexactly.

``jsonschema`` matches patterns by Python's ``re``, and one pattern can keep that busy for years. It also compares
items pair by pair and divides floats: for example, 0.3 is then no multiple of 0.1. A small schema can have an endless
check (``allOf`` of ``allOf`` of ``$ref``). So every keyword counts its steps, and one check has bounded processor time.
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

STEPS_PER_CLOCK_READ = 64

Keyword = Callable[[Any, Any, Any, Any], Any]


class TooMuchWork(Exception):
    """A check exceeded its processor time."""


_work = threading.local()


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Bound checks inside: they raise TooMuchWork once this thread has used ``seconds`` of processor time."""
    _work.steps, _work.end = 0, time.thread_time() + seconds
    try:
        yield
    finally:
        _work.end = None


def counted(keyword: Keyword) -> Keyword:
    """Return the keyword as one counted step of a bounded check."""

    def step(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        _work.steps += 1
        if _work.steps % STEPS_PER_CLOCK_READ == 0 and _work.end is not None and time.thread_time() > _work.end:
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
        evaluated = _evaluated(validator, instance, {name: s for name, s in schema.items() if name != _UNEVALUATED})
        for name, item in instance.items():
            if name not in evaluated:
                yield from _further(validator, value, name, item)


_UNEVALUATED = "unevaluatedProperties"


def _further(validator: Any, value: Any, name: str, item: Any) -> Iterator[Any]:
    if value is False:
        yield ValidationError("no such property", path=[name])
    else:
        yield from validator.descend(item, value, path=name)


def _evaluated(validator: Any, instance: Mapping[str, Any], schema: Any) -> set[str]:
    """Return the properties that a schema evaluates if the instance is valid (2020-12, section 11.3)."""
    if not isinstance(schema, Mapping):
        return set()
    evaluated = set(schema.get("properties", {})) & set(instance)
    patterns = [search(text) for text in schema.get("patternProperties", {})]
    evaluated |= {name for name in instance if any(occurs(name) for occurs in patterns)}
    if "additionalProperties" in schema or _UNEVALUATED in schema:
        return set(instance)
    for inner, resolver in _beside(validator, instance, schema):
        evaluated |= _evaluated(validator.evolve(schema=inner, _resolver=resolver), instance, inner)
    return evaluated


def _beside(validator: Any, instance: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the subschemas that the same instance satisfies, each with the resolver of its place."""
    here = validator._resolver
    targets = [here.lookup(schema[keyword]) for keyword in ("$ref", "$dynamicRef") if keyword in schema]
    targets += [lookup_recursive_ref(here)] if "$recursiveRef" in schema else []
    for target in targets:
        yield target.contents, target.resolver
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
        keys: set[Any] = set()
        for place, item in enumerate(instance):
            key = _key(item)
            if key in keys:
                yield ValidationError("occurs twice", path=[place])
                return
            keys.add(key)


def _key(value: Any) -> Any:
    """Return a key that is equal for equal values of JSON Schema. For example, 1 equals 1.0 and differs from true."""
    if isinstance(value, list):
        return ("list", *map(_key, value))
    if isinstance(value, Mapping):
        return ("object", frozenset((name, _key(item)) for name, item in value.items()))
    return (isinstance(value, bool), value)


def multiple_of(validator: Any, value: float, instance: Any, _: Any) -> Iterator[ValidationError]:
    """Divide in decimal, as the numbers are written: 0.3 is a multiple of 0.1."""
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
