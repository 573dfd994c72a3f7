"""A server at an address: the SDK's streamable HTTP over a client of ours that bounds what comes back.

A transport fault becomes the error of the one request that met it; the SDK would let it end the whole session.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client

from rlm.tools.mcp.codes import BROKEN_OFF, SESSION_ENDED, TOO_LARGE, UNREACHED
from rlm.tools.mcp.config import HTTPServer, MCPLimits

CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 300.0
"""A stream that says nothing for so long is opened anew."""


class Line:
    """What can be told of a line to a server; ``ended`` is set where the session on it is over."""

    def __init__(self) -> None:
        self.ended = anyio.Event()
        self.trouble = ""
        self.status: int | None = None

    @property
    def last_words(self) -> str:
        """What is known of why it ended."""
        said = [self.trouble] if self.trouble else []
        if self.status is not None:
            said.append(f"it answered with HTTP status {self.status}")
        return "; ".join(said)


class BoundedClient(httpx2.AsyncClient):
    """A client whose answers are bounded, and whose faults are answers."""

    def __init__(self, server: HTTPServer, limit: int, line: Line) -> None:
        super().__init__(
            timeout=httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
            trust_env=server.host not in ("localhost", "127.0.0.1", "::1"),  # no proxy reaches our own loopback
            follow_redirects=False,
        )
        self._server, self._limit, self._line = server, limit, line

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """As httpx2 does it, with the host's headers and our limits."""
        request.headers["Accept-Encoding"] = "identity"
        request.headers.update(await self._server.headers_now())
        try:
            response = await super().send(request, **options)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as problem:
            return _fault(request, UNREACHED, f"{type(problem).__name__}: {problem}")
        except httpx2.TransportError as problem:
            return _fault(request, BROKEN_OFF, f"{type(problem).__name__}: {problem}")
        self._line.status = response.status_code if response.status_code in (401, 403) else None
        if response.status_code == 404 and "mcp-session-id" in request.headers:
            return await _given_up(response, SESSION_ENDED, "the server knows the session no more")
        if response.headers.get("content-encoding", "identity") != "identity":
            return await _given_up(response, TOO_LARGE, "an answer that would have to be unpacked")
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            return response  # the SDK bounds each event
        return await self._whole(response)

    async def _whole(self, response: httpx2.Response) -> httpx2.Response:
        """The answer with its body read, or a fault: too long, or broken off."""
        parts: list[bytes] = []
        size = 0
        try:
            async for part in response.aiter_raw():
                size += len(part)
                if size > self._limit:
                    return await _given_up(response, TOO_LARGE, f"an answer of over {self._limit:,} bytes")
                parts.append(part)
        except httpx2.TransportError as problem:
            return _fault(response.request, BROKEN_OFF, f"{type(problem).__name__}: {problem}")
        finally:
            await response.aclose()
        whole = httpx2.Response(
            response.status_code, headers=response.headers, content=b"".join(parts), request=response.request
        )
        whole.next_request = response.next_request
        return whole


async def _given_up(response: httpx2.Response, code: int, what: str) -> httpx2.Response:
    await response.aclose()
    return _fault(response.request, code, what)


def _fault(request: httpx2.Request, code: int, what: str) -> httpx2.Response:
    """The answer in the place of one that cannot be had; the SDK takes the error out of it."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": what[:300]}}
    return httpx2.Response(
        503, request=request, content=json.dumps(error), headers={"Content-Type": "application/json"}
    )


@asynccontextmanager
async def http_transport(server: HTTPServer, limits: MCPLimits, line: Line) -> AsyncIterator[Any]:
    """The streams of a session over HTTP."""
    limit = limits.max_message_bytes
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(BoundedClient(server, limit, line))
        transport = streamable_http_client(server.url, http_client=client, max_sse_event_size=limit)
        yield await stack.enter_async_context(transport)
