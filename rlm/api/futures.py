"""Runs in the background: started now, awaited whenever, and as often as one likes.

Three things are kept apart: how long a caller waits (``wait(timeout)``: it ends the waiting and nothing else), how
long the work may take (``budget.time_limit``), and who ends it (``cancel()``). A future is a task on the library's own
event loop: a thousand of them cost no thread each.
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

from rlm.agent.operations import current_agent
from rlm.agent.options import Options
from rlm.api.complete import acomplete
from rlm.errors import AwaitTimeout, ConfigurationError, RunError
from rlm.model.arguments import instance, several
from rlm.sending.cancel import CancelToken
from rlm.sending.completion import Completion
from rlm.sync import spawn
from rlm.tools.cancellation import current


class FutureStatus(enum.StrEnum):
    """``waiting`` for a place in the pool, ``running``, or ``done`` (whatever the outcome)."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"


class Future:
    """One run in the background. Its outcome is a Completion, and every wait gives the same one.

    Awaiting it (``await future``) waits without a limit. Safe in any thread.
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
        """Where it is now."""
        return FutureStatus.DONE if self._outcome.done() else self._status

    @property
    def done(self) -> bool:
        """Whether there is an outcome."""
        return self._outcome.done()

    def cancel(self) -> None:
        """End the work. What it had bound is in the outcome, which is ``partial`` with ``cancelled``; one that still
        waits for its place ends at once. Nothing happens to one that is done."""
        self._token.cancel()
        self._pool._withdraw(self)

    def result(self, timeout: float | None = None) -> Completion:
        """The outcome, for a caller that waits at most ``timeout`` seconds.

        Raises: AwaitTimeout: nobody waits any longer, and the work goes on; what was wrong with the host's word.
        """
        try:
            return self._outcome.result(timeout)
        except concurrent.futures.TimeoutError:
            if self._outcome.done():
                raise
            raise self._late(timeout) from None

    async def wait(self, timeout: float | None = None) -> Completion:  # noqa: ASYNC109 - it ends the waiting only
        """As ``result``, without holding up the event loop. Cancelling this wait ends the waiting only."""
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
        said = f"no outcome after {timeout:g} s of waiting; the work goes on"
        return AwaitTimeout("await_timeout", said, {"timeout": timeout, "status": self.status.value})

    async def _run(self) -> None:
        query, context, options = self._call
        current_agent.set(None)  # what runs in the background is nobody's part, wherever it was submitted
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


def _number(name: str, given: Any, least: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < least:
        raise ConfigurationError("invalid_option", f"{name}: a number of at least {least} is wanted, not {given!r}")
    return given


class Pool:
    """How many futures run at the same moment, and how many may wait for that.

    Args:
        running: the most that run at once.
        waiting: the most that wait; ``submit`` refuses the next one (``pool_full``), which is the host's sign to
            slow down.
    """

    def __init__(self, running: int = 32, waiting: int = 10_000) -> None:
        self._lock = threading.Lock()
        self._places = _number("running", running, 1)
        self._most = _number("waiting", waiting, 0)
        self._queue: deque[Future] = deque()
        self._running = 0

    @property
    def running(self) -> int:
        """How many run now."""
        return self._running

    @property
    def waiting(self) -> int:
        """How many wait now."""
        return len(self._queue)

    def submit(self, query: str, context: Any = None, **options: Any) -> Future:
        """Start a run when there is a place for it.

        Args: as ``complete``.

        Raises: RunError ``pool_full``; ConfigurationError for options that cannot be, before anything starts.
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
        """Let one that waits, and was cancelled, come to its end without a place."""
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
    """Start a run in the background; see ``Pool.submit``. Without a pool of one's own, 32 run at once."""
    return (_pool if pool is None else instance("pool", pool, Pool)).submit(query, context, **options)


async def gather(*futures: Future, timeout: float | None = None) -> list[Completion]:  # noqa: ASYNC109 - as in wait
    """All outcomes, in the order of the futures. Raises: AwaitTimeout; none of them is ended by that."""
    for future in futures:
        instance("futures", future, Future)
    return await _all(futures) if timeout is None else await _in_time(futures, timeout)


async def as_completed(futures: Iterable[Future]) -> AsyncIterator[Future]:
    """The futures, each as soon as it is done."""
    wanted = [instance("futures", future, Future) for future in several("futures", futures)]
    left = {asyncio.ensure_future(_done(future)) for future in wanted}
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


async def _in_time(futures: tuple[Future, ...], timeout: float) -> list[Completion]:  # noqa: ASYNC109
    try:
        return await asyncio.wait_for(_all(futures), timeout)
    except TimeoutError:
        late = [future for future in futures if not future.done]
        if not late:
            return await _all(futures)
        said = f"{len(late)} of {len(futures)} runs had no outcome after {timeout:g} s"
        raise AwaitTimeout("await_timeout", said, {"timeout": timeout}) from None


async def _done(future: Future) -> Future:
    with contextlib.suppress(Exception):  # it is in the future, for whoever asks
        await future.wait()
    return future


def _ended() -> RunError:
    return RunError("cancelled", "the library's event loop ended")
