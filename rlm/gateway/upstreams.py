"""The servers behind a gateway: they connect side by side and in the background, and the catalog follows them."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import anyio

from rlm.catalog.catalog import Catalog
from rlm.catalog.mcp import MCPTools, ServerPlacement
from rlm.tools.mcp.client import MCPClient
from rlm.tools.mcp.config import MCPLimits

FIRST_SECONDS = 0.5
"""Seconds after the start that a first find waits for servers that still connect."""


class Upstreams:
    """The connections of a gateway, by name.

    Args:
        catalog: the catalog that follows the servers.
        servers: configurations by name.
        tools: the host's settings for the tools.
        limits: the limits of each server.

    Raises:
        ConfigurationError: as ``rlm.MCPClient``.
    """

    def __init__(
        self, catalog: Catalog, servers: Mapping[str, Any], tools: MCPTools, limits: MCPLimits | None = None
    ) -> None:
        self.clients = {name: MCPClient(name, servers[name], limits=limits) for name in sorted(servers)}
        self._problems: dict[str, str] = {}
        self._settled = {name: threading.Event() for name in self.clients}
        self._began = threading.Event()
        self._until: float | None = None
        self._placements = {name: ServerPlacement(catalog, client, tools, {}) for name, client in self.clients.items()}
        for placement in self._placements.values():
            placement.place(catalog)
            placement.follow()

    def begin(self) -> None:
        """Start to connect all servers, and return at once. A second call has no effect."""
        if not self._began.is_set():
            self._began.set()
            threading.Thread(target=anyio.run, args=(self._open_all,), name="rlm-gateway-open", daemon=True).start()

    async def _open_all(self) -> None:
        async with anyio.create_task_group() as tasks:
            for client in self.clients.values():
                tasks.start_soon(self._open, client)

    async def _open(self, client: MCPClient) -> None:
        try:
            await client.aopen(keep_trying=True)
        except Exception as problem:  # noqa: BLE001 - one server must not cost the others
            self._problems[client.name] = str(getattr(problem, "message", problem))
        finally:
            self._settled[client.name].set()

    @property
    def settled(self) -> bool:
        """Return whether each server has answered or failed once."""
        return all(event.is_set() for event in self._settled.values())

    async def wait(self, seconds: float = FIRST_SECONDS) -> None:
        """Wait until all servers are settled, at most for a time in seconds after the first wait began."""
        if self.settled:
            return
        if self._until is None:
            self._until = time.monotonic() + seconds
        while time.monotonic() < self._until:
            await anyio.sleep(0.01)
            if all(event.is_set() for event in self._settled.values()):
                return

    def join(self, seconds: float) -> None:
        """Block until all servers are settled, at most for a time in seconds."""
        until = time.monotonic() + seconds
        for event in self._settled.values():
            event.wait(max(0.0, until - time.monotonic()))

    def problems(self) -> dict[str, str]:
        """Return the servers that cannot be used now, with the reason."""
        away = {}
        for name, client in self.clients.items():
            if not client.connected:
                settled = self._settled[name].is_set()
                away[name] = (client.problem or self._problems.get(name, "")) if settled else "it still connects"
        return away

    def close(self) -> None:
        """End all connections, side by side."""
        for client in self.clients.values():
            client.begin_closing()
        for client in self.clients.values():
            client.close()
