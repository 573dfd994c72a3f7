"""A running plan as a value: the due actions, and the next state after their outcomes.

    state = begin(plan, scope, width=8, most=250)
    while not isinstance(due := advance(state), Ending):
        ...                                     # perform the due actions, in any order, side by side
        if state.pause is not None:
            state = proceed(state, most=250)    # the move took its 250 steps, and there is more to do
        else:
            state = resume(state, outcome, most=250)    # once for every outcome

This module has no clock and does no I/O, and states are immutable. The same outcomes in the same order give the same
states, however many steps each move takes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from rlm.model.plan import Ending, Failed, Final, Observe, PlanError, ValidPlan
from rlm.plan.actions import Action, ActionOutcome, BodyPath, Note
from rlm.plan.expressions import Scope
from rlm.plan.problems import failure
from rlm.plan.sizes import MAX_BOUND_VALUES, MAX_CHARS, MAX_NODES, StepWork, size_of, too_large, units_of
from rlm.plan.state import Attempt, BodyState, Group, Pause, PlanState, ReplayLimit, Settings, Step, bindings
from rlm.plan.steps import Retried, SideBySide, StepValue, check_ending, check_failed, work_of

MAX_ITEMS = 10_000
"""The most items of a ``map`` where the host sets no limit."""

UNITS_PER_STEP = 100
"""A step counts once more for each so many values that it reads."""


def begin(
    plan: ValidPlan, scope: Scope, *, width: int, most: int = sys.maxsize, limit: ReplayLimit | None = None
) -> PlanState:
    """Return the first state of a plan.

    Args:
        plan: a plan that was validated.
        scope: the values that its expressions may name.
        width: the most items of one ``map``, or plans of one ``parallel``, that run at the same time.
        most: steps after which the move pauses. The last step may count several times.
        limit: the place where a recorded run stopped; None for no such place.
    """
    items = plan.limits.max_items
    move = _Move(Settings(width, MAX_ITEMS if items is None else items, limit), scope.work, most)
    body = BodyState(tuple(plan.data["steps"]), "steps", "steps", (), scope)
    return move.state(move.proceed(body))


def advance(state: PlanState) -> tuple[Action, ...] | Ending:
    """Return the actions that became due with this state, or the ending of the plan."""
    return state.actions if state.ending is None else state.ending


def resume(state: PlanState, outcome: ActionOutcome, *, most: int = sys.maxsize) -> PlanState:
    """Return the state after one outcome. A paused state takes only a terminal outcome.

    Args:
        state: the state before it.
        outcome: the outcome of an action that the plan waits for.
        most: steps after which the move pauses.

    Raises:
        ValueError: no action waits for the outcome, or the state is paused.
    """
    if outcome.terminal:
        return stop(state, outcome.error or {}, _waiting(state.body, outcome.at).path)
    if state.pause is not None:
        raise ValueError(f"the plan paused at {state.pause.id}: it goes on with `proceed`")
    move = _Move(state.settings, state.body.scope.work, most)
    return move.state(move.feed(state.body, outcome.at, outcome))


def proceed(state: PlanState, *, most: int = sys.maxsize) -> PlanState:
    """Return the state after further steps of a paused one. Raises: ValueError where the state is not paused."""
    if state.pause is None:
        raise ValueError("the plan did not pause")
    move = _Move(state.settings, state.body.scope.work, most)
    return move.state(move.go_on(state.body, state.pause.at))


def stop(state: PlanState, error: dict[str, Any], path: str) -> PlanState:
    """Return the state after an error at a step that ends the plan at once."""
    move = _Move(state.settings, state.body.scope.work, 0)
    return move.state(state.body, Failed(_with_step(error, path), path, terminal=True))


class _Move:
    """One move from a state to the next, which collects the actions that become due."""

    def __init__(self, settings: Settings, work: StepWork, most: int) -> None:
        self.settings = settings
        self.work = work
        self.most = most
        self.steps = 0
        self.pause: Pause | None = None
        self.at_limit = False
        self.actions: list[Action] = []
        self.notes: list[Note] = []

    def state(self, body: BodyState, ending: Ending | None = None) -> PlanState:
        """Return the state at the end of the move."""
        ending = ending or body.end
        if ending is not None:
            self.note("steps", "ended", ending=type(ending).__name__.lower())
        notes, pause = tuple(self.notes), self.pause if ending is None else None
        state = PlanState(body, self.settings, tuple(self.actions), notes, ending, self.steps, pause, self.at_limit)
        return replace(state, ending=replace(ending, bound=bindings(state))) if isinstance(ending, Failed) else state

    def note(self, id: str, kind: str, **data: Any) -> None:
        """Record an event."""
        self.notes.append(Note(id, kind, data))

    # -- one body -----------------------------------------------------------------------------------

    def proceed(self, body: BodyState) -> BodyState:
        """Continue a body until it waits for an outcome."""
        while body.end is None and body.waits is None and not self.stops(body):
            self.steps += 1
            body = self.guard(body, self.step)
        return body

    def stops(self, body: BodyState, number: int | None = None) -> bool:
        """Whether the move stops before the current step, or before an item, plan or attempt of it."""
        limit = self.settings.limit
        if limit is not None and limit.stops(body.step_id, number):
            self.at_limit = True
            return True
        if self.steps < self.most:
            return False
        self.pause = self.pause or Pause(body.at, body.step_id, number)
        return True

    def count(self) -> None:
        """Add the units that were read since the last count to the steps."""
        if self.work.units:
            self.steps += self.work.units // UNITS_PER_STEP
            self.work.units = 0

    def go_on(self, body: BodyState, way: BodyPath) -> BodyState:
        """Return a stopped body after further steps, of its own or of a body in it."""
        if way:
            child = self.go_on(_child(body, way[0]), way[1:])
            if isinstance(body.waits, Group):
                return self.proceed(self.gather(body, body.waits, way[0], child))
            return self.proceed(self.continue_attempts(body, Attempt(child, way[0])))
        if isinstance(body.waits, Group):
            return self.proceed(self.fill(body, body.waits))
        if isinstance(body.waits, Attempt):
            return self.proceed(self.continue_attempts(body, body.waits))
        return self.proceed(body)

    def step(self, body: BodyState) -> BodyState:
        """Do the current step as far as possible without an outcome. Raises: PlanError."""
        match work_of(body):
            case StepValue(value):
                return self.bind(body, value)
            case SideBySide(over):
                return self.side_by_side(body, over)
            case Retried():
                return self.continue_attempts(body, self.attempt(body, 0))
            case Action() as action:
                self.actions.append(action)
                return body.waiting(action)
            case ending:
                return body.after(body.scope, ending)

    def guard(self, body: BodyState, go: Callable[[BodyState], BodyState]) -> BodyState:
        """Return ``go(body)``; a failed body where ``go`` raises."""
        try:
            return go(body)
        except PlanError as problem:
            return self.fail(body, problem.to_dict(), str(problem.detail.get("path", body.step_path)))
        except RecursionError:
            deep = failure("too_deep", "a value is nested too deeply", body.step_path)
            return self.fail(body, deep.to_dict(), body.step_path)
        finally:
            self.count()

    def bind(self, body: BodyState, value: Any) -> BodyState:
        """Bind the value of the current step. The value of the last step is the value of the body."""
        op, name = body.step["op"], body.step.get("bind")
        ending = check_ending(body, value) if op == "check" else None
        if ending is not None:
            self.note(body.step_id, "failed", op=op, error=check_failed(body.step_path).to_dict())
            return body.after(body.scope, ending)
        scope = body.scope if name is None else self.bind_in_scope(body, name, value)
        self.note(body.step_id, "bound", op=op, bind=name)
        if body.index + 1 < len(body.steps):
            return body.after(scope)
        return body.after(scope, Final(value))

    def bind_in_scope(self, body: BodyState, name: str, value: Any) -> Scope:
        """Return the scope with a value. Raises: PlanError ``too_large`` where all bound values together are."""
        units = units_of(*size_of(value))
        self.work.units += units
        if body.scope.bound_units + units > MAX_BOUND_VALUES * units_of(MAX_NODES, MAX_CHARS):
            raise failure("too_large", "all that the plan bound is too large together", body.step_path)
        return body.scope.bind(name, value, units)

    def fail(self, body: BodyState, error: dict[str, Any], path: str) -> BodyState:
        """End the body with the failure of its current step; bind the failure of an optional one."""
        error = _with_step(error, body.step_path)
        self.note(body.step_id, "failed", op=body.step["op"], error=error)
        if body.step.get("optional") is True:
            return self.bind(replace(body, waits=None), {"error": error})
        return replace(body, waits=None, end=Failed(error, path))

    # -- outcomes -----------------------------------------------------------------------------------

    def feed(self, body: BodyState, way: BodyPath, outcome: ActionOutcome) -> BodyState:
        """Return the body after an outcome for it, or for a body in it."""
        if not way:
            path = _waiting(body, way).path
            if outcome.error is not None:
                return self.proceed(self.fail(body, outcome.error, path))
            return self.proceed(self.guard(body, lambda body: self.bind(body, outcome.value)))
        child = self.feed(_child(body, way[0]), way[1:], outcome)
        if isinstance(body.waits, Group):
            return self.proceed(self.gather(body, body.waits, way[0], child))
        return self.proceed(self.continue_attempts(body, Attempt(child, way[0])))

    # -- side by side -------------------------------------------------------------------------------

    def side_by_side(self, body: BodyState, over: tuple[Any, ...]) -> BodyState:
        """Begin a body for each item. Raises: PlanError ``too_many_items``."""
        most = self.settings.max_items
        if len(over) > most:
            message = f"the list has {len(over)} items, and at most {most} are taken"
            raise failure("too_many_items", message, f"{body.step_path}.over", items=len(over), limit=most)
        self.note(body.step_id, "items", count=len(over))
        self.count()
        is_own = body.step["op"] == "map" and body.scope.is_own(body.step["over"])
        return self.fill(body, Group(over, is_own=is_own))

    def gather(self, body: BodyState, group: Group, number: int, child: BodyState) -> BodyState:
        """Return the body after a change of one of its group's bodies."""
        running = {**group.running, number: child}
        if child.end is None:
            group = replace(group, running=running)
            is_full = len(running) >= self.settings.width or group.next >= len(group.over)
            return body.waiting(group) if is_full else self.fill(body, group)
        del running[number]
        group = group.with_result(number, _result(child.end), self.work)
        self.count()
        return self.fill(body, replace(group, running=running))

    def fill(self, body: BodyState, group: Group) -> BodyState:
        """Begin as many bodies of the group as may run. Bind the list of results where all have ended."""
        running, number = dict(group.running), group.next
        last = number if group.is_too_large else len(group.over)
        while len(running) < self.settings.width and number < last and not self.stops(body, number):
            child = self.proceed(_item_body(body, group, number))
            number += 1
            if child.end is None:
                running[number - 1] = child
                continue
            group = group.with_result(number - 1, _result(child.end), self.work)
            self.count()
            last = number if group.is_too_large else last
        group = replace(group, running=running, next=number)
        if running or number < last:
            return body.waiting(group)
        return self.guard(body, lambda body: self.bind(body, _results_of(body, group)))

    # -- again and again ----------------------------------------------------------------------------

    def attempt(self, body: BodyState, number: int) -> Attempt:
        """Begin an attempt."""
        self.note(body.step_id, "attempt", number=number)
        inner = _inner_body(body, body.step["steps"], "steps", f"attempts[{number}].steps", number, body.scope)
        return Attempt(self.proceed(inner), number)

    def continue_attempts(self, body: BodyState, attempt: Attempt) -> BodyState:
        """Continue an attempt. Begin another one where it failed and attempts are left."""
        while isinstance(attempt.body.end, Failed) and attempt.number + 1 < body.step["attempts"]:
            if self.stops(body, attempt.number + 1):
                return body.waiting(attempt)
            attempt = self.attempt(body, attempt.number + 1)
        end = attempt.body.end
        if isinstance(end, Failed):
            return self.fail(body, end.error, end.path)
        if end is None:
            return body.waiting(attempt)
        return self.guard(body, lambda body: self.bind(body, _result(end)))


