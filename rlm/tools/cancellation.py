"""How a handler learns that its time is over.

A coroutine is cancelled and a process is killed. A thread can only be told: a handler that takes long asks now and
then, by ``rlm.cancelled()`` anywhere in its thread, or by a parameter annotated ``rlm.Cancellation``, which no model
sees.
"""

from __future__ import annotations

import threading
from contextvars import ContextVar


class Cancelled(Exception):
    """Raised by ``Cancellation.check`` to leave a handler whose time is over."""


class Cancellation:
    """Says whether the call is over. Set once, by the library; safe in any thread."""

    def __init__(self) -> None:
        self._event = threading.Event()

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


current: ContextVar[Cancellation | None] = ContextVar("rlm_cancellation", default=None)


def cancelled() -> bool:
    """Whether the tool call that this code runs in is over; False outside a call."""
    return bool(current.get())
