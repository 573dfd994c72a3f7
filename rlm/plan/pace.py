"""The pace of plans: the steps that are taken in one turn of the event loop, and the steps that a plan may take at all.

Steps that call nothing run on the event loop. They are taken in slices. Between two slices, of one plan or of two,
the loop has its turn: other tasks run, and deadlines and cancellations take effect.
"""

from __future__ import annotations

from typing import Any, NoReturn

import anyio
import anyio.lowlevel

from rlm.errors import RlmError, RunError
from rlm.plan.state import PlanState, ReplayLimit

SLICE = 125
"""The most steps of all plans between two turns of the event loop."""

SLICE_SECONDS = 0.005
"""The target seconds of a slice. After a longer one (large values, a trace, a slow machine) the next slice is shorter.
"""


class Turns:
    """Shares one event loop among its plans. Between two turns of the loop they take ``SLICE`` steps together at most.

    The steps per turn fall below ``SLICE`` where a slice takes longer than ``SLICE_SECONDS``.
    """

    def __init__(self) -> None:
        self._lock = anyio.Lock()
        self._taken = 0
        self._slice = SLICE
        self._loop: Any = anyio.lowlevel.current_token().native_token

    @classmethod
    def here(cls) -> Turns:
        """Return the turns of the running event loop."""
        turns = _turns.get(None)
        if turns is None:
            turns = cls()
            _turns.set(turns)
        return turns

    def left(self) -> int:
        """Return the steps that may be taken now, at least 1, so that every plan advances."""
        return max(1, self._slice - self._taken)

    def took(self, steps: int, seconds: float) -> None:
        """Count steps and the seconds that they took."""
        if self._taken == 0 and steps > 0:
            self._loop.call_soon(self._begin)  # runs in the next turn of the loop
        self._taken += steps
        if seconds > SLICE_SECONDS:
            self._slice = max(1, self._slice // 2)
        elif self._slice < SLICE and seconds < SLICE_SECONDS / 2:
            self._slice = min(SLICE, 2 * self._slice)

    def _begin(self) -> None:
        self._taken = 0

    async def wait(self) -> None:
        """Wait for the next turn of the loop, behind the plans that waited before."""
        async with self._lock:
            await anyio.lowlevel.checkpoint()


_turns: anyio.lowlevel.RunVar[Turns | None] = anyio.lowlevel.RunVar("rlm_turns", None)


class Pace:
    """The steps that one plan may take. This class sets no limit.

    ``limit`` is the place where the recorded run of the same plan stopped. It is None where that run ended, or where
    there is no recorded run.
    """

    limit: ReplayLimit | None = None

    def left(self) -> int | None:
        """Return the steps that may still be taken; None for any number."""
        return None

    def took(self, steps: int) -> None:
        """Count steps that were taken."""

    def refusal(self) -> RlmError:
        """Return the error for a plan that may take no more steps."""
        return RunError("budget_exhausted", "the plan may take no more steps", {"field": "max_steps"})

    def stopped(self, state: PlanState, problem: RlmError | None) -> None:
        """Record the state in which a plan was stopped, by ``problem`` or from outside (None)."""

    async def behind(self) -> NoReturn:
        """Wait at ``limit`` until the run ends. Raises: the error that stopped the recorded run there."""
        raise AssertionError("only a replay has a limit")
