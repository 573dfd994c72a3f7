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
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

P = ParamSpec("P")
T = TypeVar("T")

FAREWELL_SECONDS = 5.0

_guard = threading.Lock()
_portal: BlockingPortal | None = None
_open = contextlib.ExitStack()
_here = threading.local()


def run_sync(function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """The value of ``await function(*args, **kwargs)``, computed on the library's own event loop.

    Raises: what ``function`` raises. An interruption (KeyboardInterrupt) cancels the work, waits a few seconds
    until it has cleaned up, and goes on.
    """
    if getattr(_here, "is_portal", False):  # a handler on our own loop: waiting there would wait for itself
        return _in_new_thread(function, args, kwargs)
    return _on(_running_portal(), function, args, kwargs)


def _on(portal: BlockingPortal, function: Callable[..., Awaitable[T]], args: Any, kwargs: Any) -> T:
    ended = threading.Event()

    async def work() -> T:
        try:
            return await function(*args, **kwargs)
        finally:
            ended.set()

    future = portal.start_task_soon(work)
    try:
        return future.result()
    except CancelledError:
        raise
    except BaseException:
        if not future.done():
            future.cancel()
            ended.wait(FAREWELL_SECONDS)
        raise


def _in_new_thread(function: Callable[..., Awaitable[T]], args: Any, kwargs: Any) -> T:
    from anyio.from_thread import start_blocking_portal

    with start_blocking_portal(name="rlm-nested") as portal:
        portal.call(_mark)
        return _on(portal, function, args, kwargs)


def _running_portal() -> BlockingPortal:
    global _portal
    portal = _portal
    if portal is not None:
        return portal
    from anyio.from_thread import start_blocking_portal

    with _guard:
        if _portal is None:
            _portal = _open.enter_context(start_blocking_portal(name="rlm"))
            _portal.call(_mark)
        return _portal


def _mark() -> None:
    _here.is_portal = True


@atexit.register
def _stop() -> None:
    global _portal
    with _guard:
        _portal = None
        _open.close()


def _after_fork() -> None:
    """In a forked child the thread is gone: the next call starts one."""
    global _portal, _guard, _open
    _portal = None
    _guard = threading.Lock()
    _open.pop_all()
    _open = contextlib.ExitStack()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
