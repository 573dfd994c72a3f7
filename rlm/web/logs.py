"""What HTTP libraries log, without the secrets of the exchange under way.

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
    """Takes the current secrets out of a record; it drops none."""

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
    """Return the names of the loggers of an HTTP client and of what it is built on: ``httpx`` and ``httpcore``."""
    return (client, *(f"{core}.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")))


def scrub_logs(*names: str) -> None:
    """Have these loggers scrub what they log during an exchange. Twice is no error."""
    for name in names:
        logging.getLogger(name).addFilter(_SCRUBBER)


@contextmanager
def secrets_in_logs(secrets: Secrets) -> Iterator[None]:
    """Scrub these secrets from the logs of this task and of those that it starts."""
    before = _current.set(secrets)
    try:
        yield
    finally:
        _current.reset(before)