def _results_of(body: BodyState, group: Group) -> list[Any]:
    """Return the results of a group. Raises: PlanError ``too_large``."""
    if group.is_too_large:
        raise too_large(body.step_path)
    return group.results()


def _item_body(body: BodyState, group: Group, number: int) -> BodyState:
    """Return the body of one item of a ``map``, or of one plan of a ``parallel``."""
    item = group.over[number]
    if body.step["op"] == "map":
        bind = body.scope.bind_own if group.is_own else body.scope.bind
        scope = bind(body.step["as"], item)
        return _inner_body(body, body.step["steps"], "steps", f"items[{number}].steps", number, scope)
    place = f"plans[{number}].steps"
    return _inner_body(body, item, place, place, number, body.scope)


def _inner_body(
    body: BodyState, steps: Iterable[Step], place: str, counted_place: str, number: int, scope: Scope
) -> BodyState:
    """Return a body inside the current step."""
    path, id = f"{body.step_path}.{place}", f"{body.step_id}.{counted_place}"
    return BodyState(tuple(steps), path, id, (*body.at, number), scope)


def _child(body: BodyState, number: int) -> BodyState:
    if isinstance(body.waits, Group) and number in body.waits.running:
        return body.waits.running[number]
    if isinstance(body.waits, Attempt) and body.waits.number == number:
        return body.waits.body
    raise ValueError(f"nothing in {body.step_id} waits for an outcome of {number}")


def _waiting(body: BodyState, way: BodyPath) -> Action:
    for number in way:
        body = _child(body, number)
    if not isinstance(body.waits, Action):
        raise ValueError(f"{body.step_id} waits for no outcome")
    return body.waits


def _result(end: Ending) -> Any:
    """Return the result of an item: its value, or its error as a value."""
    assert not isinstance(end, Observe)
    return end.value if isinstance(end, Final) else {"error": end.error}


def _with_step(error: dict[str, Any], step: str) -> dict[str, Any]:
    """Return the error with the path of the step in its detail, unless it already names a step inside."""
    return {**error, "detail": {"step": step, **error.get("detail", {})}}
