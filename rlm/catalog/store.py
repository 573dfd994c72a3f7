"""The store of a catalog: its units, their revision, and atomic changes of them."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Self

from rlm.catalog.executables import Executables
from rlm.catalog.prolog_facts import PrologFacts
from rlm.catalog.relations import check_batch
from rlm.catalog.view_cache import ViewCache
from rlm.errors import CatalogError, ConfigurationError, did_you_mean
from rlm.forks import ForkLock
from rlm.model import html
from rlm.model.arguments import several
from rlm.model.snapshot import DIGESTS, Snapshot, with_changes
from rlm.model.unit import Identified, Unit, id_of
from rlm.model.words import counted

if TYPE_CHECKING:
    from rlm.tools.mcp.client import MCPClient
    from rlm.tools.registry import Registry
    from rlm.tools.tool import Tool

STEMMERS = (
    *("none", "danish", "dutch", "english", "finnish", "french", "german", "hungarian", "italian"),
    *("norwegian", "porter", "portuguese", "romanian", "russian", "spanish", "swedish", "turkish"),
)


class UnitStore:
    """Units by id, with a revision. ``rlm.Catalog`` adds the imports and the interface of the compiler.

    Args:
        units: the first batch.
        stemmer: the language of the rules that reduce words to stems; ``"none"`` keeps whole words.
    """

    _living: weakref.WeakSet[UnitStore] = weakref.WeakSet()

    def __init__(self, units: Iterable[Unit] = (), *, stemmer: str = "english") -> None:
        if stemmer not in STEMMERS:
            raise ConfigurationError(
                "unknown_stemmer",
                f"stemmer {stemmer!r} is none of {', '.join(STEMMERS)}{did_you_mean(stemmer, STEMMERS)}",
            )
        self._stemmer = stemmer
        self._lock = ForkLock()
        self._units: Mapping[str, Unit] = {}
        self._skill_files: dict[str, tuple[str, ...]] = {}
        self._executables = Executables()
        self._clients: list[MCPClient] = []
        self._snapshot: Snapshot | None = None
        self._sum = 0
        self._revision = 0
        self._destroyed = False
        self._facts = PrologFacts(stemmer)
        self._views = ViewCache()
        self._finalizer = weakref.finalize(self, self._facts.forget)
        self._finalizer.atexit = False
        UnitStore._living.add(self)
        batch = tuple(several("units", units))
        if batch:
            self.add(*batch)

    # -- reading ------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        """The number of changes since the catalog was made."""
        return self._revision

    @property
    def destroyed(self) -> bool:
        """Whether ``destroy`` was called."""
        return self._destroyed

    @property
    def units(self) -> Mapping[str, Unit]:
        """The present units by id. The mapping does not change when the catalog does."""
        return self.snapshot().units

    def __len__(self) -> int:
        return len(self._units)

    def __contains__(self, unit: object) -> bool:
        id = getattr(unit, "id", unit)
        return isinstance(id, str) and id in self._units

    def __iter__(self) -> Iterator[Unit]:
        return iter(list(self._units.values()))

    def __getitem__(self, unit: str | Identified) -> Unit:
        units, id = self._units, id_of(unit)
        if id not in units:
            raise CatalogError("unknown_unit", f"no unit {id!r}{did_you_mean(id, units)}", {"unit": id})
        return units[id]

    def _repr_html_(self) -> str:
        rows = ((unit.id, unit.trust.value, unit.description) for unit in self)
        return html.card(repr(self)[1:-1], html.table(("unit", "trust", "description"), rows, len(self)))

    def __repr__(self) -> str:
        state = "destroyed" if self._destroyed else f"{counted(len(self), 'unit')}, revision {self._revision}"
        return f"<Catalog: {state}>"

    def snapshot(self) -> Snapshot:
        """Return the present units and revision as an immutable snapshot."""
        with self._lock:
            if self._snapshot is None or self._snapshot.units is not self._units:
                self._snapshot = Snapshot(self._revision, self._units, f"{self._sum:064x}", self._stemmer)
            return self._snapshot

    @property
    def registry(self) -> Registry:
        """The executable tools of this catalog: the tools of ``add_tools`` and ``add_mcp`` with a unit in it.

        A unit never holds a handler, and the registry is never compiled.

        Raises: ConfigurationError ``invalid_schema``, ``not_importable``, for a tool that could never run.
        """
        with self._lock:
            return self._executables.registry

    @classmethod
    def living(cls) -> int:
        """Return the number of catalogs in this process that are not destroyed."""
        return sum(1 for catalog in list(cls._living) if not catalog.destroyed)

    # -- change -------------------------------------------------------------------------------------

    def add(self, *units: Unit, replace: bool = False, allow_missing: bool = False) -> int:
        """Register a batch of units: all of them, or none and an error.

        Args:
            units: the batch. A unit that is registered with the same content changes nothing.
            replace: whether a unit may replace a different unit of its id.
            allow_missing: whether a unit may require a unit that is not registered yet. Until then the unit
                stays out with the reason ``missing_dependency``.

        Returns:
            The revision after the batch.

        Raises:
            CatalogError: ``duplicate_unit``, ``unknown_dependency``, ``supersession_cycle``, ``not_a_unit``,
                ``destroyed``; ``detail["findings"]`` lists every problem of the batch.
        """
        with self._lock:
            self._alive()
            changed = check_batch(self._units, units, replace=replace, allow_missing=allow_missing)
            if changed:
                self._apply(changed)
            return self._revision

    def remove(self, *ids: str | Identified) -> int:
        """Remove units and return the revision.

        Units that require them stay; their explanation is ``missing_dependency``.

        Raises:
            CatalogError: ``unknown_unit`` (nothing is removed), ``destroyed``.
        """
        with self._lock:
            self._alive()
            gone = {self[id].id for id in ids}
            if gone:
                self._apply((), gone)
            return self._revision

    def exchange(self, gone: Iterable[str | Identified], units: Iterable[Unit], tools: Iterable[Tool] = ()) -> int:
        """Remove units, and add or replace others, in one change. Return the revision.

        Args:
            gone: ids of units to remove; unknown ids are ignored.
            units: units to add or replace, as in ``add``; they may require unknown units.
            tools: executable tools for some of the units.

        Raises: CatalogError, as ``add``; ConfigurationError, as ``registry``. In both cases nothing changes.
        """
        from rlm.tools.function import as_tool

        with self._lock:
            self._alive()
            out = {id_of(unit) for unit in several("gone", gone)}
            kept = with_changes(self._units, {}, out)
            changed = check_batch(kept, several("units", units), replace=True, allow_missing=True)
            self._executables.put(as_tool(tool) for tool in several("tools", tools))
            if changed or len(kept) < len(self._units):
                self._apply(changed, out)
            return self._revision

    def changing(self) -> AbstractContextManager[Any]:
        """Return a context manager that keeps other threads from changing the catalog between a read and a change."""
        return self._lock

    def set_available(self, id: str | Identified, available: bool) -> int:
        """Set whether a unit can be used at the moment, and return the revision.

        For example a tool is not available while its server is not connected.
        """
        unit = self[id]
        if unit.available == available:
            return self._revision
        return self.add(unit.model_copy(update={"available": available}), replace=True, allow_missing=True)

    def _apply(self, changed: Iterable[Unit], gone: Collection[str] = ()) -> None:
        """Remove the units in ``gone``, and add or replace those in ``changed``."""
        before = self._units
        by_id = {unit.id: unit for unit in changed}
        total = self._sum
        for id in {*gone, *by_id}:
            old, new = before.get(id), by_id.get(id)
            if old is not new:
                total += (int(new.digest, 16) if new else 0) - (int(old.digest, 16) if old else 0)
        self._units = with_changes(before, by_id, gone)
        self._executables.keep(self._units)
        self._sum = total % DIGESTS
        self._revision += 1
        self._views.clear()

    # -- life cycle ---------------------------------------------------------------------------------

    def destroy(self) -> None:
        """Drop all units and close the connections of ``add_mcp``. A second call does nothing.

        Views of this catalog still explain themselves.
        """
        with self._lock:
            if self._destroyed:
                return
            self._destroyed = True
            self._units = {}
            self._executables.keep(())
            self._views.clear()
            clients, self._clients = self._clients, []
            UnitStore._living.discard(self)
        for client in clients:
            client.close()
        with self._facts.lock:
            self._finalizer()

    def __enter__(self) -> Self:
        self._alive()
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    def _alive(self) -> None:
        if self._destroyed:
            raise CatalogError("destroyed", "this catalog was destroyed")
