"""Cancel runs from another task, another thread or a signal handler."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import anyio
import anyio.lowlevel


class CancelToken:
    """A token that ends every run started with ``cancel=token``, now and later.

    ``token.cancel()`` is safe in any thread and any signal handler. It returns at once, and a second call is no
    error. A cancelled run returns a Completion with the values that it had bound.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may run while its own thread holds the lock
        self._cancelled = False
        self._scopes: dict[int, tuple[Any, anyio.CancelScope]] = {}

    @property
    def cancelled(self) -> bool:
        """Whether ``cancel()`` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """Cancel the scopes of all runs that have this token."""
        with self._lock:
            self._cancelled = True
            rows = list(self._scopes.items())
        for key, (loop, _) in rows:
            with suppress(RuntimeError):  # the loop is closed: the run has ended
                loop.call_soon_threadsafe(self._end, key)  # also wakes a loop that a signal interrupted

    def _end(self, key: int) -> None:
        """Cancel one scope, on its own event loop; its run may have ended already."""
        entry = self._scopes.get(key)
        if entry is not None:
            entry[1].cancel()

    @contextmanager
    def covers(self, scope: anyio.CancelScope) -> Iterator[None]:
        """Let ``cancel()`` cancel ``scope`` while the context is open."""
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
