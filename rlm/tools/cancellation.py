"""Cancellation of handlers after the end of their call.

A coroutine is cancelled and a process is killed. A thread can only be notified, so a long handler must poll.
It calls ``rlm.cancelled()`` anywhere in its thread, or takes a parameter annotated ``rlm.Cancellation``. That
parameter is not part of the schema that a model gets.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Cancelled(Exception):
    """``Cancellation.check`` raises this exception to leave a handler after the end of its call."""


class Cancellation:
    """A flag that is true once the call is over. The library sets it once; any thread may read it."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._watchers: list[Callable[[], object]] = []

    def __bool__(self) -> bool:
        return self._event.is_set()

    def __repr__(self) -> str:
        return f"<Cancellation {'set' if self else 'not set'}>"

    def wait(self, seconds: float | None = None) -> bool:
        """Sleep for ``seconds``, or until the call is over, and return whether the call is over."""
        return self._event.wait(seconds)

    def check(self) -> None:
        """Raise Cancelled if the call is over."""
        if self:
            raise Cancelled("the call is over")

    def set(self) -> None:
        """End the call. The library calls this at the time limit."""
        self._event.set()
        for watcher in tuple(self._watchers):
            watcher()

    @contextmanager
    def watched(self, watcher: Callable[[], object]) -> Iterator[None]:
        """Call ``watcher`` when the call ends inside this context, in the thread that ends it.

        If the call is over already, ``watcher`` runs at once. It may run more than once.
        """
        self._watchers.append(watcher)
        try:
            if self:
                watcher()
            yield
        finally:
            self._watchers.remove(watcher)


current: ContextVar[Cancellation | None] = ContextVar("rlm_cancellation", default=None)


def cancelled() -> bool:
    """Return whether the tool call that runs this code is over; False outside a call."""
    return bool(current.get())
