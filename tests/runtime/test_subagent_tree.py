"""Subagents as parts of a tree: one ledger, one clock, one trace; and what ends when something above them does."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import anyio
import pytest

import rlm
from rlm.agent.agent import Agent
from rlm.agent.subagent import SubagentTimeouts, resolve_timeout
from rlm.providers.scripted import ScriptedProvider
from rlm.trace.writer import Record
from tests.runtime.actors import Cast, child, final, model, observe, part_of, parts, plan, provider, tool, var
from tests.support.loopback import answers, fails, stalls

TASK = "delegate a subtask to a child agent"
SAME = ("status", "value", "error", "bound", "prompt_projection", "executable_only")


def asked(bind="sub", query="dig it out", **arguments):
    return tool("rlm_subagent", bind, query=query, **arguments)


def twice(*steps):
    """A planner that looks at what it bound before it ends: what is left of the budget stands in its second request."""
    return [plan(*steps, observe(var("sub"))), plan(final(var("sub")))]


def taken(result):
    """What a run took, but for the time."""
    return result.usage.model_copy(update={"seconds": 0.0})


# -- the timeout policy, inside a run -----------------------------------------------------------------


@pytest.mark.parametrize("seconds", [0, -3])
def test_t04_t05_in_a_model_written_plan_the_timeout_policy_answers(server, seconds):
    server.script(Cast(planner=twice(asked(timeout_seconds=seconds))))
    got = rlm.complete(TASK, model=provider(server, "openai"), tools=[rlm.subagent_tool()]).unwrap()
    assert (got["type"], got["error"]["phase"], got["error"]["kind"]) == (
        "subagent_error",
        "timeout_policy",
        "invalid_timeout",
    )
    assert got["timeout"] == {"source": "model_request", "requested_seconds": seconds, "effective_seconds": None}
    assert [part for part, _ in parts(server)] == ["planner", "planner"]


def test_t06_in_a_model_written_plan_the_schema_answers(server):
    server.script(Cast(planner=[plan(asked(timeout_seconds="30"), final(var("sub"))), plan(final("gave up"))]))
    result = rlm.complete(TASK, model=provider(server, "openai"), tools=[rlm.subagent_tool()])
    assert result.unwrap() == "gave up"
    assert "timeout_seconds" in server.requests[1].user_text
    assert [part for part, _ in parts(server)] == ["planner", "planner"]


def test_t03_a_number_that_no_float_can_hold_is_above_the_maximum():
    asked = []
    script = ScriptedProvider(lambda request: asked.append(request) or plan(final(1)))
    subagent = rlm.subagent_tool(options={"model": script})
    got = anyio.run(lambda: subagent(query="x", timeout_seconds=10**400))
    assert (got["error"]["kind"], got["correlation"]["child"]) == ("timeout_exceeds_maximum", None)
    assert json.loads(json.dumps(got, allow_nan=False))["timeout"]["requested_seconds"] is None
    assert asked == []


def test_t09_the_request_shows_the_range(server):
    server.script([plan(final(1))])
    rlm.complete(TASK, model=provider(server, "openai"), tools=[rlm.subagent_tool()])
    assert '"exclusiveMinimum"' in server.requests[0].all_text.replace("\\", "")


def test_t16_without_a_run_the_callers_own_deadline_encloses_the_child():
    subagent = rlm.subagent_tool(options={"model": ScriptedProvider([plan(final("found"))])})

    async def call():
        with anyio.fail_after(9):
            return await subagent(query="x")

    got = anyio.run(call)
    assert (got["status"], got["timeout"]["source"]) == ("ok", "parent_bound")
    assert 8 < got["timeout"]["effective_seconds"] <= 9


@pytest.mark.parametrize("left", [0, -1])
def test_t16_without_time_there_is_no_child(left):
    with pytest.raises(rlm.errors.RunError) as raised:
        resolve_timeout(None, SubagentTimeouts(), 30, left)
    assert (raised.value.phase, raised.value.kind) == ("runtime", "timeout")


# -- T14: waiting is another thing --------------------------------------------------------------------


def test_t14_a_childs_deadline_has_nothing_to_do_with_how_long_anybody_waits(server):
    """Waits time out, one after the other, while the child works; it answers in its own time, and was asked once."""
    arrived, release = threading.Event(), threading.Event()

    def slow(_):
        arrived.set()
        release.wait(20)
        return plan(final("found"))

    server.script(Cast(planner=[plan(asked(timeout_seconds=60), final(var("sub")))], child=slow))
    run = rlm.submit(TASK, model=provider(server, "openai"), tools=[rlm.subagent_tool()])
    assert arrived.wait(20)
    for _ in range(3):
        with pytest.raises(rlm.errors.AwaitTimeout):
            run.result(0.01)
    release.set()
    got = run.result(20).unwrap()
    assert (got["value"], got["timeout"]["effective_seconds"]) == ("found", 60)
    assert [part for part, _ in parts(server)] == ["planner", "child"]


def test_t14_a_child_times_out_however_long_somebody_would_wait(server):
    server.script(Cast(planner=[plan(asked(timeout_seconds=0.2), final(var("sub")))], child=stalls()))
    run = rlm.submit(TASK, model=provider(server, "openai"), tools=[rlm.subagent_tool()])
    assert run.result(60).value["error"]["kind"] == "timeout"


# -- one ledger ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "kind"),
    [(lambda: plan(final("found")), None), (lambda: fails(400, "no"), "bad_request"), (stalls, "timeout")],
    ids=["ok", "failed", "timed out"],
)
def test_what_a_child_took_is_in_its_envelope_and_in_the_one_ledger(server, wire, answer, kind):
    leaf = iter(["bound", answer() if kind else "more"])
    steps = plan(model("a", "first"), model("b", "second"), final("found"))
    seconds = 0.5 if kind == "timeout" else 60
    server.script(
        Cast(planner=[plan(asked(timeout_seconds=seconds), final(var("sub")))], child=[steps, fails(400)], leaf=leaf)
    )
    result = rlm.complete(TASK, model=provider(server, wire), tools=[rlm.subagent_tool()])
    got = result.unwrap()
    assert (got["error"] or {}).get("kind") in ((kind,) if kind else (None,)), got
    used = got["usage"]
    assert used["model_calls"] == len(server.requests) - 1
    assert result.usage.model_calls == len(server.requests)
    root = server.exchanges[0]
    assert result.usage.total_tokens == root.tokens_in + root.tokens_out + used["input_tokens"] + used["output_tokens"]
    assert result.usage.total_tokens >= server.tokens_in + server.tokens_out
    if kind != "timeout":
        assert result.usage.total_tokens == server.tokens_in + server.tokens_out
        assert result.usage.estimated_tokens == 0
    assert (result.usage.children, result.usage.iterations) == (1, 1 + used["iterations"])


def test_a_child_may_take_no_more_than_its_own_budget_nor_than_its_parents(server):
    lines = [plan(*(model(f"say {n}", f"v{n}") for n in range(9)), final(1))]
    server.script(Cast(planner=[plan(asked(), final(var("sub")))], child=lines * 9))
    subagent = rlm.subagent_tool(options={"budget": {"max_model_calls": 4, "max_iterations": 2}})
    got = rlm.complete(TASK, model=provider(server, "openai"), tools=[subagent], max_repairs=9).unwrap()
    assert got["status"] == "failed"
    assert got["usage"]["model_calls"] <= 4


def test_what_the_childs_budget_does_not_say_is_its_parents(server, monkeypatch):
    seen = []
    original = Agent.answer
    monkeypatch.setattr(Agent, "answer", lambda self: seen.append(self.run_budget.budget) or original(self))
    server.script(Cast(planner=[plan(asked(), final(1))], child=[plan(final(1))]))
    subagent = rlm.subagent_tool(options={"budget": {"max_tool_calls": 3}})
    rlm.complete(TASK, model=provider(server, "openai"), tools=[subagent], budget={"max_context_ops": 5})
    assert (seen[1].max_tool_calls, seen[1].max_context_ops, seen[1].time_limit) == (3, 5, 30)


def test_a_childs_own_depth_and_output_limits_hold(server):
    server.script(
        Cast(
            planner=[plan(asked("sub"), asked("long", query="a long one"), final([var("sub"), var("long")]))],
            child=lambda request: plan(final("x" * (200 if "a long one" in request.user_text else 2))),
        )
    )
    subagent = rlm.subagent_tool(options={"budget": {"max_recursion_depth": 0, "max_output_bytes": 100}})
    fine, long = rlm.complete(
        TASK, model=provider(server, "openai"), tools=[subagent], budget={"max_recursion_depth": 5}, max_repairs=0
    ).unwrap()
    assert "rlm_subagent" in server.requests[0].all_text
    assert all("rlm_subagent" not in request.all_text for part, request in parts(server) if part == "child")
    assert (fine["value"], long["status"]) == ("xx", "failed")


def test_a_childs_authority_is_asked_after_its_parents(server):
    seen = []

    @rlm.tool(effect="write")
    def keep(word: str) -> str:
        """Keep a word of a subtask."""
        return word

    def authority(request):
        seen.append(request.origin)
        return "deny"

    server.script(
        Cast(
            planner=[plan(tool("keep", "a", word="r"), asked(query="keep a word"), final([var("a"), var("sub")]))],
            child=lambda _: plan(tool("keep", "b", word="c"), final(var("b"))),
        )
    )
    review = rlm.Command(id="review", text="Review it.", role="reviewer")
    subagent = rlm.subagent_tool(
        options={"authority": authority},
        commands=rlm.Commands([review]),
        command=("review", review.fingerprint),
    )
    result = rlm.complete(
        "keep a word, and " + TASK,
        model=provider(server, "openai"),
        tools=[subagent, keep],
        authority="allow",
        max_repairs=0,
    )
    mine, got = result.unwrap()
    assert (mine, got["status"]) == ("r", "failed")
    assert {origin["delegation"]["command"] for origin in seen} == {"review"}
    assert {origin["agent"] for origin in seen} == {got["correlation"]["child"]}


def test_a_child_sees_its_own_relevant_units_and_not_its_parents(server, wire):
    @rlm.tool(effect="read")
    def octopus_finder() -> str:
        """Find an octopus."""
        return "here"

    server.script(Cast(planner=[plan(asked(query="find an octopus"), final(1))], child=[plan(final(1))]))
    rlm.complete(TASK, model=provider(server, wire), tools=[rlm.subagent_tool(), octopus_finder])
    root, inner = server.requests
    assert "octopus_finder" not in root.all_text
    assert "octopus_finder" in inner.all_text


# -- handlers that delegate ---------------------------------------------------------------------------


def handled(server, handler, planner_extra=(), **options):
    server.script(Cast(planner=[plan(tool(handler.name, "sub"), final(var("sub")))], child=lambda _: plan(final("c"))))

    async def main():
        return await rlm.acomplete(TASK, model=provider(server, "openai"), tools=[handler, SUBAGENT], **options)

    return anyio.run(main)


SUBAGENT = rlm.subagent_tool()


def test_a_sync_handler_on_a_loop_of_its_own_delegates_within_the_run(server, monkeypatch):
    """The handler's thread has an event loop of its own; the child lives on the run's."""
    where, loops = [], set()
    original = Agent.answer
    monkeypatch.setattr(Agent, "answer", lambda self: loops.add(asyncio.get_running_loop()) or original(self))

    @rlm.tool(effect="read")
    def helper() -> list:
        """Help a child agent with a subtask."""
        where.append(threading.current_thread())
        return [asyncio.run(SUBAGENT(query=f"number {n}")) for n in range(2)]

    result = handled(server, helper)
    first, second = result.unwrap()
    assert where[0] is not threading.main_thread()
    assert len(loops) == 1
    assert (first["value"], first["correlation"]["parent"]) == ("c", "0")
    assert first["correlation"]["child"] != second["correlation"]["child"]
    assert (result.usage.model_calls, result.usage.children) == (3, 2)


def test_an_async_handler_delegates_within_the_run_and_each_child_has_a_name(server):
    @rlm.tool(effect="read")
    async def helper() -> list:
        """Help a child agent with a subtask."""
        return list(await asyncio.gather(*(SUBAGENT(query=f"number {n}") for n in range(5))))

    result = handled(server, helper)
    assert len({got["correlation"]["child"] for got in result.unwrap()}) == 5
    assert result.usage.model_calls == 6


def test_a_child_that_a_handler_left_behind_ends_with_the_plan(server):
    kept: list[asyncio.Task[Any]] = []

    @rlm.tool(effect="read")
    async def helper() -> str:
        """Help a child agent with a subtask."""
        kept.append(asyncio.create_task(SUBAGENT(query="for ever")))
        await server.wait_for(2)
        return "gone"

    server.script(Cast(planner=[plan(tool("helper", "sub"), final(var("sub")))], child=stalls()))

    async def main():
        result = await rlm.acomplete(TASK, model=provider(server, "openai"), tools=[helper, SUBAGENT])
        return result, await kept[0]

    result, late = anyio.run(main)
    assert result.unwrap() == "gone"
    assert (late["status"], late["error"]["kind"]) == ("failed", "cancelled")
    server.wait_for_no_connections()


# -- cancelling the tree ------------------------------------------------------------------------------


def test_cancelling_the_root_ends_the_tree_three_deep(server, monkeypatch):
    """The host cancels when a grandchild's child is in the middle of its request: no task, no place, no connection."""
    token, runs = rlm.CancelToken(), []
    deep = "down and down and down"

    def inner(request):
        depth = request.user_text.split("# Inputs")[0].count("down")
        if depth == 3:
            token.cancel()
            return stalls()
        return plan(asked(query=" and ".join(["down"] * (depth + 1))), final(var("sub")))

    server.script(Cast(planner=[plan(asked(query="down"), final(var("sub")))], child=inner))

    original = Agent.answer
    monkeypatch.setattr(Agent, "answer", lambda self: runs.append(self.run) or original(self))

    async def main():
        before = asyncio.all_tasks()
        result = await rlm.acomplete(
            TASK,
            model=provider(server, "openai"),
            tools=[rlm.subagent_tool()],
            budget={"max_recursion_depth": 3},
            cancel=token,
        )
        return result, {task for task in asyncio.all_tasks() - before if not task.done()}

    result, left = anyio.run(main)
    assert (result.status, result.error["kind"]) == ("partial", "cancelled")
    assert deep in server.requests[-1].user_text
    assert len(server.requests) == 4
    assert result.abandoned == ()
    assert left == set()
    run = runs[0]
    assert {limiter.borrowed_tokens for limiter in (run.slots, *run._places.values())} == {0}
    assert run.run_budget.reserved_tokens == 0
    server.wait_for_no_connections()


