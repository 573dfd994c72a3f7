"""The replay barrier: a branch that reaches the end of its recording blocks here until all branches are blocked.

Branches of an interrupted run end at different places. A replay reaches these places in another order. So it must not
end before every branch has reached its own place. For example, a run was cancelled while two children waited for
replies: in its replay the first child blocks here until the second child has sent its request, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import anyio
import anyio.lowlevel
import anyio.to_thread

from rlm.errors import RlmError

STILL_CYCLES = 300
"""Cycles of the event loop without progress that count as a standstill. An agent needs a few cycles between two steps,
and a few more for each level of plans that end."""

LOOK_SECONDS = 0.002
"""Seconds between two checks whether a thread is still at work."""


@dataclass(eq=False)
class BarrierPoint:
    """A blocked branch of a replay.

    ``recorded_error`` is the error that ended the recorded branch at ``call``, and ``place`` is the number of its
    event. None: the recorded branch has no such error.
    """

    call: str
    recorded_error: RlmError | None
    place: int
    error: RlmError | None = None


class ReplayBarrier:
    """The blocked branches of a replay.

    Args:
        on_standstill: called when all branches are blocked and none has a recorded error. It ends the replay, or
            returns the error that the first blocked branch raises.
    """

    def __init__(self, on_standstill: Callable[[BarrierPoint], RlmError | None]) -> None:
        self._on_standstill = on_standstill
        self._points: list[BarrierPoint] = []
        self._watched = False
        self._turn = anyio.Event()
        self._progress = 0

    def record_progress(self) -> None:
        """Count one step of progress of any branch."""
        self._progress += 1

    async def wait(self, call: str, recorded_error: RlmError | None = None, place: int = 0) -> NoReturn:
        """Block this branch until no branch makes progress.

        Raises: ``recorded_error`` in the branch with the first recorded error; else the error of ``on_standstill``.
        """
        point = BarrierPoint(call, recorded_error, place)
        self._points.append(point)
        self.record_progress()
        try:
            while point.error is None:
                if self._watched:
                    await self._turn.wait()
                else:
                    await self._watch()
        finally:
            self._points.remove(point)
        raise point.error

    async def _watch(self) -> None:
        """Wait for a standstill on behalf of all blocked branches, and give one of them its error."""
        self._watched = True
        try:
            await self._wait_for_standstill()
            recorded = [point for point in self._points if point.recorded_error is not None]
            if recorded:
                first = min(recorded, key=lambda point: point.place)
                first.error = first.recorded_error
            else:
                self._points[0].error = self._on_standstill(self._points[0])
        finally:
            self._watched = False
            self._turn.set()
            self._turn = anyio.Event()

    async def _wait_for_standstill(self) -> None:
        threads = anyio.to_thread.current_default_thread_limiter()
        still_cycles = 0
        while still_cycles < STILL_CYCLES:
            before = self._progress
            await anyio.lowlevel.checkpoint()
            still_cycles += 1
            if threads.borrowed_tokens:
                await anyio.sleep(LOOK_SECONDS)
                still_cycles = 0
            if self._progress != before:
                still_cycles = 0
