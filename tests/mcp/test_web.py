"""A server at an address: packed answers, refused credentials, repeated secrets, proxies."""

from __future__ import annotations

import base64
import gzip
import json
import logging
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import rlm
from rlm.errors import ConfigurationError, ToolError
from tests.mcp.support import called
from tests.support.echoes import echo, holds

KEY = "mcp-tok_4f9A+zZ/q0123456789abcdefGHI"
OFFERS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "h", "version": "1"},
    },
    "tools/list": {
        "tools": [{"name": "t", "description": "alpha", "inputSchema": {"type": "object", "properties": {}}}]
    },
    "ping": {},
}
Answer = tuple[int, bytes, dict[str, str]]


def ok(request: dict[str, Any], text: str = "ok") -> Answer:
    """What a decent server answers."""
    method, id = request.get("method"), request.get("id")
    if id is None:
        return 202, b"", {}
    result = {"content": [{"type": "text", "text": text}]} if method == "tools/call" else OFFERS.get(str(method))
    said = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no"}}
    return 200, json.dumps({"jsonrpc": "2.0", "id": id, **said}).encode(), {}


@contextmanager
def served(answer: Callable[[dict[str, Any], dict[str, str]], Answer]) -> Iterator[str]:
    """A server that answers by a function of the message and the headers."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, body, headers = answer(message, {name.lower(): text for name, text in self.headers.items()})
            self.send_response(status)
            for name, text in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, text)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.send_response(405)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_DELETE(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp"
    finally:
        server.shutdown()
        server.server_close()


def packed(answer: Answer, encoding: str) -> Answer:
    status, body, headers = answer
    return status, gzip.compress(body), {**headers, "Content-Encoding": encoding}


def connected(url: str, headers: Any = None) -> rlm.Catalog:
    catalog = rlm.Catalog()
    catalog.add_mcp({"h": {"url": url, "headers": headers or {}}})
    return catalog


def test_a_packed_answer_is_read() -> None:
    with served(lambda message, _: packed(ok(message, "é"), "gzip")) as url, connected(url) as catalog:
        assert called(catalog, "h/t").value == "é"


def test_a_packed_stream_of_events_is_read_and_lone_surrogates_are_replaced() -> None:
    def answer(message: dict[str, Any], _: object) -> Answer:
        status, body, headers = ok(message, "a\ud800b")
        if message.get("method") != "tools/call":
            return status, body, headers
        return packed((200, b"data: " + body + b"\n\n", {"Content-Type": "text/event-stream"}), "gzip")

    with served(answer) as url, connected(url) as catalog:
        assert called(catalog, "h/t").value == "a\N{REPLACEMENT CHARACTER}b"


def test_a_lone_surrogate_in_an_answer_is_replaced() -> None:
    with served(lambda message, _: ok(message, "a\ud800b")) as url, connected(url) as catalog:
        assert called(catalog, "h/t").value == "a\N{REPLACEMENT CHARACTER}b"


def test_an_answer_packed_twice_is_refused() -> None:
    with (
        served(lambda message, _: packed(ok(message), "gzip, gzip")) as url,
        pytest.raises(ToolError, match="Content-Encoding 'gzip, gzip' is not supported"),
    ):
        rlm.MCPClient("h", {"url": url}).open()


@pytest.mark.parametrize(("status", "kind"), [(401, "unauthorized"), (403, "forbidden")])
def test_a_refusal_of_the_credentials_in_a_call_has_a_kind_of_its_own(status: int, kind: str) -> None:
    refused = (status, b'{"error": "invalid_token"}', {"WWW-Authenticate": 'Bearer error="invalid_token"'})
    with served(lambda message, _: refused if message.get("method") == "tools/call" else ok(message)) as url:
        with connected(url, {"Authorization": f"Bearer {KEY}"}) as catalog:
            error = called(catalog, "h/t").error
            assert error is not None
            assert (error["kind"], error["detail"]["status"]) == (kind, status)
            assert f"HTTP status {status}" in error["message"]
            assert 'Bearer error="invalid_token"' in error["message"] or status == 403
            assert called(catalog, "h/t").error is not None  # the connection lives on


def test_headers_from_a_callable_are_had_anew_where_the_old_ones_are_refused() -> None:
    valid = ["token-number-1"]
    sent: list[str] = []
    current = ["token-number-1"]

    def headers() -> dict[str, str]:
        token = current[0]
        current[0] = valid[0]  # a host that notices the end of a token a request too late
        return {"Authorization": f"Bearer {token}"}

    def answer(message: dict[str, Any], given: dict[str, str]) -> Answer:
        if message.get("method") == "tools/call":
            sent.append(given["authorization"])
        return ok(message) if given["authorization"] == f"Bearer {valid[0]}" else (401, b"", {})

    with served(answer) as url, connected(url, headers) as catalog:
        assert called(catalog, "h/t").value == "ok"
        valid[0] = "token-number-2"
        assert called(catalog, "h/t").value == "ok"
        assert sent[-2:] == ["Bearer token-number-1", "Bearer token-number-2"]
        current[0] = valid[0] = "token-number-2"


def test_another_status_stands_in_the_error_with_what_the_server_said() -> None:
    busy = (429, b"slow down", {"Content-Type": "text/plain"})
    with served(lambda message, _: busy if message.get("method") == "tools/call" else ok(message)) as url:
        with connected(url) as catalog:
            error = called(catalog, "h/t").error
            assert error is not None
            assert error["kind"] == "mcp_error"
            assert "HTTP status 429: slow down" in error["message"]


@pytest.mark.parametrize("kind", ["fixed", "callable", "basic"])
def test_a_hundred_random_echoes_of_a_header_stand_in_no_result_error_or_log(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    rng = random.Random(kind)
    value = f"Basic {base64.b64encode(f'me:{KEY}'.encode()).decode()}" if kind == "basic" else f"Bearer {KEY}"
    headers: Any = {"Authorization": value}

    def answer(message: dict[str, Any], _: object) -> Answer:
        if message.get("method") != "tools/call":
            return ok(message)
        said = f"look: {echo(KEY, rng)}"
        shape = rng.randrange(6)
        if shape == 0:
            return rng.choice([401, 403, 500]), said.encode(), {"WWW-Authenticate": said.replace("\n", "")}
        if shape == 1:
            error = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32000, "message": said, "data": said}}
            return 200, json.dumps(error).encode(), {}
        if shape == 2:
            return 200, said.encode(), {"Content-Type": "text/plain; " + echo(KEY, rng).replace("\n", "")}
        status, body, _headers = ok(message, said)
        if shape == 3:
            return status, b"data: " + body + b"\n\n", {"Content-Type": "text/event-stream"}
        return status, body, {"X-Echo": said.replace("\n", "")}

    caplog.set_level(logging.DEBUG)
    with served(answer) as url, connected(url, (lambda: headers) if kind == "callable" else headers) as catalog:
        for _ in range(100):
            result = called(catalog, "h/t")
            assert not holds(KEY, json.dumps(result.error) + repr(result.value)), result
            assert not holds(KEY, repr(result.value) + str(result.value))
    assert any(record.name.startswith("httpx2") for record in caplog.records)
    assert not any(holds(KEY, record.getMessage()) for record in caplog.records)


@pytest.mark.parametrize("value", ["ftp://proxy:1", "http://", "http://[::1", "http://host:port"])
def test_a_proxy_that_cannot_be_used_is_a_configuration_error_that_names_the_variable(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", value)
    with pytest.raises(ConfigurationError, match="ALL_PROXY") as caught:
        rlm.MCPClient("h", {"url": "http://mcp.invalid/mcp"}).open()
    assert caught.value.kind == "invalid_proxy"


def test_headers_that_cannot_be_sent_are_an_error_of_the_request() -> None:
    def broken() -> dict[str, str]:
        raise LookupError(KEY)

    for headers in (broken, {"X-Odd": "né " + KEY}):
        with pytest.raises(ToolError, match="headers are not available") as caught:
            rlm.MCPClient("h", {"url": "http://127.0.0.1:9/mcp", "headers": headers}).open()
        assert KEY not in str(caught.value.to_dict())
