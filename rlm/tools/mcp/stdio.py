"""A server as a child process; messages pass over its standard input and output.

The SDK's own transport is not used for four reasons. It keeps a line of any length, at a cost that grows with the
square of the length. It logs a traceback for every line that is not a message. It gives a process up to six seconds to
end. It does not end processes that the server started. Here a line has a limit, standard error is drained and its end
is kept, and the whole process group is gone after ``close``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError

from rlm.tools.mcp.config import MCPLimits, StdioServer
from rlm.tools.mcp.rescue import ENDS, TOO_LARGE, id_at_the_ends, message_of
from rlm.web.bodies import cleaned_json

CHUNK = 65_536
KEPT_STDERR = 4096
FREE_STDERR = 1024 * 1024
"""Bytes on standard error; after them a server is read more slowly."""

MAX_NOISE = 1000
"""Limit of lines on standard output that are not messages. For example, some servers print a greeting."""

HOPELESS = 8
"""A factor: a line longer than this many times the limit is not read to its end."""

FLUSH_SECONDS = 0.5
_POLL = 0.01

Streams = tuple["MemoryObjectReceiveStream[SessionMessage | Exception]", "MemoryObjectSendStream[SessionMessage]"]


class Child:
    """The state of a server's process; ``ended`` is set when it sends no more messages."""

    def __init__(self) -> None:
        self.ended = anyio.Event()
        self.pid: int | None = None
        self.status: int | None = None
        self.noise = 0
        self.trouble = ""
        self._stderr = b""

    def keep_stderr(self, chunk: bytes) -> None:
        """Keep the end of the standard error."""
        self._stderr = (self._stderr + chunk)[-KEPT_STDERR:]

    @property
    def end_reason(self) -> str:
        """Return the known reasons of its end; empty if there are none."""
        reasons = [self.trouble] if self.trouble else []
        if self.status is not None:
            how = f"status {self.status}" if self.status >= 0 else f"signal {-self.status}"
            reasons.append(f"the process ended with {how}")
        lines = self._stderr.decode("utf-8", "replace").strip().splitlines()[-5:]
        if lines:
            reasons.append("its standard error ends: " + " | ".join(line.strip()[:200] for line in lines))
        return "; ".join(reasons)


