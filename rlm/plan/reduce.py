"""Reductions: one value from a list. They are pure, and the first of equal values wins."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rlm.fencing import FencedRow, blocks_of
from rlm.plan.expressions import (
    Key,
    Material,
    Piece,
    Prompt,
    bare_handle,
    is_failure,
    is_handle,
    merge_words,
    part_of,
    text_of,
)
from rlm.plan.problems import failure, inside, short_json, type_name
from rlm.plan.sizes import MAX_CHARS, MAX_NODES, StepWork, bounded, too_large

Number = int | float

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,399})(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?")


def items_of(
    value: Any, path: str, *, part: tuple[Key, ...] = (), failed: str = "fail", work: StepWork | None = None
) -> list[Any]:
    """Return the items of a list that is to be reduced.

    Args:
        value: the list.
        path: the path of the step, for errors.
        part: the keys of the part of each item that counts.
        failed: ``fail``, or ``skip`` to leave out failed items.
        work: the count of values that are read.

    Raises:
        PlanError: ``not_a_list``, ``failed_items``, ``no_such_part``, ``too_large``.
    """
    items = check_list(value, inside(path, "over"))
    if work is not None:
        work.add(2 * len(items) * (1 + len(part)), path)
    failures = [number for number, item in enumerate(items) if is_failure(item)]
    if failures and failed != "skip":
        first = items[failures[0]]["error"]
        message = (
            f'{len(failures)} of {len(items)} items failed, the first with {first["kind"]}: {first["message"]}; '
            'say "failed": "skip" to leave them out'
        )  # fmt: skip
        raise failure("failed_items", message, path, items=failures[:20], first=first)
    here = inside(path, "path")
    return [part_of(item, part, here) if part else item for item in items if not is_failure(item)]


def check_list(value: Any, path: str) -> list[Any]:
    """Check that a value is a list and return it. Raises: PlanError ``not_a_list``."""
    if not isinstance(value, list):
        message = f"a list is wanted, and this is {type_name(value)}: {short_json(value)}"
        raise failure("not_a_list", message, path)
    return value


def reduce_items(kind: str, items: list[Any], path: str, *, separator: str = "\n", work: StepWork | None = None) -> Any:
    """Return one value from some items, by every reduction except ``model``.

    For example ``reduce_items("sum", [1, "2"], "")`` is 3.

    Raises:
        PlanError: ``no_items``, ``not_a_number``, ``not_comparable`` or ``too_large``.
    """
    if kind == "concat":
        return concatenate(items, separator, path, work)
    if kind in _READ_WHOLE:
        bounded(items, path, work)
    return _KINDS[kind](items, path)


def concatenate(items: list[Any], separator: str, path: str, work: StepWork | None = None) -> Any:
    """Return one list where all items are lists; otherwise one text, with ``separator`` between the items."""
    if items and all(isinstance(item, list) for item in items):
        if sum(map(len, items)) > MAX_NODES:
            raise too_large(path)
        return bounded([inner for item in items for inner in item], path, work)
    bounded(items, path, work)
    if len(separator) * len(items) > MAX_CHARS:
        raise too_large(path)
    return separator.join(map(text_of, items))


def model_prompt(prompt: Prompt, items: list[Any], path: str, work: StepWork | None = None) -> Prompt:
    """Return the prompt of a reduction by a model: the plan's prompt, then each item as material under its number."""
    bounded(items, path, work)
    parts: list[Piece] = list(prompt)
    rows: list[FencedRow] = []
    for number, item in enumerate(items):
        if is_handle(item):
            parts += [*_blocks(rows), f"\n\n[{number}]\n", bare_handle(item)]
            rows = []
        else:
            rows.append(FencedRow(f"item-{number}", f"[{number}]", "text", item))
    return merge_words([*parts, *_blocks(rows)])


def _blocks(rows: list[FencedRow]) -> Iterator[Material]:
    for block, run in blocks_of(rows):
        yield Material("".join(f"\n\n{each.label}\n{text_of(each.value)}" for each in run), block)


def number_of(value: Any) -> Number | None:
    """Return the number of a value that is one, or of a text that is one as a whole; None for any other value."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value.strip())
        if match is None:
            return None
        value = float(match[0]) if match[1] or match[2] else int(match[0])
    return value if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)) else None


def _count(items: list[Any], _path: str) -> int:
    return len(items)


def _sum(items: list[Any], path: str) -> Number:
    numbers = _numbers(items, path)
    if all(isinstance(number, int) for number in numbers):
        return sum(numbers)
    try:
        total = math.fsum(numbers)  # exact, so the order does not matter
    except OverflowError:
        total = math.inf
    if not math.isfinite(total):
        raise failure("not_a_number", "the sum is too large to be a number", path)
    return total


def _numbers(items: list[Any], path: str) -> list[Number]:
    numbers: list[Number] = []
    for number, item in enumerate(items):
        value = number_of(item)
        if value is None:
            message = f"item {number} is no number: {type_name(item)}, {short_json(item)}"
            raise failure("not_a_number", message, path, item=number)
        numbers.append(value)
    return numbers


def _max(items: list[Any], path: str) -> Any:
    return _first_best(items, path, max)


def _min(items: list[Any], path: str) -> Any:
    return _first_best(items, path, min)


def _first_best(items: list[Any], path: str, best: Callable[[list[Any]], Any]) -> Any:
    """Compare as numbers where every item is one, and by code points where every item is a text."""
    _check_not_empty(items, path)
    numbers = [number for item in items if (number := number_of(item)) is not None]
    if len(numbers) == len(items):
        return best(numbers)
    if all(isinstance(item, str) for item in items):
        return best(items)
    raise failure("not_comparable", "items are compared only where all are numbers, or all are texts", path)


def _vote(items: list[Any], path: str) -> Any:
    _check_not_empty(items, path)
    votes: dict[str, int] = {}
    first: dict[str, Any] = {}
    for item in items:
        key = json.dumps(_normal(item), sort_keys=True)
        votes[key] = votes.get(key, 0) + 1
        first.setdefault(key, item)
    return first[max(votes, key=lambda key: votes[key])]  # a dict keeps order: the first of equals


def _normal(value: Any) -> Any:
    """Return the value with 1.0 as 1, because they are the same number in JSON."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_normal(item) for item in value]
    return {key: _normal(item) for key, item in value.items()} if isinstance(value, dict) else value


def _check_not_empty(items: list[Any], path: str) -> None:
    if not items:
        raise failure("no_items", "there is nothing to choose from: the list is empty", path)


_READ_WHOLE = frozenset({"vote"})
"""Reductions that read every part of every item."""

_KINDS: Mapping[str, Callable[[list[Any], str], Any]] = {
    "count": _count,
    "sum": _sum,
    "max": _max,
    "min": _min,
    "vote": _vote,
}
