"""The same sub-task, asked twice: done once, and never at the cost of whoever asks the second time."""

from __future__ import annotations

import json

import anyio
import pytest

import rlm
from rlm.errors import ProviderError
from rlm.providers import ScriptedProvider
from rlm.providers.base import ProviderRequest
from tests.runtime.actors import child, final, model, plan, tool, var

DEEP = {"max_recursion_depth": 4, "time_limit": 20}


def task_of(request: ProviderRequest) -> str:
    """The first user message: the task of whoever asks."""
    return next(said["content"] for said in request.parts["messages"] if said["role"] == "user").strip()


def shown(request: ProviderRequest) -> str:
    return json.dumps(request.parts)


def side_by_side(*steps: dict) -> dict:
    return {"op": "parallel", "plans": [{"steps": [step]} for step in steps], "bind": "both"}


def test_tasks_that_ask_for_each_other_are_refused_where_they_come_round():
    def answer(request):
        task = task_of(request)
        if task == "root":
            return plan(side_by_side(child("A", "a"), child("B", "b")), final(var("both")))
        if "The plan failed" in shown(request):
            return plan(final("gave up"))
        return plan(child("B" if task == "A" else "A", "x"), final([task, var("x")]))

    result = rlm.complete("root", model=ScriptedProvider(answer), budget=DEEP)
    assert result.unwrap() == [["A", "gave up"], ["B", "gave up"]]
    assert result.usage.seconds < 10


def test_a_failure_is_not_remembered_and_retry_tries_again():
    replies = iter([ProviderError("bad_request", "no", {}, status=400), plan(final("found"))])
    script = ScriptedProvider(lambda request: next(replies))
    steps = {"op": "retry", "attempts": 2, "steps": [child("same", "x")], "bind": "r"}
    assert rlm.run_plan({"steps": [steps, final(var("r"))]}, model=script).unwrap() == "found"
    assert len(script.requests) == 2


@pytest.mark.parametrize("limit", [{"time_limit": 0.5}, {"max_model_calls": 3}], ids=["time", "calls"])
def test_what_ends_the_first_is_nothing_to_the_second(limit):
    """A subagent of small means begins a sub-task that the root asks for as well."""
    begun = anyio.Event()
    replies = iter(["no plan", "still none"])

    @rlm.tool(effect="read")
    async def wait() -> None:
        """Wait until the first has begun."""
        await begun.wait()

    async def answer(request):
        task = task_of(request)
        if task == "root":
            first = {"steps": [tool("rlm_subagent", "s", query="small")]}
            second = {"steps": [tool("wait", "w"), child("same", "x")]}
            return plan({"op": "parallel", "plans": [first, second], "bind": "both"}, final(var("both")))
        if task == "small":
            return plan(child("same", "x"), final(var("x")))
        if not begun.is_set() and "time_limit" in limit:
            begun.set()
            await anyio.sleep_forever()
        begun.set()
        return plan(final("found")) if "time_limit" in limit else next(replies, plan(final("found")))

    result = rlm.complete(
        "root",
        model=ScriptedProvider(answer),
        tools=[wait, rlm.subagent_tool(options={"budget": limit})],
        prompt_compile_mode="all_tools",
        budget=DEEP,
    )
    assert result.status == "ok", result.error
    assert result.value[1] == "found"


def test_a_context_is_not_shared_with_who_was_not_given_it():
    def answer(request):
        task = task_of(request)
        if task == "root":
            reads = child("read it", "a", context={"handle": "context"})
            return plan(reads, child("spy", "b"), final([var("a"), var("b")]))
        if task == "read it":
            peek = {"op": "context", "handle": "context", "action": "peek", "bind": "p"}
            return plan(peek, final(var("p", "text")))
        each = child("read it", "z", context=var("c"))
        steps = {"op": "map", "over": {"literal": [{"handle": "context"}]}, "as": "c", "steps": [each], "bind": "p"}
        return plan(steps, final(var("p")))

    first, second = rlm.complete("root", "SECRET", model=ScriptedProvider(answer), budget=DEEP).unwrap()
    assert first == "SECRET"
    assert second[0]["error"]["kind"] == "unknown_handle"
    assert "SECRET" not in json.dumps(second)


def test_an_answer_is_not_shared_with_who_may_do_less():
    """A subagent without the tool asks what a child of its depth, which has it, was told."""

    @rlm.tool(effect="read")
    def vault() -> str:
        """Open the vault."""
        return "SECRET"

    def answer(request):
        task = task_of(request)
        if task == "root":
            return plan(
                child("more", "a"), tool("rlm_subagent", "s", query="less"), final([var("a"), var("s", "value")])
            )
        if task in ("more", "less"):
            return plan(child("open", "x"), final(var("x")))
        if "## vault" in shown(request):
            return plan(tool("vault", "v"), final(var("v")))
        return plan(final("no vault"))

    less = rlm.Policy(capabilities={"runtime:*", "tool:rlm_subagent"})
    result = rlm.complete(
        "root",
        model=ScriptedProvider(answer),
        tools=[vault, rlm.subagent_tool(child_policy=less)],
        policy=rlm.Policy(capabilities={"runtime:*", "tool:*"}),
        prompt_compile_mode="all_tools",
        budget=DEEP,
    )
    assert result.unwrap() == ["SECRET", "no vault"]


def test_the_last_turn_of_an_agent_is_not_the_last_of_its_children():
    """Turns are an agent's own: a plan at the last one may have children that plan."""

    def answer(request):
        return plan(child("sub", "x"), final(var("x"))) if task_of(request) == "root" else plan(final("found"))

    script = ScriptedProvider(answer)
    assert rlm.complete("root", model=script, budget={"max_iterations": 1}).unwrap() == "found"
    assert len(script.requests) == 2


@pytest.mark.parametrize("calls", [1, 2])
def test_a_plan_that_was_given_may_take_the_last_call_there_is(calls):
    """No turn follows that one would have to be kept for."""
    steps = [model(f"say {n}", f"v{n}") for n in range(calls)]
    script = ScriptedProvider(lambda request: "said")
    result = rlm.run_plan({"steps": [*steps, final(var("v0"))]}, model=script, budget={"max_model_calls": calls})
    assert (result.unwrap(), result.usage.model_calls) == ("said", calls)
