"""Runs in the background, with pools of limited size.

Three limits are independent. ``wait(timeout)`` limits the wait of one caller, ``budget.time_limit`` limits the work,
and ``cancel()`` ends the work. For example, a run with a time limit of 60 seconds goes on after ``wait(1)`` raised
AwaitTimeout. A future is a task on the library's own event loop: a thousand futures need no thread each.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import enum
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import Any

from rlm.agent.agent_state import current_agent
from rlm.agent.options import Options
from rlm.api.complete import acomplete
from rlm.errors import AwaitTimeout, ConfigurationError, RunError
from rlm.model.arguments import instance, several
from rlm.sending.cancel import CancelToken
from rlm.sending.completion import Completion
from rlm.sync import spawn
from rlm.tools.cancellation import current


class FutureStatus(enum.StrEnum):
    """``waiting`` for a place in the pool, ``running``, or ``done``, with any outcome."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"


class Future:
    """One run in the background. Its outcome is a Completion, and every wait returns the same one.

    ``await future`` waits without a limit. All methods are safe in any thread.
    """

    def __init__(self, pool: Pool, query: str, context: Any, options: dict[str, Any]) -> None:
        self._pool = pool
        self._call = (query, context, options)
        self._token: CancelToken = options.get("cancel") or CancelToken()
        self._outcome: concurrent.futures.Future[Completion] = concurrent.futures.Future()
        self._status = FutureStatus.WAITING

    def __repr__(self) -> str:
        return f"<Future {self.status}: {self._call[0][:40]!r}>"

    @property
    def status(self) -> FutureStatus:
        """The current status."""
        return FutureStatus.DONE if self._outcome.done() else self._status

    @property
    def done(self) -> bool:
        """Whether the outcome exists."""
        return self._outcome.done()

    def cancel(self) -> None:
        """End the work.

        The outcome is ``partial`` with ``cancelled``, and holds the values bound so far. A future that waits for its
        place ends at once. A future that is done does not change.
        """
        self._token.cancel()
        self._pool._withdraw(self)

    def result(self, timeout: float | None = None) -> Completion:
        """Return the outcome; block for at most ``timeout`` seconds.

        Raises: AwaitTimeout: only the wait ends, and the work goes on. ConfigurationError and other errors of the
        host's settings.
        """
        try:
            return self._outcome.result(timeout)
        except concurrent.futures.TimeoutError:
            if self._outcome.done():
                raise
            raise self._late(timeout) from None

    async def wait(self, timeout: float | None = None) -> Completion:  # noqa: ASYNC109 - it ends the waiting only
        """Return the outcome as ``result``, without blocking the event loop. Cancelling this wait does not cancel the
        work."""
        if not self._outcome.done():
            waiting = asyncio.shield(asyncio.wrap_future(self._outcome))
            try:
                return await asyncio.wait_for(waiting, timeout)
            except TimeoutError:
                if not self._outcome.done():
                    raise self._late(timeout) from None
        return self._outcome.result()

    def __await__(self) -> Any:
        return self.wait().__await__()

    def _late(self, timeout: float | None) -> AwaitTimeout:
        message = f"no outcome after {timeout:g} s of waiting; the work goes on"
        return AwaitTimeout("await_timeout", message, {"timeout": timeout, "status": self.status.value})

    async def _run(self) -> None:
        query, context, options = self._call
        current_agent.set(None)  # a background run belongs to no agent and no call
        current.set(None)
        self._status = FutureStatus.RUNNING
        try:
            outcome = await acomplete(query, context, **{**options, "cancel": self._token})
        except BaseException as problem:
            self._outcome.set_exception(problem if isinstance(problem, Exception) else _ended())
            if not isinstance(problem, Exception):
                raise
        else:
            self._outcome.set_result(outcome)


def _check_number(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigurationError("invalid_option", f"{name}: a number of at least {least} is wanted, not {value!r}")
    return value


class Pool:
    """Limits how many futures run, and how many wait for a place.

    Args:
        running: the most futures that run concurrently.
        waiting: the most futures that wait. ``submit`` refuses the next one (``pool_full``), so that the host slows
            down.
    """

    def __init__(self, running: int = 32, waiting: int = 10_000) -> None:
        self._lock = threading.Lock()
        self._places = _check_number("running", running, 1)
        self._most = _check_number("waiting", waiting, 0)
        self._queue: deque[Future] = deque()
        self._running = 0

    @property
    def running(self) -> int:
        """The number of running futures."""
        return self._running

    @property
    def waiting(self) -> int:
        """The number of waiting futures."""
        return len(self._queue)

    def submit(self, query: str, context: Any = None, **options: Any) -> Future:
        """Return a future for a run, which starts as soon as the pool has a place.

        Args: as ``complete``.

        Raises: RunError ``pool_full``; ConfigurationError for invalid options, before anything starts.
        """
        Options.of(**options)
        future = Future(self, query, context, options)
        with self._lock:
            if self._running >= self._places and len(self._queue) >= self._most:
                detail = {"running": self._running, "waiting": len(self._queue)}
                raise RunError("pool_full", f"{self._running} runs are running and {len(self._queue)} wait", detail)
            self._queue.append(future)
        self._fill()
        return future

    def _fill(self) -> None:
        while True:
            with self._lock:
                if self._running >= self._places or not self._queue:
                    return
                future = self._queue.popleft()
                self._running += 1
                future._status = FutureStatus.RUNNING
            spawn(self._run, future)

    def _withdraw(self, future: Future) -> None:
        """Let a cancelled future that still waits end without a place."""
        with self._lock:
            if future not in self._queue:
                return
            self._queue.remove(future)
        spawn(future._run)

    async def _run(self, future: Future) -> None:
        try:
            await future._run()
        finally:
            with self._lock:
                self._running -= 1
            self._fill()


_pool = Pool()


def submit(query: str, context: Any = None, *, pool: Pool | None = None, **options: Any) -> Future:
    """Start a run in the background; see ``Pool.submit``. The default pool runs 32 futures concurrently."""
    return (_pool if pool is None else instance("pool", pool, Pool)).submit(query, context, **options)


async def gather(*futures: Future, timeout: float | None = None) -> list[Completion]:  # noqa: ASYNC109 - as in wait
    """Return all outcomes, in the order of the futures. Raises: AwaitTimeout; the runs go on."""
    for future in futures:
        instance("futures", future, Future)
    return await _all(futures) if timeout is None else await _all_in_time(futures, timeout)


async def as_completed(futures: Iterable[Future]) -> AsyncIterator[Future]:
    """Yield each future as soon as it is done."""
    requested = [instance("futures", future, Future) for future in several("futures", futures)]
    left = {asyncio.ensure_future(_when_done(future)) for future in requested}
    try:
        while left:
            ended, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                yield task.result()
    finally:
        for task in left:
            task.cancel()


async def _all(futures: Iterable[Future]) -> list[Completion]:
    return list(await asyncio.gather(*(future.wait() for future in futures)))


async def _all_in_time(futures: tuple[Future, ...], timeout: float) -> list[Completion]:  # noqa: ASYNC109
    try:
        return await asyncio.wait_for(_all(futures), timeout)
    except TimeoutError:
        late = [future for future in futures if not future.done]
        if not late:
            return await _all(futures)
        message = f"{len(late)} of {len(futures)} runs had no outcome after {timeout:g} s"
        raise AwaitTimeout("await_timeout", message, {"timeout": timeout}) from None


async def _when_done(future: Future) -> Future:
    with contextlib.suppress(Exception):  # the future holds the error
        await future.wait()
    return future


def _ended() -> RunError:
    return RunError("cancelled", "the library's event loop ended")
