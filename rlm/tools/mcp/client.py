"""The host's client of one server. It stays open until ``close`` and reconnects after a failure.

The connection runs on an event loop of its own; any loop and any thread may use the client. ``listing``,
``connected`` and ``problem`` are snapshots: a value does not change after it was read.
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

SDK_VERSIONS = ">=2.3,<3"
"""The usable versions of the package ``mcp``, as the extra requires."""

FAREWELL_SECONDS = 5.0
"""Seconds for the end of a connection, in addition to the grace period of its process."""

_log = logging.getLogger("rlm.mcp")
_open: weakref.WeakSet[MCPClient] = weakref.WeakSet()


class MCPClient:
    """A connection to one MCP server, for example:

        with rlm.MCPClient("files", {"command": "mcp-files", "args": ["--root", "/srv"]}) as client:
            catalog.add_mcp(client)

    Args:
        name: the host's name for the server; the units are ``mcp_tool:<name>/...``.
        server: ``{"command", "args", "env", "cwd"}`` or ``{"url", "headers"}``.
        limits: bounds of time, message size and list length for this server.

    Raises:
        ConfigurationError: ``invalid_server``, ``unknown_field``, ``unsupported_transport``, ``invalid_field``.
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

    # -- state -------------------------------------------------------------------------------------

    @property
    def connected(self) -> bool:
        """Return whether the server can take a request at this moment."""
        return self._connection is not None and self._connection.connected

    @property
    def problem(self) -> str:
        """Return the reason why the client is not connected; empty if it is connected."""
        return "it was not opened" if self._connection is None else self._connection.problem

    @property
    def listing(self) -> ServerListing:
        """Return the latest listing of the server's tools, prompts and resources."""
        return self._nothing if self._connection is None else self._connection.listing

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return errors and notes about the listing. A lost connection comes first."""
        if self.connected or self._connection is None or self._connection.closing or not self.problem:
            return self.listing.findings
        lost = finding("error", "not_connected", f"mcp_server:{self.name}", f"{self.problem}; it is looked for again")
        return (lost, *self.listing.findings)

    def on_change(self, listener: Listener) -> None:
        """Register a listener for changes of ``listing`` or ``connected``.

        Args:
            listener: a function of this client; the connection's own thread calls it.
        """
        self._listeners.append(listener)

    def _notify_listeners(self) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(self)
            except Exception:  # noqa: BLE001 - a listener's fault is not the connection's
                _log.exception("%r: a listener failed", self)

    # -- life cycle ---------------------------------------------------------------------------------

    async def aopen(self, *, keep_trying: bool = False) -> None:
        """Connect and read the server's listing. An open connection stays as it is.

        Args:
            keep_trying: whether to try again, until ``close``, if the server cannot be reached now.

        Raises:
            ToolError: ``not_connected``, with the reason. Then no process and no thread is left, unless
                ``keep_trying``.
            ConfigurationError: ``mcp_missing``, if the extra is not installed; ``invalid_proxy``, if the environment
                names an unusable proxy for the server.
        """
        check_sdk()
        if isinstance(self._server, HTTPServer):
            proxy_for(self._server.url)
        with self._guard:
            connection = self._start(keep_trying=keep_trying)
        if connection.connected:
            return
        try:
            await asyncio.wrap_future(connection.opening)
        except asyncio.CancelledError:
            self.begin_closing()
            raise

    def open(self) -> None:
        """Connect as ``aopen`` does, and block until it is done."""
        run_sync(self.aopen)

    def close(self) -> None:
        """End the connection and the server's process, if it has one. A second call has no effect."""
        self.begin_closing()
        home = self._home
        if home is not None:
            home.join(self.limits.close_seconds * 2 + FAREWELL_SECONDS)

    async def aclose(self) -> None:
        """End the connection as ``close`` does, without blocking the event loop."""
        import anyio.to_thread

        await anyio.to_thread.run_sync(self.close)

    def begin_closing(self) -> None:
        """Start to end the connection, and return at once."""
        connection, home = self._connection, self._home
        if connection is not None and home is not None:
            connection.closing = True
            home.post(connection.end)

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

    def _start(self, *, keep_trying: bool = False) -> Connection:
        """Return the running connection, or start a new one."""
        from rlm.tools.mcp.connection import Connection

        if self._home is not None and self._home.here:
            if self._connection is not None and not self._connection.closing:
                return self._connection
            self._home.join(self.limits.close_seconds * 2 + FAREWELL_SECONDS)
        connection = Connection(self.name, self._server, self.limits, self.listing, self._notify_listeners)
        connection.keep_trying = keep_trying
        self._connection = connection
        self._home = Home(f"rlm-mcp-{self.name}", connection.main)
        _open.add(self)
        return connection

    # -- requests ----------------------------------------------------------------------------------

    async def acall(self, tool: ServerTool, arguments: Mapping[str, Any], *, attempts: int = 1) -> Any:
        """Call a tool and return its value as JSON data. Only the tool's handler uses it; a host calls the registry.

        A call waits for a lost connection. If the connection breaks during a call, the server may or may not have
        done the work. So the call is repeated only within ``attempts``.

        Args:
            tool: the tool, as the listing describes it.
            arguments: a JSON object.
            attempts: the number of times that the server may get the call.

        Raises:
            ToolError: ``tool_removed``, ``tool_changed``, ``not_connected``, ``connection_lost``, ``mcp_error``,
                ``unauthorized``, ``forbidden``, ``tool_failed``,
                ``invalid_result``, ``result_too_large``, ``input_required``, ``timeout``.
        """
        return await self._on_connection(lambda connection: connection.call(tool, arguments, attempts))

    async def acall_whole(
        self,
        tool: ServerTool,
        arguments: Mapping[str, Any],
        *,
        attempts: int = 1,
        meta: Mapping[str, Any] | None = None,
        progress: Callable[[float, float | None, str | None], Awaitable[None]] | None = None,
    ) -> Any:
        """Call a tool and return the server's whole result, for a program that passes it on.

        Args:
            tool: the tool, as the listing describes it.
            arguments: a JSON object.
            attempts: the number of times that the server may get the call.
            meta: the ``_meta`` of the call.
            progress: gets progress, total and message; it runs on the connection's own loop.

        Raises:
            ToolError: as ``acall``, except ``tool_failed``.
        """
        return await self._on_connection(
            lambda connection: connection.call_whole(tool, arguments, attempts, meta, progress)
        )

    async def aprompt(self, name: str, arguments: Mapping[str, str] | None = None) -> tuple[Message, ...]:
        """Return the messages of a prompt that the server filled in. They are third-party text.

        Raises:
            ToolError: ``unknown_prompt``, ``invalid_arguments``, and as ``acall``.
        """
        return await self._on_connection(lambda connection: connection.prompt(name, dict(arguments or {})))

    def prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> tuple[Message, ...]:
        """Return the messages of a prompt as ``aprompt`` does, and block until they are there."""
        return run_sync(self.aprompt, name, arguments)

    async def aresource(self, name: str) -> tuple[ResourceContent, ...]:
        """Return the present content of a resource.

        Args:
            name: its name or its URI, for example ``file:///notes.txt``.

        Raises:
            ToolError: ``unknown_resource``, and as ``acall``.
        """
        return await self._on_connection(lambda connection: connection.read(name))

    def resource(self, name: str) -> tuple[ResourceContent, ...]:
        """Return the content of a resource as ``aresource`` does, and block until it is there."""
        return run_sync(self.aresource, name)

    async def arefresh(self) -> ServerListing:
        """Read the server's lists again and return the listing. Raises: as ``acall``."""
        return await self._on_connection(lambda connection: connection.request(connection.refresh, 2))

    def refresh(self) -> ServerListing:
        """Read the server's lists as ``arefresh`` does, and block until it is done."""
        return run_sync(self.arefresh)

    async def _on_connection(self, ask: Callable[[Connection], Awaitable[T]]) -> T:
        """Run a request on the connection's own loop and return its answer."""
        connection, home = self._connection, self._home
        if connection is None or home is None or connection.closing:
            raise self._not_connected(self.problem)
        try:
            return await home.call(ask, connection)
        except Gone:
            reason = self.problem if home.here else "it was opened by the process that this one was forked from"
            raise self._not_connected(reason or "it was closed") from None

    def _not_connected(self, reason: str) -> ToolError:
        return ToolError("not_connected", f"MCP server {self.name!r}: {reason}", {"server": self.name})


