"""Imports that are not interrupted half-way: neither by Ctrl-C nor by ``fork()``.

Python loses a KeyboardInterrupt that comes while it runs a callback of its import system, and extension modules may
panic where one comes while they initialise. A fork while another thread imports leaves the child with a module that
is never finished, and whose lock is never released.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

FORK_WAITS = 5.0
"""Seconds that a fork waits at most for imports in other threads."""

_POLL = 0.002

_importing: dict[int, int] = {}
"""How many imports are under way, by thread."""


@contextmanager
def whole() -> Iterator[None]:
    """Import in one piece: Ctrl-C and a fork in another thread come afterwards."""
    here = threading.get_ident()
    with sigint_waits():
        _importing[here] = _importing.get(here, 0) + 1
        try:
            yield
        finally:
            _importing[here] -= 1
            if not _importing[here]:
                del _importing[here]


@contextmanager
def sigint_waits() -> Iterator[None]:
    """Deliver a Ctrl-C that comes in the main thread at the end of the block."""
    handler = signal.getsignal(signal.SIGINT)
    here = threading.current_thread() is threading.main_thread()
    if not here or handler is None or handler == signal.SIG_IGN:
        yield
        return
    arrived: list[int] = []

    def note(number: int, _frame: object) -> None:
        arrived.append(number)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is note:
            signal.signal(signal.SIGINT, handler)
        if arrived:
            signal.raise_signal(signal.SIGINT)


def _fork_waits() -> None:
    here, until = threading.get_ident(), time.monotonic() + FORK_WAITS
    while any(thread != here for thread in list(_importing)) and time.monotonic() < until:
        time.sleep(_POLL)


def _forget_others() -> None:
    here = threading.get_ident()
    for thread in [thread for thread in _importing if thread != here]:
        del _importing[thread]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_fork_waits, after_in_child=_forget_others)
