"""Locks that outlive ``fork()``: in the child every one of them is new.

A lock that another thread holds when the process is forked is never released in the child: that thread is not there.
The data behind it may be half changed then. In the child it is only used to say that Prolog is not there.
"""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import suppress
from types import TracebackType
from typing import Any

_locks: weakref.WeakSet[ForkLock] = weakref.WeakSet()


class ForkLock:
    """A reentrant lock, to be used with ``with``; free in a child that was forked."""

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock: Any = threading.RLock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(RuntimeError):  # a fork between: what this thread held is the parent's
            self._lock.release()

    def renew(self) -> None:
        """Make the lock new, as no thread of the child holds it."""
        self._lock = threading.RLock()


def _renew_all() -> None:
    for lock in list(_locks):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
