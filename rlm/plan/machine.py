"""A running plan as a value: what is to be done next, and what becomes of it when that is done.

    state = begin(plan, scope, width=8, most=250)
    while not isinstance(due := advance(state), Ending):
        ...                                     # do what is due, in any order, side by side
        if state.pause is not None:
            state = proceed(state, most=250)    # the move took its 250 steps, and there is more to do
        else:
            state = resume(state, outcome, most=250)    # once for every outcome

There is no clock and no I/O here, and every state stays what it was. The same outcomes in the same order give the
same states, however many steps each move takes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from rlm.model.plan import Ending, Failed, Final, Observe, PlanError, ValidPlan
from rlm.plan.actions import Action, ActionOutcome, Note, Way
from rlm.plan.expressions import Scope
from rlm.plan.problems import failure
from rlm.plan.sizes import MAX_CHARS, MAX_HELD, MAX_NODES, StepWork, size_of, too_large, units_of
from rlm.plan.state import Attempt, Group, Limit, MapBody, Pause, PlanState, Settings, Step, bindings
from rlm.plan.steps import Again, Many, Value, work_of

MAX_ITEMS = 10_000
"""Items of a ``map`` where the host names no limit."""

UNITS_PER_STEP = 100
"""A step that looks at so many values counts as one more, and so on."""


def begin(
    plan: ValidPlan, scope: Scope, *, width: int, most: int = sys.maxsize, limit: Limit | None = None
) -> PlanState:
    """The first state of a plan.

    Args:
        width: items of one ``map``, or plans of one ``parallel``, that are under way at the same moment.
        most: steps after which the move pauses; the last one may count as several.
        limit: how far a recorded run came.
    """
    items = plan.limits.max_items
    move = _Move(Settings(width, MAX_ITEMS if items is None else items, limit), scope.work, most)
    body = MapBody(tuple(plan.data["steps"]), "steps", "steps", (), scope)
    return move.state(move.proceed(body))


def advance(state: PlanState) -> tuple[Action, ...] | Ending:
    """What became due with this state, or how the plan ended."""
    return state.actions if state.ending is None else state.ending


def resume(state: PlanState, outcome: ActionOutcome, *, most: int = sys.maxsize) -> PlanState:
    """The state after one outcome. A state that paused takes none but a terminal one.

    Raises: ValueError where nothing waits for it, or the state paused.
    """
    if outcome.terminal:
        return stop(state, outcome.error or {}, _waiting(state.body, outcome.at).path)
    if state.pause is not None:
        raise ValueError(f"the plan paused at {state.pause.id}: it goes on with `proceed`")
    move = _Move(state.settings, state.body.scope.work, most)
    return move.state(move.feed(state.body, outcome.at, outcome))


def proceed(state: PlanState, *, most: int = sys.maxsize) -> PlanState:
    """The state after some more steps of one that paused. Raises: ValueError where it did not."""
    if state.pause is None:
        raise ValueError("the plan did not pause")
    move = _Move(state.settings, state.body.scope.work, most)
    return move.state(move.go_on(state.body, state.pause.at))


def stop(state: PlanState, error: dict[str, Any], path: str) -> PlanState:
    """The state after an error that ends the plan at once, at a step."""
    move = _Move(state.settings, state.body.scope.work, 0)
    return move.state(state.body, Failed(_placed(error, path), path, terminal=True))


class _Move:
    """One move from a state to the next; it collects what becomes due on the way."""

    def __init__(self, settings: Settings, work: StepWork, most: int) -> None:
        self.settings = settings
        self.work = work
        self.most = most
        self.steps = 0
        self.pause: Pause | None = None
        self.held = False
        self.actions: list[Action] = []
        self.notes: list[Note] = []

    def state(self, body: MapBody, ending: Ending | None = None) -> PlanState:
        """The state that was reached."""
        ending = ending or body.end
        if ending is not None:
            self.note("steps", "ended", ending=type(ending).__name__.lower())
        notes, pause = tuple(self.notes), self.pause if ending is None else None
        state = PlanState(body, self.settings, tuple(self.actions), notes, ending, self.steps, pause, self.held)
        return replace(state, ending=replace(ending, bound=bindings(state))) if isinstance(ending, Failed) else state

    def note(self, id: str, kind: str, **data: Any) -> None:
        """Remember what happened."""
        self.notes.append(Note(id, kind, data))

    # -- one body -----------------------------------------------------------------------------------

    def proceed(self, body: MapBody) -> MapBody:
        """Go on until something has to be waited for."""
        while body.end is None and body.waits is None and not self.stops(body):
            self.steps += 1
            body = self.guarded(body, self.step)
        return body

    def stops(self, body: MapBody, number: int | None = None) -> bool:
        """Whether the move stops before the step that is under way, or before an item, plan or attempt of it."""
        limit = self.settings.limit
        if limit is not None and limit.stops(body.step_id, number):
            self.held = True
            return True
        if self.steps < self.most:
            return False
        self.pause = self.pause or Pause(body.at, body.step_id, number)
        return True

    def count(self) -> None:
        """Count what was looked at since the last count."""
        if self.work.units:
            self.steps += self.work.units // UNITS_PER_STEP
            self.work.units = 0

    def go_on(self, body: MapBody, way: Way) -> MapBody:
        """The body after some more steps, of its own or of a body in it, where it stopped."""
        if way:
            child = self.go_on(_child(body, way[0]), way[1:])
            if isinstance(body.waits, Group):
                return self.proceed(self.gathered(body, body.waits, way[0], child))
            return self.proceed(self.attempted(body, Attempt(child, way[0])))
        if isinstance(body.waits, Group):
            return self.proceed(self.filled(body, body.waits))
        if isinstance(body.waits, Attempt):
            return self.proceed(self.attempted(body, body.waits))
        return self.proceed(body)

    def step(self, body: MapBody) -> MapBody:
        """Do what can be done of the step that is under way. Raises: PlanError."""
        match work_of(body):
            case Value(value):
                return self.bound(body, value)
            case Many(over):
                return self.side_by_side(body, over)
            case Again():
                return self.attempted(body, self.attempt(body, 0))
            case Action() as action:
                self.actions.append(action)
                return body.waiting(action)
            case ending:
                return body.after(body.scope, ending)

    def guarded(self, body: MapBody, go: Callable[[MapBody], MapBody]) -> MapBody:
        """What ``go`` makes of the body; a body that failed where it raises."""
        try:
            return go(body)
        except PlanError as problem:
            return self.broken(body, problem.to_dict(), str(problem.detail.get("path", body.step_path)))
        except RecursionError:
            deep = failure("too_deep", "a value is nested too deeply", body.step_path)
            return self.broken(body, deep.to_dict(), body.step_path)
        finally:
            self.count()

    def bound(self, body: MapBody, value: Any) -> MapBody:
        """The step has its value; the last step's is the body's."""
        op, name = body.step["op"], body.step.get("bind")
        scope = body.scope if name is None else self.scoped(body, name, value)
        self.note(body.step_id, "bound", op=op, bind=name)
        if body.index + 1 < len(body.steps):
            return body.after(scope)
        return body.after(scope, Final(value))

    def scoped(self, body: MapBody, name: str, value: Any) -> Scope:
        """The scope with a value. Raises: PlanError ``too_large`` where more is bound than may be held."""
        units = units_of(*size_of(value))
        self.work.units += units
        if body.scope.held + units > MAX_HELD * units_of(MAX_NODES, MAX_CHARS):
            raise failure("too_large", "all that the plan bound is too large together", body.step_path)
        return body.scope.bind(name, value, units)

    def broken(self, body: MapBody, error: dict[str, Any], path: str) -> MapBody:
        """The step failed, and the body with it."""
        error = _placed(error, body.step_path)
        self.note(body.step_id, "failed", op=body.step["op"], error=error)
        return replace(body, waits=None, end=Failed(error, path))

    # -- outcomes -----------------------------------------------------------------------------------

    def feed(self, body: MapBody, way: Way, outcome: ActionOutcome) -> MapBody:
        """The body after an outcome for it, or for a body in it."""
        if not way:
            path = _waiting(body, way).path
            failed = outcome.error is not None
            if failed:
                return self.broken(body, outcome.error or {}, path)
            return self.proceed(self.guarded(body, lambda body: self.bound(body, outcome.value)))
        child = self.feed(_child(body, way[0]), way[1:], outcome)
        if isinstance(body.waits, Group):
            return self.proceed(self.gathered(body, body.waits, way[0], child))
        return self.proceed(self.attempted(body, Attempt(child, way[0])))

    # -- side by side -------------------------------------------------------------------------------

    def side_by_side(self, body: MapBody, over: tuple[Any, ...]) -> MapBody:
        """Begin a body for each. Raises: PlanError ``too_many_items``."""
        most = self.settings.max_items
        if len(over) > most:
            message = f"the list has {len(over)} items, and at most {most} are taken"
            raise failure("too_many_items", message, f"{body.step_path}.over", items=len(over), limit=most)
        self.note(body.step_id, "items", count=len(over))
        self.count()
        is_own = body.step["op"] == "map" and body.scope.is_own(body.step["over"])
        return self.filled(body, Group(over, is_own=is_own))

    def gathered(self, body: MapBody, group: Group, number: int, child: MapBody) -> MapBody:
        """The group after something happened to one of its bodies."""
        running = {**group.running, number: child}
        if child.end is None:
            group = replace(group, running=running)
            is_full = len(running) >= self.settings.width or group.next >= len(group.over)
            return body.waiting(group) if is_full else self.filled(body, group)
        del running[number]
        group = group.with_result(number, _result(child.end), self.work)
        self.count()
        return self.filled(body, replace(group, running=running))

    def filled(self, body: MapBody, group: Group) -> MapBody:
        """The group with as many bodies under way as there may be; its list where all have ended."""
        running, number = dict(group.running), group.next
        last = number if group.is_too_large else len(group.over)
        while len(running) < self.settings.width and number < last and not self.stops(body, number):
            child = self.proceed(_begun(body, group, number))
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
        return self.guarded(body, lambda body: self.bound(body, _listed(body, group)))

    # -- again and again ----------------------------------------------------------------------------

    def attempt(self, body: MapBody, number: int) -> Attempt:
        """Begin an attempt."""
        self.note(body.step_id, "attempt", number=number)
        inner = _inner(body, body.step["steps"], "steps", f"attempts[{number}].steps", number, body.scope)
        return Attempt(self.proceed(inner), number)

    def attempted(self, body: MapBody, attempt: Attempt) -> MapBody:
        """The attempt as far as it is; another one where it failed and one is left."""
        while isinstance(attempt.body.end, Failed) and attempt.number + 1 < body.step["attempts"]:
            if self.stops(body, attempt.number + 1):
                return body.waiting(attempt)
            attempt = self.attempt(body, attempt.number + 1)
        end = attempt.body.end
        if isinstance(end, Failed):
            return self.broken(body, end.error, end.path)
        if end is None:
            return body.waiting(attempt)
        return self.guarded(body, lambda body: self.bound(body, _result(end)))


def _listed(body: MapBody, group: Group) -> list[Any]:
    """The results of a group. Raises: PlanError ``too_large``."""
    if group.is_too_large:
        raise too_large(body.step_path)
    return group.results()


def _begun(body: MapBody, group: Group, number: int) -> MapBody:
    """The body of one item of a ``map``, or of one plan of a ``parallel``."""
    one = group.over[number]
    if body.step["op"] == "map":
        bind = body.scope.bind_own if group.is_own else body.scope.bind
        scope = bind(body.step["as"], one)
        return _inner(body, body.step["steps"], "steps", f"items[{number}].steps", number, scope)
    place = f"plans[{number}].steps"
    return _inner(body, one, place, place, number, body.scope)


def _inner(body: MapBody, steps: Iterable[Step], place: str, counted: str, number: int, scope: Scope) -> MapBody:
    """A body inside the step that is under way."""
    path, id = f"{body.step_path}.{place}", f"{body.step_id}.{counted}"
    return MapBody(tuple(steps), path, id, (*body.at, number), scope)


def _child(body: MapBody, number: int) -> MapBody:
    if isinstance(body.waits, Group) and number in body.waits.running:
        return body.waits.running[number]
    if isinstance(body.waits, Attempt) and body.waits.number == number:
        return body.waits.body
    raise ValueError(f"nothing in {body.step_id} waits for an outcome of {number}")


def _waiting(body: MapBody, way: Way) -> Action:
    for number in way:
        body = _child(body, number)
    if not isinstance(body.waits, Action):
        raise ValueError(f"{body.step_id} waits for no outcome")
    return body.waits


def _result(end: Ending) -> Any:
    """What an item comes to: its value, or its error as a value."""
    assert not isinstance(end, Observe)
    return end.value if isinstance(end, Final) else {"error": end.error}


def _placed(error: dict[str, Any], step: str) -> dict[str, Any]:
    """The error with the path of the step in its detail, unless a step inside is named there already."""
    return {**error, "detail": {"step": step, **error.get("detail", {})}}
