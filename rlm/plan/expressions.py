"""Expressions: the values that a plan writes. Evaluation is pure, and its result is never evaluated again.

    "text", 3, true, null        itself
    [..., ...], {"k": ...}       a list, an object of expressions
    {"input": "name"}            an input of the run; with ``path`` a part of it
    {"var": "name"}              a value that an earlier step bound; with ``path`` a part of it
    {"join": [..., ...]}         one text: the parts one after the other
    {"handle": "name"}           a context
    {"literal": ...}             any value, exactly as it is written

A path is ``"a.b[0]"`` or the list of its keys, ``["a", "b", 0]``; ``[-1]`` is the last item.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any, Self

from rlm.errors import did_you_mean
from rlm.fencing import FencedText, text_block, value_block
from rlm.model.plan import PlanError
from rlm.plan.grammar import FORMS
from rlm.plan.problems import failure, inside, joined, names_of, short_json, type_name
from rlm.plan.sizes import CONTAINERS, StepWork, bounded

INLINE = 40
"""Digits up to which a number stands among the words of a prompt; true, false and null always do."""

Key = str | int


class Material(str):
    """The text of a value in a prompt, which is no instruction; ``block`` is its form in a request."""

    __slots__ = ("block",)
    block: FencedText

    def __new__(cls, text: str, block: FencedText) -> Self:
        """Return the text with its block."""
        made = super().__new__(cls, text)
        made.block = block
        return made


Piece = str | dict[str, Any]
Prompt = tuple[Piece, ...]
"""A prompt in pieces: the words of the plan, Material, and handles (``{"handle": id}``), which stand for their texts.
"""


class PromptText(str):
    """A prompt without handles as one text, with its pieces."""

    __slots__ = ("pieces",)
    pieces: tuple[str, ...]

    def __new__(cls, pieces: Iterable[str]) -> Self:
        """Return the pieces one after the other."""
        kept = tuple(pieces)
        made = super().__new__(cls, "".join(kept))
        made.pieces = kept
        return made


HANDLE_KEYS = ({"handle"}, {"name", "handle", "begins"})
"""The keys of a handle, and of a part of a context."""

MOST_KEYS = 200
"""The most keys of an object that are searched for the closest one."""

_PART = re.compile(r"\[(-?\d{1,9})\]|\.?([^.\[\]]+)")


@dataclass(frozen=True, slots=True)
class Scope:
    """The values that expressions may name. They are JSON and never change.

    ``bound_units`` is the size of the values that the plan bound. ``work`` counts the values that expressions read.
    """

    inputs: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)
    own: frozenset[str] = frozenset()
    """Variables whose value is written in the plan itself. In a prompt they count as words of the plan."""

    bound_units: int = 0
    work: StepWork = field(default_factory=StepWork, compare=False, repr=False)

    def bind(self, name: str, value: Any, units: int = 0) -> Scope:
        """Return the same scope with one more variable. Its value has the size ``units``."""
        own = self.own - {name} if name in self.own else self.own
        return Scope(self.inputs, {**self.variables, name: value}, own, self.bound_units + units, self.work)

    def bind_own(self, name: str, value: Any) -> Scope:
        """Return the same scope with one more variable. Its value is written in the plan."""
        return Scope(self.inputs, {**self.variables, name: value}, self.own | {name}, self.bound_units, self.work)

    def is_own(self, expression: Any) -> bool:
        """Whether the value of an expression depends on the plan and its task only."""
        match form_of(expression):
            case "literal":
                return True
            case "handle":
                return False
            case "var":
                return bool(expression["var"] in self.own)
            case "input":
                return _words_of(self.inputs.get(expression["input"])) is not None
            case "join":
                return self.is_own(expression["join"])
        if isinstance(expression, dict):
            return all(map(self.is_own, expression.values()))
        return all(map(self.is_own, expression)) if isinstance(expression, list) else True


def form_of(value: Any) -> str | None:
    """Return the form of an object, for example ``"var"``; None for a plain object or another value."""
    if not isinstance(value, dict):
        return None
    for key, fields in FORMS.items():
        if key in value and value.keys() <= fields.keys():
            return key
    return None


def evaluate(expression: Any, scope: Scope, path: str = "") -> Any:
    """Return the value of an expression.

    For example ``evaluate({"join": ["a", {"var": "x"}]}, Scope(variables={"x": 1}))`` is ``"a1"``.

    Args:
        expression: the expression, as JSON data.
        scope: the values that it may name.
        path: the place of the expression in the plan, for errors.

    Raises:
        PlanError: ``unbound``, ``unknown_input``, ``no_such_part``, ``not_text`` or ``too_large``; ``detail`` has the
            path of the place in the plan.
    """
    if not isinstance(expression, CONTAINERS):
        return expression
    form = form_of(expression)
    if form is not None and isinstance(expression, dict):
        return _EVALUATE[form](expression, scope, path)
    return bounded(_parts(expression, scope, path), path, scope.work)


def _parts(expression: Any, scope: Scope, path: str) -> Any:
    """Return the value of an expression. Only its texts are bounded here; the caller bounds the whole once."""
    if isinstance(expression, list):
        values = _written_values(expression)
        if values is not None:
            scope.work.add(values, path)
            return expression
        scope.work.add(len(expression), path)
        return [
            _parts(item, scope, inside(path, number)) if isinstance(item, CONTAINERS) else item
            for number, item in enumerate(expression)
        ]
    form = form_of(expression)
    if form is not None:
        return _EVALUATE[form](expression, scope, path)
    scope.work.add(len(expression), path)
    return {
        key: _parts(item, scope, inside(path, key)) if isinstance(item, CONTAINERS) else item
        for key, item in expression.items()
    }


def _written_values(expression: list[Any]) -> int | None:
    """Return the number of values in a list that holds no object, and so is its own value; None where it holds one.

    A path for each item of such a list would take longer than all else: 80,000 items take a tenth of a second.
    """
    count, stack = 0, [expression]
    while stack:
        items = stack.pop()
        count += len(items)
        for item in items:
            if isinstance(item, dict):
                return None
            if isinstance(item, list):
                stack.append(item)
    return count


def pieces(expression: Any, scope: Scope, path: str) -> Prompt:
    """Return a prompt as pieces. As in ``evaluate``, but handles may stand for texts, and values become Material."""
    values = list(_prompt_parts(expression, scope, path))
    bounded([value for _, value in values], path, scope.work)
    return merge_words([piece for part, value in values for piece in _pieces_for(part, value, scope)])


def _prompt_parts(expression: Any, scope: Scope, path: str) -> Iterator[tuple[Any, Any]]:
    """Yield the parts of a prompt in order, with their values."""
    if form_of(expression) != "join":
        yield expression, evaluate(expression, scope, path)
        return
    inner = inside(path, "join")
    if not isinstance(expression["join"], list):
        raise failure("invalid_join", "`join` wants a list of parts", inner)
    for n, part in enumerate(expression["join"]):
        yield from _prompt_parts(part, scope, inside(inner, n))


def _pieces_for(part: Any, value: Any, scope: Scope) -> Iterable[Piece]:
    """Return the pieces of a prompt for a part: words, a context, or a value as material."""
    if is_handle(value):
        return (bare_handle(value),)
    task = scope.inputs.get(part["input"]) if form_of(part) == "input" else None
    if isinstance(task, PromptText) and task == value:
        return task.pieces
    if scope.is_own(part) or _is_inline(value):
        return (text_of(value),)
    return (material(_name_of(part), value),)


def material(name: str, value: Any) -> Material:
    """Return a value as material under a name."""
    if isinstance(value, str):
        return Material(value, text_block(name, value))
    return Material(text_of(value), value_block(name, value))


def _is_inline(value: Any) -> bool:
    """Whether a value cannot hold an instruction: a number that is not long, true, false or null."""
    if isinstance(value, float | int) and not isinstance(value, bool):
        return bool(abs(value) < 10**INLINE)
    return value is None or isinstance(value, bool)


def _name_of(expression: Any) -> str:
    name = expression.get("var", expression.get("input")) if isinstance(expression, dict) else None
    return joined(name, keys_of(expression.get("path", "")) or ()) if isinstance(name, str) else "value"


def text(expression: Any, scope: Scope, path: str) -> PromptText:
    """Return a value as one text. Raises: PlanError, as ``evaluate``; ``not_text`` for a context."""
    parts = pieces(expression, scope, path)
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) < len(parts):
        raise failure("not_text", "a context has no text of its own here: read it with a `context` step first", path)
    return PromptText(texts)


def texts_in(text: str) -> tuple[str, ...]:
    """Return the pieces of a ``PromptText``; any other text is one piece."""
    return text.pieces if isinstance(text, PromptText) else (text,)


def words_in(prompt: str | Prompt) -> str:
    """Return the words of a prompt, without its material."""
    parts = texts_in(prompt) if isinstance(prompt, str) else prompt
    return "\n".join(piece for piece in parts if isinstance(piece, str) and not isinstance(piece, Material))


def _words_of(value: Any) -> str | None:
    """Return the text of a task that is words alone; None for any other value."""
    return value if isinstance(value, PromptText) and not any(isinstance(p, Material) for p in value.pieces) else None


def merge_words(parts: list[Piece]) -> Prompt:
    """Return the parts, with neighbouring words joined. The result has at least one piece."""
    made: list[Piece] = []
    for are_words, group in groupby(parts, _is_words):
        run = list(group)
        made += ["".join(map(str, run))] if are_words else run
    return tuple(made) or ("",)


def _is_words(piece: Piece) -> bool:
    return isinstance(piece, str) and not isinstance(piece, Material)


def text_of(value: Any) -> str:
    """Return a value as it stands inside a text: a text as it is, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def is_handle(value: Any) -> bool:
    """Whether a value stands for a context: ``{"handle": id}``, or a part with its name and beginning."""
    return isinstance(value, dict) and value.keys() in HANDLE_KEYS and isinstance(value["handle"], str)


