"""Ending a run from outside: from another task, another thread or a signal handler."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel


class CancelToken:
    """``token.cancel()`` ends every run that was started with ``cancel=token``, now and later.

    Safe to call from any thread, and more than once. The run comes back with what it had bound.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._scopes: dict[int, tuple[int, Any, anyio.CancelScope]] = {}

    @property
    def cancelled(self) -> bool:
        """Whether ``cancel`` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """End the work."""
        with self._lock:
            self._cancelled = True
            scopes = list(self._scopes.values())
        for thread, loop, scope in scopes:
            if thread == threading.get_ident():
                scope.cancel()
            else:
                try:
                    anyio.from_thread.run_sync(scope.cancel, token=loop)
                except (RuntimeError, anyio.RunFinishedError):  # the loop ended meanwhile: so did the run
                    continue

    @contextmanager
    def covers(self, scope: anyio.CancelScope) -> Iterator[None]:
        """While this lasts, ``cancel`` cancels ``scope``."""
        key = id(scope)
        with self._lock:
            self._scopes[key] = (threading.get_ident(), anyio.lowlevel.current_token(), scope)
        if self._cancelled:
            scope.cancel()
        try:
            yield
        finally:
            with self._lock:
                del self._scopes[key]