def test_a_child_that_runs_out_of_budget_takes_its_own_children_with_it(server):
    """In one branch it spends all its tokens while its own child is on its way in the other."""
    arrived = threading.Event()

    def inner(request):
        if "deep" in request.user_text.split("# Inputs")[0]:
            arrived.set()
            return stalls()
        below = {"steps": [asked("deepest", query="deep"), final(var("deepest"))]}
        branch = {"steps": [model("x", "x"), model("y", "y"), final(var("y"))]}
        return plan({"op": "parallel", "plans": [below, branch], "bind": "both"}, final(var("both")))

    def leaf(_):
        arrived.wait(20)
        return answers("word " * 9000)

    server.script(
        Cast(planner=[plan(asked(query="delegate a subtask further"), final(var("sub")))], child=inner, leaf=leaf)
    )
    subagent = rlm.subagent_tool(options={"budget": {"max_total_tokens": 8000, "time_limit": 25}})
    result = rlm.complete(
        TASK,
        model=provider(server, "openai"),
        tools=[subagent],
        budget={"max_recursion_depth": 2},
        policy=rlm.Policy(reserve_output=300),
        skills="off",
    )
    got = result.unwrap()
    assert (got["error"]["kind"], got["error"]["detail"].get("field")) == ("budget_exhausted", "max_total_tokens"), got[
        "error"
    ]["detail"]
    assert got["usage"]["seconds"] < 20
    assert sorted(part for part, _ in parts(server)) == ["child", "child", "leaf", "planner"]
    assert result.usage.total_tokens >= server.tokens_in + server.tokens_out
    assert result.abandoned == ()
    server.wait_for_no_connections()


