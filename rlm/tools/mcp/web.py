"""A server at an address: the SDK's streamable HTTP over an HTTP client with bounded answers.

A transport fault becomes the error of one request. With the SDK's own client it would end the whole session.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client

from rlm.tools.mcp.config import HTTPServer, MCPLimits, secrets_of
from rlm.tools.mcp.rescue import (
    BROKEN_OFF,
    FORBIDDEN,
    REFUSED,
    SESSION_ENDED,
    TOO_LARGE,
    UNAUTHORIZED,
    UNREACHED,
    UNREADABLE,
    readable,
)
from rlm.web.bodies import BodyProblem, BodyTooLarge, cleaned_json, paired, unpacked
from rlm.web.proxies import made, proxy_for, trusted
from rlm.web.secrets import Secrets

CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 300.0
"""A stream that is silent for this long is opened again."""

MAX_SERVER_TEXT = 200
"""Characters of a server's text after an HTTP status."""

NAMED = (400, 404, 405)
"""Statuses that the SDK interprets by the protocol."""

_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")


class Line:
    """The state of the line to a server; ``ended`` is set when the session on it is over."""

    def __init__(self) -> None:
        self.ended = anyio.Event()
        self.trouble = ""

    @property
    def end_reason(self) -> str:
        """Return the known reason of its end; empty if there is none."""
        return self.trouble


class BoundedClient(httpx2.AsyncClient):
    """An HTTP client with bounded answers. A transport fault becomes an error answer.

    Args:
        server: the address and the headers.
        limit: bytes of an answer, packed and unpacked.
        line: the state of the line.
        secrets: gets the headers that a callable of the host returns.

    Raises:
        ConfigurationError: ``invalid_proxy``, ``invalid_certificates``.
    """

    def __init__(self, server: HTTPServer, limit: int, line: Line, secrets: Secrets) -> None:
        proxy = proxy_for(server.url)
        secrets.add([proxy.password] if proxy is not None else [])
        super().__init__(
            timeout=httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
            verify=trusted(httpx2.create_ssl_context),
            trust_env=False,  # httpx2 would read the proxies of every scheme, and raise for each that it cannot use
            proxy=made(proxy, httpx2.Proxy, httpx2.InvalidURL),
            follow_redirects=False,
        )
        self._server, self._limit, self._line, self._secrets = server, limit, line, secrets

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request as httpx2 does, with the host's headers and the limits."""
        request.headers["Accept-Encoding"] = "identity"
        try:
            headers = await self._hosts_headers()
            request.headers.update(headers)
            response = await super().send(request, **options)
            if response.status_code == 401 and (fresh := await self._hosts_headers()) != headers:
                await response.aclose()  # the server did nothing, and the host has newer credentials by now
                request.headers.update(fresh)
                response = await super().send(request, **options)
            return await self._bounded(response)
        except _Headers as problem:
            return _fault(request, REFUSED, str(problem))
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError) as problem:
            return _fault(request, UNREACHED, f"{type(problem).__name__}: {problem}")
        except httpx2.TransportError as problem:
            return _fault(request, BROKEN_OFF, f"{type(problem).__name__}: {problem}")

    async def _hosts_headers(self) -> dict[str, str]:
        """Return the headers of the next request, and add them to the secrets."""
        try:
            headers = await self._server.headers_now()
            for value in headers.values():
                value.encode("ascii")
        except Exception as problem:  # noqa: BLE001 - a callable of the host may raise anything
            raise _Headers(f"the host's headers are not available: {type(problem).__name__}") from None
        self._secrets.add(secrets_of(headers))
        return headers

    async def _bounded(self, response: httpx2.Response) -> httpx2.Response:
        status = response.status_code
        if status in (401, 403):
            challenge = response.headers.get("www-authenticate", "")[:MAX_SERVER_TEXT]
            reason = f"it answered with HTTP status {status}" + (f" ({challenge})" if challenge else "")
            return await _give_up(response, UNAUTHORIZED if status == 401 else FORBIDDEN, reason)
        if status == 404 and "mcp-session-id" in response.request.headers:
            return await _give_up(response, SESSION_ENDED, "the server no longer knows the session")
        if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            return _stream(response, self._limit)  # the SDK bounds each event
        whole = await self._whole(response)
        if status in NAMED or status < 400 or whole.status_code != status or _is_error_answer(whole.content):
            return whole
        text = whole.content[:MAX_SERVER_TEXT].decode("utf-8", "replace").strip()
        return _fault(
            response.request, REFUSED, f"it answered with HTTP status {status}" + (f": {text}" if text else "")
        )

    async def _whole(self, response: httpx2.Response) -> httpx2.Response:
        """Return the answer with its whole body, or a fault: too long, unreadable, or broken off."""
        body = bytearray()
        encoding = response.headers.get("content-encoding", "")
        try:
            async with contextlib.aclosing(unpacked(response.aiter_raw(), encoding, self._limit)) as pieces:
                async for part in pieces:
                    body += part
        except BodyTooLarge as problem:
            return await _give_up(response, TOO_LARGE, f"an answer of {problem}")
        except BodyProblem as problem:
            return await _give_up(response, UNREADABLE, f"an answer that cannot be read: {problem}")
        except httpx2.TransportError as problem:
            return _fault(response.request, BROKEN_OFF, f"{type(problem).__name__}: {problem}")
        finally:
            await response.aclose()
        whole = httpx2.Response(
            response.status_code,
            headers=_unpacked_headers(response),
            content=readable(cleaned_json(bytes(body))),
            request=response.request,
        )
        whole.next_request = response.next_request
        return whole


