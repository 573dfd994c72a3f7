"""A real HTTP server on loopback that speaks chat completions and Messages, answers on a script and remembers all.

    with Loopback(["four", fails(503, retry_after="1"), answers("five", then="reset", share=0.5)]) as server:
        ... send something to server.url ...
        assert server.requests[0].json["messages"][0]["role"] == "system"

A script is a list of lines, used in order, or a function from a request to a line: a text, an ``Answer`` (written in
the format, whole or streamed, in which the request wants it; its tokens are counted) or a ``Reply`` (any bytes). A
request that the script has no line for is answered with status 500 and remembered in ``server.unscripted``.

``server.exchanges`` says what each request cost, in the order in which they were answered; ``tokens_in`` and ``tokens_out``
are the sums over those that were not refused, whether or not the client got to know. Waiting is done on conditions
(``wait_for_requests``, ``wait_for_active``, ``wait_for_no_connections``, and ``await server.wait_for(n)``,
``await server.wait_until_quiet()``), never by sleeping.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import anyio.to_thread

from tests.support.replies import anthropic_fails, drops, fails, raw, replies_json, resets, says, sse, stalls
from tests.support.wires import CHAT, MESSAGES, Answer, Reply, Request, answers, written

__all__ = [
    "CHAT",
    "MESSAGES",
    "Answer",
    "Exchange",
    "Line",
    "Loopback",
    "Reply",
    "Request",
    "Script",
    "answers",
    "anthropic_fails",
    "drops",
    "fails",
    "raw",
    "replies_json",
    "resets",
    "says",
    "sse",
    "stalls",
]

PATIENCE = 60.0
"""Seconds that a condition is waited for before a test fails."""

Line = str | Answer | Reply
Script = Callable[[Request], Line] | Iterable[Line] | Line


@dataclass(frozen=True)
class Exchange:
    """One request and what became of it.

    ``tokens_in`` and ``tokens_out`` are what it cost the server; nothing where it was refused. ``whole`` is whether
    the reply was written to its end, ``usage_told`` whether it then told its cost truly.
    """

    request: Request
    status: int
    tokens_in: int
    tokens_out: int
    whole: bool
    usage_told: bool


class Loopback:
    """The server; a context manager.

    ``url`` is the base URL that an OpenAI client wants (it ends in ``/v1``), ``anthropic_url`` Anthropic's.
    ``high_water`` is the most requests that were ever answered at the same time.
    """

    def __init__(self, script: Script | None = None) -> None:
        self.requests: list[Request] = []
        self.exchanges: list[Exchange] = []
        self.active = 0
        self.high_water = 0
        self.unscripted: list[Request] = []
        self._script = says() if script is None else script
        self._closing = False
        self._changed = threading.Condition()
        self._connections: set[socket.socket] = set()
        self._server = _Server(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, name="loopback", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def anthropic_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def connections(self) -> int:
        """How many connections are open now."""
        with self._changed:
            return len(self._connections)

    @property
    def tokens_in(self) -> int:
        """Input tokens of all requests that were not refused."""
        return sum(exchange.tokens_in for exchange in self.exchanges)

    @property
    def tokens_out(self) -> int:
        """Output tokens of all replies, those included that did not arrive."""
        return sum(exchange.tokens_out for exchange in self.exchanges)

    def script(self, script: Script) -> None:
        """Replace what is left of the script."""
        with self._changed:
            self._script = script

    def wait_for_requests(self, count: int = 1) -> list[Request]:
        """Wait until so many requests have arrived whole, and return all."""
        self._wait(lambda: len(self.requests) >= count, f"{count} requests")
        return self.requests

    def wait_for_active(self, count: int) -> None:
        """Wait until so many requests have been answered at the same time. A script may call it."""
        self._wait(lambda: self.high_water >= count, f"{count} requests at the same time")

    async def wait_for(self, count: int = 1) -> list[Request]:
        """``wait_for_requests``, for a test that runs on an event loop."""
        return await anyio.to_thread.run_sync(self.wait_for_requests, count)

    async def wait_until_quiet(self) -> None:
        """``wait_for_no_connections``, for a test that runs on an event loop."""
        await anyio.to_thread.run_sync(self.wait_for_no_connections)

    def wait_for_no_connections(self) -> None:
        """Wait until no connection is open."""
        self._wait(lambda: not self._connections, "every connection to close")

    def close(self) -> None:
        """Cut what is open and stop. Every handler ends."""
        self._server.shutdown()
        with self._changed:
            self._closing = True
            for connection in self._connections:
                _cut(connection)
        self._server.server_close()  # waits for the handlers
        self._thread.join(PATIENCE)

    # called by handlers

    def opened(self, connection: socket.socket) -> None:
        with self._changed:
            self._connections.add(connection)
            if self._closing:
                _cut(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._changed:
            self._connections.discard(connection)
            self._changed.notify_all()

    def next_reply(self, request: Request) -> Reply:
        with self._changed:
            self.requests.append(request)
            self.active += 1
            self.high_water = max(self.high_water, self.active)
            self._changed.notify_all()
            script = self._script
            line = self._next_line(request) if not callable(script) else None
        if callable(script):
            line = script(request)  # outside the lock: it may wait for other requests
        assert line is not None
        line = Answer(line) if isinstance(line, str) else line
        return written(line, request) if isinstance(line, Answer) else line

    def begins(self, request: Request, reply: Reply) -> int:
        """Note what the reply costs, before any of it is sent; returns the place of the note."""
        with self._changed:
            cost = (0, 0) if reply.tokens_out is None else (request.tokens, reply.tokens_out)
            whole = reply.status > 0 and reply.then in ("finish", "close")
            self.exchanges.append(Exchange(request, reply.status, *cost, whole, usage_told=whole and reply.usage_told))
            return len(self.exchanges) - 1

    def broke(self, place: int) -> None:
        """The client did not wait for the end."""
        with self._changed:
            self.exchanges[place] = replace(self.exchanges[place], whole=False, usage_told=False)

    def ends(self) -> None:
        """A request is no longer being answered: the last of the reply is about to go, or never will."""
        with self._changed:
            self.active -= 1
            self._changed.notify_all()

    def _next_line(self, request: Request) -> Line:
        if isinstance(self._script, str | Answer | Reply):
            return self._script
        steps = self._script = iter(self._script)
        line = next(steps, None)
        if line is None:
            self.unscripted.append(request)
            return fails(500, "the script has no reply for this request")
        return line

    def _wait(self, what: Callable[[], bool], said: str) -> None:
        with self._changed:
            if not self._changed.wait_for(what, PATIENCE):
                raise AssertionError(f"waited {PATIENCE:g} s in vain for {said}")


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    request_queue_size = 256

    def __init__(self, loopback: Loopback) -> None:
        self.loopback = loopback
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is what many tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.loopback.opened(self.connection)

    def finish(self) -> None:
        with contextlib.suppress(OSError):
            super().finish()
        self.server.loopback.closed(self.connection)

    def do_POST(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, body)
        loopback = self.server.loopback
        with contextlib.ExitStack() as answering:
            answering.callback(loopback.ends)
            reply = loopback.next_reply(request)
            place = loopback.begins(request, reply)
            self.close_connection = self.close_connection or reply.then != "finish"
            try:
                there = self._wrote(reply, answering)
            except OSError:
                there = False
            if not there:
                loopback.broke(place)
                self.close_connection = True
            elif reply.then == "stall":
                self._gone_within(None)
        if reply.then == "reset":
            self._reset()

    def _wrote(self, reply: Reply, answering: contextlib.ExitStack) -> bool:
        """Write what there is of the reply; whether the client was there until the end.

        Before the last piece leaves, the request counts as answered: who has the reply may ask again at once.
        """
        if reply.delay and self._gone_within(reply.delay):
            return False
        if reply.status:
            self._write_head(reply)
        chunked = reply.chunks is not None and reply.then != "close"
        pieces = list(reply.chunks) if reply.chunks is not None else [reply.body]
        for left, piece in zip(range(len(pieces) - 1, -1, -1), pieces, strict=True):
            if reply.pause and self._gone_within(reply.pause):
                return False
            if not left and reply.then in ("finish", "close"):
                answering.close()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked and piece else piece)
        if chunked and reply.then == "finish":
            self.wfile.write(b"0\r\n\r\n")
        return True

    def _write_head(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.then == "close":
            self.send_header("Connection", "close")
        elif reply.chunks is not None:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            missing = 0 if reply.then == "finish" else 1000
            self.send_header("Content-Length", str(len(reply.body) + missing))
        self.end_headers()

    def _gone_within(self, seconds: float | None) -> bool:
        """Wait so long, or until the other side goes or ours is cut; whether that happened."""
        self.connection.settimeout(seconds)
        try:
            return not self.connection.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return False
        except OSError:
            return True
        finally:
            with contextlib.suppress(OSError):
                self.connection.settimeout(None)

    def _reset(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            socket.close(self.connection.detach())

    def log_message(self, format: str, *args: Any) -> None:
        """Silence."""


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
