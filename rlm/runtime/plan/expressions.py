"""Expressions: how a plan says a value. Evaluation is pure, and what comes out of it is never evaluated again.

    "text", 3, true, null        itself
    [..., ...], {"k": ...}       a list, an object of expressions
    {"input": "name"}            an input of the run; with ``path`` a part of it
    {"var": "name"}              what an earlier step bound; with ``path`` a part of it
    {"join": [..., ...]}         one text: the parts one after the other
    {"handle": "name"}           a context
    {"literal": ...}             anything, exactly as it stands

A path is ``"a.b[0]"`` or the list of its keys, ``["a", "b", 0]``; ``[-1]`` is the last item.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm.errors import did_you_mean
from rlm.model.plan import PlanError
from rlm.runtime.plan.problems import inside, names_of, shown, type_name

FORMS: Mapping[str, frozenset[str]] = {
    "input": frozenset({"input", "path"}),
    "var": frozenset({"var", "path"}),
    "join": frozenset({"join"}),
    "handle": frozenset({"handle"}),
    "literal": frozenset({"literal"}),
}
"""The forms, by the key that makes one, with all the keys that it may have."""

MAX_CHARS = 64 * 1024 * 1024
MAX_NODES = 1_000_000
"""How large a value made by a plan may be: characters of its texts, and values in it."""

Key = str | int
Piece = str | dict[str, Any]
Prompt = tuple[Piece, ...]
"""A prompt in pieces: texts, and between them handles (``{"handle": id}``) whose text is to stand there."""

_PART = re.compile(r"\[(-?\d{1,9})\]|\.?([^.\[\]]+)")


@dataclass(frozen=True, slots=True)
class Scope:
    """The values that expressions may name. Values are JSON; nobody changes them."""

    inputs: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)

    def bind(self, name: str, value: Any) -> Scope:
        """The same scope with one more variable."""
        return Scope(self.inputs, {**self.variables, name: value})


def form_of(value: Any) -> str | None:
    """The form that an object is, None for a plain object or no object."""
    if not isinstance(value, dict):
        return None
    return next((key for key in FORMS if key in value and value.keys() <= FORMS[key]), None)


def evaluate(expression: Any, scope: Scope, path: str = "") -> Any:
    """The value of an expression.

    Raises:
        PlanError: ``unbound``, ``unknown_input``, ``no_such_part``, ``not_text`` or ``too_large``; ``detail`` has
            the path of the place in the plan.
    """
    if isinstance(expression, list):
        return bounded([evaluate(item, scope, inside(path, n)) for n, item in enumerate(expression)], path)
    if not isinstance(expression, dict):
        return expression
    form = form_of(expression)
    if form is not None:
        return _EVALUATE[form](expression, scope, path)
    return bounded({key: evaluate(item, scope, inside(path, key)) for key, item in expression.items()}, path)


def pieces(expression: Any, scope: Scope, path: str) -> Prompt:
    """A prompt: as ``evaluate``, but a handle may stand where a text does."""
    if form_of(expression) == "join":
        inner = inside(path, "join")
        if not isinstance(expression["join"], list):
            raise failure("invalid_join", "`join` wants a list of parts", inner)
        values = [evaluate(part, scope, inside(inner, n)) for n, part in enumerate(expression["join"])]
    else:
        values = [evaluate(expression, scope, path)]
    bounded(values, path)
    return merged([value if is_handle(value) else text_of(value) for value in values])


def text(expression: Any, scope: Scope, path: str) -> str:
    """A value as one text. Raises: PlanError, as ``evaluate``; ``not_text`` for a context."""
    parts = pieces(expression, scope, path)
    if len(parts) > 1 or not isinstance(parts[0], str):
        raise failure("not_text", "a context has no text of its own here: read it with a `context` step first", path)
    return parts[0]


def merged(parts: list[Piece]) -> Prompt:
    """The parts with neighbouring texts made one; at least one."""
    made: list[Piece] = []
    for part in parts:
        if made and isinstance(part, str) and isinstance(made[-1], str):
            made[-1] += part
        else:
            made.append(part)
    return tuple(made) or ("",)


def text_of(value: Any) -> str:
    """A value as it stands inside a text: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def is_handle(value: Any) -> bool:
    """Whether a value stands for a context."""
    return isinstance(value, dict) and value.keys() == {"handle"} and isinstance(value["handle"], str)