def bare_handle(value: dict[str, Any]) -> dict[str, Any]:
    """Return a handle without name and beginning."""
    return {"handle": value["handle"]}


def is_failure(value: Any) -> bool:
    """Whether a value stands for a failed item: an object with the single key ``error`` and an error as data."""
    if not isinstance(value, dict) or value.keys() != {"error"}:
        return False
    error = value["error"]
    return isinstance(error, dict) and {"phase", "kind", "message"} <= error.keys()


def keys_of(path: Any) -> tuple[Key, ...] | None:
    """Return the keys of a path, for example ``("a", "b", 0)`` for ``"a.b[0]"``; None where it is no path."""
    if isinstance(path, list):
        good = all(isinstance(key, str) or (isinstance(key, int) and not isinstance(key, bool)) for key in path)
        return tuple(path) if good else None
    if path == "":
        return ()
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
    """Return the part of a value at a path. Raises: PlanError ``no_such_part``."""
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


def _no_part(value: Any, key: Key, way: str, path: str) -> PlanError:
    where = f"at {way!r}" if way else "at the top"
    if isinstance(value, dict):
        there = f"an object with the keys {names_of(value)}"
        hint = did_you_mean(key, islice(map(str, value), MOST_KEYS)) if isinstance(key, str) else ""
    else:
        there = f"a list of {len(value)}" if isinstance(value, list) else type_name(value)
        hint = ""
    message = f"the value has no part {short_json(key)}: {where} there is {there}{hint}"
    return failure("no_such_part", message, path, key=key)


def _input(expression: dict[str, Any], scope: Scope, path: str) -> Any:
    return _named(expression, expression["input"], scope.inputs, "unknown_input", "no input", path)


def _var(expression: dict[str, Any], scope: Scope, path: str) -> Any:
    return _named(expression, expression["var"], scope.variables, "unbound", "no variable", path)


def _named(expression: dict[str, Any], name: Any, values: Mapping[str, Any], kind: str, missing: str, path: str) -> Any:
    if not isinstance(name, str) or name not in values:
        raise failure(kind, f"there is {missing} {short_json(name)}", path, name=name)
    keys = keys_of(expression.get("path", ""))
    if keys is None:
        raise failure("invalid_path", f"{short_json(expression['path'])} is no path", inside(path, "path"))
    value = values[name]
    return part_of(str(value) if isinstance(value, PromptText) else value, keys, path)


_EVALUATE: Mapping[str, Callable[[dict[str, Any], Scope, str], Any]] = {
    "input": _input,
    "var": _var,
    "join": lambda expression, scope, path: str(text(expression, scope, path)),
    "handle": lambda expression, _scope, _path: expression,
    "literal": lambda expression, _scope, _path: expression["literal"],
}
