"""One POST of JSON to one endpoint, with bounds, over httpx; what went wrong comes back as a ProviderError.

No wire format is known here, nothing is retried, no redirect is followed (it would carry the key elsewhere), and
no exception of httpx leaves: those hold the request, and with it the key.
"""

from __future__ import annotations

import json
import re
import threading
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import anyio.lowlevel
import httpx
import pydantic

from rlm.errors import ConfigurationError, ProviderError
from rlm.providers.credentials import Credentials, without
from rlm.providers.faults import RETRYABLE, code_and_message, kind_of, retry_after, shown

if TYPE_CHECKING:
    import ssl

MAX_REPLY_BYTES = 32 * 1024 * 1024
CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 600.0

_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": "identity",  # what is counted against the limit is what arrives
    "User-Agent": "prolog-rlm",
}


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
        max_reply_bytes: int = MAX_REPLY_BYTES,
    ) -> None:
        self.name = name
        self.base_url = checked_base_url(base_url)
        self.host = urlsplit(self.base_url).hostname or ""
        self._credentials = credentials
        self._header = header
        self._max_reply_bytes = max_reply_bytes
        self._kept: weakref.WeakKeyDictionary[Any, _Kept] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"{self.base_url} ({self._credentials!r})"

    async def post(self, path: str, body: bytes) -> Received:
        """Send ``body`` once. Raises: ProviderError; ConfigurationError where the key is missing."""
        secret = await self._credentials.read()
        failure: ProviderError | None = None
        try:
            async with self._client() as client:
                async with client.stream("POST", self.base_url + path, content=body, auth=self._sign(secret)) as reply:
                    text = without(secret, await self._read(reply))
        except ProviderError as problem:
            failure = problem
        except httpx.InvalidURL as problem:
            raise ConfigurationError("invalid_base_url", f"{self.base_url!r}: {problem}") from None
        except httpx.HTTPError as problem:
            failure = self._broken_line(problem)
        if failure is not None:
            raise failure  # out here, so that no exception of httpx hangs on it as its context
        return self._received(reply.status_code, reply.headers, text)

    def failure(self, kind: str, what: str, *, status: int | None = None, **detail: Any) -> ProviderError:
        """A ProviderError of this endpoint."""
        known = {name: value for name, value in detail.items() if value is not None}
        where = {"provider": self.name, "base_url": self.base_url, **known}
        return ProviderError(kind, f"{self.name}: {what}", where, status=status, retryable=kind in RETRYABLE)

    # connections

    async def open(self) -> None:
        """Keep connections for this event loop until as many ``close`` have followed."""
        with self._lock:
            kept = self._kept.get(_loop())
            if kept is None:
                kept = self._kept[_loop()] = _Kept(self._new_client())
            kept.users += 1

    async def close(self) -> None:
        """Give back one ``open`` of this event loop; the last one closes the connections."""
        with self._lock:
            kept = self._kept.get(_loop())
            if kept is None:
                return
            kept.users -= 1
            if kept.users > 0:
                return
            del self._kept[_loop()]
        with anyio.CancelScope(shield=True):
            await kept.client.aclose()

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[httpx.AsyncClient]:
        kept = self._kept.get(_loop())
        if kept is not None:
            yield kept.client
            return
        async with self._new_client() as client:
            yield client

    def _new_client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            verify=_tls(),
            follow_redirects=False,
            timeout=httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
            trust_env=not is_loopback(self.host),  # a proxy cannot reach our own loopback
            headers=_HEADERS,
        )

    def _sign(self, secret: pydantic.SecretStr | None) -> httpx.Auth:
        return _Signature(self._header, secret) if secret else httpx.Auth()

    # replies

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
        raise self.failure("reply_too_large", f"a reply over {self._max_reply_bytes} bytes", status=reply.status_code)

    def _received(self, status: int, headers: httpx.Headers, text: str) -> Received:
        request_id = headers.get("x-request-id") or headers.get("request-id")
        if 300 <= status < 400:
            target = urlsplit(headers.get("location", "")).hostname
            raise self.failure("redirected", f"HTTP {status} to {target}: not followed", status=status)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        said = value.get("error") if isinstance(value, dict) else None
        if status >= 400 or said:
            raise self._refusal(status, said, headers, shown(text), request_id)
        if value is None:
            body = shown(text)
            raise self.failure("malformed_reply", f"no JSON: {body!r}", status=status, body=body, request_id=request_id)
        return Received(value, request_id)

    def _refusal(
        self, status: int, said: Any, headers: httpx.Headers, body: str, request_id: str | None
    ) -> ProviderError:
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
            request_id=request_id,
            retry_after_seconds=retry_after(headers),
        )

    def _broken_line(self, problem: httpx.HTTPError) -> ProviderError:
        what = shown(str(problem)) or type(problem).__name__
        if isinstance(problem, httpx.TimeoutException):
            return self.failure("timeout", f"no answer in time ({type(problem).__name__})", source="connection")
        if isinstance(problem, httpx.UnsupportedProtocol | httpx.DecodingError):
            return self.failure("malformed_reply", what)
        return self.failure("connection", f"the connection failed: {what}")


class _Kept:
    """A client that is shared by the users of one event loop."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.users = 0


class _Signature(httpx.Auth):
    """Puts the key into one header at the last moment; no repr of it shows the key."""

    def __init__(self, header: tuple[str, str], secret: pydantic.SecretStr) -> None:
        self._name, self._prefix = header
        self._secret = secret

    def __repr__(self) -> str:
        return "<signature>"

    def auth_flow(self, request: httpx.Request) -> Any:
        request.headers[self._name] = self._prefix + self._secret.get_secret_value()
        yield request


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


def is_loopback(host: str) -> bool:
    """Whether ``host`` names this machine."""
    return host in ("localhost", "::1") or re.fullmatch(r"127(\.\d{1,3}){3}", host) is not None


@cache
def _tls() -> ssl.SSLContext:
    return httpx.create_ssl_context()


def _loop() -> Any:
    return anyio.lowlevel.current_token().native_token
