"""A real HTTP server on loopback that speaks chat completions, answers on a script and remembers every byte.

    with Loopback(says("four")) as server:
        ... send something to server.url ...
        assert server.requests[0].json["messages"][0]["role"] == "system"

A script is a list of replies, used in order, or a function from a request to a reply. A request that the script
has no reply for is answered with status 500 and remembered in ``server.unscripted``. Waiting is done on conditions
(``wait_for_requests``, ``wait_for_no_connections``), never by sleeping.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self

CHAT = "/v1/chat/completions"
PATIENCE = 20.0
"""Seconds that a condition is waited for before a test fails."""


@dataclass(frozen=True)
class Request:
    """One request as it arrived: ``body`` is the very bytes, ``json`` what they say (None where they say nothing)."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @property
    def text(self) -> str:
        """All text of all messages, in order."""
        return "\n".join(_texts((self.json or {}).get("messages", [])))


@dataclass(frozen=True)
class Reply:
    """What the server does with one request.

    ``then`` says how it ends. ``finish``: ``body`` had its true Content-Length. ``close``: it had none, the end of
    the connection is the end of the reply. ``drop``: the connection ends in the middle of a longer body than was
    sent (before the status line if ``status`` is 0). ``stall``: the same, but the connection stays, silent, until
    the client goes or the server closes.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    then: Literal["finish", "close", "drop", "stall"] = "finish"


Script = Callable[[Request], Reply] | Iterable[Reply] | Reply


def says(
    text: str | None = "ok",
    *,
    tool_calls: Iterable[tuple[str, Any]] = (),
    usage: dict[str, Any] | None = None,
    finish_reason: str | None = None,
    model: str = "loopback",
) -> Reply:
    """A chat completion. ``tool_calls`` are names and arguments (JSON text, or a value that is dumped)."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    calls = [
        {
            "id": f"call_{place}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for place, (name, given) in enumerate(tool_calls)
    ]
    if calls:
        message["tool_calls"] = calls
    reason = finish_reason or ("tool_calls" if calls else "stop")
    value: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
    }
    if usage is not None:
        value["usage"] = usage
    return replies_json(value)


def replies_json(value: Any, status: int = 200, **headers: str) -> Reply:
    """Any JSON value. Headers are written with underscores: ``retry_after="2"``."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Reply(status, json.dumps(value).encode(), {"Content-Type": "application/json", **named})


def fails(status: int, message: str = "", code: str | None = None, **headers: str) -> Reply:
    """An error in the shape of OpenAI's."""
    return replies_json({"error": {"message": message or f"status {status}", "code": code}}, status, **headers)


def raw(body: bytes, status: int = 200, *, sized: bool = True) -> Reply:
    """Any bytes, with or without a Content-Length."""
    return Reply(status, body, {"Content-Type": "application/json"}, "finish" if sized else "close")


def stalls(after: bytes = b"", status: int = 0) -> Reply:
    """Nothing (or a beginning), and then silence."""
    return Reply(status, after, then="stall")


def drops(after: bytes = b"", status: int = 0) -> Reply:
    """Nothing (or a beginning), and then the end of the connection."""
    return Reply(status, after, then="drop")


class Loopback:
    """The server; a context manager. ``url`` is the base URL that an OpenAI client wants (it ends in ``/v1``)."""

    def __init__(self, script: Script | None = None) -> None:
        self.requests: list[Request] = []
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
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def connections(self) -> int:
        """How many connections are open now."""
        with self._changed:
            return len(self._connections)

    def script(self, script: Script) -> None:
        """Replace what is left of the script."""
        with self._changed:
            self._script = script

    def wait_for_requests(self, count: int = 1) -> list[Request]:
        """Wait until so many requests have arrived whole, and return all."""
        self._wait(lambda: len(self.requests) >= count, f"{count} requests")
        return self.requests

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
            self._changed.notify_all()
            script = self._script
            if isinstance(script, Reply):
                return script
            if not callable(script):
                steps = self._script = iter(script)
                reply = next(steps, None)
                if reply is None:
                    self.unscripted.append(request)
                    return fails(500, "the script has no reply for this request")
                return reply
        return script(request)  # outside the lock: it may wait for other requests

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
        reply = self.server.loopback.next_reply(Request(self.command, self.path, headers, body))
        if reply.status:
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.then != "close":
                missing = 0 if reply.then == "finish" else 1000
                self.send_header("Content-Length", str(len(reply.body) + missing))
            self.end_headers()
        self.wfile.write(reply.body)
        self.wfile.flush()
        self.close_connection = self.close_connection or reply.then != "finish"
        if reply.then == "stall":
            with contextlib.suppress(OSError):
                self.connection.recv(1, socket.MSG_PEEK)  # returns when the other side goes, or ours is cut

    def log_message(self, format: str, *args: Any) -> None:
        """Silence."""


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        yield from _texts(value.get("content", value.get("text", "")))
