"""How problems are written: paths, and values short enough to show."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from rlm.errors import MOST_NAMED, did_you_mean, named, nearest
from rlm.model.plan import PlanError, PlanProblem

MAX_PROBLEMS = 20
"""A check stops after so many."""

MOST_SORTED = 1_000
"""Keys of an object that are put into order to show the first ones."""

SHOWN = 120
"""Characters of a value that a problem shows."""

LONGEST_KEY = 100
"""Characters of a key that a path shows."""

TYPES: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def shown(value: Any) -> str:
    """A value as JSON, cut where it is long."""
    if isinstance(value, dict | list) and len(value) > SHOWN:
        return f"{TYPES[type(value)]} of {len(value)}"
    try:
        text = json.dumps(_beginning(value, SHOWN + 1)[0])
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _beginning(value: Any, most: int) -> tuple[Any, int]:
    """A part of a value whose JSON begins as that of the whole, and how much of ``most`` is left: a value may be
    large, and one that failed is shown for every item that failed."""
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
    """What a value is, in the words of JSON."""
    return TYPES.get(type(value), f"a Python {type(value).__name__}")


def one_of(names: Iterable[str], *, like: str = "") -> str:
    """The names that are allowed, as an ``expected``: at most a dozen; of more, the few that are ``like`` a name."""
    listed = sorted(names)
    if not listed:
        return "nothing: there is none here"
    few = listed if len(listed) <= MOST_NAMED else nearest(like, listed) or listed
    return "one of " + named(few, of=len(listed))


def problem(path: str, kind: str, message: str, expected: str = "", got: str = "") -> PlanProblem:
    """One problem."""
    return PlanProblem(path=path, kind=kind, message=message, expected=expected, got=got)


def unknown(path: str, kind: str, what: str, name: str, known: Iterable[str]) -> PlanProblem:
    """A name that nobody knows, with the one that may have been meant; of many that are known, those that are like
    it."""
    names = list(known)
    message = f"there is no {what} {shown(name)} here{did_you_mean(name, names)}"
    return problem(path, kind, message, one_of(names, like=name), shown(name))


def wrong(path: str, expected: str, value: Any, *, kind: str = "wrong_type", message: str = "") -> PlanProblem:
    """A value that is not what was expected."""
    said = message or f"this must be {expected}"
    return problem(path, kind, said, expected, shown(value))


def inside(path: str, key: str | int) -> str:
    """The path of a member: ``a.b``, ``a[0]``, or ``a["b c"]`` where the key is no plain word. A long key is cut: the
    path of each item under it would be as long."""
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
    """The path that some keys lead to from ``path``."""
    for key in keys:
        path = inside(path, key)
    return path


def names_of(value: Mapping[str, Any]) -> str:
    """The keys of an object, as a ``got``."""
    return shown(sorted(map(str, islice(value, MOST_SORTED)))[:12])


def failure(kind: str, message: str, path: str, **detail: Any) -> PlanError:
    """What went wrong at a place of a running plan."""
    return PlanError(kind, message, {"path": path, **detail})
