"""Plain functions over the async core: one event loop in one daemon thread, for every caller.

``run_sync`` works wherever a thread may wait: in a script, in a worker thread, and inside a running event loop (a
notebook), which waits meanwhile. Ctrl-C while waiting cancels the work.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from rlm.errors import RunError

if TYPE_CHECKING:
    from anyio import CancelScope
    from anyio.from_thread import BlockingPortal

P = ParamSpec("P")
T = TypeVar("T")

FAREWELL_SECONDS = 5.0

_here = threading.local()


def run_sync(function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """The value of ``await function(*args, **kwargs)``, computed on the library's own event loop.

    Raises: what ``function`` raises. An interruption (KeyboardInterrupt) cancels the work, waits a few seconds
    until it has cleaned up, and goes on.
    """
    if not getattr(_here, "is_loop", False):
        return _shared().call(function, *args, **kwargs)
    own = _Loop("rlm-nested")  # a handler on our own loop: waiting there would wait for itself
    try:
        return own.call(function, *args, **kwargs)
    finally:
        own.stop()


def spawn(function: Callable[P, Awaitable[object]], /, *args: P.args, **kwargs: P.kwargs) -> None:
    """Start ``function(*args, **kwargs)`` as a task on the library's own event loop, and wait for nothing."""

    async def kept_apart() -> None:
        with contextlib.suppress(SystemExit, KeyboardInterrupt):  # a task's own; the loop goes on
            await function(*args, **kwargs)

    _shared().start(kept_apart)


class _Loop:
    """An event loop in a daemon thread: it never delays the end of the process."""

    def __init__(self, name: str) -> None:
        ready: Future[BlockingPortal] = Future()
        self._thread = threading.Thread(target=_serve, args=(ready,), name=name, daemon=True)
        self._thread.start()
        self._portal = ready.result()
        self._started: set[Any] = set()

    def call(self, function: Callable[..., Awaitable[T]], *args: Any, **kwargs: Any) -> T:
        work = _Work(function, args, kwargs)
        try:
            value = self._portal.start_task_soon(work.run).result()
        except CancelledError:
            raise RunError("cancelled", "the library's event loop ended") from None
        except BaseException:
            if not work.ended.is_set():  # it is this thread that was interrupted
                self._portal.start_task_soon(work.cancel)
                work.ended.wait(FAREWELL_SECONDS)
            raise
        if work.exit is not None:
            raise work.exit
        return cast(T, value)

    @property
    def is_alive(self) -> bool:
        """Whether it can still be given work."""
        return self._thread.is_alive()

    def start(self, function: Callable[[], Awaitable[object]]) -> None:
        if not getattr(_here, "is_loop", False):
            self._portal.start_task_soon(function)
            return
        import asyncio

        task = asyncio.ensure_future(function())  # from a task on this very loop
        self._started.add(task)
        task.add_done_callback(self._started.discard)

    def stop(self) -> None:
        self._portal.start_task_soon(self._portal.stop, True)
        self._thread.join(FAREWELL_SECONDS)


class _Work:
    """One call on a loop, and the way to end it."""

    def __init__(self, function: Callable[..., Awaitable[Any]], args: Any, kwargs: Any) -> None:
        self.ended = threading.Event()
        self.exit: SystemExit | KeyboardInterrupt | None = None
        self._call = partial(function, *args, **kwargs)
        self._scope: CancelScope | None = None

    async def run(self) -> Any:
        import anyio

        self._scope = anyio.CancelScope()
        try:
            with self._scope:
                return await self._call()
        except (SystemExit, KeyboardInterrupt) as problem:  # for the caller; the loop goes on
            self.exit = problem
        finally:
            self.ended.set()

    def cancel(self) -> None:
        """On the loop, where ``run`` has begun or never will."""
        if self._scope is None:
            self.ended.set()
        else:
            self._scope.cancel()


def _serve(ready: Future[BlockingPortal]) -> None:
    import anyio
    from anyio.from_thread import BlockingPortal

    async def main() -> None:
        async with BlockingPortal() as portal:
            ready.set_result(portal)
            await portal.sleep_until_stopped()

    _here.is_loop = True
    try:
        anyio.run(main)
    except BaseException as problem:
        if ready.done():
            raise
        ready.set_exception(problem)


_loop: _Loop | None = None
_guard = threading.Lock()


def _shared() -> _Loop:
    global _loop
    with _guard:
        if _loop is None or not _loop.is_alive:
            _loop = _Loop("rlm")
        return _loop


@atexit.register
def _stop() -> None:
    global _loop
    loop, _loop = _loop, None
    if loop is not None:
        loop.stop()


def _after_fork() -> None:
    """In a forked child the thread is gone: the next call starts one."""
    global _loop, _guard
    _loop, _guard = None, threading.Lock()
    _here.is_loop = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
