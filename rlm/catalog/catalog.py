"""The catalog: all units of a host, with a revision. It registers; it never scores and never chooses.

The store has the units and their changes; this module has the imports from files, lists, servers and folders, and the
interface of the compiler.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rlm.catalog.frozen_file import FrozenFile, damaged
from rlm.catalog.frozen_units import FrozenBase, FrozenUnits
from rlm.catalog.imported import Imported
from rlm.catalog.relations import check_batch
from rlm.catalog.store import UnitStore
from rlm.errors import ConfigurationError, EngineError, named, warn
from rlm.model.arguments import checked_path, mapping, path_of, several
from rlm.model.snapshot import Snapshot, with_changes
from rlm.symbolic.values import JsonValue

if TYPE_CHECKING:
    from rlm.catalog.mcp import MCPServers, MCPTools
    from rlm.model.unit import Unit
    from rlm.skills.library import Library
    from rlm.skills.limits import SkillPolicy
    from rlm.tools.mcp.client import MCPClient
    from rlm.tools.mcp.config import MCPLimits


_OF_THE_CALL = ("timeout", "cancelled", "aborted", "stack_limit", "inference_limit", "stopped", "forked")
"""Kinds of errors that say nothing about a file."""


class Catalog(UnitStore):
    """All units of a host.

    ``with Catalog() as catalog`` destroys it at the end. Without ``with`` it lives until ``destroy()`` or until the
    last reference is gone. Every change is an atomic batch and raises ``revision`` by one. A catalog is safe to use
    from any thread: a compile reads one revision, even while another thread registers units.

    Args:
        units: the first batch.
        stemmer: the language of the rules that reduce words to stems, for example ``"german"``; ``"none"`` keeps words
            whole.
    """

    # -- imports ------------------------------------------------------------------------------------

    def add_tools(self, tools: Iterable[Any], *, replace: bool = False, **host: Any) -> int:
        """Register Python functions and tools made with ``@rlm.tool``, and return the revision.

        ``host`` are fields of every unit. The tools themselves are in ``registry``.
        """
        from rlm.tools.function import as_tool, tool_unit

        checked_tools = [as_tool(item) for item in several("tools", tools)]
        with self._lock:
            revision = self.add(*(tool_unit(item, **host) for item in checked_tools), replace=replace)
            self._executables.put(checked_tools)
        unnamed = [item.id for item in checked_tools if not item.description.strip() and "description" not in host]
        if unnamed:
            warn(f"{named(unnamed)}: without a description a tool is found by its name alone; write a docstring")
        return revision

    def add_file(self, path: str | Path, *, replace: bool = False, strict: bool = True, **host: Any) -> Imported:
        """Register the tools of a JSON Lines or JSON file (see ``rlm.catalog.imports``).

        Host-only fields come from ``host`` (for example ``trust="host"``), never from the file. Imported units
        have the trust ``stranger``: without ``trust="host"`` or a capability in the policy they are not granted.

        Args:
            path: the file.
            replace: as in ``add``.
            strict: whether one tool that cannot be used is an error. Otherwise the other tools are registered, and an
                ``RlmWarning`` and ``findings`` name the bad ones, with file, line, field and remedy.
            host: host-only fields of every unit.

        Returns:
            The revision, an ``int``, with ``ids`` and ``findings``.

        Raises:
            CatalogError: ``bad_file`` with all findings (file, line, field), if ``strict`` or if no tool can be used.
                Nothing is registered.
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
        """Add the relations of a file, such as the output of ``rlm suggest-relations``, and return the revision.

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
            source: the source in the units' provenance.
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
        """Run ``aadd_mcp`` and wait for it: the form for synchronous callers."""
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
        """Connect to MCP servers, and register their tools, prompts and resources for as long as the servers list them.

        Tools are ``mcp_tool:<server>/<name>``, prompts ``mcp_prompt:<server>/<name>``, resources
        ``resource:<server>/<name>``, the server itself ``mcp_server:<server>``; the tools can be executed through
        ``registry``. The catalog follows changes of a server's list. While a server is lost, its units are unavailable.
        The text of all units is a third party's, and every tool has the effect ``write``, unless the host sets other
        values.

        Args:
            servers: an ``rlm.MCPClient``, or ``{name: configuration}`` as in ``mcpServers`` files (see
                ``rlm.load_mcp_config``). Connections that are made here end with ``destroy()``.
            tools: the host's settings for the tools: ``{"effects": {"search": "read"}, "time_limit": 10}``, see
                ``rlm.MCPTools``.
            limits: the limits of each server.
            strict: whether one server that cannot be used is an error. Otherwise the other servers are registered, an
                ``RlmWarning`` and ``findings`` name it, and it is tried again like a server that was lost later.
            host: host-only fields of every unit: ``trust``, ``namespace`` (default: the server's name),
                ``category``, ``priority``, ``activation``, ``mandatory``, ``visible``.

        Returns:
            The connections by name; ``findings`` has the unused parts of the servers and their lists, with reasons.

        Raises:
            ToolError: ``not_connected``, if ``strict`` or if no server can be reached. Nothing is registered, and
                nothing keeps running.
            ConfigurationError: ``invalid_server``, ``unknown_tool`` and others; ``mcp_missing`` without the extra.
            CatalogError: ``duplicate_unit``, ``unknown_field``.
        """
        from rlm.catalog.mcp import MCPTools, added, checked_host, clients_of

        self._alive()
        settings = tools if isinstance(tools, MCPTools) else MCPTools(**mapping("tools", tools or {}))
        fields = checked_host(host)
        clients, checked_tools = clients_of(servers, limits, strict=strict)
        await added(self, clients, checked_tools, settings, fields, strict=strict)
        self._clients += checked_tools
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

        A bad file does not affect the others. The result's ``entries`` name the refused files with reasons, and
        ``raise_for_refused()`` raises for them. No file can pin, trust, grant or weigh a unit; units have the trust
        ``stranger`` unless ``trust="host"``.

        Args:
            path: a folder or a file. It is resolved once, and nothing outside of it is read.
            policy: limits of the loader.
            scope: the host's name for the source of the skills. A second skill of a name is
                ``skill:<scope>/<name>``; it never takes the place of the first.
            strict: refuse a file that deviates from the Agent Skills standard.
            replace: register a file again if its text has changed.
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
            kept = with_changes(self._units, {}, plan.gone)
            changed = check_batch(kept, plan.units, replace=False, allow_missing=False)
            if changed or plan.gone:
                self._apply(changed, plan.gone)
            self._skill_files.update(plan.files)
            return plan.library

    def add_bundle(self, profile: Any = None, *, replace: bool = False) -> int:
        """Register the skills of a profile (see ``rlm.Profile``), pinned, and return the revision.

        Args:
            profile: a ``Profile``, a list of skills, ``"on"`` or ``"off"``; None is the default profile.
            replace: as in ``add``.

        Raises:
            ConfigurationError: ``unknown_skill``; CatalogError: as ``add``.
        """
        from rlm.skills.bundle import pinned_units
        from rlm.skills.profile import Profile

        return self.add(*pinned_units(Profile.of(profile)), replace=replace)

    # -- frozen files --------------------------------------------------------------------------------

    def freeze(self, path: str | Path, *, tokenizer: str = "o200k_base") -> Path:
        """Write the catalog to a file that ``Catalog.open`` loads fast, and return its path.

        The file has the units, the facts of the rules, the word index, and the token counts of all units. It can be
        read by the version of the rules and of Prolog that wrote it. Executable tools are not in it.

        Args:
            path: the file; one that is there is replaced.
            tokenizer: the name of the tokenizer whose counts go into the file.

        Raises:
            CatalogError: ``unwritable_file``, ``destroyed``.
            ConfigurationError: ``unknown_tokenizer``.
        """
        from rlm.catalog.freeze import prepare

        place = path_of("path", path)
        self._alive()
        prepare(self)
        with self._facts.lock:
            with self._lock:
                self._alive()
                snapshot = self.snapshot()
            self._facts.frozen(snapshot, place, tokenizer)
        return place

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Return the catalog of a frozen file.

        Units are read when they are needed. The bytes of the file are shared by all processes that open it. The catalog
        can be changed; the file stays as it is. Open only files that you or your host made: a digest finds damage, not
        malice.

        Raises:
            CatalogError: ``unreadable_file``, ``not_frozen``, ``frozen_damaged``, or ``frozen_version`` for a file of
                another version of the format, the rules or Prolog. The message has the remedy.
        """
        file = FrozenFile(path_of("path", path))
        try:
            catalog = cls(stemmer=file.table["stemmer"])
            catalog._thaw(FrozenUnits(FrozenBase(file)), file.table["digest"])
        except (LookupError, TypeError, ValueError, ConfigurationError, EngineError) as problem:
            if isinstance(problem, EngineError) and problem.kind in _OF_THE_CALL:
                raise
            raise damaged(file.path, f"a section cannot be read ({type(problem).__name__})") from None
        return catalog

    def _thaw(self, units: FrozenUnits, digest: str) -> None:
        """Begin with the units of a frozen file, and send them to the rules."""
        with self._facts.lock:
            with self._lock:
                self._units, self._sum, self._revision = units, int(digest, 16), 1
                snapshot = self.snapshot()
            self._facts.push(snapshot)

    @property
    def frozen_file(self) -> FrozenFile | None:
        """The file below the units. For the compiler only."""
        units = self._units
        return units.base.file if isinstance(units, FrozenUnits) else None

    # -- for the compiler ---------------------------------------------------------------------------

    def ask(self, operation: str, args: Mapping[str, JsonValue], *, floor: int | None = None) -> tuple[Snapshot, Any]:
        """Call an operation of the rules on the present units. For the compiler only.

        Args:
            operation: an operation of the bridge.
            args: its arguments; ``args["catalog"]`` is filled in.
            floor: the least word score that counts, in thousandths; with it the word scores are filled in.

        Returns:
            The snapshot that the rules read, and the reply.
        """
        with self._facts.lock:
            with self._lock:
                self._alive()
                snapshot = self.snapshot()
            return snapshot, self._facts.call(snapshot, operation, args, floor=floor)

    def is_new(self, topic: Any) -> bool:
        """Return whether this is the first call about ``topic`` since the last change. Warnings use it to come once."""
        with self._lock:
            return self._views.is_new(topic)

    def cached(self, key: Any) -> Any:
        """Return the view that was compiled from exactly ``key`` at this revision, or None."""
        with self._lock:
            self._alive()
            return self._views.get(key)

    def cache(self, key: Any, revision: int, view: Any) -> Any:
        """Keep a view of a revision and return it. If another thread was first, its view is returned instead."""
        with self._lock:
            if revision != self._revision or self._destroyed:
                return view
            return self._views.keep(key, view)


def ephemeral(snapshot: Snapshot) -> Catalog:
    """Return a catalog of its own with the units of a snapshot. The caller destroys it."""
    catalog = Catalog(stemmer=snapshot.stemmer)
    catalog.add(*snapshot.units.values(), allow_missing=True)
    return catalog