# -- the trace, and the run again ---------------------------------------------------------------------


CASES: dict[str, dict[str, Any]] = {
    "an answer": {"child": [plan(model("x", "y"), final("found"))]},
    "a failure": {"child": lambda _: fails(400, "no")},
    "out of time": {"child": stalls(), "arguments": {"timeout_seconds": 0.2}},
    "refused": {"arguments": {"timeout_seconds": 9999}},
    "a repair": {"child": ["no plan", plan(final("found"))]},
    "a grandchild": {
        "child": iter([plan(asked("b", query="deep"), observe(var("b"))), plan(final("deep")), plan(final(var("b")))])
    },
    "a fault on the way": {"child": [fails(503), plan(final("found"))]},
}


@pytest.mark.parametrize("case", CASES)
def test_a_replay_gives_the_identical_result_and_makes_no_child_again(server, tmp_path, monkeypatch, case):
    fields = dict(CASES[case])
    server.script(Cast(planner=twice(asked(**fields.pop("arguments", {}))), **fields))
    path = tmp_path / "run.jsonl"
    result = rlm.complete(
        TASK,
        model=provider(server, "openai"),
        tools=[rlm.subagent_tool()],
        budget={"max_recursion_depth": 2},
        retry={"base": 0.001},
        trace=path,
    )
    sent, made = len(server.requests), []
    original = Agent.answer
    monkeypatch.setattr(Agent, "answer", lambda self: made.append(self.id) or original(self))
    again = rlm.replay(path, trace=tmp_path / "again.jsonl")
    assert [getattr(again, name) for name in SAME] == [getattr(result, name) for name in SAME]
    assert result.status == "ok"
    assert taken(again) == taken(result)
    assert made == ["0"]
    assert len(server.requests) == sent
    assert rlm.replay(tmp_path / "again.jsonl").value == result.value