def is_failure(value: Any) -> bool:
    """Whether a value is what stands for a failed item: an error as data under ``error``, and nothing else."""
    if not isinstance(value, dict) or value.keys() != {"error"}:
        return False
    error = value["error"]
    return isinstance(error, dict) and {"phase", "kind", "message"} <= error.keys()


def keys_of(path: Any) -> tuple[Key, ...] | None:
    """The keys of a path; None where it is no path."""
    if isinstance(path, list):
        good = all(isinstance(key, str) or (isinstance(key, int) and not isinstance(key, bool)) for key in path)
        return tuple(path) if good else None
    if not isinstance(path, str) or path.startswith("."):
        return None
    keys: list[Key] = []
    at = 0
    while at < len(path):
        part = _PART.match(path, at)
        if part is None or (at and part[2] and path[at] != "."):
            return None
        keys.append(int(part[1]) if part[1] else part[2])
        at = part.end()
    return tuple(keys)


def part_of(value: Any, keys: tuple[Key, ...], path: str) -> Any:
    """The part of a value that a path leads to. Raises: PlanError ``no_such_part``."""
    way = ""
    for key in keys:
        if not _has(value, key):
            raise _no_part(value, key, way, path)
        value = value[key]
        way = inside(way, key)
    return value


def _has(value: Any, key: Key) -> bool:
    if isinstance(key, str):
        return isinstance(value, dict) and key in value
    return isinstance(value, list) and -len(value) <= key < len(value)


def bounded(value: Any, path: str) -> Any:
    """The value, if it is not too large once it is written out. Raises: PlanError ``too_large``."""
    nodes, chars, stack = 0, 0, [value]
    while stack:
        item = stack.pop()
        nodes += 1
        if isinstance(item, str):
            chars += len(item)
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, dict):
            stack.extend(item.values())
            chars += sum(map(len, item))
        if chars > MAX_CHARS or nodes + len(stack) > MAX_NODES:
            raise failure("too_large", "the value is too large", path, max_chars=MAX_CHARS, max_values=MAX_NODES)
    return value


def failure(kind: str, message: str, path: str, **detail: Any) -> PlanError:
    """What went wrong at a place of a running plan."""
    return PlanError(kind, message, {"path": path, **detail})


def _no_part(value: Any, key: Key, way: str, path: str) -> PlanError:
    where = f"at {way!r}" if way else "at the top"
    if isinstance(value, dict):
        there = f"an object with the keys {names_of(value)}"
        hint = did_you_mean(key, map(str, value)) if isinstance(key, str) else ""
    else:
        there = f"a list of {len(value)}" if isinstance(value, list) else type_name(value)
        hint = ""
    message = f"the value has no part {shown(key)}: {where} there is {there}{hint}"
    return failure("no_such_part", message, path, key=key)


def _input(expression: dict[str, Any], scope: Scope, path: str) -> Any:
    return _named(expression, expression["input"], scope.inputs, "unknown_input", "no input", path)


def _var(expression: dict[str, Any], scope: Scope, path: str) -> Any:
    return _named(expression, expression["var"], scope.variables, "unbound", "no variable", path)


def _named(expression: dict[str, Any], name: Any, values: Mapping[str, Any], kind: str, missing: str, path: str) -> Any:
    if not isinstance(name, str) or name not in values:
        raise failure(kind, f"there is {missing} {shown(name)}", path, name=name)
    keys = keys_of(expression.get("path", ""))
    if keys is None:
        raise failure("invalid_path", f"{shown(expression['path'])} is no path", inside(path, "path"))
    return part_of(values[name], keys, path)


_EVALUATE: Mapping[str, Callable[[dict[str, Any], Scope, str], Any]] = {
    "input": _input,
    "var": _var,
    "join": text,
    "handle": lambda expression, _scope, _path: expression,
    "literal": lambda expression, _scope, _path: expression["literal"],
}
