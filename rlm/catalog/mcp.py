"""MCP servers in a catalog: their tools, prompts and resources as units and executable tools, kept up to date.

The server describes; the host decides. Only text, schemas and names of a server come in, as a third party's. Its hints
about a tool's effects are recorded in the listing, and nothing depends on them.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, Protocol

import anyio
import anyio.to_thread

from rlm.catalog.imports import HOST_FIELDS
from rlm.errors import CatalogError, ConfigurationError, RlmError, did_you_mean, warn
from rlm.model.base import Noun
from rlm.model.policy import covers
from rlm.model.unit import Kind, Trust, Unit
from rlm.tools.mcp.client import MCPClient
from rlm.tools.mcp.config import MCPLimits, servers_of
from rlm.tools.mcp.listing import Finding, ServerListing, finding
from rlm.tools.mcp.tools import tool_of
from rlm.tools.tool import DEFAULT_MAX_RESULT_BYTES, DEFAULT_TIME_LIMIT, Effect, ResultForm, Tool

MCP_FIELDS = frozenset({"namespace", "category", "trust", "mandatory", "priority", "activation", "visible"})
assert MCP_FIELDS <= HOST_FIELDS


class ServedCatalog(Protocol):
    """The part of ``rlm.Catalog`` that this module uses."""

    @property
    def units(self) -> Mapping[str, Unit]: ...
    @property
    def destroyed(self) -> bool: ...
    def changing(self) -> AbstractContextManager[Any]: ...
    def exchange(self, gone: Iterable[str], units: Iterable[Unit], tools: Iterable[Tool] = ()) -> int: ...


class MCPTools(Noun):
    """The host's settings for the tools of servers.

    - ``effects``: effects by tool, for example ``{"search": "read"}``, or ``{"files/search": "read"}`` for the tool of
      one server. ``*`` stands for any characters: ``{"files/get_*": "read"}``. An exact name counts before a pattern,
      and a longer pattern before a shorter one.
    - ``hints``: patterns over names of servers. A tool of such a server reads if the server itself says so
      (``readOnlyHint``), unless ``effects`` has an entry for it.
    - ``default_effect``: the effect of all other tools.
    - ``time_limit``: the limit of one call, in seconds.
    - ``max_result_bytes``: the most bytes of JSON that a result may have.
    - ``projection``: the form of a larger result.
    """

    effects: dict[str, Effect] = {}
    hints: frozenset[str] = frozenset()
    default_effect: Effect = Effect.WRITE
    time_limit: float = DEFAULT_TIME_LIMIT
    max_result_bytes: int = DEFAULT_MAX_RESULT_BYTES
    projection: ResultForm = ResultForm.FULL

    def effect_of(self, server: str, name: str, annotations: Mapping[str, Any] = MappingProxyType({})) -> Effect:
        """Return the effect of a tool of a server; ``annotations`` are the server's own hints."""
        whole = f"{server}/{name}"
        for exact in (whole, name):
            if exact in self.effects:
                return self.effects[exact]
        patterns = [pattern for pattern in self.effects if "*" in pattern and covers(pattern, whole)]
        if patterns:
            return self.effects[max(patterns, key=lambda pattern: (len(pattern), pattern))]
        if annotations.get("readOnlyHint") is True and any(covers(pattern, server) for pattern in self.hints):
            return Effect.READ
        return self.default_effect


