"""The connections to one host: opened for a request, or kept open by an event loop."""

from __future__ import annotations

import threading
import weakref
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import httpx
import pydantic

from rlm.web.logs import loggers_of, scrub_logs
from rlm.web.proxies import made, proxy_for, trusted

if TYPE_CHECKING:
    import ssl

CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 600.0

_HEADERS = {
    "Content-Type": "application/json",
    "Accept-Encoding": "identity",  # a packed body is unpacked all the same, within its limit
    "User-Agent": "prolog-rlm",
}


scrub_logs(*loggers_of("httpx", "httpcore"))


class Connections:
    """Clients of httpx for one host, one per event loop that keeps any.

    Args:
        url: the URL of all requests; it decides whether they go through a proxy.
        headers: headers of every request, beside our own; nothing secret.
    """

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._headers = {**_HEADERS, **headers}
        self._kept: weakref.WeakKeyDictionary[Any, _KeptConnection] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    def open(self) -> None:
        """Keep connections for this event loop until as many ``close`` have followed."""
        with self._lock:
            kept = self._kept.get(_loop())
            if kept is None:
                kept = self._kept[_loop()] = _KeptConnection(self._new_client())
            kept.users += 1

    async def close(self) -> None:
        """Undo one ``open`` of this event loop; the last ``close`` closes the connections."""
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
    async def client(self) -> AsyncIterator[httpx.AsyncClient]:
        """Return the client that this event loop keeps, or a new one for the block."""
        kept = self._kept.get(_loop())
        if kept is not None:
            yield kept.client
            return
        async with self._new_client() as client:
            yield client

    def _new_client(self) -> httpx.AsyncClient:
        """Return a new client. Raises: ConfigurationError ``invalid_proxy``, ``invalid_certificates``."""
        return httpx.AsyncClient(
            verify=_tls(),
            follow_redirects=False,
            timeout=httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
            trust_env=False,  # httpx would read the proxies of every scheme, and raise for each that it cannot use
            proxy=made(proxy_for(self._url), httpx.Proxy, httpx.InvalidURL),
            headers=self._headers,
        )


class Signature(httpx.Auth):
    """Puts the key into one header at the last moment; no repr of it shows the key."""

    def __init__(self, header: tuple[str, str], secret: pydantic.SecretStr) -> None:
        self._name, self._prefix = header
        self._secret = secret

    def __repr__(self) -> str:
        return "<signature>"

    def auth_flow(self, request: httpx.Request) -> Any:
        request.headers[self._name] = self._prefix + self._secret.get_secret_value()
        yield request


class _KeptConnection:
    """A client that is shared by the users of one event loop."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.users = 0


@cache
def _tls() -> ssl.SSLContext:
    return trusted(httpx.create_ssl_context)


def _loop() -> Any:
    return anyio.lowlevel.current_token().native_token
