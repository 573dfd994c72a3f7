"""The steps of an agent's plans: counted in the run budget, and stopped in a replay where the recorded run was
stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from rlm.errors import RlmError
from rlm.plan import Pace, PlanState, ReplayLimit, begun

if TYPE_CHECKING:
    from rlm.agent.run import Run
    from rlm.sending.run_budget import RunBudget


class AgentPace(Pace):
    """Counts the steps of one plan of an agent.

    Args:
        call: the name of the plan within the run, from the agent and its turn.
    """

    def __init__(self, run: Run, run_budget: RunBudget, call: str) -> None:
        self._run = run
        self._run_budget = run_budget
        self._call = call
        self.limit: ReplayLimit | None = None if run.replay is None else run.replay.limit(call)

    def left(self) -> int | None:
        """Steps that are left of the budget; None: any number, and in a replay, which goes by ``limit``."""
        return self._run_budget.steps_left()

    def took(self, steps: int) -> None:
        """Count steps that were taken."""
        self._run_budget.took_steps(steps)
        if self._run.replay is not None:
            self._run.replay.record_progress()

    def refusal(self) -> RlmError:
        """Return the error for a used up ``max_steps``."""
        return self._run_budget.no_steps()

    def stopped(self, state: PlanState, problem: RlmError | None) -> None:
        """Write down where the plan was stopped: a replay stops there too, whatever the clock says."""
        at = state.pause
        if at is not None:
            error = {} if problem is None else {"error": problem.to_dict()}
            place = {"step": at.id, "number": at.number, "begun": begun(state)}
            self._run.trace.event("cut", call=self._call, **place, **error)

    async def behind(self) -> NoReturn:
        """Wait at ``limit`` until the replay ends. Raises: what stopped the recorded run there."""
        assert self._run.replay is not None
        await self._run.replay.wait_at_limit(self._call)