def test_the_requests_of_a_child_are_in_the_trace(server, tmp_path):
    server.script(Cast(planner=[plan(asked(), final(var("sub")))], child=[plan(model("x", "y"), final(var("y")))]))
    result = rlm.complete(
        TASK, model=provider(server, "openai"), tools=[rlm.subagent_tool()], trace=tmp_path / "t.jsonl"
    )
    record = Record(tmp_path / "t.jsonl")
    name = result.unwrap()["correlation"]["child"]
    calls = {row["call"]: row for row in record.of("request")}
    assert set(calls) == {"0.1", f"{name}.1", f"{name}.1:steps[0]"}
    assert [record.body(row["body"]) for row in record.of("request")] == [each.body for each in server.requests]
    assert {row["agent"]: row["depth"] for row in record.of("agent")} == {"0": 0, name: 1}
    (took,) = (row["took"] for row in record.of("tool"))
    assert (took["model_calls"], took["children"]) == (2, 1)


def test_a_run_that_ended_in_the_middle_of_a_child_ends_so_again(server, tmp_path):
    token = rlm.CancelToken()
    server.script(Cast(planner=[plan(model("a", "a"), asked(), final(1))], child=lambda _: token.cancel() or stalls()))
    path = tmp_path / "t.jsonl"
    result = rlm.complete(TASK, model=provider(server, "openai"), tools=[rlm.subagent_tool()], cancel=token, trace=path)
    assert (result.status, result.bound) == ("partial", {"a": "leaf's answer"})
    again = rlm.replay(path)
    assert [getattr(again, name) for name in SAME] == [getattr(result, name) for name in SAME]


