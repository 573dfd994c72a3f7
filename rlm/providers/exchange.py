"""The reading of one reply: it is bounded, unpacked, parsed, and scrubbed of secrets first of all."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import anyio
import httpx

from rlm.providers.faults import advice, code_and_message, kind_of, shown, status_of
from rlm.providers.sse import EventStream, looks_like_events
from rlm.providers.wire import Assembly, TextSink
from rlm.web.bodies import BodyProblem, BodyTooLarge, UnknownEncoding, unpacked
from rlm.web.secrets import Secrets

FAREWELL_SECONDS = 0.2
"""Seconds to wait for the end of a stream after the end of the reply in it. Only then can the connection be used
again."""

REFUSAL_BYTES, REFUSAL_SECONDS = 256 * 1024, 5.0
"""The most bytes and seconds for the body of a refusal: its status counts, even if the text is longer."""

_DONE = "[DONE]"
_EXCERPT_CHARACTERS = 16 * 1024
_NAME = 200


class Broken(Exception):
    """A reply that cannot be used, with the fields of a ``ProviderError``. ``may_pass`` is false if the server reports
    that the same request never succeeds."""

    def __init__(
        self, kind: str, what: str, status: int | None = None, *, may_pass: bool = True, **detail: Any
    ) -> None:
        super().__init__(kind)
        self.kind, self.what, self.status, self.may_pass, self.detail = kind, what, status, may_pass, detail


class Content(NamedTuple):
    """A JSON value, or None, and the beginning of its text for an error; both without secrets."""

    value: Any
    excerpt: str


class HttpExchange:
    """The reading of one reply.

    Args:
        reply: a response of httpx with an unread body.
        secrets: the texts that the server knows and may repeat.
        limit: the most bytes of the reply.
    """

    def __init__(self, reply: httpx.Response, secrets: Secrets, limit: int) -> None:
        self._reply = reply
        self._secrets = secrets
        self._limit = limit
        self.status = reply.status_code
        self.request_id = self._header("x-request-id") or self._header("request-id")

    async def whole(self) -> Any:
        """Return the JSON value of a reply in one piece. Raises: Broken; errors of httpx."""
        return self._value(self._content(await self._body()))

    async def streamed(self, assembly: Assembly, sink: TextSink) -> Any:
        """Return the value that the assembly makes of a stream. A server may answer in one piece instead.

        Raises: Broken; NotAReply from the assembly; errors of httpx.
        """
        kind = self._reply.headers.get("content-type", "").lower()
        if self.status < 300 and "text/event-stream" in kind:
            return await self._assembled(self._events(), assembly, sink)
        body = await self._body()
        content = self._content(body)
        if self.status < 300 and content.value is None and looks_like_events(body):
            return await self._assembled(self._events_in(body), assembly, sink)
        return self._value(content)

    # bytes

    async def _body(self) -> bytes:
        """Return the body within its limit; for a refusal, the part that arrives in time."""
        if self.status >= 300:
            return await self._refusal_body()
        promised = self._header("content-length") or ""
        if promised.isdecimal() and (len(promised) > 18 or int(promised) > self._limit):
            raise self._too_large()
        body = bytearray()
        async with aclosing(self._pieces(self._limit)) as pieces:
            async for piece in pieces:
                body += piece
        return bytes(body)

    async def _refusal_body(self) -> bytes:
        body = bytearray()
        with suppress(Broken, httpx.HTTPError), anyio.move_on_after(REFUSAL_SECONDS):
            async with aclosing(self._pieces(REFUSAL_BYTES)) as pieces:
                async for piece in pieces:
                    body += piece
        return bytes(body)

    async def _pieces(self, limit: int) -> AsyncGenerator[bytes]:
        """Yield the unpacked bytes of the body as they arrive. Raises: Broken."""
        failure: Broken
        try:
            encoding = self._reply.headers.get("content-encoding", "")
            async with aclosing(unpacked(self._reply.aiter_raw(), encoding, limit)) as pieces:
                async for piece in pieces:
                    yield piece
            return
        except BodyTooLarge:
            failure = self._too_large()
        except UnknownEncoding as problem:
            failure = Broken("unsupported_encoding", shown(str(problem)), self.status, request_id=self.request_id)
        except BodyProblem as problem:
            failure = Broken("malformed_reply", str(problem), self.status, request_id=self.request_id)
        raise failure

    async def _events(self) -> AsyncGenerator[Content]:
        events = EventStream()
        async with aclosing(self._pieces(self._limit)) as pieces:
            async for piece in pieces:
                for data in events.feed(piece):
                    yield self._event(data)
        for content in map(self._event, events.end()):
            if content.value is not None:  # else the end of the stream cut it off
                yield content

    async def _events_in(self, body: bytes) -> AsyncGenerator[Content]:
        events = EventStream()
        for data in [*events.feed(body), *events.end()]:
            yield self._event(data)

    # values

    def _event(self, data: str) -> Content:
        return Content(_DONE, _DONE) if data.strip() == _DONE else self._parsed(data)

    def _content(self, body: bytes) -> Content:
        return self._parsed(body.decode("utf-8", "replace").removeprefix("\ufeff"))

    def _parsed(self, text: str) -> Content:
        """Return the JSON value in a text. The decoded value is scrubbed: in the text a secret may have escapes."""
        excerpt = shown(self._secrets.scrub(text[:_EXCERPT_CHARACTERS]))
        try:
            return Content(self._secrets.scrub(json.loads(text)), excerpt)
        except (ValueError, RecursionError):
            return Content(None, excerpt)

    def _value(self, content: Content) -> Any:
        """Return the value of a reply in one piece. Raises: Broken."""
        if 300 <= self.status < 400:
            target = _host(self._header("location") or "")
            raise Broken("redirected", f"HTTP {self.status} to {target}: not followed", self.status)
        error = content.value.get("error") if isinstance(content.value, dict) else None
        if self.status >= 400 or error:
            raise self._refusal(content, error)
        if content.value is None:
            raise self._no_json("no JSON", content)
        return content.value

    async def _assembled(self, events: AsyncGenerator[Content], assembly: Assembly, sink: TextSink) -> Any:
        async with aclosing(events) as contents:
            async for content in contents:
                if self._took(content, assembly, sink):
                    with suppress(Broken, httpx.HTTPError), anyio.move_on_after(FAREWELL_SECONDS):
                        async for _ in contents:
                            pass
                    return self._secrets.scrub(assembly.value())
        if not assembly.whole:
            raise Broken("connection", "the stream ended before the reply did", request_id=self.request_id)
        return self._secrets.scrub(assembly.value())

    def _took(self, content: Content, assembly: Assembly, sink: TextSink) -> bool:
        """Add one event, and return whether it was the last one."""
        if content.value == _DONE:
            return True
        error = content.value.get("error") if isinstance(content.value, dict) else None
        if error:
            failure = self._refusal(content, error)
            failure.status = self.status  # whatever its text: the server answered, and the answer has its cost
            raise failure
        if content.value is None:
            raise self._no_json("no JSON in the stream", content)
        sink.add(assembly.take(content.value))
        return assembly.ended

    # refusals

    def _refusal(self, content: Content, error: Any) -> Broken:
        status = status_of(error, self.status)
        code, message = code_and_message(error)
        wait, may_pass = advice(self._reply.headers, content.value, message or content.excerpt)
        return Broken(
            kind_of(status, code, message or content.excerpt, wait),
            f"HTTP {status}: {shown(message) or content.excerpt or 'no body'}",
            status,
            may_pass=may_pass,
            code=code and shown(code),
            body=content.excerpt,
            request_id=self.request_id,
            retry_after_seconds=wait,
            usage=_usage_in(content.value),
        )

    def _no_json(self, what: str, content: Content) -> Broken:
        body = content.excerpt
        return Broken("malformed_reply", f"{what}: {body!r}", self.status, body=body, request_id=self.request_id)

    def _too_large(self) -> Broken:
        return Broken("reply_too_large", f"a reply over {self._limit} bytes", self.status)

    def _header(self, name: str) -> str | None:
        return shown(self._secrets.scrub(self._reply.headers.get(name, "")))[:_NAME] or None


def _usage_in(value: Any) -> Any:
    """Return the ``usage`` beside an error or in it."""
    if not isinstance(value, dict):
        return None
    error = value.get("error")
    return value.get("usage") or (error.get("usage") if isinstance(error, dict) else None)


def _host(location: str) -> str | None:
    try:
        return urlsplit(location).hostname
    except ValueError:
        return None
