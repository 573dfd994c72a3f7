"""Imports that Ctrl-C and ``fork()`` do not break.

Python loses a KeyboardInterrupt that is raised in a callback of its import system (weak references, finalizers), and
extension modules may panic where one is raised while they initialise. A fork while another thread imports leaves the
child with a module that is never finished, and with a lock that is never released.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

FORK_WAITS = 5.0
"""Seconds that a fork waits at most for imports in other threads."""

_POLL = 0.002
_CALLBACKS = frozenset({"cb", "_remove", "remove", "__del__"})
_EXTENSIONS = frozenset({"ExtensionFileLoader.create_module", "ExtensionFileLoader.exec_module"})

_importing: dict[int, int] = {}
"""How many imports are under way, by thread."""


@contextmanager
def whole() -> Iterator[None]:
    """Import: Ctrl-C ends it, but not where it would be lost or would break an extension module; a fork waits."""
    here = threading.get_ident()
    with _sigint_waits(_is_fragile):
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
    with _sigint_waits(lambda _: True):
        yield


@contextmanager
def _sigint_waits(waits: Callable[[FrameType | None], bool]) -> Iterator[None]:
    """Deliver a Ctrl-C at the end of the block where ``waits`` says so of the frame that it came in, else at once."""
    handler: Any = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield  # another thread gets none; a disposition of the system needs no Python
        return
    arrived: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if waits(frame):
            arrived.append(number)
        else:
            handler(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is note:
            signal.signal(signal.SIGINT, handler)
        if arrived:
            signal.raise_signal(signal.SIGINT)


def _is_fragile(frame: FrameType | None) -> bool:
    """Whether a KeyboardInterrupt in this frame would be lost, or would be raised into an extension's start."""
    while frame is not None:
        code = frame.f_code
        if code.co_name in _CALLBACKS or code.co_qualname in _EXTENSIONS:
            return True
        frame = frame.f_back
    return False


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
