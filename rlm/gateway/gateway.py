"""``rlm.Gateway``: many MCP servers behind one, for clients over stdio and HTTP, and for Python."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rlm.catalog.catalog import Catalog
from rlm.errors import ConfigurationError, ToolError
from rlm.gateway.finding import Finder
from rlm.gateway.settings import GatewaySettings, load_settings
from rlm.gateway.upstreams import Upstreams
from rlm.model.arguments import instance
from rlm.tools.mcp.config import MCPLimits, load_mcp_config, servers_of

if TYPE_CHECKING:
    from rlm.gateway.server import ProfileServer
    from rlm.similarity.sensor import Sensor


class Gateway:
    """One MCP server in front of many, for example:

        with rlm.Gateway("servers.json") as gateway:
            print(gateway.find("which branch am I on?")["tools"])

    It lists a few tools of its own, and never another list: ``find_tools``, ``call_read``, ``call_write``,
    ``call_destructive`` and ``why``. The rules decide what a find brings, and explain it.

    Args:
        servers: a file in the ``mcpServers`` form, or ``{name: configuration}``.
        settings: the host's settings, or a file with them (``rlm.GatewaySettings``).
        tools: the host's own functions. One with ``activation="always"`` stands in the list itself.
        skills: folders of skills. A find names those that fit, and ``read_skill`` reads one.
        budget: tokens of a find; it replaces that of the settings.
        rules: a file with the host's own rules.
        limits: the limits of each server.
        sensor: finds by meaning too (``rlm.Sensor()``); by default words alone count.

    Raises:
        ConfigurationError: ``unreadable``, ``no_servers``, ``mcp_missing``, and as ``rlm.load_mcp_config``.
    """

    def __init__(
        self,
        servers: str | Path | Mapping[str, Any],
        *,
        settings: GatewaySettings | str | Path | None = None,
        tools: Iterable[Any] = (),
        skills: Iterable[str | Path] = (),
        budget: int | None = None,
        rules: str | Path | None = None,
        limits: MCPLimits | None = None,
        sensor: Sensor | None = None,
    ) -> None:
        found = load_mcp_config(servers) if isinstance(servers, str | Path) else dict(servers_of(servers, strict=True))
        if isinstance(settings, str | Path):
            settings = load_settings(settings)
        self.settings = _with(
            GatewaySettings() if settings is None else instance("settings", settings, GatewaySettings), budget, rules
        )
        tools = list(tools)
        if not found and not tools:
            raise ConfigurationError("no_servers", "a gateway needs at least one server or tool")
        self.catalog = Catalog()
        if tools:
            self.catalog.add_tools(tools)
        folders = [skills] if isinstance(skills, str | Path) else list(skills)
        for folder in folders:
            self.catalog.add_skills(folder)
        self._has_skills = bool(folders)
        self._pinned = {id.partition(":")[2]: id for id, unit in self.catalog.units.items() if unit.pinned}
        self.upstreams = Upstreams(self.catalog, found, self.settings.server_tools(), limits)
        self._sensor = sensor
        self._finders: dict[str, Finder] = {}
        self._servers: dict[str, ProfileServer] = {}
        for name in self.profiles:
            self.finder(name)

    @property
    def profiles(self) -> tuple[str, ...]:
        """Return the names of the profiles."""
        return tuple(sorted({"default", *self.settings.profiles}))

    # -- life cycle ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Start to connect to all servers in the background. Raises: ConfigurationError ``mcp_missing``."""
        from rlm.tools.mcp.client import check_sdk

        check_sdk()
        threading.Thread(target=self._warm, name="rlm-gateway-warm", daemon=True).start()
        self.upstreams.begin()

    def _warm(self) -> None:
        """Load the rules before the first find needs them."""
        with contextlib.suppress(Exception):
            self.finder().compile("warm", pack=True)

    def close(self) -> None:
        """End all connections and destroy the catalog."""
        self.upstreams.close()
        self.catalog.destroy()

    def __enter__(self) -> Self:
        self.start()
        self.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait(self, seconds: float = 60.0) -> None:
        """Wait until each server has answered or failed once, at most for a time in seconds."""
        self.upstreams.join(seconds)

    # -- questions ----------------------------------------------------------------------------------

    def finder(self, profile: str = "default") -> Finder:
        """Return the finder of a profile. Raises: ConfigurationError ``unknown_profile``."""
        if profile not in self._finders:
            settings = self.settings
            self._finders[profile] = Finder(
                self.catalog, self.upstreams, settings, settings.profile(profile), profile, self._sensor
            )
        return self._finders[profile]

    def find(
        self, task: str, *, budget: int | None = None, session: str | None = None, profile: str = "default"
    ) -> dict[str, Any]:
        """Return the tools for a task, as ``find_tools`` does."""
        return self.finder(profile).find(task, budget, session)

    def why(self, task: str, name: str, *, profile: str = "default") -> dict[str, Any]:
        """Return why a tool is found or hidden, as the tool ``why`` does. Raises: ToolError ``unknown_tool``."""
        return self.finder(profile).why(task, name)

    def missing(self, names: Iterable[str], *, profile: str = "default") -> dict[str, str]:
        """Return the tools among ``names`` that a call cannot reach, with the reason."""
        finder, problems = self.finder(profile), {}
        for name in names:
            try:
                finder.check_visible(finder.names.id_of(name))
            except ToolError as problem:
                problems[name] = problem.message
        return problems

    # -- serving ------------------------------------------------------------------------------------

    def server(self, profile: str = "default") -> Any:
        """Return the SDK's server of a profile. Raises: ConfigurationError ``unknown_profile``, ``mcp_missing``."""
        from rlm import __version__
        from rlm.tools.mcp.client import check_sdk

        check_sdk()
        from rlm.gateway.calling import Caller
        from rlm.gateway.consent import Consents
        from rlm.gateway.listing import meta_tools, pinned_tools
        from rlm.gateway.server import ProfileServer

        if profile not in self._servers:
            finder = self.finder(profile)
            pinned = [self.catalog.units[id] for id in self._pinned.values()]
            listed = [
                *pinned_tools(pinned),
                *meta_tools(list(self.upstreams.clients), skills=self._has_skills, plans=False),
            ]
            self._servers[profile] = ProfileServer(
                finder,
                Caller(finder, self.upstreams, self.settings),
                Consents(self.settings.consent_seconds),
                self.upstreams,
                listed,
                self._pinned,
                version=__version__,
            )
        return self._servers[profile].server

    async def serve_stdio(self, profile: str = "default") -> None:
        """Serve one client over standard input and output, until its input ends."""
        server = self.server(profile)
        from mcp.server.stdio import stdio_server

        self.start()
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    async def serve_http(self, host: str, port: int) -> None:
        """Serve all profiles over streamable HTTP: ``/mcp`` is the default one, ``/NAME/mcp`` another.

        Raises:
            ConfigurationError: ``no_credential``, if other machines could reach a profile without a credential;
                ``cannot_listen``.
        """
        servers = {name: self.server(name) for name in self.profiles}
        from rlm.gateway.web import serve

        self.start()
        await serve(servers, {name: self.settings.profile(name) for name in servers}, host, port)


def _with(settings: GatewaySettings, budget: int | None, rules: str | Path | None) -> GatewaySettings:
    more = {"budget": budget, "rules": None if rules is None else str(rules)}
    policy = {**settings.policy, **{name: value for name, value in more.items() if value is not None}}
    return settings.model_copy(update={"policy": policy})
