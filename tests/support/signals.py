"""Ctrl-C for tests, where the suite was started with SIGINT ignored (``nohup``, a job in the background, some CI)."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


def heed_sigint() -> None:
    """Set SIGINT back in a child, before its program starts: ``Popen(..., preexec_fn=heed_sigint)``."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def sigint_heeded() -> Iterator[None]:
    """Python's own answer to SIGINT in this process, as long as the block lasts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
