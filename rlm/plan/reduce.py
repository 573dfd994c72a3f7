"""One value from a list. Pure: the same list gives the same value, and ties go to what came first."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rlm.fencing import FencedRow, blocks_of
from rlm.plan.expressions import Key, Material, Piece, Prompt, is_failure, is_handle, merged, part_of, text_of
from rlm.plan.problems import failure, inside, shown, type_name
from rlm.plan.sizes import MAX_CHARS, MAX_NODES, StepWork, bounded, too_large

Number = int | float

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,399})(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?")


def items_of(
    value: Any, path: str, *, part: tuple[Key, ...] = (), failed: str = "fail", work: StepWork | None = None
) -> list[Any]:
    """The items of a list that is to be reduced.

    Args:
        part: the keys of the part of each item that counts.
        failed: ``fail``, or ``skip`` to leave out items that failed.
        work: counts what is looked at.

    Raises: PlanError ``not_a_list``; ``failed_items``; ``no_such_part``; ``too_large``.
    """
    items = listed(value, inside(path, "over"))
    if work is not None:
        work.add(2 * len(items) * (1 + len(part)), path)
    bad = [number for number, item in enumerate(items) if is_failure(item)]
    if bad and failed != "skip":
        first = items[bad[0]]["error"]
        message = (
            f'{len(bad)} of {len(items)} items failed, the first with {first["kind"]}: {first["message"]}; '
            'say "failed": "skip" to leave them out'
        )  # fmt: skip
        raise failure("failed_items", message, path, items=bad[:20], first=first)
    here = inside(path, "path")
    return [part_of(item, part, here) if part else item for item in items if not is_failure(item)]


def listed(value: Any, path: str) -> list[Any]:
    """The value, which must be a list. Raises: PlanError ``not_a_list``."""
    if not isinstance(value, list):
        message = f"a list is wanted, and this is {type_name(value)}: {shown(value)}"
        raise failure("not_a_list", message, path)
    return value


def reduced(kind: str, items: list[Any], path: str, *, separator: str = "\n", work: StepWork | None = None) -> Any:
    """One value of some items, for every kind but ``model``.

    Raises: PlanError ``no_items``, ``not_a_number``, ``not_comparable`` or ``too_large``.
    """
    if kind == "concat":
        return separated(items, separator, path, work)
    if kind in _READ_WHOLE:
        bounded(items, path, work)
    return _KINDS[kind](items, path)


def separated(items: list[Any], separator: str, path: str, work: StepWork | None = None) -> Any:
    """All lists: one list. Else one text, with ``separator`` between the items."""
    if items and all(isinstance(item, list) for item in items):
        if sum(map(len, items)) > MAX_NODES:
            raise too_large(path)
        return bounded([inner for item in items for inner in item], path, work)
    bounded(items, path, work)
    if len(separator) * len(items) > MAX_CHARS:
        raise too_large(path)
    return separator.join(map(text_of, items))


def reading(prompt: Prompt, items: list[Any], path: str, work: StepWork | None = None) -> Prompt:
    """The prompt of a reduce by a model: what was asked, then each item as material under its number."""
    bounded(items, path, work)
    parts: list[Piece] = list(prompt)
    rows: list[FencedRow] = []
    for number, item in enumerate(items):
        if is_handle(item):
            parts += [*_material(rows), f"\n\n[{number}]\n", item]
            rows = []
        else:
            rows.append(FencedRow(f"item-{number}", f"[{number}]", "text", item))
    return merged([*parts, *_material(rows)])


def _material(rows: list[FencedRow]) -> Iterator[Material]:
    for block, run in blocks_of(rows):
        yield Material("".join(f"\n\n{each.label}\n{text_of(each.value)}" for each in run), block)


def number_of(value: Any) -> Number | None:
    """A number, or a text that is wholly one; else None."""
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
    found: list[Number] = []
    for number, item in enumerate(items):
        value = number_of(item)
        if value is None:
            message = f"item {number} is no number: {type_name(item)}, {shown(item)}"
            raise failure("not_a_number", message, path, item=number)
        found.append(value)
    return found


def _max(items: list[Any], path: str) -> Any:
    return _first_best(items, path, max)


def _min(items: list[Any], path: str) -> Any:
    return _first_best(items, path, min)


def _first_best(items: list[Any], path: str, best: Callable[[list[Any]], Any]) -> Any:
    """By number where every item is one, by code points where every item is a text."""
    _some(items, path)
    numbers = [number for item in items if (number := number_of(item)) is not None]
    if len(numbers) == len(items):
        return best(numbers)
    if all(isinstance(item, str) for item in items):
        return best(items)
    raise failure("not_comparable", "items are compared only where all are numbers, or all are texts", path)


def _vote(items: list[Any], path: str) -> Any:
    _some(items, path)
    votes: dict[str, int] = {}
    first: dict[str, Any] = {}
    for item in items:
        key = json.dumps(_same(item), sort_keys=True)
        votes[key] = votes.get(key, 0) + 1
        first.setdefault(key, item)
    return first[max(votes, key=lambda key: votes[key])]  # a dict keeps order: the first of equals


def _same(value: Any) -> Any:
    """The value with 1.0 written as 1, as JSON means it."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_same(item) for item in value]
    return {key: _same(item) for key, item in value.items()} if isinstance(value, dict) else value


def _some(items: list[Any], path: str) -> None:
    if not items:
        raise failure("no_items", "there is nothing to choose from: the list is empty", path)


_READ_WHOLE = frozenset({"vote"})
"""Ways that look at every part of every item."""

_KINDS: Mapping[str, Callable[[list[Any], str], Any]] = {
    "count": _count,
    "sum": _sum,
    "max": _max,
    "min": _min,
    "vote": _vote,
}