class MCPServers(dict[str, MCPClient]):
    """Connections by name. ``findings`` has the unused parts of the servers and of their lists, with reasons."""

    def __init__(self, clients: Mapping[str, MCPClient], findings: Iterable[Finding] = ()) -> None:
        super().__init__(clients)
        self.unused: list[Finding] = list(findings)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Entries of the configuration that cannot be used, then the findings of each connection as they are now."""
        return (*self.unused, *(found for client in self.values() for found in client.findings))


def clients_of(servers: Any, limits: MCPLimits | None, *, strict: bool) -> tuple[MCPServers, list[MCPClient]]:
    """Return the connections by name, and the connections among them that were made here.

    Raises: ConfigurationError, as ``rlm.tools.mcp.config.servers_of``.
    """
    if isinstance(servers, MCPClient):
        return MCPServers({servers.name: servers}), []
    found = servers_of(servers, strict=strict)
    made = {name: MCPClient(name, server, limits=limits) for name, server in found.items()}
    connections = MCPServers(made)
    for name, problem in found.problems.items():
        connections.unused.append(finding("error", problem.kind, f"mcp_server:{name}", problem.message))
    for name, plain in found.renamed.items():
        what = f"{name!r} is called {plain!r} here: a server's name has letters, digits, '_', '.' and '-'"
        connections.unused.append(finding("note", "renamed_server", f"mcp_server:{plain}", what))
    return connections, list(made.values())


def checked_host(host: Mapping[str, Any]) -> dict[str, Any]:
    """Return the host's fields of units. Raises: CatalogError ``unknown_field``; UnitError."""
    for field in host:
        if field not in MCP_FIELDS:
            hint = did_you_mean(field, (*MCP_FIELDS, "tools", "limits", "strict"))
            what = f"{field!r} is no field that MCP servers take from the host{hint}"
            raise CatalogError("unknown_field", what, {"field": field})
    Unit("mcp_server:host", **host)
    return dict(host)


def check_effects(tools: MCPTools, clients: Mapping[str, MCPClient]) -> None:
    """Check that each tool in ``effects`` is a tool of a server. The tools of a lost server are unknown and pass.

    Raises: ConfigurationError ``unknown_tool``.
    """
    away = [client.name for client in clients.values() if not client.connected]
    names = [name for client in clients.values() for name in client.listing.tools]
    names += [f"{client.name}/{name}" for client in clients.values() for name in client.listing.tools]
    for name in tools.effects:
        server, slash, _ = name.partition("/")
        unknown = server in away if slash and server in clients else bool(away)
        if "*" not in name and name not in names and not unknown:
            hint = did_you_mean(name, names)
            what = f"effects: no server has a tool {name!r}{hint}"
            raise ConfigurationError("unknown_tool", what, {"tool": name})


async def added(
    catalog: ServedCatalog,
    clients: MCPServers,
    made: list[MCPClient],
    tools: MCPTools,
    host: Mapping[str, Any],
    *,
    strict: bool,
) -> None:
    """Open the connections side by side, and place the units and tools of the servers.

    A server that cannot be reached does not affect the others: its unit is unavailable, and it is tried again.

    Raises: as ``Catalog.aadd_mcp``; then the connections made here are closed, and the catalog is as before.
    """
    placements = [ServerPlacement(catalog, client, tools, host) for client in clients.values()]
    try:
        failures = await _opened(list(clients.values()), keep_trying=bool(made) and not strict)
        if failures and (strict or len(failures) == len(clients)):
            raise next(iter(failures.values()))
        check_effects(tools, clients)
        await anyio.to_thread.run_sync(_placed, catalog, placements)
    except BaseException:
        with anyio.CancelScope(shield=True):
            for client in made:
                await client.aclose()
        raise
    for client in made:
        weakref.finalize(catalog, client.begin_closing).atexit = False
    for name, problem in failures.items():
        if (
            isinstance(problem, RlmError) and problem.kind != "not_connected"
        ):  # it never began, so it has no findings of its own
            clients.unused.append(finding("error", problem.kind, f"mcp_server:{name}", problem.message))
    _warn(clients, failures)


def _warn(clients: MCPServers, failures: Mapping[str, Exception]) -> None:
    """Warn once about the servers that are not used."""
    messages = [str(found["message"]) for found in clients.unused] + [
        str(problem) for problem in failures.values() if getattr(problem, "kind", "") == "not_connected"
    ]
    if messages:
        more = f" (and {len(messages) - 3} more: see findings)" if len(messages) > 3 else ""
        warn("add_mcp: " + "; ".join(messages[:3]) + more)


async def _opened(clients: list[MCPClient], *, keep_trying: bool) -> dict[str, Exception]:
    """Open all connections side by side, and return the failures by name."""
    failures: dict[str, Exception] = {}

    async def open_one(client: MCPClient) -> None:
        try:
            await client.aopen(keep_trying=keep_trying)
        except Exception as problem:  # noqa: BLE001 - the caller raises or reports it
            failures[client.name] = problem

    async with anyio.create_task_group() as tasks:
        for client in clients:
            tasks.start_soon(open_one, client)
    return {client.name: failures[client.name] for client in clients if client.name in failures}


