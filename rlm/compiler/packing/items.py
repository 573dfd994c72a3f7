"""The data types of packing: units reduced to their price and their worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rlm.model.turn import PackingClass


@dataclass(frozen=True, slots=True)
class Form:
    """One way to show a unit. ``utility`` is the part of its usefulness that this form keeps, in thousandths."""

    name: str
    tokens: int
    utility: int


@dataclass(frozen=True, slots=True)
class Item:
    """One active unit. ``forms`` has the full form first, ``requires`` may be cyclic, ``weight`` is in thousandths."""

    id: str
    packing_class: PackingClass
    forms: tuple[Form, ...]
    requires: tuple[str, ...] = ()
    weight: int = 1000
    must_stay: bool = False


Choice = Mapping[str, Form | None]


def smallest(item: Item) -> Form:
    """Return the form of fewest tokens, the most useful of equals."""
    return min(item.forms, key=lambda form: (form.tokens, -form.utility))


def missing(ids: Iterable[str], items: Mapping[str, Item], choice: Choice) -> list[Item]:
    """Return these units and all units of ``items`` that they require, directly or not, and that are not kept."""
    queue = [items[id] for id in ids]
    visited = {item.id for item in queue}
    for item in queue:
        for need in item.requires:
            if need not in visited and need in items and choice[need] is None:
                visited.add(need)
                queue.append(items[need])
    return queue


def missing_within(id: str, items: Mapping[str, Item], choice: Choice, free: int) -> list[Item]:
    """Return ``missing`` of one unit if all fit into ``free`` tokens in their smallest forms; otherwise nothing."""
    queue = [items[id]]
    visited = {id}
    for item in queue:
        free -= smallest(item).tokens
        if free < 0:
            return []
        for need in item.requires:
            if need not in visited and need in items and choice[need] is None:
                visited.add(need)
                queue.append(items[need])
    return queue
