"""The machine itself: pure, so that the same outcomes give the same states, and old states stay what they were."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import pytest

from rlm.model.plan import PlanLimits
from rlm.plan import (
    ActionOutcome,
    Failed,
    Final,
    PlanState,
    Scope,
    ToolAction,
    advance,
    begin,
    bindings,
    resume,
    unfinished,
)
from tests.plan.world import FRAME, INPUTS, add, final, plan, var


def start(*steps: dict[str, Any], width: int = 2) -> PlanState:
    return begin(plan(*steps), Scope(INPUTS), width=width)


def due(state: PlanState) -> list[tuple[str, dict[str, Any]]]:
    actions = advance(state)
    assert isinstance(actions, tuple)
    return [(action.id, action.arguments) for action in actions if isinstance(action, ToolAction)]


EACH = {"op": "map", "over": [10, 20, 30], "as": "it", "steps": [add(var("it"), 1, "x")], "bind": "out"}


def test_a_plan_of_values_alone_has_ended_before_it_began() -> None:
    assert advance(start(final([1, {"input": "names"}]))) == Final([1, INPUTS["names"]])


def test_one_thing_after_the_other() -> None:
    first = start(add(1, 2, "x"), add(var("x"), 5, "y"), final(var("y")))
    assert due(first) == [("steps[0]", {"a": 1, "b": 2})]
    second = resume(first, ActionOutcome((), 3))
    assert due(second) == [("steps[1]", {"a": 3, "b": 5})]
    assert bindings(second) == {"x": 3}
    third = resume(second, ActionOutcome((), 8))
    assert advance(third) == Final(8)
    assert bindings(third) == {"x": 3, "y": 8}
    assert due(first) == [("steps[0]", {"a": 1, "b": 2})]
    assert bindings(first) == {}


def test_a_map_begins_what_may_run_and_goes_on_as_items_end() -> None:
    state = start(EACH, final(var("out")))
    assert due(state) == [
        ("steps[0].items[0].steps[0]", {"a": 10, "b": 1}),
        ("steps[0].items[1].steps[0]", {"a": 20, "b": 1}),
    ]
    state = resume(state, ActionOutcome((1,), 21))
    assert due(state) == [("steps[0].items[2].steps[0]", {"a": 30, "b": 1})]
    assert [item if isinstance(item, int) else "-" for item in unfinished(state)["out"]] == ["-", 21, "-"]
    state = resume(
        state, ActionOutcome((2,), error={"phase": "tool", "kind": "busy", "message": "later", "detail": {}})
    )
    assert due(state) == []
    state = resume(state, ActionOutcome((0,), 11))
    ending = advance(state)
    assert isinstance(ending, Final)
    assert ending.value[:2] == [11, 21]
    assert ending.value[2]["error"]["kind"] == "busy"


def test_from_one_state_two_futures() -> None:
    state = start(EACH, final(var("out")), width=3)
    futures = []
    for value in (1, 2):
        future = state
        for number in (2, 0, 1):
            future = resume(future, ActionOutcome((number,), value * (number + 1)))
        futures.append(advance(future))
    assert futures == [Final([1, 2, 3]), Final([2, 4, 6])]


def test_the_same_outcomes_give_the_same_states() -> None:
    def played() -> PlanState:
        state = start(EACH, final(var("out")), width=3)
        for number in (1, 0, 2):
            state = resume(state, ActionOutcome((number,), number))
        return state

    assert played() == played()


def test_attempts_are_counted_and_an_old_ones_outcome_is_refused() -> None:
    state = start({"op": "retry", "attempts": 2, "steps": [add(1, 2, "x")], "bind": "y"}, final(var("y")))
    failed = resume(
        state, ActionOutcome((0,), error={"phase": "tool", "kind": "busy", "message": "later", "detail": {}})
    )
    assert due(failed) == [("steps[0].attempts[1].steps[0]", {"a": 1, "b": 2})]
    with pytest.raises(ValueError, match="waits for an outcome of 0"):
        resume(failed, ActionOutcome((0,), 1))
    assert advance(resume(failed, ActionOutcome((1,), 1))) == Final(1)


@pytest.mark.parametrize("way", [(0,), (0, 0)])
def test_an_outcome_that_nobody_waits_for_is_a_defect(way: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="nothing in"):
        resume(start(add(1, 2, "x"), final(1)), ActionOutcome(way, 1))


def test_a_body_does_not_wait_for_what_its_items_wait_for() -> None:
    with pytest.raises(ValueError, match="waits for no outcome"):
        resume(start(EACH, final(1)), ActionOutcome((), 1))


def test_a_terminal_outcome_ends_the_plan_where_it_stands() -> None:
    state = resume(start(add(1, 2, "y"), EACH | {"bind": "o"}, final(1)), ActionOutcome((), 3))
    error = {"phase": "runtime", "kind": "timeout", "message": "late", "detail": {}}
    ended = resume(state, ActionOutcome((1,), error=error, terminal=True))
    placed = {**error, "detail": {"step": "steps[1].steps[0]"}}
    assert advance(ended) == Failed(placed, "steps[1].steps[0]", {"y": 3}, terminal=True)
    assert list(unfinished(ended)) == ["o"]


def played(items: int) -> float:
    """CPU seconds that a map of so many items takes, one outcome at a time."""
    frame = FRAME.model_copy(update={"limits": PlanLimits(max_items=items), "inputs": {"many": items}})
    each = EACH | {"over": {"input": "many"}}
    state = begin(plan(each, final(var("out")), frame=frame), Scope({"many": list(range(items))}), width=8)
    open_: deque[Any] = deque(advance(state))
    began = time.process_time()
    while state.ending is None:
        state = resume(state, ActionOutcome(open_.popleft().at, 1))
        open_.extend(state.actions)
    assert state.ending == Final([1] * items)
    return time.process_time() - began


def test_an_outcome_costs_the_same_however_many_items_there_are() -> None:
    """Sixteen times the items, sixteen times the time: not 256 times."""
    assert played(32_000) < 50 * min(played(2_000) for _ in range(3))


def test_states_with_many_results_are_equal_where_the_results_are() -> None:
    states = []
    for last in (1, 1, 2):
        state = start(EACH | {"over": list(range(3_000))}, final(var("out")))
        for number in range(2_990):
            state = resume(state, ActionOutcome((number,), 1 if number < 2_989 else last))
        states.append(state)
    assert states[0] == states[1]
    assert states[0] != states[2]
