"""The catalog: all units of a host, with a revision. It registers; it never scores and never chooses."""

from __future__ import annotations

import os
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm.catalog.executables import Executables
from rlm.catalog.imported import Imported
from rlm.catalog.relations import check_batch
from rlm.errors import CatalogError, ConfigurationError, did_you_mean, named, warn
from rlm.forks import ForkLock
from rlm.model.arguments import checked_path, mapping, path_of, several
from rlm.model.facts import said_of
from rlm.model.snapshot import DIGESTS, Snapshot
from rlm.model.unit import Identified, Unit, id_of
from rlm.model.words import counted
from rlm.scoring.postings import Postings, numpy_is_there
from rlm.symbolic.engine import engine
from rlm.symbolic.values import JsonValue

if TYPE_CHECKING:
    from rlm.catalog.mcp import MCPServers, MCPTools
    from rlm.skills.library import Library
    from rlm.skills.limits import SkillPolicy
    from rlm.tools.mcp.client import MCPClient
    from rlm.tools.mcp.config import MCPLimits
    from rlm.tools.registry import Registry
    from rlm.tools.tool import Tool

STEMMERS = (
    *("none", "danish", "dutch", "english", "finnish", "french", "german", "hungarian", "italian"),
    *("norwegian", "porter", "portuguese", "romanian", "russian", "spanish", "swedish", "turkish"),
)
SCORED_HERE = 2_500
"""From so many units on, where numpy is installed, word scores are counted in Python: same vectors, same scores."""

_CHUNK = 500
_MOST_NUMBERS = (4, 1_000)
"""The rules number units and never use a number again. At so many numbers a unit, and these, they start anew."""

_CACHED_VIEWS = 64


@dataclass
class _CatalogState:
    """What the rules hold of a catalog, and how far it has got. Guarded by ``lock``."""

    lock: ForkLock = field(default_factory=ForkLock)
    handle: int | None = None
    postings: Postings | None = None
    pushed: Mapping[str, Unit] = field(default_factory=dict)
    numbers: int = 0
    process: int = field(default_factory=os.getpid)


