"""Pack the chosen units into a limit of tokens: choose a form for each, or leave it out.

``pack`` is a pure function: no I/O, no Prolog, no text. The selection is final: packing never adds a unit. It only
drops units that do not fit, within the classes from the rules:

* Units that must stay (pinned, mandatory, and all that these require) stay whole, or packing fails.
* A unit is kept only with all units that it requires, and dropped with all units that require it.
* The kept forms have the greatest worth, periphery first: a frontier unit never displaces a unit of the periphery.
  The worth of a form is its unit's weight times the form's utility.
* Among equals, earlier units have fuller forms. No unit that still fits is left out.

For example ``pack(items, fixed=100, limit=4000)`` has 3,900 tokens for units. ``packer`` maximises class by class,
``twins`` prefers earlier units, and ``groups`` joins units that require each other. ``knapsack`` searches, ``losses``
lists its moves, ``exchange`` improves and ``pricing`` bounds: these four know whole numbers only. ``items`` has the
data types.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rlm.compiler.packing.groups import groups_of, sums_below
from rlm.compiler.packing.items import Form, Item, smallest
from rlm.compiler.packing.packer import PartialPacking
from rlm.compiler.packing.twins import prefer_earlier
from rlm.errors import BudgetError, CompileError
from rlm.model.turn import PackingClass

__all__ = ["Dropped", "Form", "Item", "Packing", "pack"]

BIGGEST = 5
"""The number of biggest units that a budget error names."""


class Dropped(NamedTuple):
    """A dropped unit.

    ``tokens`` is the price of its smallest form and of the dropped units that it requires. ``free`` is always less.
    """

    id: str
    tokens: int
    free: int


@dataclass(frozen=True, slots=True)
class Packing:
    """The result: a form or None for each unit, in the order of the items. ``proven``: no better choice exists."""

    choice: dict[str, Form | None]
    dropped: tuple[Dropped, ...]
    spent: dict[PackingClass, int]
    total: int
    free: int
    proven: bool


def pack(items: Iterable[Item], *, fixed: int, limit: int) -> Packing:
    """Choose a form or none for every unit.

    Args:
        items: the active units in the order of the rules: the most relevant first.
        fixed: tokens already spent on other text, for example the conversation.
        limit: all tokens that may be spent.

    Raises:
        BudgetError: ``over_budget`` if ``fixed`` and the units that must stay do not fit.
        CompileError: ``unpackable`` for an item without a form or an id that occurs twice.
    """
    items = tuple(items)
    by_id = {item.id: item for item in items}
    _check(items, by_id)
    staying = _staying(items, by_id)
    free = _free_tokens(items, staying, fixed, limit)
    best: dict[str, Form | None] = {item.id: item.forms[0] if item.id in staying else _best(item) for item in items}
    if fixed + sum(form.tokens for form in best.values() if form) <= limit:
        return _packing(by_id, best, fixed, limit, proven=True)
    partial = PartialPacking(by_id, staying, free)
    partial.maximise(PackingClass.PERIPHERY)
    partial.maximise(PackingClass.FRONTIER)
    partial.fill()
    prefer_earlier(partial)
    partial.fill()
    return _packing(by_id, partial.choice, fixed, limit, proven=partial.proven)


def _check(items: Sequence[Item], by_id: Mapping[str, Item]) -> None:
    if len(by_id) < len(items):
        raise CompileError("unpackable", "an id occurs twice among the units to pack")
    for item in items:
        if not item.forms:
            raise CompileError("unpackable", f"unit {item.id!r} has no form to be shown in", {"unit": item.id})


def _staying(items: Sequence[Item], by_id: Mapping[str, Item]) -> set[str]:
    """Return the ids of the units that must stay, and of all that these require."""
    queue = [
        item.id
        for item in items
        if item.must_stay or item.packing_class in (PackingClass.PINNED, PackingClass.MANDATORY)
    ]
    staying = set(queue)
    for id in queue:
        for need in by_id[id].requires:
            if need in by_id and need not in staying:
                staying.add(need)
                queue.append(need)
    return staying


def _free_tokens(items: Sequence[Item], staying: set[str], fixed: int, limit: int) -> int:
    """Return the tokens that are left for the other units."""
    kept = [item for item in items if item.id in staying]
    needed = fixed + sum(item.forms[0].tokens for item in kept)
    if needed <= limit:
        return limit - needed
    missing = needed - limit
    big = sorted(kept, key=lambda item: -item.forms[0].tokens)[:BIGGEST]
    names = ", ".join(f"{item.id} ({item.forms[0].tokens})" for item in big)
    alone = "no unit is among them: the texts and their framing take all of it; allow more (budget, window)"
    raise BudgetError(
        "over_budget",
        f"what must be shown needs {needed} tokens and {limit} are allowed: {missing} too many; "
        + (f"the biggest of the {len(kept)} units that must stay: {names}" if big else alone),
        {
            "missing_tokens": missing,
            "needed": needed,
            "limit": limit,
            "fixed": fixed,
            "biggest": [{"unit": item.id, "tokens": item.forms[0].tokens} for item in big],
        },
    )


def _best(item: Item) -> Form:
    """Return the most useful form, the first of equals."""
    return max(item.forms, key=lambda form: form.utility) if len(item.forms) > 1 else item.forms[0]


def _packing(
    items: Mapping[str, Item], choice: dict[str, Form | None], fixed: int, limit: int, *, proven: bool
) -> Packing:
    spent = dict.fromkeys(PackingClass, 0)
    for id, form in choice.items():
        if form is not None:
            spent[items[id].packing_class] += form.tokens
    total = fixed + sum(spent.values())
    free = limit - total
    least = {id: smallest(items[id]).tokens for id, form in choice.items() if form is None}
    together = _together(least, items)
    out = [Dropped(id, together[id], free) for id in least]
    return Packing(choice, tuple(out), spent, total, free, proven)


def _together(least: Mapping[str, int], items: Mapping[str, Item]) -> dict[str, int]:
    """Return the tokens of each of these units, with all of them that it requires, directly or not."""
    groups = groups_of({id: [need for need in items[id].requires if need in least] for id in least})
    place = {id: at for at, group in enumerate(groups) for id in group}
    tokens = [sum([least[id] for id in group]) for group in groups]
    needs = [
        {place[need] for id in group for need in items[id].requires if need in least} - {at}
        for at, group in enumerate(groups)
    ]
    beneath = sums_below(range(len(groups)), needs.__getitem__, tokens.__getitem__)
    return {id: tokens[at] + beneath[at] for id, at in place.items()}
