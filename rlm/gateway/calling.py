"""Calls of tools through the gateway. A server's result comes back as the server sent it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio

from rlm.errors import ToolError
from rlm.gateway.consent import Deed
from rlm.gateway.finding import Finder
from rlm.gateway.lanes import Lane
from rlm.gateway.names import long_name
from rlm.gateway.settings import GatewaySettings
from rlm.gateway.upstreams import Upstreams
from rlm.tools.execute import execute
from rlm.tools.grant import Grant
from rlm.tools.tool import Effect, Tool

Progress = Callable[[float, "float | None", "str | None"], Awaitable[None]]


@dataclasses.dataclass(frozen=True)
class CheckedCall:
    """A checked call: the tool, its arguments, the deed to consent to, and why a consent is needed, if it is."""

    tool: Tool
    arguments: dict[str, Any]
    deed: Deed
    question: str


class Caller:
    """Checks and performs the calls of one profile.

    Args:
        finder: the tools of the profile.
        upstreams: the connections.
        settings: the host's settings.
    """

    def __init__(self, finder: Finder, upstreams: Upstreams, settings: GatewaySettings) -> None:
        self._finder, self._upstreams, self._settings = finder, upstreams, settings
        self._revision = settings.revision
        self._approved: dict[str, str] = {}

    def check(self, lane: Lane, name: Any, arguments: Any) -> CheckedCall:
        """Return the checked call.

        Raises:
            ToolError: ``unknown_tool``, ``ambiguous_name``, ``other_lane``, ``tool_hidden``, ``invalid_arguments``.
        """
        if not isinstance(name, str) or not name:
            raise ToolError("invalid_arguments", "`name` must be the name of a tool", {"field": "name"})
        id = self._finder.names.id_of(name)
        arguments = _object(arguments)
        self._finder.check_visible(id)
        tool = self._finder.tool(id)
        right = self._finder.lane(tool)
        if right is not lane:
            message = f"{long_name(id)} is called with {right.value}, not with {lane.value}"
            raise ToolError("other_lane", message, {"name": long_name(id), "with": right.value})
        version = self._version(tool)
        deed = Deed.of(id, version, arguments, self._revision, self._finder.name)
        changed = self._approved.setdefault(id, version) != version
        question = "its server changed it since it was approved" if changed else ""
        if not question and self._settings.asks(long_name(id)):
            question = "the host asks for each call"
        return CheckedCall(tool, arguments, deed, question)

    def approve(self, call: CheckedCall) -> None:
        """Record that the user approved the present version of a tool."""
        self._approved[call.tool.id] = call.deed.version

    def _version(self, tool: Tool) -> str:
        client = self._upstreams.clients.get(tool.server)
        described = client.listing.tools.get(tool.name) if client is not None else None
        return described.digest if described is not None else ""

    async def perform(self, call: CheckedCall, meta: Mapping[str, Any] | None, progress: Progress | None) -> Any:
        """Perform a call, and return the server's whole result, or JSON data of a host's own tool.

        Raises:
            ToolError: the outcome's error: ``invalid_arguments``, ``not_connected``, ``timeout`` and others.
        """
        whole: list[Any] = []
        tool = call.tool
        client = self._upstreams.clients.get(tool.server)
        if client is not None:
            described = client.listing.tools.get(tool.name)
            if described is None:
                raise ToolError("tool_removed", f"{long_name(tool.id)}: its server offers it no more", {})
            attempts = 2 if tool.effect is Effect.READ else 1

            async def handler(**arguments: Any) -> None:
                whole.append(
                    await client.acall_whole(
                        described, arguments, attempts=attempts, meta=meta, progress=_here(progress)
                    )
                )

            tool = dataclasses.replace(tool, handler=handler)
        grant = Grant(capabilities=frozenset({tool.capability}), authority="allow")
        deadline = anyio.current_time() + self._settings.time_limit
        outcome = await execute(tool, call.arguments, grant, deadline=deadline)
        if outcome.error is not None:
            raise ToolError(outcome.error["kind"], outcome.error["message"], outcome.error.get("detail") or {})
        return whole[0] if whole else outcome.value


def _here(progress: Progress | None) -> Progress | None:
    """Return a function for another loop that reports progress on this one."""
    if progress is None:
        return None
    loop = asyncio.get_running_loop()

    async def report(done: float, total: float | None, message: str | None) -> None:
        asyncio.run_coroutine_threadsafe(_awaited(progress, done, total, message), loop)

    return report


async def _awaited(progress: Progress, done: float, total: float | None, message: str | None) -> None:
    await progress(done, total, message)


def _object(arguments: Any) -> dict[str, Any]:
    """Return the arguments as an object. Text is parsed once.

    Raises:
        ToolError: ``invalid_arguments``; text that is no object is never taken for an empty one.
    """
    if arguments is None:
        return {}
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError) as problem:
            message = f"`args` must be an object; its text is not JSON: {problem}"
            raise ToolError("invalid_arguments", message, {"field": "args"}) from None
    if not isinstance(arguments, dict):
        message = f"`args` must be an object, not {type(arguments).__name__}"
        raise ToolError("invalid_arguments", message, {"field": "args"})
    return arguments
