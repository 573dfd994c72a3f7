"""Real servers in processes of their own, and waiting for what they bring about without sleeping."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio

import rlm
from rlm.tools.execute import execute
from rlm.tools.outcome import ToolOutcome

SERVERS = Path(__file__).parent / "servers"
PATIENCE = 60.0
"""Seconds that something is waited for before a test fails: on a machine with seven times as many busy processes as cores
a server takes 17 to start and answer."""

QUICK = rlm.MCPLimits(connect_seconds=PATIENCE, ping_seconds=0.2, close_seconds=1)
ALLOW = rlm.Grant(capabilities={"mcp_tool:*"}, authority="allow")


def good(*how: str, **more: Any) -> dict[str, Any]:
    """The configuration of the SDK's server over stdio."""
    return {"command": sys.executable, "args": [str(SERVERS / "good.py"), "stdio", *how], **more}


def bad(what: str, **more: Any) -> dict[str, Any]:
    """The configuration of the server that does this wrong."""
    return {"command": sys.executable, "args": [str(SERVERS / "bad.py"), what], **more}


@contextlib.contextmanager
def web(*how: str, port: int = 0, **environment: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The SDK's server over HTTP on loopback: its URL and its process."""
    environ = {**os.environ, "RLM_TEST_PORT": str(port), **environment}
    command = [sys.executable, str(SERVERS / "good.py"), "http", *how]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environ)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp", process
    finally:
        kill(process)


def kill(process: subprocess.Popen[str]) -> None:
    """End a server at once."""
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


class Changes:
    """Lets a test wait for something that a client tells of.

    Make it after every other listener whose effect is waited for: listeners are told in order, and this one looks once.
    """

    def __init__(self, client: rlm.MCPClient) -> None:
        self._changed = threading.Condition()
        client.on_change(self._told)

    def _told(self, _: rlm.MCPClient) -> None:
        with self._changed:
            self._changed.notify_all()

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until it holds."""
        with self._changed:
            assert self._changed.wait_for(holds, PATIENCE), "it did not come about"


def called(
    catalog: rlm.Catalog, tool: str, grant: rlm.Grant = ALLOW, *, seconds: float = PATIENCE, **arguments: Any
) -> ToolOutcome:
    """The outcome of one call, through the catalog's registry, on an event loop of its own."""

    async def call() -> ToolOutcome:
        found = catalog.registry.lookup(tool)
        return await execute(found, arguments, grant, deadline=anyio.current_time() + seconds)

    return anyio.run(call)


def kind(outcome: ToolOutcome) -> str:
    """What kind of error an outcome has."""
    assert outcome.error is not None, outcome
    return str(outcome.error["kind"])


def ends(pid: int) -> bool:
    """Whether a process that is not our child ends in time, or has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], PATIENCE)[0])
    finally:
        os.close(handle)


def open_files() -> set[str]:
    """What the file descriptors of this process stand for."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.add(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
    return found
