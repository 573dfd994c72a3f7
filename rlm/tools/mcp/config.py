"""Configurations of servers: a command to start, or an address. Only a host writes them; values may be secret.

The form is that of the ``mcpServers`` files of many programs, for example:

    {"files": {"command": "mcp-files", "args": ["--root", "/srv"], "env": {"LEVEL": "info"}},
     "issues": {"url": "https://mcp.example/mcp", "headers": {"Authorization": "Bearer ..."}}}
"""

from __future__ import annotations

import base64
import contextlib
import inspect
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

import pydantic
from pydantic import Field, SecretStr

from rlm import files
from rlm.errors import ConfigurationError, FileError, did_you_mean, nearest, warn
from rlm.model.arguments import checked_path
from rlm.model.base import Noun

MAX_CONFIG_BYTES = 1024 * 1024
MAX_NAME = 100
"""Characters of a name in an error text."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_VARIABLE = re.compile(r"\$\{(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")
_SECRET_NAME = re.compile(
    r"auth|token|key|secret|passw|passphrase|pwd|credential|cookie|private|signature|dsn|connection"
    r"|(?:^|_)(?:pat|pin)(?:$|_)",
    re.IGNORECASE,
)
_WITH_PASSWORD = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s/:@]{0,256}:(?P<password>[^\s/]{1,1024})@[^\s]*")
_HARMLESS = frozenset({"accept", "accept-language", "content-type", "mcp-protocol-version", "user-agent"})
"""Headers with public values, which any text may contain."""

_STDIO = frozenset({"stdio"})
_HTTP = frozenset({"http", "streamable-http", "streamable_http", "streamableHttp"})
_OTHER_HOSTS = frozenset({"alwaysAllow", "autoApprove", "description", "disabled", "timeout", "type"})
"""Fields that are read elsewhere (``type``, ``disabled``), or that belong to other programs and have no effect."""

HeadersCallable: TypeAlias = Callable[[], Mapping[str, str]]


class MCPLimits(Noun):
    """Limits of one server. Times are in seconds.

    - ``connect_seconds``: limit to start or reach the server, agree on a protocol and read its lists.
    - ``answer_seconds``: limit of a prompt, a resource, or one page of a list.
    - ``reconnect_seconds``: time that a call waits for a lost connection.
    - ``ping_seconds``: time between two pings of a server over HTTP.
    - ``close_seconds``: time for a process to end by itself before its group is killed.
    - ``max_message_bytes``: bytes of one message from the server.
    - ``max_items``: number of its tools, of its prompts and of its resources; a finding reports items left out.
    - ``max_pages``: pages of one list.
    - ``max_content_bytes``: bytes of a prompt or a resource that the host reads.
    """

    connect_seconds: float = Field(default=30.0, gt=0, le=600)
    answer_seconds: float = Field(default=30.0, gt=0, le=600)
    reconnect_seconds: float = Field(default=10.0, gt=0, le=600)
    ping_seconds: float = Field(default=30.0, gt=0, le=3600)
    close_seconds: float = Field(default=2.0, gt=0, le=60)
    max_message_bytes: int = Field(default=8 * 1024 * 1024, ge=4096, le=1 << 30)
    max_items: int = Field(default=2048, ge=1, le=100_000)
    max_pages: int = Field(default=100, ge=1, le=10_000)
    max_content_bytes: int = Field(default=1024 * 1024, ge=1, le=1 << 30)


class StdioServer(Noun):
    """A server as a program; messages pass over its standard input and output.

    The program gets ``HOME``, ``LOGNAME``, ``PATH``, ``SHELL``, ``TERM`` and ``USER`` of this environment, and ``env``.
    """

    command: str = Field(min_length=1)
    args: tuple[str, ...] = Field(default=(), repr=False)
    env: dict[str, SecretStr] = {}
    cwd: Path | None = None

    @property
    def place(self) -> str:
        """Return the name of the server in errors and reprs."""
        return self.command

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the values that are removed from all text of the server.

        These are values of ``env`` with secret names (for example ``API_KEY``), URLs with a password in ``env`` and
        ``args``, these passwords, and the value after an option such as ``--token``.
        """
        env = {name: value.get_secret_value() for name, value in self.env.items()}
        values = [value for name, value in env.items() if _SECRET_NAME.search(name)]
        for option, argument in zip(("", *self.args), self.args, strict=False):
            name, _, value = argument.partition("=")
            if value and name.startswith("-") and _SECRET_NAME.search(name):
                values.append(value)
            elif option.startswith("-") and "=" not in option and _SECRET_NAME.search(option):
                values.append(argument)
        for value in (*env.values(), *self.args):
            for url in _WITH_PASSWORD.finditer(value):
                values += [url[0], url["password"], unquote(url["password"])]
        return tuple(dict.fromkeys(values))


