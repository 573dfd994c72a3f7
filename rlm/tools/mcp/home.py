"""The event loop of one connection, in a daemon thread of its own.

A connection outlives the loops of the runs that use it. A server that floods its connection keeps only this loop busy.
Any loop may call functions on it, and a cancelled caller cancels its call here.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

T = TypeVar("T")


class Gone(Exception):
    """The loop has ended, or belongs to the process that this one was forked from."""


class Home:
    """A loop that runs ``main`` and ends with it. Calls that still run at the end are cancelled."""

    def __init__(self, name: str, main: Callable[[], Awaitable[None]]) -> None:
        ready: Future[BlockingPortal] = Future()
        self._process = os.getpid()
        self._thread = threading.Thread(target=_serve, args=(ready, main), name=name, daemon=True)
        self._thread.start()
        self._portal = ready.result()

    @property
    def here(self) -> bool:
        """Return whether this process has the loop: False in a fork."""
        return self._process == os.getpid()

    async def call(self, function: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Run ``await function(*args)`` on the loop and return its value.

        Raises:
            Gone: the loop has ended. Exceptions of ``function`` are raised too.
        """
        if not self.here:
            raise Gone
        try:
            future = self._portal.start_task_soon(function, *args)
        except RuntimeError:  # the portal is closed
            raise Gone from None
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if future.cancelled() and (task is None or not task.cancelling()):
                raise Gone from None  # the loop cancelled it, not the caller
            raise

    def post(self, function: Callable[[], None]) -> None:
        """Start a function on the loop, and return at once. It has no effect after the end of the loop."""
        with contextlib.suppress(RuntimeError):
            if self.here:
                self._portal.start_task_soon(function)

    def join(self, seconds: float) -> bool:
        """Wait at most ``seconds`` for the end of the thread, and return whether it ended."""
        if not self.here or threading.current_thread() is self._thread:
            return True
        self._thread.join(seconds)
        return not self._thread.is_alive()


def _serve(ready: Future[BlockingPortal], main: Callable[[], Awaitable[None]]) -> None:
    import anyio
    from anyio.from_thread import BlockingPortal

    async def serve() -> None:
        async with BlockingPortal() as portal:
            ready.set_result(portal)
            try:
                await main()
            finally:
                with anyio.CancelScope(shield=True):
                    await portal.stop(cancel_remaining=True)

    try:
        anyio.run(serve)
    except BaseException as problem:
        if ready.done():
            raise
        ready.set_exception(problem)
