"""The content of a catalog at one revision."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from rlm.model.unit import CALLABLE, Trust, Unit
from rlm.model.wire_limits import WireLimits
from rlm.model.wire_names import WireNames
from rlm.model.wire_schema import refusal

DIGESTS = 1 << 256
"""Digests of units are added modulo this, so that their order does not matter."""


@dataclass(frozen=True)
class Snapshot:
    """The units of a catalog at one revision; it never changes and outlives the catalog.

    ``digest`` depends on the units alone, not on the order in which they came.
    """

    revision: int
    units: Mapping[str, Unit]
    digest: str
    stemmer: str
    base: Snapshot | None = None

    @cached_property
    def pinned(self) -> tuple[Unit, ...]:
        """The units that the host pinned, by id."""
        units: Iterable[Unit] = self.units.values()
        if isinstance(self.units, _Layered) and self.base is not None:
            units = (*self.base.pinned, *self.units.above.values())
        elif isinstance(self.units, StoredUnits):
            units = self.units.pinned()
        return tuple(sorted((unit for unit in units if unit.pinned), key=lambda unit: unit.id))

    @cached_property
    def wire_names(self) -> WireNames:
        """The names of the tools in a request."""
        if isinstance(self.units, _Layered) and self.base is not None:
            above = [id for id, unit in self.units.above.items() if unit.kind in CALLABLE]
            return WireNames(above, WireNames(self.base.units)) if above else self.base.wire_names
        return self.units.wire_names() if isinstance(self.units, StoredUnits) else WireNames(self.units)

    @cached_property
    def _refused(self) -> dict[str, tuple[tuple[str, str], ...]]:
        return {}

    def refused(self, limits: WireLimits) -> tuple[tuple[str, str], ...]:
        """The tools that cannot be sent within ``limits``, by id, each with why; looked for once."""
        known = self._refused.get(limits.name)
        if known is None:
            units: Iterable[Unit] = self.units.values()
            found: list[tuple[str, str]] = []
            if isinstance(self.units, _Layered) and self.base is not None:
                units, found = self.units.above.values(), [*self.base.refused(limits)]
            elif isinstance(self.units, StoredUnits):
                units, found = self.units.above.values(), self.units.refused_below(limits)
            found += [(unit.id, what) for unit in units if (what := refusal(unit, limits))]
            known = self._refused[limits.name] = tuple(sorted(found))
        return known

    def with_standing(self, units: Iterable[Unit]) -> Snapshot:
        """This snapshot with further units, which are not in it; nothing is copied."""
        above = {unit.id: unit for unit in units}
        total = int(self.digest, 16) + sum(int(unit.digest, 16) for unit in above.values())
        layered = _Layered(self.units, above)
        return Snapshot(self.revision, layered, f"{total % DIGESTS:064x}", self.stemmer, self)


class StoredUnits(Mapping[str, Unit]):
    """Units that are read from a file one by one, with further ones above. Its summaries need not read each unit.

    ``above`` has the units that were added or replaced since.
    """

    above: Mapping[str, Unit]

    @abstractmethod
    def pinned(self) -> list[Unit]:
        """Return the units that the host pinned."""

    @abstractmethod
    def refused_below(self, limits: WireLimits) -> list[tuple[str, str]]:
        """Return the tools of the file that cannot be sent within ``limits``, each with why."""

    @abstractmethod
    def wire_names(self) -> WireNames:
        """Return the wire names of the tools among them."""

    @abstractmethod
    def capabilities(self) -> Iterator[tuple[str, bool]]:
        """Yield the capability of each unit that needs one, and whether the unit is an imported tool."""

    @property
    @abstractmethod
    def has_imported(self) -> bool:
        """Whether an imported tool may be among them; False is certain."""

    @abstractmethod
    def changed(self, changed: Mapping[str, Unit], gone: Collection[str]) -> Mapping[str, Unit]:
        """Return these units without those in ``gone``, and with those in ``changed``."""

    @abstractmethod
    def delta(self, old: Mapping[str, Unit]) -> tuple[list[Unit], list[str]] | None:
        """Return the units that ``old`` does not have like this, and the ids in ``old`` that are gone or replaced.

        None, if ``old`` comes from another file.
        """


def with_changes(units: Mapping[str, Unit], changed: Mapping[str, Unit], gone: Collection[str]) -> Mapping[str, Unit]:
    """Return ``units`` without those in ``gone``, and with those in ``changed``, which may have a gone id."""
    if isinstance(units, StoredUnits):
        return units.changed(changed, gone)
    kept = {id: unit for id, unit in units.items() if id not in gone} if gone else units
    return {**kept, **changed}


def needed_capabilities(units: Mapping[str, Unit]) -> Iterator[tuple[str, bool]]:
    """Yield the capability of each unit that needs one, and whether the unit is an imported tool."""
    if isinstance(units, StoredUnits):
        yield from units.capabilities()
        return
    for unit in units.values():
        if unit.capability is not None:
            yield unit.capability, unit.trust is Trust.STRANGER and unit.kind in CALLABLE


class _Layered(Mapping[str, Unit]):
    """Two mappings without a common key, read as one."""

    def __init__(self, below: Mapping[str, Unit], above: Mapping[str, Unit]) -> None:
        self.below, self.above = below, above

    def __getitem__(self, id: str) -> Unit:
        unit = self.above.get(id)
        return self.below[id] if unit is None else unit

    def __iter__(self) -> Iterator[str]:
        return chain(self.below, self.above)

    def __len__(self) -> int:
        return len(self.below) + len(self.above)

    def __contains__(self, id: object) -> bool:
        return id in self.above or id in self.below
