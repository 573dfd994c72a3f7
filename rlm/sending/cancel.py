"""Ending a run from outside: from another task, another thread or a signal handler."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import anyio
import anyio.lowlevel


class CancelToken:
    """``token.cancel()`` ends every run that was started with ``cancel=token``, now and later.

    Safe to call from any thread or signal handler, and more than once; it waits for nothing. The run comes back with
    what it had bound.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may come while its own thread holds it
        self._cancelled = False
        self._scopes: dict[int, tuple[Any, anyio.CancelScope]] = {}

    @property
    def cancelled(self) -> bool:
        """Whether ``cancel`` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """End the work."""
        with self._lock:
            self._cancelled = True
            rows = list(self._scopes.items())
        for key, (loop, _) in rows:
            with suppress(RuntimeError):  # the loop was closed meanwhile: the run has ended
                loop.call_soon_threadsafe(self._end, key)  # which also wakes a loop that a signal came to

    def _end(self, key: int) -> None:
        """On the loop of a run that may have ended."""
        found = self._scopes.get(key)
        if found is not None:
            found[1].cancel()

    @contextmanager
    def covers(self, scope: anyio.CancelScope) -> Iterator[None]:
        """While this lasts, ``cancel`` cancels ``scope``."""
        key = id(scope)
        with self._lock:
            self._scopes[key] = (anyio.lowlevel.current_token().native_token, scope)
        if self._cancelled:
            scope.cancel()
        try:
            yield
        finally:
            with self._lock:
                del self._scopes[key]
