"""The content of a catalog at one revision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from rlm.model.unit import Unit
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
        return tuple(sorted((unit for unit in units if unit.pinned), key=lambda unit: unit.id))

    @cached_property
    def wire_names(self) -> WireNames:
        """The names of the tools in a request."""
        if isinstance(self.units, _Layered) and self.base is not None:
            return WireNames(self.units.above, self.base.wire_names) if self.units.above else self.base.wire_names
        return WireNames(self.units)

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
            found += [(unit.id, what) for unit in units if (what := refusal(unit, limits))]
            known = self._refused[limits.name] = tuple(sorted(found))
        return known

    def with_standing(self, units: Iterable[Unit]) -> Snapshot:
        """This snapshot with further units, which are not in it; nothing is copied."""
        above = {unit.id: unit for unit in units}
        total = int(self.digest, 16) + sum(int(unit.digest, 16) for unit in above.values())
        layered = _Layered(self.units, above)
        return Snapshot(self.revision, layered, f"{total % DIGESTS:064x}", self.stemmer, self)


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
