"""Host code under way: on the event loop, in a thread, or in a process; with a start, an end, and a way to end it.

All of it can be outlived. Work that does not end when it is told to is *abandoned*: whoever waited goes on, what it
gives later is dropped, and its slot stays taken until it ends. Threads are daemons: an abandoned one does not keep
the interpreter from exiting.
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
FAREWELL_SECONDS = (0.15, 0.1)  # together less than the half second in which a deadline must be answered


class ToolWork(abc.ABC):
    """One piece of host code. ``done`` is set on the loop; then ``result`` or ``problem`` is there."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.done = anyio.Event()
        self.result: Any = None
        self.problem: BaseException | None = None
        self.on_end: Callable[[], None] = lambda: None

    @abc.abstractmethod
    def start(self) -> None:
        """Begin; called on the loop."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Ask it to end; may be called again."""

    def value(self) -> Any:
        """The result. Raises: what the work raised."""
        if self.problem is not None:
            raise self.problem
        return self.result

    def answer(self) -> Any:
        """As ``value``, for a host's word: what would end a process or an event loop (SystemExit) is an error here."""
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
    """A coroutine, in a task of its own: one that will not be cancelled can be left behind."""

    def __init__(self, name: str, function: Callable[[], Awaitable[Any]]) -> None:
        super().__init__(name)
        self._function = function
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name=self.name)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()  # once, not at every await as a cancel scope does: what tidies up may do so

    async def _run(self) -> None:
        result: Any = None
        problem: BaseException | None = None
        try:
            result = await self._function()
        except asyncio.CancelledError:
            problem = StoppedItself("it was cancelled")
        except BaseException as raised:  # noqa: BLE001 - whatever it is, it belongs to whoever waits
            problem = raised
        self._end(result, problem)
        if isinstance(problem, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
            raise problem  # Ctrl-C on the host's own loop is the host's; elsewhere it would only end our loop


class ThreadWork(ToolWork):
    """A function in a daemon thread, in a copy of this context. ``stop`` sets the cancellation that it can see."""

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
        except RuntimeError as problem:  # the system has no thread left
            self._end(None, problem)

    def stop(self) -> None:
        self._cancellation.set()

    def _run(self) -> None:
        result: Any = None
        problem: BaseException | None = None
        try:
            result = self._function()
        except BaseException as raised:  # noqa: BLE001 - whatever it is, it belongs to whoever waits
            problem = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(self._end, result, problem)


class StoppedItself(Exception):
    """Host code that was cancelled, that cancelled itself, or that would have ended more than itself."""


async def supervise(work: ToolWork, until: float) -> bool:
    """Run work until its end, or until an absolute time; whether it ended in time.

    Afterwards, and where this call is cancelled itself, the work is told to end and has a moment to do it; if
    ``work.done`` is not set then, it is abandoned.
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
        slots: how many may run at once. Coroutines take none.
    """

    def __init__(self, slots: int = DEFAULT_SLOTS) -> None:
        self._slots = slots
        self._limiter = anyio.CapacityLimiter(slots)
        self._abandoned: dict[ToolWork, None] = {}
        self._levels: dict[int, Workers] = {}

    def at(self, depth: int) -> Workers:
        """The slots for handlers of agents at one depth of the tree. Each depth has its own, as many as all others: a
        handler that waits for a subagent never keeps a handler of that subagent from starting."""
        if depth not in self._levels:
            self._levels[depth] = Workers(self._slots)
        return self._levels[depth]

    @property
    def abandoned(self) -> tuple[str, ...]:
        """The names of work that was left behind and still runs, at whatever depth."""
        deeper = [name for level in self._levels.values() for name in level.abandoned]
        return (*(work.name for work in self._abandoned), *deeper)

    @property
    def free(self) -> int:
        """Slots that nothing runs in."""
        return int(self._limiter.available_tokens)

    async def slot(self, work: ToolWork, until: float) -> bool:
        """Take a slot for the work, which gives it back when it ends; False where none is free until then."""
        with anyio.CancelScope(deadline=until):
            await self._limiter.acquire_on_behalf_of(work)
            work.on_end = lambda: self._limiter.release_on_behalf_of(work)
            return True
        return False

    async def run(self, work: ToolWork, until: float) -> bool:
        """As ``supervise``, and keeps what was abandoned."""
        try:
            return await supervise(work, until)
        finally:
            if not work.done.is_set():
                self._keep(work)

    def _keep(self, work: ToolWork) -> None:
        given_back = work.on_end

        def end() -> None:
            del self._abandoned[work]
            given_back()

        self._abandoned[work] = None
        work.on_end = end