class _Headers(Exception):
    """The host's headers are not available. The text has the reason and no header."""


class _ServerEvents(httpx2.AsyncByteStream):
    """The events of a stream, unpacked on arrival, with lone surrogates and unreadable rows replaced."""

    def __init__(self, response: httpx2.Response, limit: int) -> None:
        self._response, self._limit = response, limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        encoding = self._response.headers.get("content-encoding", "")
        try:
            pieces = paired(unpacked(self._response.aiter_raw(), encoding, None))
            async for event in _readable_events(pieces, self._limit):
                yield event
        except BodyProblem as problem:
            raise httpx2.DecodingError(str(problem)) from None

    async def aclose(self) -> None:
        await self._response.aclose()


async def _readable_events(pieces: AsyncIterator[bytes], limit: int) -> AsyncIterator[bytes]:
    """Yield each event whole. An event over the limit passes in pieces, and the SDK refuses it."""
    held, looked_at = bytearray(), 0
    async for piece in pieces:
        held += piece
        while (end := _EVENT_END.search(held, max(0, looked_at - 3))) is not None:
            yield _readable_event(bytes(held[: end.end()]))
            del held[: end.end()]
            looked_at = 0
        looked_at = len(held)
        if len(held) > limit:
            yield bytes(held)
            held, looked_at = bytearray(), 0
    if held:
        yield bytes(held)


def _readable_event(event: bytes) -> bytes:
    """Return an event with readable data. An event that cannot be repaired stays as it is."""
    lines = event.splitlines()
    data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
    message = readable(data)
    if message is data:
        return event
    others = [line for line in lines if line and not line.startswith(b"data:")]
    return b"\n".join([*others, b"data: " + message, b"", b""])


def _stream(response: httpx2.Response, limit: int) -> httpx2.Response:
    return httpx2.Response(
        response.status_code,
        headers=_unpacked_headers(response),
        stream=_ServerEvents(response, limit),
        request=response.request,
    )


def _unpacked_headers(response: httpx2.Response) -> list[tuple[str, str]]:
    removed = ("content-encoding", "content-length", "transfer-encoding")
    return [(name, value) for name, value in response.headers.multi_items() if name.lower() not in removed]


def _is_error_answer(body: bytes) -> bool:
    """Return whether a body is a message of the protocol."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "jsonrpc" in value


async def _give_up(response: httpx2.Response, code: int, reason: str) -> httpx2.Response:
    await response.aclose()
    return _fault(response.request, code, reason)


def _fault(request: httpx2.Request, code: int, reason: str) -> httpx2.Response:
    """Return an answer with an error, in place of a missing answer. The SDK reads the error from it."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": reason[:300]}}
    return httpx2.Response(
        503, request=request, content=json.dumps(error), headers={"Content-Type": "application/json"}
    )


@asynccontextmanager
async def http_transport(server: HTTPServer, limits: MCPLimits, line: Line, secrets: Secrets) -> AsyncIterator[Any]:
    """Open the streams of a session over HTTP."""
    limit = limits.max_message_bytes
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(BoundedClient(server, limit, line, secrets))
        transport = streamable_http_client(server.url, http_client=client, max_sse_event_size=limit)
        yield await stack.enter_async_context(transport)