def check_sdk() -> None:
    """Load the SDK in the caller's thread, before a connection's thread uses it.

    Raises:
        ConfigurationError: ``mcp_missing``.
    """
    try:
        import rlm.tools.mcp.connection  # noqa: F401
    except ImportError as problem:
        if (problem.name or "").partition(".")[0] not in ("mcp", "mcp_types", "httpx2"):
            raise
        raise ConfigurationError(
            "mcp_missing", missing_sdk(), {"extra": "mcp", "found": installed("mcp"), "wanted": SDK_VERSIONS}
        ) from None


def missing_sdk() -> str:
    """Return the error text for an SDK that is missing or has an unsupported version."""
    version, remedy = installed("mcp"), "pip install 'prolog-rlm[mcp]'"
    if version is None or satisfies(version, SDK_VERSIONS):
        return f"MCP servers need the extra 'mcp': {remedy}"
    return (
        f"MCP servers need the package 'mcp' {SDK_VERSIONS}; version {version} is installed, which another package may "
        f"have brought in: {remedy} (in an environment of its own, where that package needs the other version)"
    )


@atexit.register
def _close_all() -> None:
    """End all open connections at the exit of the interpreter, in parallel."""
    clients = list(_open)
    for client in clients:
        client.begin_closing()
    for client in clients:
        client.close()
