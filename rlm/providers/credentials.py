"""Secrets: read at each use, never stored, never shown."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Awaitable, Callable

import pydantic

from rlm.errors import ConfigurationError
from rlm.web.secrets import REDACTED

SecretSource = Callable[[], str | Awaitable[str]]

_LOOKS_SECRET = re.compile(r"(?i)\bbearer\s+\S+|\b(?:sk|pk|key|rk)-[A-Za-z0-9_*.-]{8,}")
_ONE_LINE = re.compile(r"[\x21-\x7e]*")


class Credentials:
    """The source of a secret: an environment variable or a host's callable, read anew for each request.

    Args:
        source: a callable that returns the secret, or an awaitable of it.
        variable: the environment variable to read without a ``source``.
        required: whether sending without a secret is an error.
    """

    def __init__(self, source: SecretSource | None = None, variable: str | None = None, *, required: bool) -> None:
        if source is not None and not callable(source):
            raise ConfigurationError(
                "credentials_in_code",
                "api_key must be a callable that returns the key (or set an environment variable): a key in an "
                "argument ends up in tracebacks and reprs",
            )
        self._source = source
        self._variable = variable
        self._required = required

    def __repr__(self) -> str:
        where = "a callable" if self._source else f"${self._variable}" if self._variable else "nowhere"
        return f"key from {where}"

    async def read(self) -> pydantic.SecretStr | None:
        """Return the secret, or None if no secret is set and none is required.

        Raises: ConfigurationError ``credentials_missing`` or ``credentials_invalid``.
        """
        secret = await self._read_source()
        if not _ONE_LINE.fullmatch(secret.get_secret_value()):
            raise ConfigurationError("credentials_invalid", f"{self!r}: the key is no line of printable ASCII")
        if secret:
            return secret
        if self._required:
            where = f"set {self._variable}" if self._variable else "the callable returned an empty key"
            raise ConfigurationError("credentials_missing", f"this endpoint needs a key: {where}")
        return None

    async def _read_source(self) -> pydantic.SecretStr:
        if self._source is None:
            return pydantic.SecretStr(os.environ.get(self._variable, "").strip() if self._variable else "")
        value = self._source()
        return pydantic.SecretStr((await value if inspect.isawaitable(value) else value).strip())


def redacted(text: str) -> str:
    """Return ``text`` without parts that look like a key, for example ``sk-`` and letters."""
    return _LOOKS_SECRET.sub(REDACTED, text)
