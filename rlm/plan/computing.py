"""Computed values: JMESPath expressions over the values that a plan bound, in a bounded number of steps.

JMESPath has no recursion and no definitions, so every expression ends. Nested functions can still repeat work, and
nested lists can double a value with each ``[@, @]``. So each visit of a node counts, and each value that is made is
measured.

    >>> compute("people[?age > `20`].name", {"people": [{"name": "Ann", "age": 31}, {"name": "Bo", "age": 9}]})[0]
    ['Ann']
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jmespath
import jmespath.exceptions
from jmespath import functions, visitor

from rlm.plan.problems import failure
from rlm.plan.sizes import MAX_CHARS, MAX_NODES, size_of, units_of

MAX_EXPRESSION = 2_000
"""The most characters of an expression."""

MAX_WORK = 1_000_000
"""The most units of work of one expression: about two seconds of a thread."""

MAX_ARGUMENTS = 50_000
"""The most values in the arguments of one function: a function of that size holds the interpreter for about 20 ms."""

MAX_ARGUMENT_CHARS = 4 * 1024 * 1024

_CHECKED_EACH = 256
"""Visits between two looks at ``ended``."""

_MAKING = frozenset(
    "multi_select_list multi_select_dict projection filter_projection value_projection flatten function_expression"
    " slice".split()
)
"""The nodes that make a value; the others give a part of one."""


@dataclass
class _Meter:
    """Counts the work of one expression."""

    most: int
    ended: Callable[[], bool]
    work: int = 0
    visits: int = 0

    def count(self, units: int) -> None:
        self.visits += 1
        self.work += units
        if self.work > self.most or (self.visits % _CHECKED_EACH == 0 and self.ended()):
            raise _TooMuchError

    def measure(self, value: Any) -> None:
        nodes, chars = size_of(value)
        self.count(units_of(nodes, chars))
        if nodes > MAX_NODES or chars > MAX_CHARS:
            raise _TooLargeError


class _TooMuchError(Exception):
    """The expression takes too many steps, or nothing waits for its value any more."""


class _TooLargeError(Exception):
    """A value is too large."""


def compute(
    expression: str,
    values: Mapping[str, Any],
    path: str = "",
    *,
    most: int = MAX_WORK,
    ended: Callable[[], bool] = lambda: False,
) -> tuple[Any, int]:
    """Return the value of an expression, and the units of work that it took.

    Args:
        expression: JMESPath, with the functions of ``_Functions``.
        values: the values by name.
        path: the place of the expression in the plan, for errors.
        most: units of work that it may take.
        ended: whether nothing waits for the value any more; the computation then ends.

    Raises:
        PlanError: ``invalid_expression``, ``too_large`` or ``too_much_work``.
    """
    meter = _Meter(min(most, MAX_WORK), ended)
    try:
        value = _Interpreter(meter).visit(_parsed(expression), {name: _plain(value) for name, value in values.items()})
    except _TooMuchError:
        message = f"the expression takes more than {meter.most:,} steps: filter first, and nest less"
        raise failure("too_much_work", message, path, limit=meter.most) from None
    except _TooLargeError:
        raise failure("too_large", "the value of the expression, or an argument in it, is too large", path) from None
    except RecursionError:
        raise failure("invalid_expression", "the expression is nested too deeply", path) from None
    except (jmespath.exceptions.JMESPathError, ValueError, TypeError, OverflowError) as problem:
        raise failure("invalid_expression", f"JMESPath: {_first_line(problem)}", path) from None
    if isinstance(value, visitor._Expression):
        raise failure("invalid_expression", "JMESPath: `&` stands only in the arguments of a function", path)
    return value, meter.work


def problem_of(expression: str) -> str | None:
    """Return the fault of an expression that cannot be parsed; None for a good one."""
    if len(expression) > MAX_EXPRESSION:
        return f"at most {MAX_EXPRESSION:,} characters"
    try:
        node = _parsed(expression)
    except RecursionError:
        return "it is nested too deeply"
    except (jmespath.exceptions.JMESPathError, ValueError) as problem:
        return _first_line(problem)
    known = _Functions.FUNCTION_TABLE
    unknown = next((each["value"] for each in _nodes(node) if each["type"] == "function_expression"
                    and each["value"] not in known), None)  # fmt: skip
    return None if unknown is None else f"there is no function {unknown}(); known: {', '.join(sorted(known))}"


def names_in(expression: str) -> set[str]:
    """Return the names of bound values that an expression reads: its fields that stand at the beginning of a path."""
    try:
        return set(_roots(_parsed(expression)))
    except (jmespath.exceptions.JMESPathError, ValueError, RecursionError):
        return set()


def is_true(value: Any) -> bool:
    """Whether a value counts as true: all but null, false, and an empty text, list or object."""
    return not (value is None or value is False or value == "" or value == [] or value == {})


@lru_cache(maxsize=256)
def _parsed(expression: str) -> dict[str, Any]:
    tree: dict[str, Any] = jmespath.compile(expression).parsed
    return tree


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, str) and type(value) is not str else value


def _first_line(problem: Exception) -> str:
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0][:300]


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    stack = [node]
    while stack:
        item = stack.pop()
        yield item
        stack += [child for child in item["children"] if isinstance(child, dict)]


_FIRST_ONLY = frozenset(
    "subexpression index_expression pipe projection filter_projection value_projection flatten".split()
)
"""The nodes whose further children read the value of the first one."""


def _roots(node: dict[str, Any]) -> Iterator[str]:
    kind = node["type"]
    if kind == "field":
        yield node["value"]
    elif kind == "expref":
        return
    else:
        children = [child for child in node["children"] if isinstance(child, dict)]
        for child in children[:1] if kind in _FIRST_ONLY else children:
            yield from _roots(child)


class _Interpreter(visitor.TreeInterpreter):  # type: ignore[misc]
    """The interpreter of the library, with a meter."""

    def __init__(self, meter: _Meter) -> None:
        super().__init__(jmespath.Options(custom_functions=_Functions(meter)))
        self._meter = meter

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the value of a node, counted and measured."""
        self._meter.count(1)
        value = super().visit(node, *args, **kwargs)
        if node["type"] in _MAKING:
            self._meter.measure(value)
        return value


