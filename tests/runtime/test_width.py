"""How much works at the same moment: never more than the width at one depth, and no width makes anybody wait for himself."""

from __future__ import annotations

import asyncio
import threading

import pytest

import rlm
from rlm.agent.agent import Agent
from rlm.providers import ScriptedProvider
from rlm.providers.base import Usage
from rlm.sync import run_sync
from tests.runtime.actors import child, final, plan, tool, var
from tests.runtime.test_twins import side_by_side, task_of

USAGE = Usage(input_tokens=9, output_tokens=9)
DELEGATE = rlm.subagent_tool({"default": 30})
WAYS = {
    "a loop of its own": lambda query: asyncio.run(DELEGATE(query)),
    "run_sync": lambda query: run_sync(DELEGATE, query),
}


def each(over, steps, bind="all"):
    return {"op": "map", "over": list(over), "as": f"{bind}_item", "steps": steps, "bind": bind}


@pytest.mark.parametrize("ask", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("width", [1, 2])
def test_a_sync_handler_may_wait_for_a_subagent_whose_sync_handler_waits_for_another(width, ask):
    """Three threads, each of which waits for the next one, and as many of them as may work at one depth."""
    threads = set()

    @rlm.tool(effect="read")
    def helper(level: int) -> str:
        """Help a child agent with a subtask."""
        threads.add(threading.current_thread())
        if level == 3:
            return "deep"
        return ask(f"level {level + 1}")["value"]

    def answer(request):
        level = int(task_of(request).split()[-1])
        steps = (
            each(range(width), [tool("helper", "h", level=level)]) if level == 1 else tool("helper", "all", level=level)
        )
        return plan(steps, final(var("all")))

    result = rlm.complete(
        "help at level 1",
        model=ScriptedProvider(answer),
        tools=[helper, DELEGATE],
        prompt_compile_mode="all_tools",
        budget={"max_concurrent_subcalls": width, "max_recursion_depth": 3, "time_limit": 20},
    )
    assert result.unwrap() == ["deep"] * width
    assert len(threads) == 3 * width
    assert result.abandoned == ()
    assert result.usage.seconds < 15


def test_handlers_of_one_depth_are_never_more_than_the_width():
    """Sixteen children with a sync handler each, and two slots for their depth."""
    now, most, lock = 0, 0, threading.Lock()
    two = threading.Barrier(2, timeout=10)

    @rlm.tool(effect="read")
    def meet() -> str:
        """Meet one other."""
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        two.wait()
        with lock:
            now -= 1
        return "met"

    steps = {"steps": [each(range(16), [child({"join": ["child ", var("all_item")]}, "c")]), final(var("all"))]}
    result = rlm.run_plan(
        steps,
        tools=[meet],
        model=ScriptedProvider(lambda request: plan(tool("meet", "m"), final(var("m"))), usage=USAGE),
        prompt_compile_mode="all_tools",
        budget={"max_concurrent_subcalls": 2, "max_model_calls": 20, "time_limit": 30},
    )
    assert result.unwrap() == ["met"] * 16
    assert most == 2


@pytest.mark.parametrize("width", [1, 3])
def test_maps_in_maps_have_no_more_children_at_once_than_the_budget_says(width, monkeypatch):
    now, most = 0, 0
    original = Agent.answer

    async def counted(agent):
        nonlocal now, most
        now += agent.depth
        most = max(most, now)
        try:
            return await original(agent)
        finally:
            now -= agent.depth

    monkeypatch.setattr(Agent, "answer", counted)
    name = {"join": [var("out_item"), ".", var("in_item")]}
    steps = {"steps": [each(range(6), [each(range(6), [child(name, "c")], "in")], "out"), final(var("out"))]}
    script = ScriptedProvider(lambda request: plan(final(task_of(request))), usage=USAGE)
    budget = {"max_concurrent_subcalls": width, "max_model_calls": 40, "time_limit": 60}
    result = rlm.run_plan(steps, model=script, budget=budget)
    assert result.unwrap() == [[f"{n}.{m}" for m in range(6)] for n in range(6)]
    assert result.usage.children == 36
    assert most == width


@pytest.mark.parametrize("width", [1, 2])
def test_a_child_that_asks_what_its_sibling_waits_to_be_asked_finds_it_itself(width):
    """The sibling has its place only when this child gives its own back: nobody may wait for it meanwhile."""

    def answer(request):
        task = task_of(request)
        if task == "root":
            return plan(side_by_side(child("A", "a"), child("B", "b"), child("C", "c")), final(var("both")))
        if task == "A":
            return plan(child("C", "x"), final(["A", var("x")]))
        return plan(final(task))

    result = rlm.complete(
        "root",
        model=ScriptedProvider(answer),
        budget={"max_concurrent_subcalls": width, "max_recursion_depth": 3, "time_limit": 20},
    )
    assert result.unwrap() == [["A", "C"], "B", "C"]
    assert result.usage.seconds < 10