def _placed(catalog: ServedCatalog, placements: list[ServerPlacement]) -> None:
    with catalog.changing():
        done: list[ServerPlacement] = []
        try:
            for placement in placements:
                placement.place(catalog)
                done.append(placement)
        except BaseException:
            for placement in done:
                placement.withdraw(catalog)
            raise
        for placement in placements:
            placement.follow()


class ServerPlacement:
    """The units and tools of one server in one catalog.

    A unit that the host removed stays out. A unit that the host replaced stays the host's, and only its ``available``
    follows the server.
    """

    def __init__(self, catalog: ServedCatalog, client: MCPClient, tools: MCPTools, host: Mapping[str, Any]) -> None:
        self._catalog = weakref.ref(catalog)
        self._client = client
        self._tools, self._host = tools, dict(host)
        self._placed: dict[str, Unit] = {}
        self._taken_out: set[str] = set()
        self._made: dict[str, tuple[str, Tool]] = {}
        self._first = True

    def __call__(self, client: MCPClient) -> None:
        """Update the catalog from the server. A destroyed catalog is no error."""
        catalog = self._catalog()
        if catalog is not None and not catalog.destroyed:
            self.place(catalog)

    def place(self, catalog: ServedCatalog) -> None:
        """Update the catalog from the server, in one change.

        Raises: CatalogError ``duplicate_unit``, the first time, if another unit has an id of the server's.
        """
        with catalog.changing():
            listing, connected = self._client.listing, self._client.connected
            tools = self._tools_of(listing)
            known = catalog.units
            self._taken_out |= {id for id in self._placed if id not in known}
            listed = {
                unit.id: unit.model_copy(update={**self._host, **self._effect(unit), "available": connected})
                for unit in listing.units
                if unit.id not in self._taken_out
            }
            foreign = [id for id in listed if id in known and id not in self._placed]
            if foreign and self._first:
                what = f"there is another {foreign[0]}; give the server another name, or remove that unit"
                raise CatalogError("duplicate_unit", what, {"unit": foreign[0], "units": foreign})
            units = [self._merged(unit, known) for id, unit in listed.items() if id not in foreign]
            ours = {unit.id for unit in units}
            gone = [id for id in self._placed if id not in ours]
            catalog.exchange(gone, units, [tool for tool in tools if tool.id in ours])
            self._placed = {id: listed[id] for id in ours}
            self._first = False

    def _effect(self, unit: Unit) -> dict[str, Effect]:
        """Return the effect that the host states for the tool of a unit; nothing if it states none."""
        stated, name = self._tools.effects, unit.name
        effect = stated.get(f"{self._client.name}/{name}", stated.get(name)) if unit.kind is Kind.MCP_TOOL else None
        return {} if effect is None else {"effect": effect}

    def withdraw(self, catalog: ServedCatalog) -> None:
        """Remove all units of this server."""
        catalog.exchange(list(self._placed), [])
        self._placed = {}

    def follow(self) -> None:
        """Follow the changes of the server from now on."""
        self._client.on_change(self)
        self(self._client)  # changes since ``place``

    def _merged(self, unit: Unit, known: Mapping[str, Unit]) -> Unit:
        """Return the host's unit, if the host replaced the server's; else the server's unit."""
        there, ours = known.get(unit.id), self._placed.get(unit.id)
        if there is None or ours is None or there.digest == ours.digest:
            return unit
        if there.model_copy(update={"available": ours.available}).digest == ours.digest:
            return unit
        return there.model_copy(update={"available": unit.available})

    def _tools_of(self, listing: ServerListing) -> list[Tool]:
        """Return the tools of the listing. An unchanged tool is the same object as before."""
        made: dict[str, tuple[str, Tool]] = {}
        for name, described in listing.tools.items():
            digest, tool = self._made.get(name, ("", None))
            if tool is None or digest != described.digest:
                tool = self._tool(name, described)
            made[name] = (described.digest, tool)
        self._made = made
        return [tool for _, tool in made.values()]

    def _tool(self, name: str, described: Any) -> Tool:
        tools = self._tools
        return tool_of(
            self._client,
            described,
            tools.effect_of(self._client.name, name, described.annotations),
            time_limit=tools.time_limit,
            max_result_bytes=tools.max_result_bytes,
            projection=tools.projection,
            trust=Trust(self._host.get("trust", Trust.STRANGER)),
        )
