"""A filter that removes the secrets of the current exchange from the logs of HTTP libraries.

httpx logs the reason phrase of a reply, httpcore its headers, the MCP SDK its messages. A server may repeat a key in
each of them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rlm.web.secrets import NO_SECRETS, Secrets

_current: ContextVar[Secrets] = ContextVar("rlm_secrets", default=NO_SECRETS)


class _Scrubber(logging.Filter):
    """Removes the current secrets from a record. It drops no record."""

    def filter(self, record: logging.LogRecord) -> bool:
        secrets = _current.get()
        if secrets:
            record.msg, record.args = secrets.scrub(record.getMessage()), ()
            if record.exc_info:
                record.exc_text = secrets.scrub(logging.Formatter().formatException(record.exc_info))
                record.exc_info = None
        return True


_SCRUBBER = _Scrubber()


def loggers_of(client: str, core: str) -> tuple[str, ...]:
    """Return the names of the loggers of an HTTP client and of its core, for example ``httpx`` and ``httpcore``."""
    return (client, *(f"{core}.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")))


def scrub_logs(*names: str) -> None:
    """Add the filter to loggers. A second call has no effect."""
    for name in names:
        logging.getLogger(name).addFilter(_SCRUBBER)


@contextmanager
def secrets_in_logs(secrets: Secrets) -> Iterator[None]:
    """Scrub these secrets from the logs of this task and of the tasks that it starts."""
    before = _current.set(secrets)
    try:
        yield
    finally:
        _current.reset(before)
