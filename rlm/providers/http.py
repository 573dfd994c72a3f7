"""One POST of JSON to one endpoint, with bounds, over httpx. A failure is raised as a ProviderError.

A reply is read whole or as a stream of events, and is the same value either way. This module has no wire format,
retries nothing and follows no redirect, which would carry the key elsewhere. It lets no exception of httpx out,
because those hold the request, and with it the key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx

from rlm.errors import ConfigurationError, ProviderError, valid_text
from rlm.providers.connections import Connections, Signature
from rlm.providers.credentials import Credentials
from rlm.providers.exchange import Broken, HttpExchange
from rlm.providers.faults import RETRYABLE, shown, tls_fault
from rlm.providers.wire import Assembly, TextSink
from rlm.web.logs import secrets_in_logs
from rlm.web.proxies import proxy_for
from rlm.web.secrets import NO_SECRETS, Secrets, changed

MAX_REPLY_BYTES = 32 * 1024 * 1024

_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
"""Faults before the first byte was sent: ``detail["unsent"]`` is true, and the request has cost nothing."""


class Received(NamedTuple):
    """A reply with a status of 200 to 299: its JSON value, the request's id, and the secrets that were scrubbed."""

    value: Any
    request_id: str | None
    secrets: Secrets = NO_SECRETS


class Endpoint:
    """A base URL, its credentials, and the connections that are kept to it.

    Args:
        name: the provider's name in errors.
        base_url: the URL before the paths; no user, password, query or fragment.
        credentials: the source of the key.
        header: the header that carries it, and the text before it.
        headers: further headers of every request; nothing secret.
        max_reply_bytes: a longer reply is refused while it is read, packed or unpacked.

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
        self._connections = Connections(self.base_url, headers or {})

    def __repr__(self) -> str:
        return f"{self.base_url} ({self._credentials!r})"

    async def post(self, path: str, body: bytes) -> Received:
        """Send ``body`` once and return the reply. Raises: ProviderError; ConfigurationError if the key is missing."""
        return await self._exchanged(path, body, None, TextSink(None))

    async def stream(self, path: str, body: bytes, assembly: Assembly, sink: TextSink) -> Received:
        """Send ``body`` once and return the assembled reply. A server may answer in one piece instead.

        Raises: as ``post``, with the beginning of a received text in ``detail["partial_text"]``; NotAReply from the
        assembly.
        """
        return await self._exchanged(path, body, assembly, sink)

    def failure(
        self, kind: str, what: str, *, status: int | None = None, secrets: Secrets = NO_SECRETS, **detail: Any
    ) -> ProviderError:
        """Return a ProviderError of this endpoint, without the texts of ``secrets``."""
        known = {name: value for name, value in detail.items() if value is not None}
        where = {"provider": self.name, "base_url": self.base_url, **changed(secrets.scrub(known), valid_text)}
        message = f"{self.name}: {valid_text(secrets.scrub(what))}"
        return ProviderError(kind, message, where, status=status, retryable=kind in RETRYABLE)

    async def open(self) -> None:
        """Keep connections for this event loop until as many ``close`` have followed."""
        self._connections.open()

    async def close(self) -> None:
        """Undo one ``open`` of this event loop; the last ``close`` closes the connections."""
        await self._connections.close()

    async def _exchanged(self, path: str, body: bytes, assembly: Assembly | None, sink: TextSink) -> Received:
        """Send, and read the reply while the connection is open."""
        key = await self._credentials.read()
        proxy = proxy_for(self.base_url)
        secrets = Secrets([key.get_secret_value() if key else "", proxy.password if proxy else ""])
        sink.keep_out(secrets)
        sign = Signature(self._header, key) if key else httpx.Auth()
        headers = {"Accept": "application/json" if assembly is None else "text/event-stream"}
        failure: ProviderError
        try:
            with secrets_in_logs(secrets):
                async with self._connections.client() as client:
                    response = client.stream("POST", self.base_url + path, content=body, headers=headers, auth=sign)
                    async with response as reply:
                        exchange = HttpExchange(reply, secrets, self._max_reply_bytes)
                        value = await (exchange.whole() if assembly is None else exchange.streamed(assembly, sink))
                        return Received(value, exchange.request_id, secrets)
        except Broken as problem:
            what = problem.what + self._address_hint(problem.kind, path)
            failure = self.failure(problem.kind, what, status=problem.status, secrets=secrets, **problem.detail)
            failure.retryable = failure.retryable and problem.may_pass
        except httpx.InvalidURL as problem:
            raise ConfigurationError("invalid_base_url", f"{self.base_url!r}: {problem}") from None
        except (httpx.HTTPError, httpx.StreamError) as problem:
            failure = self._broken_line(problem, secrets, proxy.variable if proxy else None)
        if assembly is not None and assembly.text:
            text = secrets.scrub(assembly.text)
            failure.detail["partial_text"] = shown(valid_text(text[: len(text) - secrets.held(text)]))
        raise failure  # out here, so that no exception or frame that saw the reply hangs on it

    def _broken_line(self, problem: Exception, secrets: Secrets, proxy: str | None) -> ProviderError:
        what = shown(secrets.scrub(str(problem))) or type(problem).__name__
        unsent = True if isinstance(problem, _UNSENT) else None
        kind = "connection"
        fault = tls_fault(problem)
        if fault is not None:
            kind, reason = fault
            what = f"{urlsplit(self.base_url).netloc}: {reason}"
        elif isinstance(problem, httpx.TimeoutException):
            message_text = f"no answer in time ({type(problem).__name__})"
            return self.failure("timeout", message_text, secrets=secrets, source="connection", unsent=unsent)
        elif isinstance(problem, httpx.ProxyError):
            kind = "proxy_refused" if what.startswith("4") else kind  # it begins with the status
            what = f"the proxy of {proxy} refused: {what}"
        elif isinstance(problem, httpx.UnsupportedProtocol | httpx.DecodingError):
            kind = "malformed_reply"
        elif unsent:
            what = f"no connection to {self.base_url}: {what}"
        else:
            what = f"the connection to {self.base_url} failed: {what}"
        return self.failure(kind, what, secrets=secrets, unsent=unsent)

    def _address_hint(self, kind: str, path: str) -> str:
        """Return the address of a request and a possible mistake in it; empty for other kinds of failures."""
        if kind not in ("not_found", "malformed_reply"):
            return ""
        version = re.search(r"/v\d", urlsplit(self.base_url).path)
        hint = ""
        if path.startswith("/v1/") and version:
            hint = f": the base URL ends before {version[0]}"
        elif not path.startswith("/v1/") and not version:
            hint = ": the base URL of most servers ends in /v1"
        return f" (POST {self.base_url}{path}{hint})"


def checked_base_url(text: str, name: str = "base_url") -> str:
    """Return a base URL without its trailing slash.

    Args:
        text: an http(s) URL with a host and nothing secret in it.
        name: the name of its argument or environment variable, for the error.

    Raises: ConfigurationError ``invalid_base_url``.
    """
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as problem:
        raise ConfigurationError("invalid_base_url", f"{name}: {text!r} is no URL: {problem}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        hint = "" if "//" in text or not text.strip() else f": write 'http://{text}' or 'https://{text}'"
        raise ConfigurationError("invalid_base_url", f"{name}: {text!r} is no http(s) URL with a host{hint}")
    if parts.username is not None or parts.query or parts.fragment:
        raise ConfigurationError(
            "invalid_base_url", f"{name}: the URL of {parts.hostname!r} may hold no user, password, query or fragment"
        )
    return text.rstrip("/")
