"""Running host code, on the event loop, in a thread, or in a process. Work can be started, awaited and stopped.

Work that does not end after ``stop`` is *abandoned*: the caller goes on, a later result is dropped, and the slot stays
taken until the work ends. For example, a thread in a long C call cannot be stopped. Threads are daemons, so an
abandoned thread does not keep the interpreter from exiting.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from rlm.errors import exception_text
from rlm.tools.cancellation import Cancellation, current

DEFAULT_SLOTS = 32
FAREWELL_SECONDS = (0.15, 0.1)  # their sum stays below half a second, the limit for an outcome after a deadline


class ToolWork(abc.ABC):
    """One run of host code. When it ends, ``result`` or ``problem`` is stored and ``done`` is set on the loop."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.done = anyio.Event()
        self.result: Any = None
        self.problem: BaseException | None = None
        self.on_end: Callable[[], None] = lambda: None

    @abc.abstractmethod
    def start(self) -> None:
        """Start the work. The caller is on the loop."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Ask the work to end. It may be called again."""

    def value(self) -> Any:
        """Return the result, or raise the exception of the work."""
        if self.problem is not None:
            raise self.problem
        return self.result

    def answer(self) -> Any:
        """Return the result as ``value`` does. An exception that ends a process (SystemExit) becomes StoppedItself."""
        try:
            return self.value()
        except Exception:
            raise
        except BaseException as problem:  # noqa: BLE001 - a host's code
            raise StoppedItself(exception_text(problem)) from None

    def _end(self, result: Any, problem: BaseException | None) -> None:
        self.result, self.problem = result, problem
        self.done.set()
        self.on_end()


class LoopWork(ToolWork):
    """A coroutine in a task of its own, so that it can be abandoned if it ignores cancellation."""

    def __init__(self, name: str, function: Callable[[], Awaitable[Any]]) -> None:
        super().__init__(name)
        self._function = function
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name=self.name)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()  # once, not at every await as a cancel scope does: clean-up code may await

    async def _run(self) -> None:
        result: Any = None
        problem: BaseException | None = None
        try:
            result = await self._function()
        except asyncio.CancelledError:
            problem = StoppedItself("it was cancelled")
        except BaseException as raised:  # noqa: BLE001 - every exception goes to the waiting caller
            problem = raised
        self._end(result, problem)
        if isinstance(problem, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            raise problem  # Ctrl-C on the host's own loop belongs to the host; elsewhere it would only end our loop


class ThreadWork(ToolWork):
    """A function in a daemon thread, with a copy of this context. ``stop`` sets its cancellation."""

    def __init__(self, name: str, function: Callable[[], Any], cancellation: Cancellation | None = None) -> None:
        super().__init__(name)
        self._function = function
        self._cancellation = Cancellation() if cancellation is None else cancellation

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        context = contextvars.copy_context()
        context.run(current.set, self._cancellation)
        thread = threading.Thread(target=context.run, args=(self._run,), name=self.name, daemon=True)
        try:
            thread.start()
        except RuntimeError as problem:  # the system cannot start another thread
            self._end(None, problem)

    def stop(self) -> None:
        self._cancellation.set()

    def _run(self) -> None:
        result: Any = None
        problem: BaseException | None = None
        try:
            result = self._function()
        except BaseException as raised:  # noqa: BLE001 - every exception goes to the waiting caller
            problem = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed: no caller waits
            self._loop.call_soon_threadsafe(self._end, result, problem)


class StoppedItself(Exception):
    """Host code was cancelled, cancelled itself, or raised an exception that ends a process."""


async def supervise(work: ToolWork, until: float) -> bool:
    """Run work until it ends or an absolute time comes, and return whether it ended in time.

    At that time, or if this call is cancelled, the work is asked to end and has 0.25 seconds for it. If ``work.done``
    is not set then, the work is abandoned.
    """
    work.start()
    try:
        with anyio.CancelScope(deadline=until):
            await work.done.wait()
            return True
    finally:
        if not work.done.is_set():
            await _farewell(work)
    return False


async def _farewell(work: ToolWork) -> None:
    with anyio.CancelScope(shield=True):
        for seconds in FAREWELL_SECONDS:
            work.stop()
            with anyio.move_on_after(seconds):
                await work.done.wait()
                return


class Workers:
    """Slots for the sync handlers of a run; an abandoned handler keeps its slot until it ends.

    Args:
        slots: the number of handlers that may run at once. Coroutines take no slot.
    """

    def __init__(self, slots: int = DEFAULT_SLOTS) -> None:
        self._slots = slots
        self._limiter = anyio.CapacityLimiter(slots)
        self._abandoned: dict[ToolWork, None] = {}
        self._levels: dict[int, Workers] = {}

    def at(self, depth: int) -> Workers:
        """Return the slots for handlers of agents at one depth of the tree.

        Each depth has the same number of slots of its own. So a handler that waits for a subagent never blocks a
        handler of that subagent.
        """
        if depth not in self._levels:
            self._levels[depth] = Workers(self._slots)
        return self._levels[depth]

    @property
    def abandoned(self) -> tuple[str, ...]:
        """Return the names of abandoned work that still runs, at every depth."""
        deeper = [name for level in self._levels.values() for name in level.abandoned]
        return (*(work.name for work in self._abandoned), *deeper)

    @property
    def free(self) -> int:
        """Return the number of free slots."""
        return int(self._limiter.available_tokens)

    async def slot(self, work: ToolWork, until: float) -> bool:
        """Take a slot for the work until it ends. Return False if no slot is free before ``until``."""
        with anyio.CancelScope(deadline=until):
            await self._limiter.acquire_on_behalf_of(work)
            work.on_end = lambda: self._limiter.release_on_behalf_of(work)
            return True
        return False

    async def run(self, work: ToolWork, until: float) -> bool:
        """Run work as ``supervise`` does, and record it if it is abandoned."""
        try:
            return await supervise(work, until)
        finally:
            if not work.done.is_set():
                self._keep(work)

    def _keep(self, work: ToolWork) -> None:
        release_slot = work.on_end

        def end() -> None:
            del self._abandoned[work]
            release_slot()

        self._abandoned[work] = None
        work.on_end = end