class HTTPServer(Noun):
    """A server at an address, over streamable HTTP.

    ``headers`` go with every request to this server and to no other address. A callable runs before each request.
    """

    url: str = Field(repr=False)
    headers: dict[str, SecretStr] | HeadersCallable = Field(default={}, repr=False)

    @pydantic.field_validator("url")
    @classmethod
    def _url(cls, value: str) -> str:
        try:
            parts = urlsplit(value)
            _ = parts.port
        except ValueError:
            raise ValueError("the value is not a URL") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("a URL that begins with http:// or https:// is wanted")
        return value

    @property
    def place(self) -> str:
        """Return the URL without its secret parts: user, password and query."""
        parts = urlsplit(self.url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the values that are removed from all text of the server: those of its headers and its URL.

        The values of a callable are added later, when it returns them.
        """
        parts = urlsplit(self.url)
        values = [unquote(parts.password or ""), *(value for _, value in parse_qsl(parts.query))]
        if isinstance(self.headers, Mapping):
            values += secrets_of({name: value.get_secret_value() for name, value in self.headers.items()})
        return tuple(values)

    async def headers_now(self) -> dict[str, str]:
        """Return the headers of the next request."""
        if isinstance(self.headers, Mapping):
            return {name: value.get_secret_value() for name, value in self.headers.items()}
        headers: Any = self.headers()
        return dict(await headers if inspect.isawaitable(headers) else headers)


ServerConfig: TypeAlias = StdioServer | HTTPServer


def secrets_of(headers: Mapping[str, str]) -> list[str]:
    """Return the secrets in headers: values, credentials after a scheme, and the password of a Basic header."""
    values = []
    for name, value in headers.items():
        if name.lower() in _HARMLESS:
            continue
        scheme, _, credentials = value.strip().rpartition(" ")
        values += [value.strip(), credentials]
        if scheme.lower() == "basic":
            with contextlib.suppress(ValueError):
                values.append(base64.b64decode(credentials, validate=True).decode().partition(":")[2])
    return values


def checked_name(name: Any) -> str:
    """Check the host's name for a server and return it.

    Raises:
        ConfigurationError: ``invalid_server``.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigurationError(
            "invalid_server",
            f"{name!r} is not a server name: use 1 to 64 letters, digits, '_', '.' and '-'",
            {"server": str(name)[:100]},
        )
    return name


def server_of(name: str, raw: Any) -> ServerConfig:
    """Check the configuration of one server and return it.

    Args:
        name: the host's name for the server.
        raw: a mapping with ``command`` or ``url``, or a configuration.

    Raises:
        ConfigurationError: ``invalid_server``, ``unknown_field``, ``unsupported_transport``, ``invalid_field``.
    """
    if isinstance(raw, StdioServer | HTTPServer):
        return raw
    if not isinstance(raw, Mapping):
        key = "url" if isinstance(raw, str) and raw.startswith(("http://", "https://")) else "command"
        hint = f": write {{{key!r}: ...}}" if isinstance(raw, str) else ""
        raise _invalid(name, f"a mapping with 'command' or 'url' is wanted, not {type(raw).__name__}{hint}")
    kind = raw.get("type", raw.get("transport"))
    if ("command" in raw) == ("url" in raw):
        raise _invalid(name, _without_address(raw))
    _check_types(name, raw)
    noun: type[ServerConfig] = StdioServer if "command" in raw else HTTPServer
    transports = _STDIO if noun is StdioServer else _HTTP
    if kind is not None and kind not in transports:
        key = "command" if noun is StdioServer else "url"
        reason = f"type {kind!r} does not go with {key!r}; {min(transports)!r} does"
        raise ConfigurationError("unsupported_transport", f"server {name!r}: {reason}", {"server": name})
    fields = {key: value for key, value in raw.items() if key not in _OTHER_HOSTS and key != "transport"}
    for key in fields:
        if key not in noun.model_fields:
            hint = did_you_mean(str(key), noun.model_fields)
            raise ConfigurationError(
                "unknown_field", f"server {name!r}: no such field {key!r}{hint}", {"server": name, "field": str(key)}
            )
    try:
        return noun(**fields)
    except ConfigurationError as problem:
        detail = {**problem.detail, "server": name}
        raise ConfigurationError(problem.kind, f"server {name!r}: {problem.message}", detail) from None


class Configurations(dict[str, ServerConfig]):
    """The servers of a configuration by name.

    ``problems`` has the unusable entries by their original name. ``renamed`` maps an original name to the plain name
    that replaces it: for example, ``My Slack`` to ``My_Slack``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.problems: dict[str, ConfigurationError] = {}
        self.renamed: dict[str, str] = {}


def _without_address(raw: Mapping[str, Any]) -> str:
    """Return the error text for a configuration with both addresses or none, with a probably misspelt key."""
    if "command" in raw:
        return "either 'command' or 'url' is wanted, not both"
    for key in raw:
        close = nearest(key, ("command", "url"), 1)
        if close and key not in _OTHER_HOSTS:
            return f"either 'command' or 'url' is wanted; no such field {str(key)!r}; did you mean {close[0]!r}?"
    return "either 'command' or 'url' is wanted"


def _check_types(name: str, raw: Mapping[str, Any]) -> None:
    """Raise if ``args`` or ``env`` has the wrong type. The error uses the terms of a configuration file."""
    args = raw.get("args", ())
    if isinstance(args, str):
        reason = '\'args\' is a list of strings, not one string; write each argument by itself: ["-y", "name"]'
        raise ConfigurationError("invalid_field", f"server {name!r}: {reason}", {"server": name, "field": "args"})
    if not isinstance(args, list | tuple) or not all(isinstance(each, str) for each in args):
        reason = f"'args' is a list of strings, not {_shape(args)}; a number is written in quotes"
        raise ConfigurationError("invalid_field", f"server {name!r}: {reason}", {"server": name, "field": "args"})
    env = raw.get("env", {})
    if not isinstance(env, Mapping) or not all(isinstance(each, str | SecretStr) for each in env.values()):
        wrong = (
            next((key for key, each in env.items() if not isinstance(each, str | SecretStr)), None)
            if isinstance(env, Mapping)
            else None
        )
        where = "" if wrong is None else f" ({str(wrong)[:MAX_NAME]!r} is none)"
        reason = f"'env' is an object whose values are strings{where}; a number is written in quotes"
        raise ConfigurationError("invalid_field", f"server {name!r}: {reason}", {"server": name, "field": "env"})


def _shape(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "a list with other values in it"
    return f"a {type(value).__name__}"


def servers_of(raw: Any, *, strict: bool = True, path: Path | None = None) -> Configurations:
    """Return the configurations of a mapping, without its ``disabled`` entries.

    Args:
        raw: ``{name: configuration}``, or ``{"mcpServers": {name: configuration}}``.
        strict: whether one unusable entry is an error. Otherwise it becomes one of ``problems``, and ``_`` replaces the
            characters that a server's name cannot have.
        path: the file of the mapping; variables of the environment are then filled in.

    Raises:
        ConfigurationError: as ``server_of``; the first problem, if no entry is usable.
    """
    for key in ("mcpServers", "servers"):
        if isinstance(raw, Mapping) and set(raw) == {key}:
            raw = raw[key]
    if not isinstance(raw, Mapping):
        hint = "; a file is read by rlm.load_mcp_config(path)" if isinstance(raw, str | PurePath) else ""
        reason = f"an MCPClient or {{name: configuration}} is wanted, not {type(raw).__name__}{hint}"
        raise ConfigurationError("invalid_server", reason)
    if {"command", "url"} & set(raw) and not all(isinstance(value, Mapping) for value in raw.values()):
        raise ConfigurationError("invalid_server", "a server needs a name of the host's: write {'files': {...}}")
    servers = Configurations()
    for name, value in raw.items():
        if isinstance(value, Mapping) and value.get("disabled") is True:
            continue
        try:
            plain = checked_name(name) if strict else _plain_name(name, raw)
            servers[plain] = server_of(plain, value if path is None else _filled_in(value, path))
        except ConfigurationError as problem:
            if strict:
                raise
            servers.problems[str(name)[:MAX_NAME]] = problem
        else:
            if plain != name:
                servers.renamed[name] = plain
    if servers.problems and not servers:
        raise next(iter(servers.problems.values()))
    return servers


def _plain_name(name: Any, names: Mapping[Any, Any]) -> str:
    """Return the name, or a plain name made of it that no other server has.

    Raises:
        ConfigurationError: ``invalid_server``.
    """
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name.strip()).lstrip("_.-") if isinstance(name, str) else name
    if plain == name:
        return checked_name(name)
    rivals = [other for other in names if isinstance(other, str) and other != name]
    if any(re.sub(r"[^A-Za-z0-9_.-]+", "_", other.strip()).lstrip("_.-") == plain for other in rivals):
        reason = f"{name!r} would be called {plain!r} here, as another server; give it a name of letters and digits"
        raise ConfigurationError("invalid_server", reason, {"server": name[:MAX_NAME]})
    if not isinstance(plain, str) or not _NAME.fullmatch(plain):
        return checked_name(name)
    return plain


def load_mcp_config(path: str | Path, *, strict: bool = False) -> dict[str, ServerConfig]:
    """Return the servers of a JSON file in the ``mcpServers`` form, for ``Catalog.add_mcp``. No server is started.

    ``${NAME}`` and ``${NAME:-default}`` in strings stand for environment variables, so that the file need not contain
    a secret.

    Args:
        path: the file.
        strict: whether one unusable entry is an error. Otherwise an ``RlmWarning`` names it, and the other servers are
            returned. For example, the name ``My Slack`` then becomes ``My_Slack``.

    Raises:
        ConfigurationError: ``unreadable``; ``missing_variable`` and as ``server_of``, if ``strict`` is true or no
            entry is usable.
    """
    path = checked_path("path", path)
    try:
        raw = json.loads(files.read(path, MAX_CONFIG_BYTES))
    except (FileError, ValueError, RecursionError) as problem:
        reason = problem.why if isinstance(problem, FileError) else str(problem).partition(": line")[0]
        place = f", line {problem.lineno}, column {problem.colno}" if isinstance(problem, json.JSONDecodeError) else ""
        raise ConfigurationError("unreadable", f"{path}{place}: {reason}", {"file": str(path)}) from None
    if isinstance(raw, Mapping):
        raw = next((raw[key] for key in ("mcpServers", "servers") if isinstance(raw.get(key), Mapping)), raw)
    servers = servers_of(raw, strict=strict, path=path)
    for name, unusable in servers.problems.items():
        warn(f"{path}: server {name!r} is not used: {unusable.message}")
    for name, plain in servers.renamed.items():
        warn(f"{path}: server {name!r} is called {plain!r} here")
    return dict(servers)


def _filled_in(value: Any, path: Path) -> Any:
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: _variable(match, path), value)
    if isinstance(value, list):
        return [_filled_in(item, path) for item in value]
    if isinstance(value, dict):
        return {key: _filled_in(item, path) for key, item in value.items()}
    return value


def _variable(match: re.Match[str], path: Path) -> str:
    value = os.environ.get(match["name"], match["default"])
    if value is None:
        raise ConfigurationError(
            "missing_variable", f"{path}: the environment has no {match['name']}", {"variable": match["name"]}
        )
    return value


def _invalid(name: str, reason: str) -> ConfigurationError:
    return ConfigurationError("invalid_server", f"server {name!r}: {reason}", {"server": name})
