"""The driver: does what the machine says is due, side by side, and tells the machine what came of it.

Everything that waits is in the executor. When ``run`` ends, however it ends, nothing that it began still runs.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol

import anyio
from anyio.abc import TaskGroup

from rlm.boundary import EXITS
from rlm.errors import RlmError, RunError
from rlm.model.plan import Ending, ValidPlan
from rlm.plan.actions import (
    Action,
    ActionOutcome,
    CheckpointAction,
    ContextAction,
    ModelAction,
    RlmAction,
    ToolAction,
)
from rlm.plan.expressions import Prompt, Scope
from rlm.plan.machine import advance, begin, proceed, resume, stop
from rlm.plan.pace import Pace, Turns
from rlm.plan.state import Pause, PlanState, bindings, unfinished

current_step: ContextVar[str] = ContextVar("current_step", default="")
"""The id of the step that an executor's method is called for."""


class Executor(Protocol):
    """Whoever does what a plan asks for. Values in and out are JSON.

    A method raises RlmError where it fails. That is the failure of a step, an item or an attempt; but an error
    whose ``terminal`` is true ends the whole plan at once. Any other exception is a defect and comes out of ``run``.
    """

    async def context(self, handle: str, action: str, arguments: dict[str, Any]) -> Any:
        """The value of an action on the context of this name or id."""

    async def model(self, prompt: Prompt, schema: dict[str, Any] | None) -> Any:
        """A text, or a value that follows ``schema``. In the prompt a handle stands where its text is wanted."""

    async def rlm(self, query: str, context: Any, plan: dict[str, Any] | None) -> Any:
        """The value that a child found, with a plan of its own or with ``plan``."""

    async def tool(self, name: str, arguments: dict[str, Any]) -> Any:
        """The value of a tool."""

    async def checkpoint(self, label: str) -> None:
        """Keep what is bound so far."""

    def event(self, path: str, kind: str, data: dict[str, Any]) -> None:
        """What happens, as it happens: ``started`` (``op``) and the kinds of ``Note``; ``path`` is the step's id."""


