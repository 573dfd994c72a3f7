"""How problems are written: paths, and values short enough to show."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rlm.errors import MOST_NAMED, did_you_mean, named, nearest
from rlm.model.plan import PlanProblem

MAX_PROBLEMS = 20
"""A check stops after so many."""

SHOWN = 120
"""Characters of a value that a problem shows."""

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
    if isinstance(value, str):
        value = value[: SHOWN + 1]
    elif isinstance(value, dict | list) and len(value) > SHOWN:
        return f"{TYPES[type(value)]} of {len(value)}"
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


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
    """The path of a member: ``a.b``, ``a[0]``, or ``a["b c"]`` where the key is no plain word."""
    if isinstance(key, int):
        return f"{path}[{key}]"
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
    return shown(sorted(map(str, value))[:12])