class Lines:
    """Splits chunks into lines. Of a line over the limit, only the two ends are kept.

    ``size`` is the number of bytes of the unfinished line.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self.size = 0

    def feed(self, chunk: bytes) -> Iterator[tuple[bytes, int]]:
        """Yield each line with its size in bytes. A line shorter than its size was over the limit."""
        *whole, rest = chunk.split(b"\n")
        for end in whole:
            self._keep(end)
            yield b"".join(self._parts), self.size
            self._parts, self.size = [], 0
        if rest:
            self._keep(rest)

    def _keep(self, part: bytes) -> None:
        self.size += len(part)
        self._parts.append(part)
        if self.size > self._limit:
            joined = b"".join(self._parts)
            self._parts = [joined[:ENDS], joined[-ENDS:]]


@asynccontextmanager
async def stdio_transport(server: StdioServer, limits: MCPLimits, child: Child) -> AsyncIterator[Streams]:
    """Start the server and open the streams of messages. At the end, its whole process group is gone.

    Raises:
        OSError: the program cannot be started.
    """
    process = await _start(server)
    # No await before the task group: a cancellation there would leave the process behind.
    child.pid = process.pid
    inbox, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outbox = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_drain, process, child)
        tasks.start_soon(_receive, process, inbox, limits, child)
        written = anyio.Event()
        tasks.start_soon(_send, process, outbox, child, written)
        try:
            yield read, write
        finally:
            with anyio.CancelScope(shield=True):
                read.close()
                write.close()
                with anyio.move_on_after(FLUSH_SECONDS):
                    await written.wait()
                await _stop(process, limits.close_seconds, child)
                for stream in (inbox, read, write, outbox):
                    stream.close()
            child.ended.set()
            tasks.cancel_scope.cancel()


async def _start(server: StdioServer) -> Process:
    variables = {name: value.get_secret_value() for name, value in server.env.items()}
    return await anyio.open_process(
        [server.command, *server.args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**get_default_environment(), **variables},
        cwd=server.cwd,
        start_new_session=True,
    )


# -- bytes ------------------------------------------------------------------------------------------

_ENDS = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


async def _receive(
    process: Process,
    inbox: MemoryObjectSendStream[SessionMessage | Exception],
    limits: MCPLimits,
    child: Child,
) -> None:
    assert process.stdout is not None
    try:
        with contextlib.suppress(*_ENDS):
            await _deliver(process.stdout, inbox, limits.max_message_bytes, child)
    finally:
        inbox.close()
        child.ended.set()
    with contextlib.suppress(*_ENDS):  # a server with unread output would not end
        while True:
            await process.stdout.receive(CHUNK)


async def _deliver(
    source: ByteReceiveStream, inbox: MemoryObjectSendStream[SessionMessage | Exception], limit: int, child: Child
) -> None:
    """Deliver the messages of a server until it ends or breaks a limit. ``child.trouble`` then has the reason."""
    lines = Lines(limit)
    while not child.trouble:
        for line, size in lines.feed(await source.receive(CHUNK)):
            message = _message(line, size, child)
            if message is not None:
                await inbox.send(message)
        if child.noise > MAX_NOISE:
            child.trouble = f"it wrote {child.noise:,} lines to its output that are not messages"
        if lines.size > HOPELESS * limit:
            child.trouble = f"it sent over {lines.size - 1:,} bytes without an end of line"


def _message(line: bytes, size: int, child: Child) -> SessionMessage | None:
    if size > len(line):
        return _oversize(line, size, child)
    if not line.strip():
        return None
    message = message_of(cleaned_json(line))
    if message is None:
        child.noise += 1
        return None
    return SessionMessage(message)


def _oversize(line: bytes, size: int, child: Child) -> SessionMessage | None:
    """Return the error for an answer over the limit. Without a known id, set ``child.trouble`` to end the session."""
    id = id_at_the_ends(line)
    if id is None:
        child.trouble = f"it sent a message of {size:,} bytes"
        return None
    error = ErrorData(code=TOO_LARGE, message=f"an answer of {size:,} bytes", data={"bytes": size})
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=id, error=error))


async def _send(
    process: Process, outbox: MemoryObjectReceiveStream[SessionMessage], child: Child, written: anyio.Event
) -> None:
    assert process.stdin is not None
    try:
        async with outbox:
            async for item in outbox:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(text.encode("utf-8") + b"\n")
    except _ENDS:
        child.ended.set()
    finally:
        written.set()


async def _drain(process: Process, child: Child) -> None:
    assert process.stderr is not None
    total = 0
    with contextlib.suppress(*_ENDS):
        while True:
            chunk = await process.stderr.receive(CHUNK)
            child.keep_stderr(chunk)
            total += len(chunk)
            if total > FREE_STDERR:
                await anyio.sleep(0.05)


# -- the end ----------------------------------------------------------------------------------------


async def _stop(process: Process, grace: float, child: Child) -> None:
    """Close the input and wait. Then send SIGTERM if the process still runs, and SIGKILL to the group in any case."""
    assert process.stdin is not None
    with contextlib.suppress(*_ENDS):
        await process.stdin.aclose()
    if not await _ended(process, grace):
        _signal(process.pid, signal.SIGTERM)
        await _ended(process, grace / 2)
    _signal(process.pid, signal.SIGKILL)
    await _ended(process, 1.0)
    child.status = process.returncode
    transport: Any = getattr(getattr(process, "_process", None), "_transport", None)
    if transport is not None:  # a descendant that left the group may hold the other ends of the pipes
        with contextlib.suppress(OSError):
            transport.close()


async def _ended(process: Process, seconds: float) -> bool:
    """Return whether the process ends in time.

    ``wait()`` is not used: it also waits for processes that inherited the pipes.
    """
    with anyio.move_on_after(seconds):
        while process.returncode is None:  # noqa: ASYNC110 - there is no event for it
            await anyio.sleep(_POLL)
    return process.returncode is not None


def _signal(group: int, number: int) -> None:
    """Send a signal to a group. Its id is that of the process, which was started in a session of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