class Catalog:
    """All units of a host.

    ``with Catalog() as catalog`` destroys it at the end; otherwise it lives until ``destroy()`` or until
    nobody holds it. Every change is an atomic batch and bumps ``revision``. Safe to use from any thread: a
    compile sees one revision, whatever others register meanwhile.

    Args:
        units: the first batch.
        stemmer: how words are reduced to their stem, by language (``"none"``: not at all).
    """

    _living: weakref.WeakSet[Catalog] = weakref.WeakSet()

    def __init__(self, units: Iterable[Unit] = (), *, stemmer: str = "english") -> None:
        if stemmer not in STEMMERS:
            raise ConfigurationError(
                "unknown_stemmer",
                f"stemmer {stemmer!r} is none of {', '.join(STEMMERS)}{did_you_mean(stemmer, STEMMERS)}",
            )
        self._stemmer = stemmer
        self._lock = ForkLock()
        self._units: dict[str, Unit] = {}
        self._skill_files: dict[str, tuple[str, ...]] = {}
        self._executables = Executables()
        self._clients: list[MCPClient] = []
        self._snapshot: Snapshot | None = None
        self._sum = 0
        self._revision = 0
        self._destroyed = False
        self._shared = _CatalogState()
        self._cache: OrderedDict[Any, Any] = OrderedDict()
        self._topics: tuple[int, set[Any]] = (-1, set())
        self._finalizer = weakref.finalize(self, _forget, self._shared)
        self._finalizer.atexit = False
        Catalog._living.add(self)
        batch = tuple(several("units", units))
        if batch:
            self.add(*batch)

    # -- what is there ------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        """How many changes there have been."""
        return self._revision

    @property
    def destroyed(self) -> bool:
        """Whether ``destroy`` was called."""
        return self._destroyed

    @property
    def units(self) -> Mapping[str, Unit]:
        """The units by id, as they are now; the mapping does not change later."""
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

    def __repr__(self) -> str:
        state = "destroyed" if self._destroyed else f"{counted(len(self), 'unit')}, revision {self._revision}"
        return f"<Catalog: {state}>"

    def snapshot(self) -> Snapshot:
        """What is there at this moment, for good."""
        with self._lock:
            if self._snapshot is None or self._snapshot.units is not self._units:
                self._snapshot = Snapshot(self._revision, self._units, f"{self._sum:064x}", self._stemmer)
            return self._snapshot

    @property
    def registry(self) -> Registry:
        """The tools of this catalog that can be executed: those of ``add_tools`` and ``add_mcp`` whose units are
        still there. No handler is in a unit, and nothing of the registry is ever compiled.

        Raises: ConfigurationError ``invalid_schema``, ``not_importable``, for a tool that could never run.
        """
        with self._lock:
            return self._executables.registry

    @classmethod
    def living(cls) -> int:
        """How many catalogs of this process are not destroyed."""
        return sum(1 for catalog in list(cls._living) if not catalog.destroyed)

    # -- change -------------------------------------------------------------------------------------

    def add(self, *units: Unit, replace: bool = False, allow_missing: bool = False) -> int:
        """Register a batch, all or nothing.

        Args:
            units: the batch. A unit whose very same content is there already is no change.
            replace: whether units may take the place of different ones with their id.
            allow_missing: whether a unit may require one that is not there (yet); until it comes, the unit
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
                self._apply({**self._units, **{unit.id: unit for unit in changed}})
            return self._revision

    def remove(self, *ids: str | Identified) -> int:
        """Take units out; what requires them stays and is explained as ``missing_dependency``.

        Raises:
            CatalogError: ``unknown_unit`` (nothing is removed), ``destroyed``.
        """
        with self._lock:
            self._alive()
            gone = {self[id].id for id in ids}
            if gone:
                self._apply({id: unit for id, unit in self._units.items() if id not in gone})
            return self._revision

    def exchange(self, gone: Iterable[str | Identified], units: Iterable[Unit], tools: Iterable[Tool] = ()) -> int:
        """Take units out and put others in or in the place of those with their ids, in one change.

        Args:
            gone: ids; of what is not there nothing is taken out.
            units: as in ``add``; they may require what is not there.
            tools: what can be executed for some of the units.

        Raises: CatalogError, as ``add``; ConfigurationError, as ``registry``. Nothing is changed then.
        """
        from rlm.tools.function import as_tool

        with self._lock:
            self._alive()
            out = {id_of(unit) for unit in several("gone", gone)}
            kept = {id: unit for id, unit in self._units.items() if id not in out}
            changed = check_batch(kept, several("units", units), replace=True, allow_missing=True)
            self._executables.put(as_tool(tool) for tool in several("tools", tools))
            if changed or len(kept) < len(self._units):
                self._apply({**kept, **{unit.id: unit for unit in changed}})
            return self._revision

    def changing(self) -> AbstractContextManager[Any]:
        """Keep other threads from changing the catalog while something is looked at and then changed."""
        return self._lock

    def set_available(self, id: str | Identified, available: bool) -> int:
        """Say whether a unit can be used at the moment (its server is connected, its file is there)."""
        unit = self[id]
        if unit.available == available:
            return self._revision
        return self.add(unit.model_copy(update={"available": available}), replace=True, allow_missing=True)

    def add_tools(self, tools: Iterable[Any], *, replace: bool = False, **host: Any) -> int:
        """Register Python functions and tools made with ``@rlm.tool``; ``host`` are fields of every unit. The tools
        themselves are in ``registry``."""
        from rlm.tools.function import as_tool, tool_unit

        made = [as_tool(item) for item in several("tools", tools)]
        with self._lock:
            revision = self.add(*(tool_unit(item, **host) for item in made), replace=replace)
            self._executables.put(made)
        unnamed = [item.id for item in made if not item.description.strip() and "description" not in host]
        if unnamed:
            warn(f"{named(unnamed)}: without a description a tool is found by its name alone; write a docstring")
        return revision

    def add_file(self, path: str | Path, *, replace: bool = False, strict: bool = True, **host: Any) -> Imported:
        """Register the tools of a JSON Lines or JSON file (see ``rlm.catalog.imports``).

        Host-only fields come from ``host`` (for example ``trust="host"``), never from the file. Imported units
        are of trust ``stranger``: without ``trust="host"`` or a capability in the policy they are not granted.

        Args:
            path: the file.
            replace: as in ``add``.
            strict: whether one tool that cannot be used is an error. Else the others are registered; an
                ``RlmWarning`` and ``findings`` say which tools were not, with file, line, field and remedy.
            host: host-only fields of every unit.

        Returns:
            The revision, an ``int``, with ``ids`` and ``findings``.

        Raises:
            CatalogError: ``bad_file`` with all findings (file, line, field), where ``strict`` or where no tool can be
                used; nothing is registered.
        """
        from rlm.catalog.imports import units_of_file

        units, findings = units_of_file(path_of("path", path), host, strict=strict)
        if not units and not findings:
            warn(f"{path}: there is no tool in it")
        return self._imported(units, findings, replace=replace, strict=strict)

    def _imported(self, units: list[Unit], findings: list[Any], *, replace: bool, strict: bool) -> Imported:
        from rlm.catalog.imports import without_rivals

        with self._lock:
            if not strict and not replace:
                units, rivals = without_rivals(units, self._units)
                findings = [*findings, *rivals]
            revision = self.add(*units, replace=replace)
        return Imported.of(revision, units, findings)

    def add_relations(self, path: str | Path) -> int:
        """Add the relations of a file, as ``rlm suggest-relations`` prints them and a person has read them.

        JSON Lines: ``{"unit": "tool:a", "suggests": ["tool:b"]}``, or ``requires``.

        Raises:
            CatalogError: ``bad_relations`` with all findings (line, message); nothing is changed.
        """
        from rlm.mining.relations import related

        with self._lock:
            self._alive()
            return self.add(*related(self._units, checked_path("path", path)), replace=True, allow_missing=True)

    def add_tool_list(
        self,
        tools: Iterable[Mapping[str, Any]],
        *,
        source: str = "list",
        replace: bool = False,
        strict: bool = True,
        **host: Any,
    ) -> Imported:
        """Register tools in the spelling of OpenAI, Anthropic, MCP (``tools/list``) or plain JSON.

        Args:
            tools: the list, or a whole MCP result with ``tools``.
            source: what the units' provenance says.
            replace: as in ``add``.
            strict: as in ``add_file``; ``line`` of a finding is the place in the list, from 1.
            host: host-only fields of every unit; ``server="github"`` makes them ``mcp_tool:github/...``.

        Returns:
            As ``add_file``.

        Raises:
            CatalogError: ``bad_list`` with all findings.
        """
        from rlm.catalog.imports import units_of_list

        units, findings = units_of_list(tools, source, host, strict=strict)
        return self._imported(units, findings, replace=replace, strict=strict)

    def add_mcp(
        self,
        servers: MCPClient | Mapping[str, Any],
        *,
        tools: MCPTools | Mapping[str, Any] | None = None,
        limits: MCPLimits | None = None,
        strict: bool = False,
        **host: Any,
    ) -> MCPServers:
        """As ``aadd_mcp``, for callers that wait."""
        from rlm.sync import run_sync

        return run_sync(self.aadd_mcp, servers, tools=tools, limits=limits, strict=strict, **host)

    async def aadd_mcp(
        self,
        servers: MCPClient | Mapping[str, Any],
        *,
        tools: MCPTools | Mapping[str, Any] | None = None,
        limits: MCPLimits | None = None,
        strict: bool = False,
        **host: Any,
    ) -> MCPServers:
        """Connect to MCP servers, and register what they offer, for as long as they offer it.

        Tools are ``mcp_tool:<server>/<name>``, prompts ``mcp_prompt:<server>/<name>``, resources
        ``resource:<server>/<name>``, the server itself ``mcp_server:<server>``; the tools can be executed through
        ``registry``. A server's list that changes changes the catalog; a server that is gone makes its units
        unavailable until it is back. All is a stranger's text, and every tool a ``write``, unless the host says
        otherwise.

        Args:
            servers: an ``rlm.MCPClient``, or ``{name: configuration}`` as in ``mcpServers`` files (see
                ``rlm.load_mcp_config``). Connections that are made here end with ``destroy()``.
            tools: the host's word on the tools: ``{"effects": {"search": "read"}, "time_limit": 10}``, see
                ``rlm.MCPTools``.
            limits: what each server may take.
            strict: whether one server that cannot be used is an error. Else the others are registered, an
                ``RlmWarning`` and ``findings`` name it, and it is looked for again as one that was lost later.
            host: host-only fields of every unit: ``trust``, ``namespace`` (the server's name if not given),
                ``category``, ``priority``, ``activation``, ``mandatory``, ``visible``.

        Returns:
            The connections by name; ``findings`` says what of the servers and their lists is not used, and why.

        Raises:
            ToolError: ``not_connected``, where ``strict`` or where no server can be reached; then nothing is
                registered and nothing left running.
            ConfigurationError: ``invalid_server``, ``unknown_tool`` and others; ``mcp_missing`` without the extra.
            CatalogError: ``duplicate_unit``, ``unknown_field``.
        """
        from rlm.catalog.mcp import MCPTools, added, checked_host, clients_of

        self._alive()
        word = tools if isinstance(tools, MCPTools) else MCPTools(**mapping("tools", tools or {}))
        fields = checked_host(host)
        clients, made = clients_of(servers, limits, strict=strict)
        await added(self, clients, made, word, fields, strict=strict)
        self._clients += made
        return clients

    def add_skills(
        self,
        path: str | Path,
        *,
        policy: SkillPolicy | None = None,
        scope: str = "local",
        strict: bool = False,
        replace: bool = False,
        **host: Any,
    ) -> Library:
        """Register the skills at ``path``: a folder of skills, one skill's folder, or one SKILL.md.

        One bad file never costs another one: look at the result's ``entries`` for what was refused and why, or
        call its ``raise_for_refused()``. Nothing in a file can pin, trust, grant or weigh anything; units are of
        trust ``stranger`` unless ``trust="host"``.

        Args:
            path: resolved once; nothing outside of it is read.
            policy: limits of the loader.
            scope: the host's word for where the skills come from. A second skill of a name is
                ``skill:<scope>/<name>``; it never takes the place of the first.
            strict: refuse what deviates from the Agent Skills standard.
            replace: admit a file anew whose text is not the one that was registered.
            host: host-only fields of every unit (``trust``, ``activation``, ``priority`` ...).

        Raises:
            CatalogError: ``no_such_path``, ``unknown_field``, and as ``add``. Nothing is registered then.
            UnitError: a field of the host is wrong.
        """
        from rlm.catalog.skills import placed
        from rlm.skills.library import load

        library = load(path, policy=policy, scope=scope, strict=strict)
        with self._lock:
            self._alive()
            plan = placed(library, self._units, self._skill_files, host, replacing=replace)
            kept = {id: unit for id, unit in self._units.items() if id not in plan.gone}
            changed = check_batch(kept, plan.units, replace=False, allow_missing=False)
            if changed or plan.gone:
                self._apply({**kept, **{unit.id: unit for unit in changed}})
            self._skill_files.update(plan.files)
            return plan.library

    def add_bundle(self, profile: Any = None, *, replace: bool = False) -> int:
        """Register the bundled skills, pinned, or those of another profile (see ``rlm.Profile``).

        Args:
            profile: a ``Profile``, a list of skills, ``"on"`` or ``"off"``; the default profile if not given.
            replace: as in ``add``.

        Raises:
            ConfigurationError: ``unknown_skill``; CatalogError: as ``add``.
        """
        from rlm.skills.bundle import pinned_units
        from rlm.skills.profile import Profile

        return self.add(*pinned_units(Profile.of(profile)), replace=replace)

    def _apply(self, units: dict[str, Unit]) -> None:
        before = self._units
        total = self._sum
        for id, unit in units.items():
            old = before.get(id)
            if old is not unit:
                total += int(unit.digest, 16) - (int(old.digest, 16) if old else 0)
        for id, old in before.items():
            if id not in units:
                total -= int(old.digest, 16)
        self._units = units
        self._executables.keep(units)
        self._sum = total % DIGESTS
        self._revision += 1
        self._cache.clear()

    # -- life cycle ---------------------------------------------------------------------------------

    def destroy(self) -> None:
        """Forget everything. Views that were compiled keep explaining themselves. Twice is no error."""
        with self._lock:
            if self._destroyed:
                return
            self._destroyed = True
            self._units = {}
            self._executables.keep(())
            self._cache.clear()
            clients, self._clients = self._clients, []
            Catalog._living.discard(self)
        for client in clients:
            client.close()
        with self._shared.lock:
            self._finalizer()

    def __enter__(self) -> Catalog:
        self._alive()
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    def _alive(self) -> None:
        if self._destroyed:
            raise CatalogError("destroyed", "this catalog was destroyed")

    # -- for the compiler ---------------------------------------------------------------------------

    def ask(self, operation: str, args: Mapping[str, JsonValue], *, floor: int | None = None) -> tuple[Snapshot, Any]:
        """Ask the rules something about this catalog as it is now, and get the snapshot that they saw.

        ``args["catalog"]`` is filled in, and with ``floor`` (thousandths) the word scores of a large catalog, counted
        from the rules' own vectors. For the compiler only.
        """
        shared = self._shared
        with shared.lock:
            with self._lock:
                self._alive()
                snapshot = self.snapshot()
            self._push(snapshot)
            args = {**args, "catalog": shared.handle}
            if floor is not None and len(snapshot.units) >= SCORED_HERE and (shared.postings or numpy_is_there()):
                shared.postings = shared.postings or Postings()
                shared.postings.follow(shared.handle, snapshot)
                return snapshot, shared.postings.call(operation, args, floor)
            return snapshot, engine().call(operation, args)

    def is_new(self, topic: Any) -> bool:
        """Return whether nothing asked this about ``topic`` since the last change. For warnings that are given once."""
        with self._lock:
            revision, topics = self._topics
            if revision != self._revision or len(topics) >= _CACHED_VIEWS:
                topics = set()
            known = topic in topics
            self._topics = (self._revision, topics | {topic})
            return not known

    def cached(self, key: Any) -> Any:
        """The view that was compiled from exactly ``key`` at this revision, or None."""
        with self._lock:
            self._alive()
            view = self._cache.get(key)
            if view is not None:
                self._cache.move_to_end(key)
            return view

    def cache(self, key: Any, revision: int, view: Any) -> Any:
        """Keep a view; where another thread was first, its view is returned instead."""
        with self._lock:
            if revision != self._revision or self._destroyed:
                return view
            kept = self._cache.setdefault(key, view)
            while len(self._cache) > _CACHED_VIEWS:
                self._cache.popitem(last=False)
            return kept

    def _push(self, snapshot: Snapshot) -> None:
        """Tell the rules what changed since the last time; after a failure they start anew."""
        shared = self._shared
        if shared.pushed is snapshot.units and shared.handle is not None:
            return
        old, new = shared.pushed, snapshot.units
        fresh = [unit for id, unit in new.items() if old.get(id) is not unit]
        each, more = _MOST_NUMBERS
        if shared.numbers + len(fresh) > each * len(new) + more:
            _forget(shared)
            old, fresh = {}, [*new.values()]
        try:
            if shared.handle is None:
                shared.handle = engine().call("catalog_create", {"stemmer": self._stemmer})["catalog"]
            shared.numbers += len(fresh)
            gone = [id for id, unit in old.items() if new.get(id) is not unit]
            for start in range(0, max(len(fresh), 1), _CHUNK):
                units = [said_of(unit) for unit in fresh[start : start + _CHUNK]]
                change: dict[str, JsonValue] = {"catalog": shared.handle, "remove": gone, "units": units}
                engine().call("catalog_change", change)
                gone = []
        except BaseException:
            _forget(shared)
            raise
        shared.pushed = new


def _forget(shared: _CatalogState) -> None:
    """Let the rules forget a catalog that nobody holds any more; never waits, for finalizers call it.

    A process that was forked has no engine, and what its parent's holds is not its to forget.
    """
    handle, shared.handle, shared.pushed, shared.postings = shared.handle, None, {}, None
    shared.numbers = 0
    if handle is not None and os.getpid() == shared.process:
        engine().post("catalog_destroy", {"catalog": handle})


def ephemeral(snapshot: Snapshot) -> Catalog:
    """A catalog of its own with the units of a snapshot; the caller destroys it."""
    catalog = Catalog(stemmer=snapshot.stemmer)
    catalog.add(*snapshot.units.values(), allow_missing=True)
    return catalog
