"""The driver of a plan: it performs the due actions side by side and passes their outcomes to the machine.

All waiting is in the executor. When ``run`` ends, for whatever reason, no task that it started still runs.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
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
    LetAction,
    ModelAction,
    PackedModelAction,
    RlmAction,
    ToolAction,
)
from rlm.plan.expressions import Prompt, Scope
from rlm.plan.machine import advance, begin, proceed, resume, stop
from rlm.plan.pace import Pace, Turns
from rlm.plan.state import Pause, PlanState, bindings, unfinished

current_step: ContextVar[str] = ContextVar("current_step", default="")
"""The id of the step that calls a method of the executor."""


class Executor(Protocol):
    """The methods that perform a plan's actions. Values in and out are JSON.

    A method that fails raises RlmError. The error fails its step, item or attempt. A ``terminal`` error ends the
    whole plan. Any other exception is a defect and is raised by ``run``.
    """

    async def context(self, handle: str, action: str, arguments: dict[str, Any]) -> Any:
        """Return the value of an action on the context of this name or id."""

    async def model(self, prompt: Prompt, schema: dict[str, Any] | None) -> Any:
        """Return a text, or a value that follows ``schema``. A handle in the prompt stands for a context's text."""

    async def models(self, prompts: Sequence[Prompt], schema: dict[str, Any] | None) -> list[Any]:
        """Return an answer for each prompt, in order; a failed one as ``{"error": ...}``."""

    async def rlm(self, query: str, context: Any, plan: dict[str, Any] | None) -> Any:
        """Return the value that a child found, with a plan of its own or with ``plan``."""

    async def tool(self, name: str, arguments: dict[str, Any]) -> Any:
        """Return the value of a tool."""

    async def let(self, expression: str, values: Mapping[str, Any]) -> Any:
        """Return the value of a JMESPath expression over values by name (``rlm.plan.computing``)."""

    async def checkpoint(self, label: str) -> None:
        """Record the values that are bound so far."""

    def event(self, path: str, kind: str, data: dict[str, Any]) -> None:
        """Take an event as it happens: ``started`` (``op``), and the kinds of ``Note``. ``path`` is the step's id."""


