"""The nouns of packing: units reduced to what they cost and what they are worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rlm.model.turn import PackingClass


@dataclass(frozen=True, slots=True)
class Form:
    """One way to show a unit. ``utility`` is the usefulness that survives in it, in thousandths."""

    name: str
    tokens: int
    utility: int


@dataclass(frozen=True, slots=True)
class Item:
    """One active unit. ``forms``: the full one first; ``requires`` may be cyclic; ``weight`` in thousandths."""

    id: str
    klass: PackingClass
    forms: tuple[Form, ...]
    requires: tuple[str, ...] = ()
    weight: int = 1000
    must_stay: bool = False


Choice = Mapping[str, Form | None]


def smallest(item: Item) -> Form:
    """The form of fewest tokens, of several the most useful one."""
    return min(item.forms, key=lambda form: (form.tokens, -form.utility))


def missing(ids: Iterable[str], items: Mapping[str, Item], choice: Choice) -> list[Item]:
    """These units and all that they require, directly or not, that is among ``items`` and not kept."""
    queue = [items[id] for id in ids]
    seen = {item.id for item in queue}
    for item in queue:
        for need in item.requires:
            if need not in seen and need in items and choice[need] is None:
                seen.add(need)
                queue.append(items[need])
    return queue


def missing_within(id: str, items: Mapping[str, Item], choice: Choice, room: int) -> list[Item]:
    """As ``missing`` of one unit, where all of that fits into ``room`` in its smallest forms; otherwise nothing."""
    queue = [items[id]]
    seen = {id}
    for item in queue:
        room -= smallest(item).tokens
        if room < 0:
            return []
        for need in item.requires:
            if need not in seen and need in items and choice[need] is None:
                seen.add(need)
                queue.append(items[need])
    return queue
