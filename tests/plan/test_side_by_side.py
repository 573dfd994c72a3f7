"""What runs side by side, how much of it, and that nothing is left running. Proven with events, never with time."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from rlm.errors import RlmError, ToolError
from rlm.plan import Execution, Failed, Final, Scope, current_step, run
from tests.plan.world import INPUTS, Stopped, World, add, final, plan, var

pytestmark = pytest.mark.anyio


class Gate:
    """Tools that wait until so many of them are inside; counts the most that were."""

    def __init__(self, wanted: int) -> None:
        self.wanted, self.inside, self.most, self.ended = wanted, 0, 0, 0
        self.full = anyio.Event()
        self.paths: list[str] = []

    async def enter(self, arguments: dict[str, Any]) -> Any:
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.paths.append(current_step.get())
        if self.inside >= self.wanted:
            self.full.set()
        try:
            await self.full.wait()
        finally:
            self.inside -= 1
            self.ended += 1
        return arguments["a"]


def each(count: int, *steps: dict[str, Any], bind: str = "out", name: str = "it") -> dict[str, Any]:
    steps = steps or (add(var(name), 0, "x"),)
    return {"op": "map", "over": list(range(count)), "as": name, "steps": list(steps), "bind": bind}


def execution(
    *steps: dict[str, Any], gate: Gate | None = None, world: World | None = None, **options: Any
) -> Execution:
    world = world or World(tools={"add": gate.enter} if gate else {})
    return Execution(plan(*steps), world, Scope(INPUTS), **{"width": 8, **options})


async def test_the_items_of_a_map_run_side_by_side() -> None:
    gate = Gate(wanted=5)
    with anyio.fail_after(20):
        ending = await execution(each(5), final(var("out")), gate=gate).run()
    assert (ending, gate.most) == (Final([0, 1, 2, 3, 4]), 5)
    assert gate.paths == [f"steps[0].items[{n}].steps[0]" for n in range(5)]


async def test_the_plans_of_a_parallel_run_side_by_side() -> None:
    gate = Gate(wanted=3)
    plans = [[add(n, 0, "x")] for n in range(3)]
    with anyio.fail_after(20):
        ending = await execution({"op": "parallel", "plans": plans, "bind": "out"}, final(var("out")), gate=gate).run()
    assert (ending, gate.most) == (Final([0, 1, 2]), 3)


async def test_no_more_items_are_under_way_than_the_width() -> None:
    gate = Gate(wanted=2)
    with anyio.fail_after(20):
        await execution(each(9), final(var("out")), gate=gate, width=2).run()
    assert (gate.most, gate.ended) == (2, 9)


async def test_an_item_is_finished_before_the_next_one_begins() -> None:
    order: list[tuple[int, int]] = []

    async def note(arguments: dict[str, Any]) -> Any:
        order.append((arguments["a"], arguments["b"]))
        return arguments["a"]

    two_steps = (add(var("it"), 1, "x"), add(var("it"), 2, "y"))
    await execution(each(3, *two_steps), final(1), world=World(tools={"add": note}), width=1).run()
    assert order == [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (2, 2)]


async def test_one_limit_holds_for_all_executions_of_a_tree() -> None:
    gate, slots = Gate(wanted=3), anyio.CapacityLimiter(3)
    nested = each(4, each(4, bind="in", name="deep"), name="it")
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            for _ in range(2):
                group.start_soon(execution(nested, final(1), gate=gate, slots=slots).run)
    assert (gate.most, gate.ended) == (3, 32)
    assert slots.borrowed_tokens == 0


async def test_a_child_that_waits_for_its_own_steps_takes_no_place() -> None:
    slots = anyio.CapacityLimiter(1)

    class Parent(World):
        async def rlm(self, *_: Any) -> Any:
            ending = await run(plan(add(1, 2, "x"), final(var("x"))), self, Scope({}), width=1, slots=slots)
            assert isinstance(ending, Final)
            return ending.value

    child = {"op": "rlm", "query": "x", "bind": "y"}
    with anyio.fail_after(20):
        ending = await execution(each(3, child), final(var("out")), world=Parent(), slots=slots).run()
    assert ending == Final([3, 3, 3])


async def test_results_are_in_order_whatever_ends_first() -> None:
    first, second = anyio.Event(), anyio.Event()

    async def backwards(arguments: dict[str, Any]) -> Any:
        number = arguments["a"]
        if number == 0:
            await first.wait()
        if number == 1:
            await second.wait()
            first.set()
        if number == 2:
            second.set()
        return number

    with anyio.fail_after(20):
        ending = await execution(each(3), final(var("out")), world=World(tools={"add": backwards})).run()
    assert ending == Final([0, 1, 2])


# -- what was bound so far ----------------------------------------------------------------------------


class Stuck:
    """Tools of which some never end by themselves; ``reached`` says that so many wait."""

    def __init__(self, stuck: set[Any], waiting: int = 1) -> None:
        self.stuck, self.waiting, self.inside, self.cancelled = stuck, waiting, 0, 0
        self.reached = anyio.Event()

    async def tool(self, arguments: dict[str, Any]) -> Any:
        if arguments["a"] not in self.stuck:
            return arguments["a"]
        self.inside += 1
        if self.inside == self.waiting:
            self.reached.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.inside -= 1
            self.cancelled += 1


async def test_cancelled_in_the_middle_it_leaves_nothing_and_tells_what_was_bound() -> None:
    stuck = Stuck({-1})
    running = execution(add(7, 0, "x"), add(-1, 0, "y"), final(1), world=World(tools={"add": stuck.tool}))
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(running.run)
            await stuck.reached.wait()
            assert running.bindings() == {"x": 7}
            group.cancel_scope.cancel()
    assert (stuck.inside, stuck.cancelled) == (0, 1)
    assert running.bindings() == {"x": 7}
    assert running.unfinished() == {}
    assert running.state.ending is None


async def test_of_a_map_in_the_middle_the_items_that_are_there_can_be_had() -> None:
    stuck = Stuck({1, 3}, waiting=2)
    running = execution(add(7, 0, "y"), each(4), final(1), world=World(tools={"add": stuck.tool}))
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(running.run)
            await stuck.reached.wait()
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
    assert (stuck.inside, stuck.cancelled) == (0, 2)
    assert running.bindings() == {"y": 7}
    out = running.unfinished()["out"]
    assert (out[0], out[2]) == (0, 2)
    assert [item["error"]["kind"] for item in (out[1], out[3])] == ["unfinished", "unfinished"]


# -- errors -------------------------------------------------------------------------------------------


def terminal_world(stuck: Stuck) -> World:
    async def tool(arguments: dict[str, Any]) -> Any:
        if arguments["a"] == 2:
            await stuck.reached.wait()
            raise Stopped("budget_exhausted", "all is spent")
        return await stuck.tool(arguments)

    return World(tools={"add": tool})


@pytest.mark.parametrize("wrapped", [False, True], ids=["map", "map in retry"])
async def test_a_terminal_error_ends_everything_at_once(wrapped: bool) -> None:
    stuck = Stuck({0, 1, 3}, waiting=3)
    step = each(4)
    if wrapped:
        step = {"op": "retry", "attempts": 5, "steps": [step], "bind": "out2"}
    running = execution(add(7, 0, "y"), step, final(1), world=terminal_world(stuck))
    with anyio.fail_after(20):
        ending = await running.run()
    assert isinstance(ending, Failed)
    assert (ending.terminal, ending.error["kind"], ending.bound) == (True, "budget_exhausted", {"y": 7})
    assert ending.path == ("steps[1].steps[0].steps[0]" if wrapped else "steps[1].steps[0]")
    assert (stuck.inside, stuck.cancelled) == (0, 3)
    assert ending == running.state.ending


async def test_a_terminal_error_is_not_tried_again() -> None:
    tries: list[int] = []

    async def tool(_: dict[str, Any]) -> Any:
        tries.append(0)
        raise Stopped("timeout", "too late")

    step = {"op": "retry", "attempts": 5, "steps": [add(1, 2, "x")], "bind": "y"}
    ending = await execution(step, final(1), world=World(tools={"add": tool})).run()
    assert isinstance(ending, Failed)
    assert (ending.terminal, len(tries)) == (True, 1)


async def test_a_defect_of_the_executor_comes_out_as_it_is_and_stops_the_rest() -> None:
    stuck = Stuck({0, 1}, waiting=2)

    async def tool(arguments: dict[str, Any]) -> Any:
        if arguments["a"] == 2:
            await stuck.reached.wait()
            raise KeyError("a defect")
        return await stuck.tool(arguments)

    with anyio.fail_after(20):
        with pytest.raises(KeyError, match="a defect"):
            await execution(each(3), final(1), world=World(tools={"add": tool})).run()
    assert (stuck.inside, stuck.cancelled) == (0, 2)


@pytest.mark.parametrize("error", [ToolError("busy", "later"), RlmError("odd", "x")])
async def test_any_other_error_of_ours_is_the_items_own(error: RlmError) -> None:
    async def tool(arguments: dict[str, Any]) -> Any:
        if arguments["a"] == 1:
            raise error
        return arguments["a"]

    ending = await execution(each(3), final(var("out")), world=World(tools={"add": tool})).run()
    assert isinstance(ending, Final)
    assert [item if isinstance(item, int) else item["error"]["kind"] for item in ending.value] == [0, error.kind, 2]