class Execution:
    """One run of one plan.

    Args:
        plan: the plan.
        executor: the methods that perform its actions.
        scope: the values that its expressions may name.
        width: the most items of one ``map``, or plans of one ``parallel``, that run at the same time.
        slots: the limit on models and tools that work at the same time. Executions of one tree share it. None: the
            executor sets the limit.
        pace: the steps that the plan may take; None for any number.
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
        self._waits_at_limit = False
        self._exit: BaseException | None = None

    @property
    def state(self) -> PlanState:
        """The current state of the plan."""
        return self._state

    def bindings(self) -> dict[str, Any]:
        """Return the values that the plan has bound so far, by name. Callable at any time, from any thread."""
        return bindings(self._state)

    def unfinished(self) -> dict[str, Any]:
        """Return the list of a ``map`` or ``parallel`` that is running, by name; see ``rlm.plan.unfinished``."""
        return unfinished(self._state)

    async def run(self) -> Ending:
        """Run the plan to its end and return the ending. Call it once; cancel the scope around it to stop it."""
        turns = Turns.here()
        try:
            async with anyio.create_task_group() as group:
                self._start_due(group, turns)
                await self._move(group, turns)
        except BaseExceptionGroup as problems:
            raise _sole_exception(problems) from None
        finally:
            if self._state.ending is None and self._state.pause is not None:
                with suppress(RunError):  # the trace cannot be written, which was reported before
                    self._pace.stopped(self._state, None)
        if self._exit is not None:
            raise self._exit
        assert self._state.ending is not None
        return self._state.ending

    async def _move(self, group: TaskGroup, turns: Turns) -> None:
        """Continue the plan with the outcomes that have arrived, slice by slice."""
        if self._moving:
            return  # the task that is moving the plan takes the new outcomes too
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

    def _step_allowance(self, turns: Turns) -> int:
        left = self._pace.left()
        return turns.left() if left is None else min(left, turns.left())

    def _take(self, go: Callable[..., PlanState], turns: Turns) -> None:
        """Make one move and report its events."""
        began = time.perf_counter()
        self._state = go(most=self._step_allowance(turns))
        self._pace.took(self._state.steps)
        self._report()
        turns.took(self._state.steps, time.perf_counter() - began)

    def _stop(self, pause: Pause) -> None:
        """End the plan, because it may take no more steps."""
        problem = self._pace.refusal()
        self._pace.stopped(self._state, problem)
        self._state = stop(self._state, problem.to_dict(), pause.path)
        self._report()

    def _start_due(self, group: TaskGroup, turns: Turns) -> None:
        due = advance(self._state)
        if not isinstance(due, tuple):
            group.cancel_scope.cancel()  # after a terminal error, other actions are still running
            return
        for action in due:
            group.start_soon(self._perform, action, group, turns, name=action.id)
        if self._state.at_limit and not self._waits_at_limit:
            self._waits_at_limit = True
            group.start_soon(self._wait_at_limit, group, turns)

    async def _wait_at_limit(self, group: TaskGroup, turns: Turns) -> None:
        """Wait at the place where the recorded run was stopped, in a replay."""
        assert self._pace.limit is not None
        try:
            await self._pace.behind()
        except RlmError as problem:
            if self._state.ending is None:
                path = Pause((), self._pace.limit.id).path
                self._state = stop(self._state, problem.to_dict(), path)
                self._report()
                self._start_due(group, turns)

    async def _perform(self, action: Action, group: TaskGroup, turns: Turns) -> None:
        current_step.set(action.id)
        try:
            outcome = ActionOutcome(action.at, await self._in_slot(action))
        except RlmError as problem:
            outcome = ActionOutcome.failed(action, problem)
        except EXITS as problem:  # raised from its own task, it would end the event loop
            self._exit = problem
            group.cancel_scope.cancel()
            return
        if self._state.ending is not None:
            return
        if outcome.terminal:  # a terminal outcome does not wait for the end of a pause
            if self._state.pause is not None:
                self._pace.stopped(self._state, None)
            self._take(partial(resume, self._state, outcome), turns)
            self._start_due(group, turns)
        else:
            self._outcomes.append(outcome)
            await self._move(group, turns)

    async def _in_slot(self, action: Action) -> Any:
        if self._slots is None or not isinstance(action, ModelAction | ToolAction):
            return await self._dispatch(action)
        ticket = object()
        await self._slots.acquire_on_behalf_of(ticket)
        try:
            return await self._dispatch(action)
        finally:
            self._slots.release_on_behalf_of(ticket)

    async def _dispatch(self, action: Action) -> Any:
        do = self._executor
        match action:
            case ContextAction():
                self._started(action, "context")
                return await do.context(action.handle, action.action, action.arguments)
            case ModelAction():
                self._started(action, "model")
                return await do.model(action.prompt, action.schema)
            case PackedModelAction():
                self._started(action, "map")
                return await do.models(action.prompts, action.schema)
            case RlmAction():
                self._started(action, "rlm")
                return await do.rlm(action.query, action.context, action.plan)
            case ToolAction():
                self._started(action, "tool")
                return await do.tool(action.name, action.arguments)
            case LetAction():
                self._started(action, "let")
                return await do.let(action.expression, action.values)
            case CheckpointAction():
                self._started(action, "checkpoint")
                return await do.checkpoint(action.label)
        raise AssertionError(f"no such action: {action!r}")

    def _started(self, action: Action, op: str) -> None:
        self._executor.event(action.id, "started", {"op": op})

    def _report(self) -> None:
        for note in self._state.notes:
            self._executor.event(note.id, note.kind, note.data)


async def run(
    plan: ValidPlan, executor: Executor, scope: Scope, *, width: int, slots: anyio.CapacityLimiter | None = None
) -> Ending:
    """Run a plan and return its ending, as ``await Execution(...).run()`` does."""
    return await Execution(plan, executor, scope, width=width, slots=slots).run()


def _sole_exception(problems: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the only exception of a group; the group itself where it has several."""
    problem: BaseException = problems
    while isinstance(problem, BaseExceptionGroup) and len(problem.exceptions) == 1:
        problem = problem.exceptions[0]
    return problem
