"""Which of the chosen units are shown, and in which form, when there is room for so many tokens and no more.

A pure function: no I/O, no Prolog, no text. Selection has decided what belongs in a request; packing never adds to
it and never reopens it. It only drops what does not fit, within the classes that the rules gave:

* what must stay (pinned, mandatory, and all that these require) stays whole, or packing fails;
* a unit is kept only together with everything that it requires, and goes out with everything that needs it;
* the kept forms are worth as much as possible, periphery first: no frontier reference is ever worth a unit of the
  periphery. What a form is worth is its unit's weight times the form's utility;
* among equals, earlier units are shown in fuller forms; and nothing that would still fit is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rlm.compiler.packing.groups import groups_of, sums_below
from rlm.compiler.packing.items import Form, Item, smallest
from rlm.compiler.packing.packer import Fitting
from rlm.compiler.packing.twins import prefer_earlier
from rlm.errors import BudgetError, CompileError
from rlm.model.turn import PackingClass

__all__ = ["Dropped", "Form", "Item", "Packing", "pack"]

BIGGEST = 5
"""How many of the biggest units a budget error names."""


class Dropped(NamedTuple):
    """A unit that went out: ``tokens`` for it in its smallest form, and for what it requires that is not there
    either; and the tokens that were free, always fewer."""

    id: str
    tokens: int
    free: int


@dataclass(frozen=True, slots=True)
class Packing:
    """The outcome: a form or None per unit, in the order of the items. ``proven``: no better choice exists."""

    choice: dict[str, Form | None]
    dropped: tuple[Dropped, ...]
    spent: dict[PackingClass, int]
    total: int
    free: int
    proven: bool


def pack(items: Iterable[Item], *, fixed: int, limit: int) -> Packing:
    """Choose a form or none for every unit.

    Args:
        items: what selection made active, in the rules' order: the more relevant first.
        fixed: tokens already spent on what is no unit.
        limit: tokens that may be spent altogether.

    Raises:
        BudgetError: ``over_budget`` where ``fixed`` and what must stay do not fit.
        CompileError: ``unpackable`` for an item without a form or an id that occurs twice.
    """
    items = tuple(items)
    by_id = {item.id: item for item in items}
    _check(items, by_id)
    staying = _staying(items, by_id)
    room = _room(items, staying, fixed, limit)
    best: dict[str, Form | None] = {item.id: item.forms[0] if item.id in staying else _best(item) for item in items}
    if fixed + sum(form.tokens for form in best.values() if form) <= limit:
        return _packing(by_id, best, fixed, limit, proven=True)
    fitting = Fitting(by_id, staying, room)
    fitting.maximise(PackingClass.PERIPHERY)
    fitting.maximise(PackingClass.FRONTIER)
    fitting.fill()
    prefer_earlier(fitting)
    fitting.fill()
    return _packing(by_id, fitting.choice, fixed, limit, proven=fitting.proven)


def _check(items: Sequence[Item], by_id: Mapping[str, Item]) -> None:
    if len(by_id) < len(items):
        raise CompileError("unpackable", "an id occurs twice among the units to pack")
    for item in items:
        if not item.forms:
            raise CompileError("unpackable", f"unit {item.id!r} has no form to be shown in", {"unit": item.id})


def _staying(items: Sequence[Item], by_id: Mapping[str, Item]) -> set[str]:
    """What must stay, and everything that it requires."""
    queue = [item.id for item in items if item.must_stay or item.klass in (PackingClass.PINNED, PackingClass.MANDATORY)]
    staying = set(queue)
    for id in queue:
        for need in by_id[id].requires:
            if need in by_id and need not in staying:
                staying.add(need)
                queue.append(need)
    return staying


def _room(items: Sequence[Item], staying: set[str], fixed: int, limit: int) -> int:
    """Tokens left for what may go out."""
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
    """The most useful form, of several the first."""
    return max(item.forms, key=lambda form: form.utility) if len(item.forms) > 1 else item.forms[0]


def _packing(
    items: Mapping[str, Item], choice: dict[str, Form | None], fixed: int, limit: int, *, proven: bool
) -> Packing:
    spent = dict.fromkeys(PackingClass, 0)
    for id, form in choice.items():
        if form is not None:
            spent[items[id].klass] += form.tokens
    total = fixed + sum(spent.values())
    free = limit - total
    least = {id: smallest(items[id]).tokens for id, form in choice.items() if form is None}
    together = _together(least, items)
    out = [Dropped(id, together[id], free) for id in least]
    return Packing(choice, tuple(out), spent, total, free, proven)


def _together(least: Mapping[str, int], items: Mapping[str, Item]) -> dict[str, int]:
    """The tokens of each of these units with all that it requires of them, directly or not."""
    groups = groups_of({id: [need for need in items[id].requires if need in least] for id in least})
    place = {id: at for at, group in enumerate(groups) for id in group}
    tokens = [sum([least[id] for id in group]) for group in groups]
    needs = [
        {place[need] for id in group for need in items[id].requires if need in least} - {at}
        for at, group in enumerate(groups)
    ]
    beneath = sums_below(range(len(groups)), needs.__getitem__, tokens.__getitem__)
    return {id: tokens[at] + beneath[at] for id, at in place.items()}
