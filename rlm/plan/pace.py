"""How much of a plan is done at a time, and how much of it at all.

The steps of a plan that call nothing run on the event loop. So they are done in slices, and between two slices, of one
plan or of two, the loop has its turn: other tasks run, and a deadline or a cancellation is seen.
"""

from __future__ import annotations

from typing import Any, NoReturn

import anyio
import anyio.lowlevel

from rlm.errors import RlmError, RunError
from rlm.plan.state import Limit, PlanState

SLICE = 125
"""Steps of all plans between two turns of the event loop, at the most."""

SLICE_SECONDS = 0.005
"""How long a slice should take. Where it takes longer (large values, a trace, a slow machine), the next is shorter."""


class Turns:
    """Shares one event loop among the plans on it: between two turns of the loop they take ``SLICE`` steps together."""

    def __init__(self) -> None:
        self._lock = anyio.Lock()
        self._taken = 0
        self._slice = SLICE
        self._loop: Any = anyio.lowlevel.current_token().native_token

    @classmethod
    def here(cls) -> Turns:
        """Those of the event loop that is running."""
        turns = _turns.get(None)
        if turns is None:
            turns = cls()
            _turns.set(turns)
        return turns

    def left(self) -> int:
        """Steps that may be taken now; always one, so that no plan stands still."""
        return max(1, self._slice - self._taken)

    def took(self, steps: int, seconds: float) -> None:
        """Steps were taken, in so much time."""
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
        """Wait for the next turn of the loop, and for the plans that waited before."""
        async with self._lock:
            await anyio.lowlevel.checkpoint()


_turns: anyio.lowlevel.RunVar[Turns | None] = anyio.lowlevel.RunVar("rlm_turns", None)


class Pace:
    """How many steps one plan may take. This one lets it take any number.

    ``limit``: how far the recorded run of the same plan came; None: it came to its end, or there is none.
    """

    limit: Limit | None = None

    def left(self) -> int | None:
        """Steps that may still be taken; None: any number."""
        return None

    def took(self, steps: int) -> None:
        """Count steps that were taken."""

    def refusal(self) -> RlmError:
        """The error for a plan of which no more steps may be taken."""
        return RunError("budget_exhausted", "the plan may take no more steps", {"field": "max_steps"})

    def stopped(self, state: PlanState, problem: RlmError | None) -> None:
        """Write down in which state a plan was stopped: by ``problem``, or from outside (None)."""

    async def behind(self) -> NoReturn:
        """Wait at ``limit`` until the run ends. Raises: what stopped the recorded run there."""
        raise AssertionError("only a replay has a limit")