class Execution:
    """One plan, once.

    Args:
        width: items of one ``map``, or plans of one ``parallel``, that are under way at the same moment.
        slots: bounds how many models and tools work at the same moment, for a whole tree where all its executions
            are given the same one. None: the executor sees to that.
        pace: how many steps the plan may take. None: any number.
    """

    def __init__(
        self,
        plan: ValidPlan,
        executor: Executor,
        scope: Scope,
        *,
        width: int,
        slots: anyio.CapacityLimiter | None = None,
        pace: Pace | None = None,
    ) -> None:
        self._executor = executor
        self._slots = slots
        self._pace = pace or Pace()
        self._state = begin(plan, scope, width=width, most=0, limit=self._pace.limit)
        self._outcomes: deque[ActionOutcome] = deque()
        self._moving = False
        self._waits_behind = False
        self._exit: BaseException | None = None

    @property
    def state(self) -> PlanState:
        """Where the plan is now."""
        return self._state

    def bindings(self) -> dict[str, Any]:
        """What the plan bound so far, by name; it can be asked at any time, from any thread."""
        return bindings(self._state)

    def unfinished(self) -> dict[str, Any]:
        """The list of a ``map`` or ``parallel`` that is under way, by name; see ``rlm.plan.unfinished``."""
        return unfinished(self._state)

    async def run(self) -> Ending:
        """Run the plan to its end. To be called once; to stop it, cancel the scope around it."""
        turns = Turns.here()
        try:
            async with anyio.create_task_group() as group:
                self._start_due(group, turns)
                await self._move(group, turns)
        except BaseExceptionGroup as problems:
            raise _only(problems) from None
        finally:
            if self._state.ending is None and self._state.pause is not None:
                with suppress(RunError):  # the trace cannot be written: that is known already
                    self._pace.stopped(self._state, None)
        if self._exit is not None:
            raise self._exit
        assert self._state.ending is not None
        return self._state.ending

    async def _move(self, group: TaskGroup, turns: Turns) -> None:
        """Go on as far as the plan goes with the outcomes that there are, slice by slice."""
        if self._moving:
            return  # the task that moves it takes the new outcomes too
        self._moving = True
        try:
            while self._state.ending is None:
                pause = self._state.pause
                if pause is None and not self._outcomes:
                    break
                if pause is not None and self._pace.left() == 0:
                    self._stop(pause)
                elif pause is not None:
                    if self._state.steps or turns.left() == 1:
                        await turns.wait()
                    if self._state.ending is None:
                        self._take(partial(proceed, self._state), turns)
                else:
                    self._take(partial(resume, self._state, self._outcomes.popleft()), turns)
                self._start_due(group, turns)
        finally:
            self._moving = False

    def _most(self, turns: Turns) -> int:
        left = self._pace.left()
        return turns.left() if left is None else min(left, turns.left())

    def _take(self, go: Callable[..., PlanState], turns: Turns) -> None:
        """Make a move, and tell what happened on the way."""
        began = time.perf_counter()
        self._state = go(most=self._most(turns))
        self._pace.took(self._state.steps)
        self._tell()
        turns.took(self._state.steps, time.perf_counter() - began)

    def _stop(self, pause: Pause) -> None:
        """The plan may take no more steps."""
        problem = self._pace.refusal()
        self._pace.stopped(self._state, problem)
        self._state = stop(self._state, problem.to_dict(), pause.path)
        self._tell()

    def _start_due(self, group: TaskGroup, turns: Turns) -> None:
        due = advance(self._state)
        if not isinstance(due, tuple):
            group.cancel_scope.cancel()  # a terminal error leaves others on their way
            return
        for action in due:
            group.start_soon(self._perform, action, group, turns, name=action.id)
        if self._state.held and not self._waits_behind:
            self._waits_behind = True
            group.start_soon(self._wait_behind, group, turns)

    async def _wait_behind(self, group: TaskGroup, turns: Turns) -> None:
        """In a replay, at the place where the recorded run was stopped."""
        assert self._pace.limit is not None
        try:
            await self._pace.behind()
        except RlmError as problem:
            if self._state.ending is None:
                path = Pause((), self._pace.limit.id).path
                self._state = stop(self._state, problem.to_dict(), path)
                self._tell()
                self._start_due(group, turns)

    async def _perform(self, action: Action, group: TaskGroup, turns: Turns) -> None:
        current_step.set(action.id)
        try:
            outcome = ActionOutcome(action.at, await self._limited(action))
        except RlmError as problem:
            outcome = ActionOutcome.failed(action, problem)
        except EXITS as problem:  # out of a task of its own it would end the event loop
            self._exit = problem
            group.cancel_scope.cancel()
            return
        if self._state.ending is not None:
            return
        if outcome.terminal:  # does not wait until a pause is over
            if self._state.pause is not None:
                self._pace.stopped(self._state, None)
            self._take(partial(resume, self._state, outcome), turns)
            self._start_due(group, turns)
        else:
            self._outcomes.append(outcome)
            await self._move(group, turns)

    async def _limited(self, action: Action) -> Any:
        if self._slots is None or not isinstance(action, ModelAction | ToolAction):
            return await self._done(action)
        ticket = object()
        await self._slots.acquire_on_behalf_of(ticket)
        try:
            return await self._done(action)
        finally:
            self._slots.release_on_behalf_of(ticket)

    async def _done(self, action: Action) -> Any:
        do = self._executor
        match action:
            case ContextAction():
                self._started(action, "context")
                return await do.context(action.handle, action.action, action.arguments)
            case ModelAction():
                self._started(action, "model")
                return await do.model(action.prompt, action.schema)
            case RlmAction():
                self._started(action, "rlm")
                return await do.rlm(action.query, action.context, action.plan)
            case ToolAction():
                self._started(action, "tool")
                return await do.tool(action.name, action.arguments)
            case CheckpointAction():
                self._started(action, "checkpoint")
                return await do.checkpoint(action.label)
        raise AssertionError(f"no such action: {action!r}")

    def _started(self, action: Action, op: str) -> None:
        self._executor.event(action.id, "started", {"op": op})

    def _tell(self) -> None:
        for note in self._state.notes:
            self._executor.event(note.id, note.kind, note.data)


async def run(
    plan: ValidPlan, executor: Executor, scope: Scope, *, width: int, slots: anyio.CapacityLimiter | None = None
) -> Ending:
    """How a plan ends: ``await Execution(...).run()``."""
    return await Execution(plan, executor, scope, width=width, slots=slots).run()


def _only(problems: BaseExceptionGroup[BaseException]) -> BaseException:
    """The defect itself, where there is one alone."""
    problem: BaseException = problems
    while isinstance(problem, BaseExceptionGroup) and len(problem.exceptions) == 1:
        problem = problem.exceptions[0]
    return problem
