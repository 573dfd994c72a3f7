"""A run that ended in the middle of parallel work, done again: as far as everybody had come, and no further."""

from __future__ import annotations

import json
import random
import threading

import anyio
import pytest

import rlm
from rlm.errors import ConfigurationError, ProviderError
from rlm.providers import ScriptedProvider
from rlm.providers.base import Usage
from rlm.trace.writer import Record
from tests.runtime.actors import child, final, model, observe, plan, tool, var
from tests.runtime.test_twins import task_of

USAGE = Usage(input_tokens=7, output_tokens=5)
SAME = ("status", "value", "bound", "prompt_projection", "executable_only")


def same(path, result: rlm.Completion) -> rlm.Completion:
    """The replay, which is the run again in all that is no time."""
    again = rlm.replay(path)
    assert [getattr(again, name) for name in SAME] == [getattr(result, name) for name in SAME]
    then, now = [None if each.error is None else each.error["kind"] for each in (result, again)]
    assert now == then
    spent, taken = [each.usage.model_dump(exclude={"seconds"}) for each in (result, again)]
    assert taken == spent
    return again


def each(over, *steps, name="it", bind="all"):
    return {"op": "map", "over": over, "as": name, "steps": list(steps), "bind": bind}


def in_any_order(seed: int):
    """A model whose replies come in an order that nobody foresees."""
    rng = random.Random(seed)

    async def answer(request):
        await anyio.sleep(rng.choice((0, 0.001, 0.004, 0.01)))
        said = [message["content"] for message in request.parts["messages"] if message["role"] == "user"]
        task = said[0].strip()
        if task == "root":
            looks = {"op": "context", "handle": "context", "action": "peek", "bind": "p"}
            steps = (
                model({"join": ["first ", var("it")]}, "m"),
                tool("count_things", "t", kind={"join": ["kind ", var("it")]}),
                looks,
                child({"join": ["task ", var("it")]}, "c"),
                final([var("m"), var("t"), var("p", "text"), var("c")]),
            )
            twins = each(var("some"), child("the same", "s"), name="n", bind="same")
            both = [{"steps": [each(var("many"), *steps)]}, {"steps": [twins]}]
            return plan(
                tool("count_up", "many", to=8),  # nobody knows how many there will be, so no plan is too dear
                tool("count_up", "some", to=4),
                {"op": "parallel", "plans": both, "bind": "r"},
                final(var("r")),
            )
        if task.startswith("task") or task == "the same":
            if "# Observed" not in "".join(said):
                return plan(model(f"{task} asks", "m"), observe(var("m")))
            return plan(final(f"{task} is done"))
        return f"<{task[:20]}>"

    return ScriptedProvider(answer, usage=USAGE if seed % 3 else None)


@rlm.tool(effect="read")
async def count_up(to: int) -> list:
    """Count things up."""
    return list(range(to))


def counting(seed: int = 0):
    @rlm.tool(effect="read")
    async def count_things(kind: str) -> int:
        """Count things."""
        await anyio.sleep(random.Random(f"{kind} {seed}").choice((0, 0.003)))
        return len(kind)

    return count_things


LIMITS = [
    *({"max_model_calls": calls} for calls in (4, 14, 27)),
    *({"max_tool_calls": calls} for calls in (3, 8)),
    *({"max_context_ops": calls} for calls in (1, 7)),
    *({"max_total_tokens": tokens} for tokens in (30_000, 90_000)),
]


@pytest.mark.parametrize("limit", LIMITS, ids=[f"{name} {most}" for limit in LIMITS for name, most in limit.items()])
@pytest.mark.parametrize("seed", range(2))
def test_what_a_budget_ended_ends_where_it_ended(tmp_path, limit, seed):
    path = tmp_path / "run.jsonl"
    budget = {"max_model_calls": 60, "time_limit": 30, **limit}
    result = rlm.complete(
        "root",
        "some text",
        model=in_any_order(seed),
        tools=[counting(seed), count_up],
        prompt_compile_mode="all_tools",
        policy=rlm.Policy(reserve_output=2_000),
        budget=budget,
        trace=path,
    )
    same(path, result)
    rlm.replay(path, trace=tmp_path / "again.jsonl")
    same(tmp_path / "again.jsonl", result)


@pytest.mark.parametrize("after", [3, 8, 15, 30, 50])
@pytest.mark.parametrize("seed", range(2))
def test_what_the_host_ended_ends_where_it_ended(tmp_path, after, seed):
    token, seen = rlm.CancelToken(), []

    def watch(event):
        seen.append(event)
        if len([row for row in seen if row["event"] in ("reply", "step")]) >= after * 3:
            token.cancel()

    path = tmp_path / "run.jsonl"
    result = rlm.complete(
        "root",
        "some text",
        model=in_any_order(seed),
        tools=[counting(), count_up],
        prompt_compile_mode="all_tools",
        policy=rlm.Policy(reserve_output=500),
        budget={"max_model_calls": 60, "time_limit": 30},
        cancel=token,
        on_event=watch,
        trace=path,
    )
    assert (result.status, result.error["kind"]) == ("partial", "cancelled")
    same(path, result)


def test_what_a_child_of_a_tool_took_by_then_is_counted(tmp_path):
    """The host ends the run when a subagent's second request is on its way: its first one was paid for."""
    token, asked = rlm.CancelToken(), []

    async def answer(request):
        task = task_of(request)
        if task == "root":
            return plan(tool("rlm_subagent", "s", query="deep"), final(var("s")))
        asked.append(task)
        if len(asked) == 2:
            token.cancel()
            await anyio.sleep_forever()
        return plan(model("a leaf", "m"), final(var("m")))

    path = tmp_path / "run.jsonl"
    result = rlm.complete(
        "root",
        model=ScriptedProvider(answer, usage=USAGE),
        tools=[rlm.subagent_tool()],
        prompt_compile_mode="all_tools",
        cancel=token,
        trace=path,
    )
    assert (result.status, result.error["kind"]) == ("partial", "cancelled")
    assert (result.usage.model_calls, result.usage.children) == (3, 1)
    again = same(path, result)
    assert (again.usage.children, again.usage.iterations) == (1, 2)


