"""The units of a frozen catalog: read from the file one by one, with changes above them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Any

from rlm.catalog.frozen_file import FrozenFile
from rlm.model.snapshot import StoredUnits
from rlm.model.unit import CALLABLE, Trust, Unit
from rlm.model.wire_limits import WireLimits
from rlm.model.wire_names import StoredWireNames, WireNames

NEEDS_OWN, NEEDS_OTHER, IMPORTED = 1, 2, 4
"""The bits of a unit in section ``needs``: its capability is its id, or another one; it is an imported tool."""

_KEPT = 4096
"""Units that stay read, at most."""


class FrozenBase:
    """The units in a frozen file, by id."""

    def __init__(self, file: FrozenFile) -> None:
        self.file = file
        ids = file.lines("ids")
        self.places = dict(zip(ids, range(len(ids)), strict=True))
        self._units = file.section("units")
        self._starts = file.numbers("unit_starts", "q")
        self._digests = file.section("digests")
        self._kept: dict[str, Unit] = {}

    def unit(self, id: str) -> Unit:
        """Return the unit of an id. Raises: KeyError."""
        unit = self._kept.get(id)
        if unit is None:
            place = self.places[id]
            text = bytes(self._units[self._starts[place] : self._starts[place + 1]])
            unit = Unit(**json.loads(text))
            unit.__dict__["digest"] = self._digests[32 * place : 32 * place + 32].hex()
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[id] = unit
        return unit


class FrozenUnits(StoredUnits):
    """The units of a frozen file without those that went, and with those that came.

    Args:
        base: the units of the file.
        above: units that were added, or that replace one of the file.
        gone: ids of the file that were removed or replaced.
    """

    def __init__(self, base: FrozenBase, above: Mapping[str, Unit] | None = None, gone: frozenset[str] = frozenset()):
        self.base = base
        self.above = above or {}
        self._gone = gone

    def __getitem__(self, id: str) -> Unit:
        unit = self.above.get(id)
        if unit is not None:
            return unit
        if id in self._gone:
            raise KeyError(id)
        return self.base.unit(id)

    def __iter__(self) -> Iterator[str]:
        places = self.base.places
        below = (id for id in places if id not in self._gone) if self._gone else places
        return chain(below, self.above)

    def __len__(self) -> int:
        return len(self.base.places) - len(self._gone) + len(self.above)

    def __contains__(self, id: object) -> bool:
        return id in self.above or (id in self.base.places and id not in self._gone)

    def pinned(self) -> list[Unit]:
        below = [self.base.unit(id) for id in self.base.file.table["pinned"] if id not in self._gone]
        return [*below, *(unit for unit in self.above.values() if unit.pinned)]

    def refused_below(self, limits: WireLimits) -> list[tuple[str, str]]:
        rows = self.base.file.table["refused"][limits.name]
        return [(id, what) for id, what in rows if id not in self._gone]

    def wire_names(self) -> WireNames:
        untouched = not self.above and not self._gone
        return StoredWireNames(self.base.file.table["shared_names"]) if untouched else WireNames(self)

    def capabilities(self) -> Iterator[tuple[str, bool]]:
        needs, others = self.base.file.section("needs"), self.base.file.table["capabilities"]
        for id, place in self.base.places.items():
            if needs[place] and id not in self._gone:
                yield (others[id] if needs[place] & NEEDS_OTHER else id), bool(needs[place] & IMPORTED)
        for unit in self.above.values():
            if unit.capability is not None:
                yield unit.capability, is_imported(unit)

    @property
    def has_imported(self) -> bool:
        return self.base.file.table["imported"] or any(map(is_imported, self.above.values()))

    def changed(self, changed: Mapping[str, Unit], gone: Collection[str]) -> FrozenUnits:
        above = {id: unit for id, unit in self.above.items() if id not in gone} if gone else self.above
        out = self._gone.union(id for id in (*gone, *changed) if id in self.base.places)
        return FrozenUnits(self.base, {**above, **changed}, out)

    def delta(self, old: Mapping[str, Unit]) -> tuple[list[Unit], list[str]] | None:
        if not isinstance(old, FrozenUnits) or old.base is not self.base:
            return None
        fresh = [unit for id, unit in self.above.items() if old.above.get(id) is not unit]
        back = [self.base.unit(id) for id in sorted(old._gone - self._gone)]
        gone = [id for id, unit in old.above.items() if self.above.get(id) is not unit]
        gone += sorted(self._gone - old._gone)
        return fresh + back, gone


def is_imported(unit: Unit) -> bool:
    """Return whether a unit is a tool that the host imported and does not vouch for."""
    return unit.trust is Trust.STRANGER and unit.kind in CALLABLE


def needs_of(unit: Unit) -> int:
    """Return the bits of a unit in section ``needs``."""
    if unit.capability is None:
        return 0
    own = NEEDS_OWN if unit.capability == unit.id else NEEDS_OTHER
    return own | (IMPORTED if is_imported(unit) else 0)


def stored(unit: Unit) -> dict[str, Any]:
    """Return the fields of a unit that are set, as JSON data: a unit made from them has the same digest."""
    return unit.model_dump(mode="json", exclude_unset=True)
