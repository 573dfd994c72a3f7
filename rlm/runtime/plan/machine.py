"""A running plan as a value: what is to be done next, and what becomes of it when that is done.

    state = begin(plan, scope, width=8)
    while not isinstance(due := advance(state), Ending):
        ...                                     # do what is due, in any order, side by side
        state = resume(state, outcome)          # once for every outcome

There is no clock and no I/O here, and every state stays what it was. The same outcomes in the same order give the
same states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from rlm.model.plan import Ending, Failed, Final, Observe, PlanError, ValidPlan
from rlm.runtime.plan.actions import Action, Note, Outcome, Way
from rlm.runtime.plan.expressions import Scope, bounded, failure
from rlm.runtime.plan.state import Attempt, Body, Ended, Group, Settings, State, Step, bindings
from rlm.runtime.plan.steps import Again, Many, Value, work_of

MAX_ITEMS = 10_000
"""Items of a ``map`` where the host names no limit."""


def begin(plan: ValidPlan, scope: Scope, *, width: int) -> State:
    """The first state of a plan."""
    limit = plan.limits.max_items
    move = _Move(Settings(width, MAX_ITEMS if limit is None else limit))
    body = Body(tuple(plan.data["steps"]), "steps", "steps", (), scope)
    return move.state(move.proceed(body))


def advance(state: State) -> tuple[Action, ...] | Ending:
    """What became due with this state, or how the plan ended."""
    return state.actions if state.ending is None else state.ending


def resume(state: State, outcome: Outcome) -> State:
    """The state after one outcome. Raises: ValueError where nothing waits for it."""
    move = _Move(state.settings)
    if not outcome.terminal:
        return move.state(move.feed(state.body, outcome.at, outcome))
    action = _waiting(state.body, outcome.at)
    return move.state(state.body, Failed(_placed(outcome.error or {}, action.path), action.path, terminal=True))


class _Move:
    """One move from a state to the next; it collects what becomes due on the way."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.actions: list[Action] = []
        self.notes: list[Note] = []

    def state(self, body: Body, ending: Ending | None = None) -> State:
        """The state that was reached."""
        ending = ending or body.end
        if ending is not None:
            self.note("steps", "ended", ending=type(ending).__name__.lower())
        state = State(body, self.settings, tuple(self.actions), tuple(self.notes), ending)
        return replace(state, ending=replace(ending, bound=bindings(state))) if isinstance(ending, Failed) else state

    def note(self, id: str, kind: str, **data: Any) -> None:
        """Remember what happened."""
        self.notes.append(Note(id, kind, data))

    # -- one body -----------------------------------------------------------------------------------

    def proceed(self, body: Body) -> Body:
        """Go on until something has to be waited for."""
        while body.end is None and body.waits is None:
            body = self.guarded(body, self.step)
        return body

    def step(self, body: Body) -> Body:
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
                return replace(body, waits=action)
            case ending:
                return replace(body, end=ending)

    def guarded(self, body: Body, go: Callable[[Body], Body]) -> Body:
        """What ``go`` makes of the body; a body that failed where it raises."""
        try:
            return go(body)
        except PlanError as problem:
            return self.broken(body, problem.to_dict(), str(problem.detail.get("path", body.step_path)))
        except RecursionError:
            deep = failure("too_deep", "a value is nested too deeply", body.step_path)
            return self.broken(body, deep.to_dict(), body.step_path)

    def bound(self, body: Body, value: Any) -> Body:
        """The step has its value; the last step's is the body's."""
        op, name = body.step["op"], body.step.get("bind")
        scope = body.scope if name is None else body.scope.bind(name, value)
        self.note(body.step_id, "bound", op=op, bind=name)
        if body.index + 1 < len(body.steps):
            return replace(body, scope=scope, index=body.index + 1, waits=None)
        return replace(body, scope=scope, waits=None, end=Final(value))

    def broken(self, body: Body, error: dict[str, Any], path: str) -> Body:
        """The step failed, and the body with it."""
        error = _placed(error, body.step_path)
        self.note(body.step_id, "failed", op=body.step["op"], error=error)
        return replace(body, waits=None, end=Failed(error, path))

    # -- outcomes -----------------------------------------------------------------------------------

    def feed(self, body: Body, way: Way, outcome: Outcome) -> Body:
        """The body after an outcome for it, or for a body in it."""
        if not way:
            path = _waiting(body, way).path
            failed = outcome.error is not None
            body = self.broken(body, outcome.error or {}, path) if failed else self.bound(body, outcome.value)
            return self.proceed(body)
        child = self.feed(_child(body, way[0]), way[1:], outcome)
        if isinstance(body.waits, Group):
            return self.proceed(self.gathered(body, body.waits, way[0], child))
        return self.proceed(self.attempted(body, Attempt(child, way[0])))

    # -- side by side -------------------------------------------------------------------------------

    def side_by_side(self, body: Body, over: tuple[Any, ...]) -> Body:
        """Begin a body for each. Raises: PlanError ``too_many_items``."""
        most = self.settings.max_items
        if len(over) > most:
            message = f"the list has {len(over)} items, and at most {most} are taken"
            raise failure("too_many_items", message, f"{body.step_path}.over", items=len(over), limit=most)
        self.note(body.step_id, "items", count=len(over))
        return self.filled(body, Group(over))

    def gathered(self, body: Body, group: Group, number: int, child: Body) -> Body:
        """The group after something happened to one of its bodies."""
        running = {**group.running, number: child}
        if child.end is None:
            return replace(body, waits=replace(group, running=running))
        del running[number]
        return self.filled(body, replace(group, ended=Ended(number, _result(child.end), group.ended), running=running))

    def filled(self, body: Body, group: Group) -> Body:
        """The group with as many bodies under way as there may be; its list where all have ended."""
        running, ended, number = dict(group.running), group.ended, group.next
        while len(running) < self.settings.width and number < len(group.over):
            child = self.proceed(_begun(body, group.over[number], number))
            if child.end is None:
                running[number] = child
            else:
                ended = Ended(number, _result(child.end), ended)
            number += 1
        group = replace(group, running=running, ended=ended, next=number)
        if running:
            return replace(body, waits=group)
        return self.guarded(body, lambda body: self.bound(body, bounded(group.results(), body.step_path)))

    # -- again and again ----------------------------------------------------------------------------

    def attempt(self, body: Body, number: int) -> Attempt:
        """Begin an attempt."""
        self.note(body.step_id, "attempt", number=number)
        inner = _inner(body, body.step["steps"], "steps", f"attempts[{number}].steps", number, body.scope)
        return Attempt(self.proceed(inner), number)

    def attempted(self, body: Body, attempt: Attempt) -> Body:
        """The attempt as far as it is; another one where it failed and one is left."""
        while isinstance(attempt.body.end, Failed) and attempt.number + 1 < body.step["attempts"]:
            attempt = self.attempt(body, attempt.number + 1)
        end = attempt.body.end
        if isinstance(end, Failed):
            return self.broken(body, end.error, end.path)
        return replace(body, waits=attempt) if end is None else self.bound(body, _result(end))


def _begun(body: Body, one: Any, number: int) -> Body:
    """The body of one item of a ``map``, or of one plan of a ``parallel``."""
    if body.step["op"] == "map":
        bind = body.scope.bind_own if body.scope.is_own(body.step["over"]) else body.scope.bind
        scope = bind(body.step["as"], one)
        return _inner(body, body.step["steps"], "steps", f"items[{number}].steps", number, scope)
    place = f"plans[{number}].steps"
    return _inner(body, one, place, place, number, body.scope)


def _inner(body: Body, steps: Iterable[Step], place: str, counted: str, number: int, scope: Scope) -> Body:
    """A body inside the step that is under way."""
    path, id = f"{body.step_path}.{place}", f"{body.step_id}.{counted}"
    return Body(tuple(steps), path, id, (*body.at, number), scope)


def _child(body: Body, number: int) -> Body:
    if isinstance(body.waits, Group) and number in body.waits.running:
        return body.waits.running[number]
    if isinstance(body.waits, Attempt) and body.waits.number == number:
        return body.waits.body
    raise ValueError(f"nothing in {body.step_id} waits for an outcome of {number}")


def _waiting(body: Body, way: Way) -> Action:
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
