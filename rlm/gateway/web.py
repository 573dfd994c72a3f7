"""Streamable HTTP for all profiles of a gateway, by path or by credential."""

from __future__ import annotations

import contextlib
import hmac
import os
import re
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse

from rlm.errors import ConfigurationError
from rlm.gateway.settings import ClientProfile

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}")


def application(servers: Mapping[str, Any], profiles: Mapping[str, ClientProfile], host: str) -> Any:
    """Return the ASGI application.

    Args:
        servers: the SDK's server of each profile.
        profiles: the profiles.
        host: the name or address that clients connect to.

    Raises:
        ConfigurationError: ``no_credential``, ``missing_variable``.
    """
    credentials = {name: _credential(name, profile) for name, profile in profiles.items()}
    bare = [name for name, credential in credentials.items() if not credential]
    if host not in LOOPBACK and bare:
        message = f"other machines can reach {host}: set a `credential` for the profile {bare[0]!r}"
        raise ConfigurationError("no_credential", message, {"profile": bare[0]})
    routes: list[Any] = []
    for name, server in servers.items():
        routes += server.streamable_http_app(streamable_http_path=_path(name), host=host).routes

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for server in servers.values():
                await stack.enter_async_context(server.session_manager.run())
            yield

    return _Doors(Starlette(routes=routes, lifespan=lifespan), credentials)


class _Doors:
    """Lets a request in to the profile of its path, or of its credential at ``/mcp``."""

    def __init__(self, app: Any, credentials: Mapping[str, str]) -> None:
        self._app, self._credentials = app, dict(credentials)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            name = self._profile_of(scope)
            if name is None:
                response = JSONResponse({"error": "unauthorized"}, 401, {"WWW-Authenticate": "Bearer"})
                await response(scope, receive, send)
                return
            scope = {**scope, "path": _path(name), "raw_path": _path(name).encode()} if name else scope
        await self._app(scope, receive, send)

    def _profile_of(self, scope: Any) -> str | None:
        """Return the profile, an empty string for an unknown path, or None if the credential is wrong."""
        path = scope["path"].rstrip("/")
        token = _bearer(scope)
        named = next((name for name in self._credentials if _path(name) == path), "")
        if not named:
            return ""
        if named == "default" and token:
            matches = [name for name, known in self._credentials.items() if known and _same(token, known)]
            named = matches[0] if matches else named
        known = self._credentials[named]
        return named if not known or _same(token, known) else None


def _path(profile: str) -> str:
    return "/mcp" if profile == "default" else f"/{profile}/mcp"


def _bearer(scope: Any) -> str:
    value = next((value for key, value in scope["headers"] if key == b"authorization"), b"")
    word, _, token = value.decode("latin-1").partition(" ")
    return token.strip() if word.lower() == "bearer" else ""


def _same(token: str, known: str) -> bool:
    return hmac.compare_digest(token.encode("utf-8", "replace"), known.encode("utf-8", "replace"))


def _credential(name: str, profile: ClientProfile) -> str:
    def filled(match: re.Match[str]) -> str:
        value = os.environ.get(match["name"])
        if not value:
            message = f"profile {name!r}: the environment has no variable {match['name']}"
            raise ConfigurationError("missing_variable", message, {"variable": match["name"]})
        return value

    return _VARIABLE.sub(filled, profile.credential)


async def serve(servers: Mapping[str, Any], profiles: Mapping[str, ClientProfile], host: str, port: int) -> None:
    """Serve until the process is told to end. The address is printed on stderr.

    Raises:
        ConfigurationError: ``cannot_listen``, and as ``application``.
    """
    app = application(servers, profiles, host)
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as problem:
        reason = f"{host}:{port}: {problem.strerror or problem}"
        raise ConfigurationError("cannot_listen", reason, {"host": host, "port": port}) from None
    with listener:
        port = listener.getsockname()[1]
        print(f"rlm gateway: http://{host}:{port}/mcp", file=sys.stderr, flush=True)
        config = uvicorn.Config(app, log_level="warning", lifespan="on", timeout_graceful_shutdown=3)
        await uvicorn.Server(config).serve(sockets=[listener])