def test_a_provider_that_timed_out_is_no_deadline(tmp_path):
    """An error of the provider is called ``timeout`` too; the run failed by it, and fails so again."""
    late = ProviderError("timeout", "the server did not answer", {}, retryable=False)
    path = tmp_path / "run.jsonl"
    result = rlm.complete("x", model=ScriptedProvider([late]), trace=path)
    assert (result.status, result.error["phase"]) == ("failed", "provider")
    assert same(path, result).error == result.error


def test_replies_to_the_same_words_go_to_those_who_had_them(tmp_path):
    """Three leaves are asked the same, and answer differently, the last one first."""
    numbers, gone = iter(range(3)), [anyio.Event() for _ in range(4)]

    async def answer(request):
        if task_of(request) == "root":
            return plan(each([1, 2, 3], model("the same words", "m")), final(var("all")))
        number = next(numbers)
        if number < 2:
            await gone[number + 1].wait()
        gone[number].set()
        return f"answer {number}"

    path = tmp_path / "run.jsonl"
    result = rlm.complete("root", model=ScriptedProvider(answer, usage=USAGE), trace=path)
    assert sorted(result.unwrap()) == ["answer 0", "answer 1", "answer 2"]
    same(path, result)


def cut(path, keep):
    """The trace without the events that are not kept."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows if keep(row)))


def test_a_trace_without_its_end_is_replayed_as_far_as_it_goes(tmp_path):
    """The process was killed: what is there is given back, and the error says what is missing."""
    path = tmp_path / "run.jsonl"
    replies = iter([plan(model("a", "a"), model("b", "b"), final(var("b"))), "first", "second"])
    rlm.complete(
        "x", model=ScriptedProvider(lambda _: next(replies), usage=USAGE), trace=path, budget={"time_limit": 50}
    )
    last = max(row["n"] for row in Record(path).of("request"))
    cut(path, lambda row: row["n"] <= last)
    again = rlm.replay(path)
    assert (again.status, again.error["kind"], again.bound) == ("failed", "replay_differs", {"a": "first"})
    assert "the trace has no end" in again.error["message"]
    assert again.error["detail"]["call"] == "0.1:steps[1]"
    assert again.usage.seconds < 10


def test_where_the_two_part_is_said_and_soon(tmp_path):
    path = tmp_path / "run.jsonl"
    steps = plan(each([1, 2], model({"join": ["say ", var("it")]}, "m")), final(var("all")))
    script = ScriptedProvider(lambda request: steps if task_of(request) == "root" else "said", usage=USAGE)
    rlm.complete("root", model=script, trace=path)
    gone = "0.1:steps[0].items[1].steps[0]"
    cut(path, lambda row: row.get("call") != gone)
    again = rlm.replay(path)
    assert (again.status, again.error["kind"], again.error["detail"]["call"]) == ("failed", "replay_differs", gone)
    assert again.usage.seconds < 10


def test_a_request_that_is_another_one_is_named(tmp_path):
    path = tmp_path / "run.jsonl"
    rlm.complete("x", model=ScriptedProvider([plan(final(1))], usage=USAGE), trace=path)
    text = path.read_text()
    key = Record(path).of("request")[0]["request"]
    path.write_text(text.replace(key, "0" * 64))
    again = rlm.replay(path)
    assert again.error["kind"] == "replay_differs"
    assert again.error["message"] == "the request at 0.1 is not the one that was sent then"


# -- a trace of a run that did not get far ------------------------------------------------------------


def test_a_run_that_timed_out_while_it_was_recorded_leaves_what_there_is(tmp_path):
    """Of eight gigabytes not even the digest is there in time; what was asked, and with what, is."""
    large, path = tmp_path / "large", tmp_path / "run.jsonl"
    with large.open("wb") as file:
        file.truncate(8 * 1024**3)
    script = ScriptedProvider([plan(final(1))])
    result = rlm.complete(
        "the question", rlm.Context.files(large), model=script, trace=path, budget={"time_limit": 0.3}
    )
    assert (result.status, result.error["kind"]) == ("partial", "timeout")
    record = Record(path)
    assert [row["event"] for row in record.events] == ["run", "end"]
    assert record.events[0]["query"] == "the question"
    host = record.value(record.events[0]["host"])
    assert (host["contexts"], host["budget"]) == (["context"], {"time_limit": 0.3})
    assert record.of("end")[0]["error"]["kind"] == "timeout"
    with pytest.raises(ConfigurationError) as raised:
        rlm.replay(path)
    assert raised.value.kind == "unfinished_trace"
    assert "before its contexts were recorded" in raised.value.message


def test_a_run_that_timed_out_while_its_model_started_leaves_what_there_is(tmp_path):
    """Nothing was asked, and a replay asks nothing."""

    class Slow(ScriptedProvider):
        async def __aenter__(self):
            await anyio.sleep_forever()

    path = tmp_path / "run.jsonl"
    result = rlm.complete("x", "text", model=Slow([plan(final(1))]), trace=path, budget={"time_limit": 0.2})
    assert (result.status, result.error["kind"]) == ("partial", "timeout")
    assert [row["event"] for row in Record(path).events] == ["run", "end"]
    assert threading.active_count() < 50
