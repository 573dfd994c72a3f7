"""How to reach a server: a command to start, or an address. Only a host writes these; values may be secret.

The spelling is that of the ``mcpServers`` files which many programs share:

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
from collections.abc import Callable, Iterator, Mapping
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
"""Characters of a name that an error repeats."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_VARIABLE = re.compile(r"\$\{(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")
_TELLING = re.compile(
    r"auth|token|key|secret|passw|passphrase|pwd|credential|cookie|private|signature|dsn|connection"
    r"|(?:^|_)(?:pat|pin)(?:$|_)",
    re.IGNORECASE,
)
_WITH_PASSWORD = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s/:@]{0,256}:(?P<password>[^\s/]{1,1024})@[^\s]*")
_HARMLESS = frozenset({"accept", "accept-language", "content-type", "mcp-protocol-version", "user-agent"})
"""Headers whose values are no secrets, and may stand in any text."""

_STDIO = frozenset({"stdio"})
_HTTP = frozenset({"http", "streamable-http", "streamable_http", "streamableHttp"})
_OTHER_HOSTS = frozenset({"alwaysAllow", "autoApprove", "description", "disabled", "timeout", "type"})
"""Fields of these files that are read here (``type``, ``disabled``) or are other programs' own and mean nothing."""

HeadersCallable: TypeAlias = Callable[[], Mapping[str, str]]


class MCPLimits(Noun):
    """What one server may take. Times are seconds.

    - ``connect_seconds``: to start or reach it, agree on a protocol and read its lists.
    - ``answer_seconds``: for a prompt, a resource, or one page of a list.
    - ``reconnect_seconds``: that a call waits for a connection which was lost.
    - ``ping_seconds``: between two questions whether a server over HTTP is still there.
    - ``close_seconds``: that a process has to end by itself before its group is killed.
    - ``max_message_bytes``: of one message from it.
    - ``max_items``: of its tools, of its prompts and of its resources; what is more is left out, with a finding.
    - ``max_pages``: of one list.
    - ``max_content_bytes``: of a prompt or a resource that the host asks for.
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
    """A program that is started and spoken to over its standard input and output.

    It gets ``HOME``, ``LOGNAME``, ``PATH``, ``SHELL``, ``TERM`` and ``USER`` of this environment, and ``env``.
    """

    command: str = Field(min_length=1)
    args: tuple[str, ...] = Field(default=(), repr=False)
    env: dict[str, SecretStr] = {}
    cwd: Path | None = None

    @property
    def place(self) -> str:
        """What errors and reprs call it."""
        return self.command

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that nothing from it may hold: those of ``env`` whose names tell that they are secret, URLs
        in ``env`` and ``args`` that have a password, these passwords, and what follows ``--token`` and the like."""
        env = {name: value.get_secret_value() for name, value in self.env.items()}
        values = [value for name, value in env.items() if _TELLING.search(name)]
        for option, argument in zip(("", *self.args), self.args, strict=False):
            name, _, value = argument.partition("=")
            if value and name.startswith("-") and _TELLING.search(name):
                values.append(value)
            elif option.startswith("-") and "=" not in option and _TELLING.search(option):
                values.append(argument)
        for value in (*env.values(), *self.args):
            for url in _WITH_PASSWORD.finditer(value):
                values += [url[0], url["password"], unquote(url["password"])]
        return tuple(dict.fromkeys(values))


class HTTPServer(Noun):
    """A server at an address, spoken to over streamable HTTP.

    ``headers`` go with every request to it and nowhere else; a callable is asked anew for each request.
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
            raise ValueError("this is no URL") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("a URL that begins with http:// or https:// is wanted")
        return value

    @property
    def place(self) -> str:
        """The URL without what may be secret in it: user, password and query."""
        parts = urlsplit(self.url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that nothing which comes from it may hold: of headers, and what is in the URL. Those of a callable's
        headers become known when it is asked."""
        parts = urlsplit(self.url)
        values = [unquote(parts.password or ""), *(value for _, value in parse_qsl(parts.query))]
        if isinstance(self.headers, Mapping):
            values += secrets_of({name: value.get_secret_value() for name, value in self.headers.items()})
        return tuple(values)

    async def headers_now(self) -> dict[str, str]:
        """The headers of the next request."""
        if isinstance(self.headers, Mapping):
            return {name: value.get_secret_value() for name, value in self.headers.items()}
        said: Any = self.headers()
        return dict(await said if inspect.isawaitable(said) else said)


ServerConfig: TypeAlias = StdioServer | HTTPServer


def secrets_of(headers: Mapping[str, str]) -> list[str]:
    """What headers hold that is secret: their values, the credentials after a scheme, the password of Basic ones."""
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
    """The host's name for a server. Raises: ConfigurationError ``invalid_server``."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigurationError(
            "invalid_server",
            f"{name!r} is no name for a server: 1 to 64 letters, digits, '_', '.' and '-' are wanted",
            {"server": str(name)[:100]},
        )
    return name


def server_of(name: str, given: Any) -> ServerConfig:
    """The configuration of one server.

    Raises: ConfigurationError ``invalid_server``, ``unknown_field``, ``unsupported_transport``, ``invalid_field``.
    """
    if isinstance(given, StdioServer | HTTPServer):
        return given
    if not isinstance(given, Mapping):
        key = "url" if isinstance(given, str) and given.startswith(("http://", "https://")) else "command"
        hint = f": write {{{key!r}: ...}}" if isinstance(given, str) else ""
        raise _invalid(name, f"a mapping with 'command' or 'url' is wanted, not {type(given).__name__}{hint}")
    kind = given.get("type", given.get("transport"))
    if ("command" in given) == ("url" in given):
        raise _invalid(name, _without_address(given))
    _check_types(name, given)
    noun: type[ServerConfig] = StdioServer if "command" in given else HTTPServer
    wanted = _STDIO if noun is StdioServer else _HTTP
    if kind is not None and kind not in wanted:
        key = "command" if noun is StdioServer else "url"
        what = f"type {kind!r} does not go with {key!r}; {min(wanted)!r} does"
        raise ConfigurationError("unsupported_transport", f"server {name!r}: {what}", {"server": name})
    fields = {key: value for key, value in given.items() if key not in _OTHER_HOSTS and key != "transport"}
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
    """The servers of a configuration by name; ``problems`` are the entries that cannot be used, by the name they have
    there, and ``renamed`` says which name was made of one that is not plain."""

    def __init__(self) -> None:
        super().__init__()
        self.problems: dict[str, ConfigurationError] = {}
        self.renamed: dict[str, str] = {}


def _without_address(given: Mapping[str, Any]) -> str:
    """The words for a configuration with both addresses, or with none: which key is probably misspelt."""
    if "command" in given:
        return "either 'command' or 'url' is wanted, not both"
    for key in given:
        close = nearest(key, ("command", "url"), 1)
        if close and key not in _OTHER_HOSTS:
            return f"either 'command' or 'url' is wanted; no such field {str(key)!r}; did you mean {close[0]!r}?"
    return "either 'command' or 'url' is wanted"


def _check_types(name: str, given: Mapping[str, Any]) -> None:
    """Raise where ``args`` or ``env`` is of the wrong type, in words of a configuration file."""
    args = given.get("args", ())
    if isinstance(args, str):
        what = '\'args\' is a list of strings, not one string; write each argument by itself: ["-y", "name"]'
        raise ConfigurationError("invalid_field", f"server {name!r}: {what}", {"server": name, "field": "args"})
    if not isinstance(args, list | tuple) or not all(isinstance(each, str) for each in args):
        what = f"'args' is a list of strings, not {_shape(args)}; a number is written in quotes"
        raise ConfigurationError("invalid_field", f"server {name!r}: {what}", {"server": name, "field": "args"})
    env = given.get("env", {})
    if not isinstance(env, Mapping) or not all(isinstance(each, str | SecretStr) for each in env.values()):
        wrong = (
            next((key for key, each in env.items() if not isinstance(each, str | SecretStr)), None)
            if isinstance(env, Mapping)
            else None
        )
        where = "" if wrong is None else f" ({str(wrong)[:MAX_NAME]!r} is none)"
        what = f"'env' is an object whose values are strings{where}; a number is written in quotes"
        raise ConfigurationError("invalid_field", f"server {name!r}: {what}", {"server": name, "field": "env"})


def _shape(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "a list with other values in it"
    return f"a {type(value).__name__}"


def servers_of(given: Any, *, strict: bool = True, path: Path | None = None) -> Configurations:
    """The configurations of a mapping ``{name: configuration}``, or of ``{"mcpServers": {...}}``; what is marked
    ``disabled`` is left out.

    Args:
        strict: whether one entry that cannot be used is an error. Else it is one of ``problems``, and a name with other
            characters than a server's may have gets ``_`` in their place.
        path: the file that it was read from; variables of the environment are filled in.

    Raises: ConfigurationError, as ``server_of``; the first problem, where no entry can be used.
    """
    for key in ("mcpServers", "servers"):
        if isinstance(given, Mapping) and set(given) == {key}:
            given = given[key]
    if not isinstance(given, Mapping):
        hint = "; a file is read by rlm.load_mcp_config(path)" if isinstance(given, str | PurePath) else ""
        what = f"an MCPClient or {{name: configuration}} is wanted, not {type(given).__name__}{hint}"
        raise ConfigurationError("invalid_server", what)
    if {"command", "url"} & set(given) and not all(isinstance(value, Mapping) for value in given.values()):
        raise ConfigurationError("invalid_server", "a server needs a name of the host's: write {'files': {...}}")
    found = Configurations()
    for name, value in given.items():
        if isinstance(value, Mapping) and value.get("disabled") is True:
            continue
        try:
            plain = checked_name(name) if strict else _plain_name(name, given)
            found[plain] = server_of(plain, value if path is None else _filled_in(value, path))
        except ConfigurationError as problem:
            if strict:
                raise
            found.problems[str(name)[:MAX_NAME]] = problem
        else:
            if plain != name:
                found.renamed[name] = plain
    if found.problems and not found:
        raise next(iter(found.problems.values()))
    return found


def _plain_name(name: Any, names: Mapping[Any, Any]) -> str:
    """The name, or one made of it that no other server has. Raises: ConfigurationError ``invalid_server``."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name.strip()).lstrip("_.-") if isinstance(name, str) else name
    if plain == name:
        return checked_name(name)
    rivals = [other for other in names if isinstance(other, str) and other != name]
    if any(re.sub(r"[^A-Za-z0-9_.-]+", "_", other.strip()).lstrip("_.-") == plain for other in rivals):
        what = f"{name!r} would be called {plain!r} here, as another server; give it a name of letters and digits"
        raise ConfigurationError("invalid_server", what, {"server": name[:MAX_NAME]})
    if not isinstance(plain, str) or not _NAME.fullmatch(plain):
        return checked_name(name)
    return plain


def load_mcp_config(path: str | Path, *, strict: bool = False) -> dict[str, ServerConfig]:
    """The servers of a JSON file in the ``mcpServers`` form, for ``Catalog.add_mcp``. Nothing is started.

    ``${NAME}`` and ``${NAME:-default}`` in strings stand for environment variables, so that a secret need not lie
    in the file.

    Args:
        path: the file.
        strict: whether one entry that cannot be used is an error. Else an ``RlmWarning`` names it, and the others are
            returned; ``My Slack`` becomes ``My_Slack``.

    Raises:
        ConfigurationError: ``unreadable``; ``missing_variable`` and as ``server_of``, where ``strict`` or where no
            entry can be used.
    """
    path = checked_path("path", path)
    try:
        given = json.loads(files.read(path, MAX_CONFIG_BYTES))
    except (FileError, ValueError, RecursionError) as problem:
        said = problem.why if isinstance(problem, FileError) else str(problem).partition(": line")[0]
        place = f", line {problem.lineno}, column {problem.colno}" if isinstance(problem, json.JSONDecodeError) else ""
        raise ConfigurationError("unreadable", f"{path}{place}: {said}", {"file": str(path)}) from None
    if isinstance(given, Mapping):
        given = next((given[key] for key in ("mcpServers", "servers") if isinstance(given.get(key), Mapping)), given)
    found = servers_of(given, strict=strict, path=path)
    for name, unusable in found.problems.items():
        warn(f"{path}: server {name!r} is not used: {unusable.message}")
    for name, plain in found.renamed.items():
        warn(f"{path}: server {name!r} is called {plain!r} here")
    return dict(found)


def _filled_in(value: Any, path: Path) -> Any:
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: _variable(found, path), value)
    if isinstance(value, list):
        return [_filled_in(item, path) for item in value]
    if isinstance(value, dict):
        return {key: _filled_in(item, path) for key, item in value.items()}
    return value


def _variable(found: re.Match[str], path: Path) -> str:
    value = os.environ.get(found["name"], found["default"])
    if value is None:
        raise ConfigurationError(
            "missing_variable", f"{path}: the environment has no {found['name']}", {"variable": found["name"]}
        )
    return value


def _invalid(name: str, what: str) -> ConfigurationError:
    return ConfigurationError("invalid_server", f"server {name!r}: {what}", {"server": name})


def leaves(problem: BaseException) -> Iterator[BaseException]:
    """The exceptions in a group, or the exception itself."""
    if isinstance(problem, BaseExceptionGroup):
        for inner in problem.exceptions:
            yield from leaves(inner)
    else:
        yield problem
