"""One POST of JSON to one endpoint, with bounds, over httpx; what went wrong comes back as a ProviderError.

A reply is read whole or as a stream of events, and is the same value either way. No wire format is known here,
nothing is retried, no redirect is followed (it would carry the key elsewhere), and no exception of httpx leaves:
those hold the request, and with it the key.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import anyio
import httpx
import pydantic

from rlm.errors import ConfigurationError, ProviderError
from rlm.providers.connections import Connections, Signature
from rlm.providers.credentials import Credentials, without
from rlm.providers.faults import RETRYABLE, code_and_message, kind_of, retry_after, shown
from rlm.providers.sse import EventStream
from rlm.providers.wire import Assembly, Told

MAX_REPLY_BYTES = 32 * 1024 * 1024
FAREWELL_SECONDS = 0.2
"""How long the end of a connection's stream is waited for after the end of the reply in it: with both, the
connection can be used again."""

_DONE = "[DONE]"
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
"""Faults before the first byte left: ``detail["unsent"]`` says so, and then the request has cost nothing."""


class Received(NamedTuple):
    """A reply with a status of 200 to 299: its JSON value and what the headers said."""

    value: Any
    request_id: str | None


class Endpoint:
    """A base URL, how to sign in to it, and the connections that are kept to it.

    Args:
        name: the provider's name in errors.
        base_url: where paths are appended; no user, password, query or fragment.
        credentials: where the key comes from.
        header: the header that carries it, and the text before it.
        headers: further headers of every request; nothing secret.
        max_reply_bytes: a longer reply is refused while it is read.

    Raises: ConfigurationError ``invalid_base_url``.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        credentials: Credentials,
        *,
        header: tuple[str, str] = ("Authorization", "Bearer "),
        headers: Mapping[str, str] | None = None,
        max_reply_bytes: int = MAX_REPLY_BYTES,
    ) -> None:
        self.name = name
        self.base_url = checked_base_url(base_url)
        self.host = urlsplit(self.base_url).hostname or ""
        self._credentials = credentials
        self._header = header
        self._max_reply_bytes = max_reply_bytes
        self._connections = Connections(self.host, headers or {})

    def __repr__(self) -> str:
        return f"{self.base_url} ({self._credentials!r})"

    async def post(self, path: str, body: bytes) -> Received:
        """Send ``body`` once. Raises: ProviderError; ConfigurationError where the key is missing."""
        secret = await self._credentials.read()

        async def whole(reply: httpx.Response) -> Received:
            return self._received(reply, without(secret, await self._read(reply)))

        return await self._exchanged(path, body, secret, "application/json", whole)

    async def stream(self, path: str, body: bytes, assembly: Assembly, told: Told) -> Received:
        """Send ``body`` once and put the streamed reply together; a server that answers in one piece may.

        Raises: as ``post``, with the beginning of the text in ``detail["partial_text"]`` where there was one;
        NotAReply from the assembly.
        """
        secret = await self._credentials.read()

        async def streamed(reply: httpx.Response) -> Received:
            if reply.status_code >= 300 or "text/event-stream" not in reply.headers.get("content-type", ""):
                return self._received(reply, without(secret, await self._read(reply)))
            await self._assemble(reply, secret, assembly, told)
            value = json.loads(without(secret, json.dumps(assembly.value())))
            return Received(value, _request_id(reply))

        try:
            return await self._exchanged(path, body, secret, "text/event-stream", streamed)
        except ProviderError as problem:
            if assembly.text:
                problem.detail["partial_text"] = shown(without(secret, assembly.text))
            raise

    def failure(self, kind: str, what: str, *, status: int | None = None, **detail: Any) -> ProviderError:
        """A ProviderError of this endpoint."""
        known = {name: value for name, value in detail.items() if value is not None}
        where = {"provider": self.name, "base_url": self.base_url, **known}
        return ProviderError(kind, f"{self.name}: {what}", where, status=status, retryable=kind in RETRYABLE)

    async def open(self) -> None:
        """Keep connections for this event loop until as many ``close`` have followed."""
        self._connections.open()

    async def close(self) -> None:
        """Give back one ``open`` of this event loop; the last one closes the connections."""
        await self._connections.close()

    # replies

    async def _exchanged(
        self,
        path: str,
        body: bytes,
        secret: pydantic.SecretStr | None,
        accept: str,
        read: Callable[[httpx.Response], Awaitable[Received]],
    ) -> Received:
        """Send, and let ``read`` make something of the reply while the connection is open."""
        sign = Signature(self._header, secret) if secret else httpx.Auth()
        failure: ProviderError
        try:
            async with self._connections.client() as client:
                asked = client.stream("POST", self.base_url + path, content=body, headers={"Accept": accept}, auth=sign)
                async with asked as reply:
                    return await read(reply)
        except ProviderError as problem:
            failure = problem
        except httpx.InvalidURL as problem:
            raise ConfigurationError("invalid_base_url", f"{self.base_url!r}: {problem}") from None
        except httpx.HTTPError as problem:
            failure = self._broken_line(problem)
        raise failure  # out here, so that no exception of httpx hangs on it as its context

    async def _read(self, reply: httpx.Response) -> str:
        said = reply.headers.get("content-length", "")
        body = bytearray()
        if not (said.isdigit() and int(said) > self._max_reply_bytes):
            async for piece in reply.aiter_bytes():
                body += piece
                if len(body) > self._max_reply_bytes:
                    break
            else:
                return body.decode("utf-8", "replace")
        raise self._too_large(reply)

    def _received(self, reply: httpx.Response, text: str) -> Received:
        status, request_id = reply.status_code, _request_id(reply)
        if 300 <= status < 400:
            target = urlsplit(reply.headers.get("location", "")).hostname
            raise self.failure("redirected", f"HTTP {status} to {target}: not followed", status=status)
        value = _parsed(text)
        said = value.get("error") if isinstance(value, dict) else None
        if status >= 400 or said:
            raise self._refusal(reply, said, shown(text))
        if value is None:
            body = shown(text)
            raise self.failure("malformed_reply", f"no JSON: {body!r}", status=status, body=body, request_id=request_id)
        return Received(value, request_id)

    async def _assemble(
        self, reply: httpx.Response, secret: pydantic.SecretStr | None, assembly: Assembly, told: Told
    ) -> None:
        events, size = EventStream(), 0
        pieces = reply.aiter_bytes()
        async for piece in pieces:
            size += len(piece)
            if size > self._max_reply_bytes:
                raise self._too_large(reply)
            for data in events.feed(piece):
                if self._took(reply, without(secret, data), assembly, told):
                    with anyio.move_on_after(FAREWELL_SECONDS):
                        async for _ in pieces:
                            pass
                    return
        if not assembly.whole:
            raise self.failure("connection", "the stream ended before the reply did", request_id=_request_id(reply))

    def _took(self, reply: httpx.Response, data: str, assembly: Assembly, told: Told) -> bool:
        """Add one event; whether it was the last one."""
        if data.strip() == _DONE:
            return True
        value = _parsed(data)
        said = value.get("error") if isinstance(value, dict) else None
        if said:
            failure = self._refusal(reply, said, shown(data))
            failure.status = reply.status_code  # whatever is said in it: something was answered, and has its cost
            raise failure
        if value is None:
            body = shown(data)
            raise self.failure("malformed_reply", f"no JSON in the stream: {body!r}", body=body)
        told.add(assembly.take(value))
        return assembly.ended

    def _refusal(self, reply: httpx.Response, said: Any, body: str) -> ProviderError:
        status = reply.status_code
        inner = said.get("code") if isinstance(said, dict) else None
        if status < 400 and isinstance(inner, int) and 400 <= inner < 600:
            status = inner  # some gateways answer 200 and put the failure inside
        code, message = code_and_message(said)
        return self.failure(
            kind_of(status, code, message or body),
            f"HTTP {status}: {shown(message) or body or 'no body'}",
            status=status,
            code=code and shown(code),
            body=body,
            request_id=_request_id(reply),
            retry_after_seconds=retry_after(reply.headers),
        )

    def _too_large(self, reply: httpx.Response) -> ProviderError:
        what = f"a reply over {self._max_reply_bytes} bytes"
        return self.failure("reply_too_large", what, status=reply.status_code)

    def _broken_line(self, problem: httpx.HTTPError) -> ProviderError:
        what = shown(str(problem)) or type(problem).__name__
        unsent = True if isinstance(problem, _UNSENT) else None
        if isinstance(problem, httpx.TimeoutException):
            said = f"no answer in time ({type(problem).__name__})"
            return self.failure("timeout", said, source="connection", unsent=unsent)
        if isinstance(problem, httpx.UnsupportedProtocol | httpx.DecodingError):
            return self.failure("malformed_reply", what)
        return self.failure("connection", f"the connection failed: {what}", unsent=unsent)


def checked_base_url(text: str) -> str:
    """``text`` without a trailing slash, if it is an http(s) URL with a host and nothing secret in it."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as problem:
        raise ConfigurationError("invalid_base_url", f"{text!r} is no URL: {problem}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ConfigurationError("invalid_base_url", f"{text!r} is no http(s) URL with a host")
    if parts.username is not None or parts.query or parts.fragment:
        raise ConfigurationError(
            "invalid_base_url", f"the URL of {parts.hostname!r} may hold no user, password, query or fragment"
        )
    return text.rstrip("/")


def _parsed(text: str) -> Any:
    """The JSON value, or None where there is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _request_id(reply: httpx.Response) -> str | None:
    said: str | None = reply.headers.get("x-request-id") or reply.headers.get("request-id")
    return said
