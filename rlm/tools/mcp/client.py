"""The connection to one server, as a host holds it: opened, kept for the host's whole life, and mended where it breaks.

It lives on an event loop of its own; any loop and any thread may use it. What is told of it (``listing``,
``connected``, ``problem``) is a snapshot that never changes once it was read.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import threading
import weakref
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from rlm.errors import ConfigurationError, ToolError
from rlm.model.arguments import instance
from rlm.model.unit import Trust, Unit
from rlm.model.versions import installed, satisfies
from rlm.sync import run_sync
from rlm.tools.mcp.config import HTTPServer, MCPLimits, checked_name, server_of
from rlm.tools.mcp.home import Gone, Home
from rlm.tools.mcp.listing import Finding, ServerListing, ServerTool, finding
from rlm.web.proxies import proxy_for

if TYPE_CHECKING:
    from rlm.model.message import Message
    from rlm.tools.mcp.connection import Connection
    from rlm.tools.mcp.content import ResourceContent

T = TypeVar("T")
Listener = Callable[["MCPClient"], None]

SDK_WANTED = ">=2.3,<3"
"""Versions of the package ``mcp`` that can be used here, as the extra says."""

FAREWELL_SECONDS = 5.0
"""Beyond the grace that a process has, for everything else that ends with a connection."""

_log = logging.getLogger("rlm.mcp")
_open: weakref.WeakSet[MCPClient] = weakref.WeakSet()


class MCPClient:
    """A connection to one MCP server.

        with rlm.MCPClient("files", {"command": "mcp-files", "args": ["--root", "/srv"]}) as client:
            catalog.add_mcp(client)

    Args:
        name: the host's name for the server; the units are ``mcp_tool:<name>/...``.
        server: ``{"command", "args", "env", "cwd"}`` or ``{"url", "headers"}``.
        limits: what the server may take.

    Raises: ConfigurationError ``invalid_server`` and others.
    """

    def __init__(self, name: str, server: Any, *, limits: MCPLimits | None = None) -> None:
        self.name = checked_name(name)
        self.limits = MCPLimits() if limits is None else instance("limits", limits, MCPLimits)
        self._server = server_of(name, server)
        self._nothing = ServerListing(name, Unit(f"mcp_server:{name}", trust=Trust.STRANGER, available=False))
        self._listeners: list[Listener] = []
        self._guard = threading.Lock()
        self._home: Home | None = None
        self._connection: Connection | None = None

    def __repr__(self) -> str:
        state = "connected" if self.connected else "not connected"
        return f"<MCPClient {self.name!r} at {self._server.place}: {state}, {len(self.listing.tools)} tools>"

    # -- what is there ------------------------------------------------------------------------------

    @property
    def connected(self) -> bool:
        """Whether the server can be asked at this moment."""
        return self._connection is not None and self._connection.connected

    @property
    def problem(self) -> str:
        """Why it is not connected; empty where it is."""
        return "it was not opened" if self._connection is None else self._connection.problem

    @property
    def listing(self) -> ServerListing:
        """What the server offered when it was last asked."""
        return self._nothing if self._connection is None else self._connection.listing

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong or worth knowing of that; first of all, why the server is not connected."""
        if self.connected or self._connection is None or self._connection.closing or not self.problem:
            return self.listing.findings
        away = finding("error", "not_connected", f"mcp_server:{self.name}", f"{self.problem}; it is looked for again")
        return (away, *self.listing.findings)

    def on_change(self, listener: Listener) -> None:
        """Have a function called with this client after each change of ``listing`` or ``connected``, on the
        connection's own thread."""
        self._listeners.append(listener)

    def _told(self) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(self)
            except Exception:  # noqa: BLE001 - a listener's fault is not the connection's
                _log.exception("%r: a listener failed", self)

    # -- life cycle ---------------------------------------------------------------------------------

    async def aopen(self, *, keep_trying: bool = False) -> None:
        """Connect, and read what the server offers. An open connection stays as it is.

        Args:
            keep_trying: whether a server that cannot be reached now is looked for again, until ``close``.

        Raises:
            ToolError: ``not_connected``, with the reason; nothing is left running then, unless ``keep_trying``.
            ConfigurationError: ``mcp_missing``, where the extra is not installed; ``invalid_proxy``, where the
                environment names a proxy for it that cannot be used.
        """
        _check_sdk()
        if isinstance(self._server, HTTPServer):
            proxy_for(self._server.url)
        with self._guard:
            connection = self._started(keep_trying=keep_trying)
        if connection.connected:
            return
        try:
            await asyncio.wrap_future(connection.opening)
        except asyncio.CancelledError:
            self.begin_closing()
            raise

    def open(self) -> None:
        """As ``aopen``, for callers that wait."""
        run_sync(self.aopen)

    def close(self) -> None:
        """End the connection, and the server's process where it is one. Twice is no error."""
        self.begin_closing()
        home = self._home
        if home is not None:
            home.join(self.limits.close_seconds * 2 + FAREWELL_SECONDS)

    async def aclose(self) -> None:
        """As ``close``, without keeping an event loop from its work."""
        import anyio.to_thread

        await anyio.to_thread.run_sync(self.close)

    def begin_closing(self) -> None:
        """Have the connection end, without waiting for it."""
        connection, home = self._connection, self._home
        if connection is not None and home is not None:
            connection.closing = True
            home.tell(connection.end)

    async def __aenter__(self) -> Self:
        await self.aopen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _started(self, *, keep_trying: bool = False) -> Connection:
        """The connection under way, or a new one."""
        from rlm.tools.mcp.connection import Connection

        if self._home is not None and self._home.here:
            if self._connection is not None and not self._connection.closing:
                return self._connection
            self._home.join(self.limits.close_seconds * 2 + FAREWELL_SECONDS)
        connection = Connection(self.name, self._server, self.limits, self.listing, self._told)
        connection.keep_trying = keep_trying
        self._connection = connection
        self._home = Home(f"rlm-mcp-{self.name}", connection.main)
        _open.add(self)
        return connection

    # -- asking -------------------------------------------------------------------------------------

    async def acall(self, tool: ServerTool, arguments: Mapping[str, Any], *, attempts: int = 1) -> Any:
        """Call a tool, for its handler: hosts call through a registry. The value is JSON data.

        A connection that is down is waited for. A call that was under way when the line broke is made again only
        within ``attempts``: nobody knows whether the server did it.

        Raises:
            ToolError: ``tool_removed``, ``tool_changed``, ``not_connected``, ``connection_lost``, ``mcp_error``,
                ``unauthorized``, ``forbidden``, ``tool_failed``,
                ``invalid_result``, ``result_too_large``, ``input_required``, ``timeout``.
        """
        return await self._there(lambda connection: connection.called(tool, arguments, attempts))

    async def aprompt(self, name: str, arguments: Mapping[str, str] | None = None) -> tuple[Message, ...]:
        """A prompt, filled in by the server. It is a stranger's text, and as long as the limits allow.

        Raises: ToolError ``unknown_prompt``, ``invalid_arguments``, and as ``acall``.
        """
        return await self._there(lambda connection: connection.prompted(name, dict(arguments or {})))

    def prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> tuple[Message, ...]:
        """As ``aprompt``, for callers that wait."""
        return run_sync(self.aprompt, name, arguments)

    async def aresource(self, name: str) -> tuple[ResourceContent, ...]:
        """What a resource holds at this moment, by its name or its URI.

        Raises: ToolError ``unknown_resource``, and as ``acall``.
        """
        return await self._there(lambda connection: connection.read(name))

    def resource(self, name: str) -> tuple[ResourceContent, ...]:
        """As ``aresource``, for callers that wait."""
        return run_sync(self.aresource, name)

    async def arefresh(self) -> ServerListing:
        """Read anew what the server offers. Raises: as ``acall``."""
        return await self._there(lambda connection: connection.asked(connection.relisted, 2))

    def refresh(self) -> ServerListing:
        """As ``arefresh``, for callers that wait."""
        return run_sync(self.arefresh)

    async def _there(self, ask: Callable[[Connection], Awaitable[T]]) -> T:
        """An answer, from the connection's own loop."""
        connection, home = self._connection, self._home
        if connection is None or home is None or connection.closing:
            raise self._not_connected(self.problem)
        try:
            return await home.call(ask, connection)
        except Gone:
            why = self.problem if home.here else "it was opened by the process that this one was forked from"
            raise self._not_connected(why or "it was closed") from None

    def _not_connected(self, why: str) -> ToolError:
        return ToolError("not_connected", f"MCP server {self.name!r}: {why}", {"server": self.name})


def _check_sdk() -> None:
    """Load the SDK, here and not in a connection's thread. Raises: ConfigurationError ``mcp_missing``."""
    try:
        import rlm.tools.mcp.connection  # noqa: F401
    except ImportError as problem:
        if (problem.name or "").partition(".")[0] not in ("mcp", "mcp_types", "httpx2"):
            raise
        raise ConfigurationError(
            "mcp_missing", missing_sdk(), {"extra": "mcp", "found": installed("mcp"), "wanted": SDK_WANTED}
        ) from None


def missing_sdk() -> str:
    """The words for an SDK that is not there, or that has another version than the extra asks for."""
    found, remedy = installed("mcp"), "pip install 'prolog-rlm[mcp]'"
    if found is None or satisfies(found, SDK_WANTED):
        return f"MCP servers need the extra 'mcp': {remedy}"
    return (
        f"MCP servers need the package 'mcp' {SDK_WANTED}; version {found} is installed, which another package may "
        f"have brought in: {remedy} (in an environment of its own, where that package needs the other version)"
    )


@atexit.register
def _close_all() -> None:
    """End the servers of connections that nobody closed, all at once."""
    clients = list(_open)
    for client in clients:
        client.begin_closing()
    for client in clients:
        client.close()