def test_what_a_handler_asked_for_itself_is_charged_in_a_replay_too(server, tmp_path):
    @rlm.tool(effect="read")
    def asker() -> str:
        """Ask somebody about a subtask."""
        return rlm.chat([{"role": "user", "content": "hm"}])

    server.script(Cast(planner=twice(tool("asker", "sub"))))
    path = tmp_path / "t.jsonl"
    result = rlm.complete("ask about a subtask", model=provider(server, "openai"), tools=[asker], trace=path)
    again = rlm.replay(path)
    assert (again.unwrap(), taken(again)) == (result.unwrap(), taken(result))


def test_a_delegated_task_says_so_in_the_trace_once(server, tmp_path):
    server.script(Cast(planner=[plan(asked(), child("another", "c"), final(1))], child=lambda _: plan(final(1))))
    path = tmp_path / "t.jsonl"
    rlm.complete(TASK, model=provider(server, "openai"), tools=[rlm.subagent_tool()], trace=path)
    (row,) = Record(path).of("delegated")
    assert (row["parent"], row["delegation"], row["timeout"]["source"]) == ("0", None, "default")
    assert json.loads(json.dumps(row)) == row
    assert part_of(server.requests[1]) == "child"


def test_the_runs_child_policy_narrows_a_subagent_too(server):
    """Whatever the tool's own policy says: a child has no more than both leave it."""
    subagent = rlm.subagent_tool(child_policy=rlm.Policy(denied={"tool:rm"}))

    @rlm.tool(effect="read")
    def word_finder(word: str) -> str:
        """Dig out a word for a subtask of a child agent."""
        return word

    call = tool("rlm_subagent", "sub", query="dig it out")
    server.script(Cast(planner=[plan(call, final(var("sub")))], child=[plan(final("found"))]))
    result = rlm.complete(
        "delegate a subtask to a child agent and dig out a word",
        model=provider(server, "openai"),
        tools=[subagent, word_finder],
        policy=rlm.Policy(capabilities={"tool:rlm_subagent", "tool:word_finder"}),
        child_policy=rlm.Policy(capabilities=set()),
    )
    assert result.value["status"] == "ok"
    assert "word_finder" in server.requests[0].all_text
    assert "word_finder" not in server.requests[1].all_text