def _takes(*types: list[str], variadic: bool = False) -> Callable[[Any], Any]:
    rows: list[dict[str, Any]] = [{"types": each} for each in types]
    if variadic:
        rows[-1]["variadic"] = True
    marked: Callable[[Any], Any] = functions.signature(*rows)
    return marked


_ARRAY, _TEXT, _NUMBER = ["array"], ["string"], ["number"]


class _Functions(functions.Functions):  # type: ignore[misc]
    """The functions of the library, and some of the JMESPath community, such as ``zip`` and ``group_by``."""

    def __init__(self, meter: _Meter) -> None:
        self._meter = meter

    def call_function(self, function_name: str, resolved_args: list[Any]) -> Any:
        """Return the value of a function whose arguments are not too large."""
        values = [each for each in resolved_args if not isinstance(each, visitor._Expression)]
        nodes, chars = size_of(values)
        if nodes > MAX_ARGUMENTS or chars > MAX_ARGUMENT_CHARS:
            raise _TooLargeError
        self._meter.count(units_of(nodes, chars))
        if function_name in ("join", "replace"):
            self._check_joined(values)
        value = super().call_function(function_name, resolved_args)
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{function_name}() gives no finite number")
        return value

    def _check_joined(self, values: list[Any]) -> None:
        texts = [each for each in values if isinstance(each, str)]
        many = sum(len(each) for each in values if isinstance(each, list | str))
        if max(map(len, texts), default=0) * max(1, many) > MAX_CHARS and len(texts[0]) > 1:
            raise _TooLargeError

    @_takes(_ARRAY, _ARRAY, variadic=True)
    def _func_zip(self, *lists: list[Any]) -> list[list[Any]]:
        for each in lists:
            if not isinstance(each, list):
                raise ValueError("zip() takes lists")
        return [list(row) for row in zip(*lists, strict=False)]

    @_takes(_ARRAY, ["expref"])
    def _func_group_by(self, rows: list[Any], key: Any) -> dict[str, list[Any]]:
        groups: dict[str, list[Any]] = {}
        for row in rows:
            groups.setdefault(_key_of(key.visit(key.expression, row)), []).append(row)
        return groups

    @_takes(_ARRAY, ["expref"])
    def _func_count_by(self, rows: list[Any], key: Any) -> dict[str, int]:
        return {name: len(group) for name, group in self._func_group_by(rows, key).items()}

    @_takes(_ARRAY)
    def _func_unique(self, rows: list[Any]) -> list[Any]:
        seen: dict[str, Any] = {}
        for row in rows:
            seen.setdefault(_key_of(row, exact=True), row)
        return list(seen.values())

    @_takes(["object"])
    def _func_items(self, value: dict[str, Any]) -> list[list[Any]]:
        return [[key, item] for key, item in value.items()]

    @_takes(_ARRAY)
    def _func_from_items(self, rows: list[Any]) -> dict[str, Any]:
        if not all(isinstance(row, list) and len(row) == 2 and isinstance(row[0], str) for row in rows):
            raise ValueError("from_items() takes a list of pairs [text, value]")
        return {key: value for key, value in rows}  # noqa: C416 - the rows are lists

    @_takes(_TEXT, _TEXT)
    def _func_split(self, text: str, separator: str) -> list[str]:
        return text.split(separator) if separator else list(text)

    @_takes(_TEXT, _TEXT, _TEXT)
    def _func_replace(self, text: str, old: str, new: str) -> str:
        return text.replace(old, new) if old else text

    @_takes(_TEXT)
    def _func_lower(self, text: str) -> str:
        return text.lower()

    @_takes(_TEXT)
    def _func_upper(self, text: str) -> str:
        return text.upper()

    @_takes(_TEXT)
    def _func_trim(self, text: str) -> str:
        return text.strip()

    @_takes(_NUMBER, _NUMBER)
    def _func_add(self, one: float, other: float) -> float:
        return _bounded(one + other)

    @_takes(_NUMBER, _NUMBER)
    def _func_subtract(self, one: float, other: float) -> float:
        return _bounded(one - other)

    @_takes(_NUMBER, _NUMBER)
    def _func_multiply(self, one: float, other: float) -> float:
        return _bounded(one * other)

    @_takes(_NUMBER, _NUMBER)
    def _func_divide(self, one: float, other: float) -> float:
        if other == 0:
            raise ValueError("divide() by zero")
        exact = isinstance(one, int) and isinstance(other, int) and one % other == 0
        return _bounded(one // other if exact else one / other)


def _bounded(number: float) -> float:
    if abs(number) > 1e300:
        raise ValueError("the number is too large")
    return number


def _key_of(value: Any, *, exact: bool = False) -> str:
    """Return a key of a group: a text as it is, any other value as JSON."""
    return value if isinstance(value, str) and not exact else json.dumps(value, sort_keys=True, ensure_ascii=False)
