"""How a handler learns that its time is over.

A coroutine is cancelled and a process is killed. A thread can only be told: a handler that takes long asks now and
then, by ``rlm.cancelled()`` anywhere in its thread, or by a parameter annotated ``rlm.Cancellation``, which no model
sees.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Cancelled(Exception):
    """Raised by ``Cancellation.check`` to leave a handler whose time is over."""


class Cancellation:
    """Says whether the call is over. Set once, by the library; safe in any thread."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._watchers: list[Callable[[], object]] = []

    def __bool__(self) -> bool:
        return self._event.is_set()

    def __repr__(self) -> str:
        return f"<Cancellation {'set' if self else 'not set'}>"

    def wait(self, seconds: float | None = None) -> bool:
        """Sleep for so many seconds, or until the call is over; whether it is."""
        return self._event.wait(seconds)

    def check(self) -> None:
        """Raise Cancelled if the call is over."""
        if self:
            raise Cancelled("the call is over")

    def set(self) -> None:
        """End the call. The library does it at the limit."""
        self._event.set()
        for watcher in tuple(self._watchers):
            watcher()

    @contextmanager
    def watched(self, watcher: Callable[[], object]) -> Iterator[None]:
        """While this lasts, ``watcher`` is called when the call is over, in the thread that ends it; at once where it
        is over already. It may be called more than once."""
        self._watchers.append(watcher)
        try:
            if self:
                watcher()
            yield
        finally:
            self._watchers.remove(watcher)


current: ContextVar[Cancellation | None] = ContextVar("rlm_cancellation", default=None)


def cancelled() -> bool:
    """Whether the tool call that this code runs in is over; False outside a call."""
    return bool(current.get())
