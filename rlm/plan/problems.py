"""The form of problems: paths, and values that are short enough to show."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from rlm.errors import MOST_NAMED, did_you_mean, named, nearest
from rlm.model.plan import PlanError, PlanProblem

MAX_PROBLEMS = 20
"""The most problems that one check collects."""

MOST_SORTED = 1_000
"""The most keys of an object that are sorted to show the first ones."""

SHOWN = 120
"""The most characters of a value in a problem."""

LONGEST_KEY = 100
"""The most characters of a key in a path."""

TYPES: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def short_json(value: Any) -> str:
    """Return a value as JSON, shortened where it is long."""
    if isinstance(value, dict | list) and len(value) > SHOWN:
        return f"{TYPES[type(value)]} of {len(value)}"
    try:
        text = json.dumps(_beginning(value, SHOWN + 1)[0])
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _beginning(value: Any, most: int) -> tuple[Any, int]:
    """Return a part of a value, and the rest of ``most``. The JSON of the part begins like that of the whole.

    A value may be large, and a failed value is shown for every item that failed.
    """
    if isinstance(value, str):
        return value[:most], most - len(value)
    if not isinstance(value, list | dict):
        return value, most - 1
    most -= 2
    members: list[tuple[Any, Any]] = []
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if most <= 0:
            break
        most -= len(key) if isinstance(key, str) else 0
        part, most = _beginning(item, most)
        members.append((key[: SHOWN + 1] if isinstance(key, str) else key, part))
    return (dict(members) if isinstance(value, dict) else [part for _, part in members]), most


def type_name(value: Any) -> str:
    """Return the JSON type of a value in words, for example ``"a list"``."""
    return TYPES.get(type(value), f"a Python {type(value).__name__}")


def one_of(names: Iterable[str], *, like: str = "") -> str:
    """Return the allowed names as an ``expected``: at most a dozen. Of more names, those that are ``like`` a name are
    listed.
    """
    listed = sorted(names)
    if not listed:
        return "nothing: there is none here"
    few = listed if len(listed) <= MOST_NAMED else nearest(like, listed) or listed
    return "one of " + named(few, of=len(listed))


def problem(path: str, kind: str, message: str, expected: str = "", got: str = "") -> PlanProblem:
    """Return one problem.

    For example ``str(problem("steps[0].op", "unknown_op", "no such operation"))`` names the place first.
    """
    return PlanProblem(path=path, kind=kind, message=message, expected=expected, got=got)


def unknown_name(path: str, kind: str, noun: str, name: str, known: Iterable[str]) -> PlanProblem:
    """Return the problem for an unknown name, with the closest known names."""
    names = list(known)
    message = f"there is no {noun} {short_json(name)} here{did_you_mean(name, names)}"
    return problem(path, kind, message, one_of(names, like=name), short_json(name))


def wrong_value(path: str, expected: str, value: Any, *, kind: str = "wrong_type", message: str = "") -> PlanProblem:
    """Return the problem for a value that differs from the expectation."""
    text = message or f"this must be {expected}"
    return problem(path, kind, text, expected, short_json(value))


def inside(path: str, key: str | int) -> str:
    """Return the path of a member: ``a.b``, ``a[0]``, or ``a["b c"]`` where the key is no plain word.

    A long key is cut, because the path of each item under it would be as long.
    """
    if isinstance(key, int):
        return f"{path}[{key}]"
    if key.isidentifier() and key.isascii() and len(key) <= LONGEST_KEY:
        return f"{path}.{key}" if path else key
    if len(key) > LONGEST_KEY:
        key = f"{key[:LONGEST_KEY]}..."
    if not key.replace("_", "a").replace("-", "a").isalnum():
        return f"{path}[{json.dumps(key)}]"
    return f"{path}.{key}" if path else key


def joined(path: str, keys: Iterable[str | int]) -> str:
    """Return the path that some keys lead to from ``path``."""
    for key in keys:
        path = inside(path, key)
    return path


def names_of(value: Mapping[str, Any]) -> str:
    """Return the keys of an object as a ``got``."""
    return short_json(sorted(map(str, islice(value, MOST_SORTED)))[:12])


def failure(kind: str, message: str, path: str, **detail: Any) -> PlanError:
    """Return the error for a failure at a place of a running plan."""
    return PlanError(kind, message, {"path": path, **detail})
