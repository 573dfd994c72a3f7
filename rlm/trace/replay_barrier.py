"""Where a replay waits because the recorded run came no further, and how it is seen that nothing moves any more.

What worked side by side when a run was ended had come as far as it had come. A replay goes through the same things in
another order, so it must not end before everything has come that far: who has waits here, until nobody else moves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import anyio
import anyio.lowlevel
import anyio.to_thread

from rlm.errors import RlmError

STILL = 300
"""Turns of the event loop in which nobody moved: between two moves of an agent there are a few, and a few more for each
level of plans that end."""

LOOK_SECONDS = 0.002
"""How often it is looked whether a thread is still at work."""


@dataclass(eq=False)
class BarrierPoint:
    """Somebody who waits. ``ends`` is what the recorded run was told there, and ``place`` when; None where it never
    came there."""

    call: str
    ends: RlmError | None
    place: int
    raises: RlmError | None = None


class ReplayBarrier:
    """Those who wait, and what becomes of them.

    Args:
        stuck: called when nobody moves and none of them can be told how it ends; it ends the replay, or gives the error
            that the first of them raises.
    """

    def __init__(self, stuck: Callable[[BarrierPoint], RlmError | None]) -> None:
        self._stuck = stuck
        self._halts: list[BarrierPoint] = []
        self._watched = False
        self._turn = anyio.Event()
        self._moves = 0

    def moved(self) -> None:
        """Somebody came somewhere."""
        self._moves += 1

    async def wait(self, call: str, ends: RlmError | None = None, place: int = 0) -> NoReturn:
        """Wait until nobody moves. Raises: ``ends``, for the first of those who have one; what ``stuck`` gave."""
        halt = BarrierPoint(call, ends, place)
        self._halts.append(halt)
        self.moved()
        try:
            while halt.raises is None:
                if self._watched:
                    await self._turn.wait()
                else:
                    await self._watch()
        finally:
            self._halts.remove(halt)
        raise halt.raises

    async def _watch(self) -> None:
        """One of those who wait looks for all."""
        self._watched = True
        try:
            await self._stillness()
            told = [halt for halt in self._halts if halt.ends is not None]
            if told:
                first = min(told, key=lambda halt: halt.place)
                first.raises = first.ends
            else:
                self._halts[0].raises = self._stuck(self._halts[0])
        finally:
            self._watched = False
            self._turn.set()
            self._turn = anyio.Event()

    async def _stillness(self) -> None:
        threads = anyio.to_thread.current_default_thread_limiter()
        still = 0
        while still < STILL:
            before = self._moves
            await anyio.lowlevel.checkpoint()
            still += 1
            if threads.borrowed_tokens:
                await anyio.sleep(LOOK_SECONDS)
                still = 0
            if self._moves != before:
                still = 0
