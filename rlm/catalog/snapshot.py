"""What a catalog holds at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from rlm.model.unit import Unit


@dataclass(frozen=True)
class Snapshot:
    """The units of a catalog at one revision; it never changes and outlives the catalog.

    ``digest`` depends on the units alone, not on the order in which they came.
    """

    revision: int
    units: Mapping[str, Unit]
    digest: str
    stemmer: str

    @cached_property
    def pinned(self) -> tuple[Unit, ...]:
        """The units that the host pinned, by id."""
        return tuple(sorted((u for u in self.units.values() if u.pinned), key=lambda unit: unit.id))
