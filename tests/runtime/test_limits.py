"""Budgets, deadlines and faults: each of the ways in which peers were seen to lose money, time or instructions.

The server counts tokens by itself; what is reported is held against its count.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time

import pytest

import rlm
from rlm.providers.prices import Price
from tests.runtime.actors import Cast, child, final, model, observe, part_of, plan, provider, tool, var
from tests.support.loopback import answers, drops, fails, raw, resets, stalls

SOON = 0.5
"""Seconds after its deadline in which a run must be back."""


def fan_out(count: int, steps: list[dict], name: str = "all") -> dict:
    return {"op": "map", "over": list(range(count)), "as": "it", "steps": steps, "bind": name}


ASK = model({"join": ["item ", var("it")]}, "said")


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.is_alive()}


class Clock:
    def __enter__(self) -> Clock:
        self.start = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.monotonic() - self.start


# -- budgets ------------------------------------------------------------------------------------------


def test_a_cost_cap_holds_against_a_model_that_never_finishes(server, wire):
    """A cap of $0.60 (a peer spent $1.30)."""
    price = Price(input_per_million=100, output_per_million=400)
    server.script(lambda _: answers(plan(observe(f"again {len(server.requests)}")), cost=None))
    result = rlm.complete(
        "x",
        model=provider(server, wire),
        prices={"m": price},
        budget={"max_cost_usd": 0.6, "max_iterations": 1000, "max_model_calls": 1000},
    )
    assert (result.status, result.error["kind"], result.error["detail"]["field"]) == (
        "partial",
        "budget_exhausted",
        "max_cost_usd",
    )
    spent = (server.tokens_in * 100 + server.tokens_out * 400) / 1_000_000
    assert result.usage.cost_usd == pytest.approx(spent)
    assert spent <= 0.6


def test_a_token_cap_holds_with_sub_calls_side_by_side(server, wire):
    """A cap of 5,000 tokens with batched sub-calls (a peer let 225,500 through)."""
    server.script(Cast(planner=[plan(fan_out(50, [ASK]), final(var("all")))], leaf=lambda _: answers("word " * 300)))
    result = rlm.complete(
        "x", model=provider(server, wire), skills="off", budget={"max_total_tokens": 5000, "max_model_calls": 100}
    )
    assert result.status == "partial"
    assert result.error["detail"]["field"] == "max_total_tokens"
    assert result.usage.total_tokens == server.tokens_in + server.tokens_out
    # replies are cut at their limit by a real server; ours says what it likes, as far as what was in flight
    assert server.high_water <= 8


def test_a_token_cap_is_never_exceeded_by_a_server_that_keeps_to_its_limit(server, wire):
    def leaf(request):
        most = request.json.get("max_tokens") or request.json.get("max_completion_tokens")
        return answers("word " * max(1, most - 5))

    server.script(Cast(planner=[plan(fan_out(50, [ASK]), final(var("all")))], leaf=leaf))
    result = rlm.complete(
        "x", model=provider(server, wire), skills="off", budget={"max_total_tokens": 5000, "max_model_calls": 100}
    )
    assert result.status == "partial"
    assert result.usage.total_tokens == server.tokens_in + server.tokens_out <= 5000


@pytest.mark.parametrize(
    ("field", "limit", "steps"),
    [
        ("max_model_calls", 5, [fan_out(20, [ASK]), final(var("all"))]),
        ("max_tool_calls", 3, [fan_out(20, [tool("count_up", "n")]), final(var("all"))]),
        (
            "max_context_ops",
            3,
            [fan_out(20, [{"op": "context", "handle": "context", "action": "info", "bind": "i"}]), final(1)],
        ),
    ],
)
def test_a_count_is_refused_before_it_runs_or_ends_the_plan(server, field, limit, steps):
    calls = []

    @rlm.tool(effect="read")
    def count_up() -> int:
        """Count up by one."""
        calls.append(1)
        return len(calls)

    rounds = iter([plan(*steps)])
    server.script(Cast(planner=lambda _: next(rounds, plan(final("gave up")))))
    result = rlm.complete(
        "count up by one", "some text", model=provider(server, "openai"), tools=[count_up], budget={field: limit}
    )
    spent = {
        "max_model_calls": result.usage.model_calls,
        "max_tool_calls": len(calls),
        "max_context_ops": result.usage.context_ops,
    }
    assert spent[field] <= limit
    assert result.status in ("ok", "partial")
    assert len(server.requests) == result.usage.model_calls


def test_iterations_end_a_planner_that_never_finishes_with_what_it_bound(server, wire):
    place = iter(range(100))
    server.script(lambda _: plan({"op": "model", "prompt": "x", "bind": f"v{next(place)}"}, observe("on")))
    server.script(Cast(planner=lambda _: plan(model("x", f"v{next(place)}"), observe("on")), leaf="found"))
    result = rlm.complete("x", model=provider(server, wire), budget={"max_iterations": 3})
    assert (result.status, result.error["kind"]) in (("partial", "max_iterations"), ("failed", "no_valid_plan"))
    assert "found" in result.bound.values()
    assert result.usage.iterations == 3


def test_the_last_turn_says_that_it_is_the_last_and_offers_no_observe(server):
    server.script([plan(observe("a")), plan(final("best guess"))])
    result = rlm.complete("x", model=provider(server, "openai"), budget={"max_iterations": 2})
    assert result.unwrap() == "best guess"
    assert "# Last turn" not in server.requests[0].user_text
    assert "# Last turn" in server.requests[1].user_text
    assert '"observe"' not in json.dumps(server.requests[1].json["response_format"])


def test_usage_that_is_not_reported_is_charged_at_our_own_count(server, wire):
    server.script(lambda _: answers(plan(final("ok")), usage=None))
    result = rlm.complete("x", model=provider(server, wire))
    assert result.usage.estimated_tokens == result.usage.total_tokens > server.tokens_in + server.tokens_out


def test_an_unpriced_cost_cap_is_a_configuration_error(server):
    with pytest.raises(rlm.errors.ConfigurationError) as raised:
        rlm.complete("x", model=provider(server, "openai"), budget={"max_cost_usd": 1})
    assert raised.value.kind == "no_price"
    assert server.requests == []


# -- deadlines ----------------------------------------------------------------------------------------


def test_a_stalled_provider_ends_at_the_deadline(server, wire):
    server.script(stalls())
    with Clock() as clock:
        result = rlm.complete("x", model=provider(server, wire), budget={"time_limit": 0.5})
    assert clock.seconds < 0.5 + SOON
    assert (result.status, result.error) == ("partial", {**result.error, "phase": "runtime", "kind": "timeout"})
    server.wait_for_no_connections()


def test_a_slow_tool_ends_at_the_deadline_and_what_was_bound_stays(server, wire):
    """A limit of one second against a tool of six."""
    stop = threading.Event()

    @rlm.tool(effect="read")
    def long_sleep(cancellation: rlm.Cancellation) -> str:
        """Sleep for a long time."""
        cancellation.wait(6)
        return "late"

    server.script(Cast(planner=[plan(model("x", "first"), tool("long_sleep", "t"), final(var("t")))], leaf="bound"))
    with Clock() as clock:
        result = rlm.complete(
            "sleep for a long time", model=provider(server, wire), tools=[long_sleep], budget={"time_limit": 1}
        )
    assert clock.seconds < 1 + SOON
    assert result.status == "partial"
    assert result.bound == {"first": "bound"}
    assert result.value == "bound"
    assert result.abandoned == ()
    stop.set()


def test_a_tool_that_ignores_its_flag_is_reported_as_abandoned(server):
    release = threading.Event()

    @rlm.tool(effect="read")
    def deaf() -> str:
        """Sleep and hear nothing."""
        release.wait(30)
        return "late"

    server.script([plan(tool("deaf", "t"), final(var("t")))])
    with Clock() as clock:
        result = rlm.complete(
            "sleep and hear nothing", model=provider(server, "openai"), tools=[deaf], budget={"time_limit": 0.5}
        )
    release.set()
    assert clock.seconds < 0.5 + SOON
    assert result.status == "partial"
    assert result.abandoned == ("tool:deaf",)


def test_a_child_that_never_ends_is_ended(server, wire):
    def never(_):
        return plan(model("more", "m"), observe("on"))

    server.script(Cast(planner=[plan(child("sub", "x"), final(var("x")))], child=never, leaf=stalls()))
    with Clock() as clock:
        result = rlm.complete("x", model=provider(server, wire), budget={"time_limit": 0.7})
    assert clock.seconds < 0.7 + SOON
    assert (result.status, result.error["kind"]) == ("partial", "timeout")
    server.wait_for_no_connections()


def test_cancellation_from_another_thread_gives_what_there_is(server):
    token = rlm.CancelToken()
    server.script(
        Cast(planner=[plan(model("x", "first"), model("y", "second"), final(1))], leaf=iter(["found", stalls()]))
    )
    canceller = threading.Thread(target=lambda: (server.wait_for_requests(3), token.cancel()))
    canceller.start()
    result = rlm.complete("x", model=provider(server, "openai"), cancel=token)
    canceller.join()
    assert (result.status, result.error["kind"], result.bound) == ("partial", "cancelled", {"first": "found"})
    assert rlm.complete("x", model=provider(server, "openai"), cancel=token).error["kind"] == "cancelled"


def test_nothing_is_left_running(server):
    before, descriptors = threads(), len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        server.script(Cast(planner=[plan(fan_out(8, [ASK]), final(1))], leaf=stalls()))
        rlm.complete("x", model=provider(server, "openai"), budget={"time_limit": 0.2})
    server.wait_for_no_connections()
    ours = {
        name for name in threads() - before if not any(word in name for word in ("process_request", "rlm", "AnyIO"))
    }
    assert ours == set()
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 16


# -- faults -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        fails(503),
        fails(429, retry_after="0"),
        drops(),
        resets(),
        raw(b"<html>"),
        answers("x", then="reset", share=0.5),
    ],
    ids=["503", "429", "drop", "reset", "html", "cut"],
)
def test_one_fault_never_loses_a_run(server, wire, fault):
    server.script([fault, plan(final("ok"))])
    result = rlm.complete("x", model=provider(server, wire), retry={"base": 0.001})
    assert result.unwrap() == "ok"
    assert result.usage.model_calls == 2
    assert result.usage.total_tokens >= server.tokens_in + server.tokens_out


def test_a_fault_of_one_leaf_is_the_value_of_one_item(server, wire):
    def leaf(request):
        return fails(400, "no") if "item 3" in request.user_text else request.user_text[-1]

    server.script(Cast(planner=[plan(fan_out(6, [ASK]), final(var("all")))], leaf=leaf))
    value = rlm.complete("x", model=provider(server, wire)).unwrap()
    assert value[:3] == ["0", "1", "2"]
    assert value[4:] == ["4", "5"]
    assert (value[3]["error"]["phase"], value[3]["error"]["kind"]) == ("provider", "bad_request")


@pytest.mark.parametrize(
    "reply",
    [
        "I would first look at the data.",
        "",
        "null",
        plan(final("one")) + "\nor\n" + plan(final("two")),
        '{"code": null}',
        "```json\n{\n```",
    ],
    ids=["prose", "empty", "null", "two", "code", "fence"],
)
def test_a_reply_that_is_no_plan_is_answered_and_mended(server, wire, reply):
    server.script([answers(reply), plan(final("mended"))])
    result = rlm.complete("x", model=provider(server, wire))
    assert result.unwrap() == "mended"
    first, second = server.requests
    assert second.body != first.body
    assert "# Refused" in second.user_text


def test_repairs_are_bounded_and_on_the_same_budget(server, wire):
    server.script("never a plan")
    result = rlm.complete("x", model=provider(server, wire), max_repairs=3)
    assert (result.status, result.error["kind"]) == ("failed", "no_valid_plan")
    assert len(server.requests) == result.usage.model_calls == 4
    assert result.usage.total_tokens == server.tokens_in + server.tokens_out


def test_outputs_of_children_side_by_side_do_not_mix(server, wire):
    each = child({"join": ["task number ", var("it")]}, "got")

    def as_child(request):
        number = request.user_text.split("task number ")[1].split()[0]
        server.wait_for_active(8)
        return plan(final(f"answer {number}"))

    server.script(Cast(planner=[plan(fan_out(8, [each]), final(var("all")))], child=as_child))
    assert rlm.complete("x", model=provider(server, wire)).unwrap() == [f"answer {n}" for n in range(8)]


def test_a_child_knows_its_task_and_the_inherited_instruction_in_its_first_request(server, wire):
    server.script(
        Cast(planner=[plan(child("find the {needle} in %s", "x"), final(var("x")))], child=[plan(final("ok"))])
    )
    rlm.complete("root task", model=provider(server, wire), instruction="Cite {file}:%d always.")
    inner = server.requests[1]
    assert inner.user_text.count("find the {needle} in %s") == 1
    assert inner.system_text.count("Cite {file}:%d always.") == 1
    assert "root task" not in inner.user_text


def test_braces_and_percent_signs_are_text(server, wire):
    text = "{0} {name} {{x}} %s %(y)d ${var} \\n"
    server.script([plan({"op": "final", "value": {"literal": text}})])
    result = rlm.complete(text, model=provider(server, wire), instruction=text)
    assert result.unwrap() == text
    assert server.requests[0].system_text.count(text) == 1
    assert server.requests[0].user_text.count(text) == 1


def test_a_sub_prompt_that_does_not_fit_the_window_is_never_sent(server, wire):
    text = "word " * 40_000
    steps = plan(
        {"op": "retry", "attempts": 1, "steps": [model({"join": ["Read: ", {"handle": "context"}]}, "m")], "bind": "r"},
        final(1),
    )
    rounds = iter([steps, plan(final("cut it first"))])
    server.script(Cast(planner=lambda _: next(rounds)))
    result = rlm.complete("x", text, model=provider(server, wire, window=16_000))
    assert result.unwrap() == "cut it first"
    assert [part_of(request) for request in server.requests] == ["planner", "planner"]
    said = server.requests[1].user_text
    assert re.search(r"your prompt has about [\d,]+ tokens, and about [\d,]+ fit: cut it", said) or "too_large" in said
    assert "biggest units" not in said


def test_an_approval_in_the_middle_of_a_plan(server, wire):
    asked, done = [], []

    @rlm.tool(effect="write", isolated=False)
    def write_note(text: str) -> str:
        """Write a note."""
        done.append(text)
        return "written"

    async def approve(request):
        asked.append((request.tool, request.arguments))
        return True

    steps = plan(model("x", "draft"), tool("write_note", "w", text=var("draft")), final([var("draft"), var("w")]))
    server.script(Cast(planner=[steps], leaf="dear all"))
    result = rlm.complete("write a note", model=provider(server, wire), tools=[write_note], approve=approve)
    assert result.unwrap() == ["dear all", "written"]
    assert asked == [("tool:write_note", {"text": "dear all"})]
    assert done == ["dear all"]


def test_p25_a_visible_tool_is_still_refused_without_approval(server, wire):
    done = []

    @rlm.tool(effect="write", isolated=False)
    def write_note(text: str) -> str:
        """Write a note."""
        done.append(text)
        return "written"

    rounds = iter([plan(tool("write_note", "w", text="x"), final(var("w"))), plan(final("not allowed"))])
    server.script(lambda _: next(rounds))
    result = rlm.complete("write a note", model=provider(server, wire), tools=[write_note])
    assert result.unwrap() == "not allowed"
    assert "## write_note\n" in server.requests[0].all_text
    assert done == []
    assert '"phase": "tool"' in server.requests[1].user_text


def test_a_cycle_is_refused_and_a_twin_is_done_once(server):
    deep = {"max_recursion_depth": 3}
    server.script(
        Cast(
            planner=[plan(child("same", "a"), child("same", "b"), final([var("a"), var("b")]))],
            child=lambda request: plan(final("once")),
        )
    )
    assert rlm.complete("x", model=provider(server, "openai"), budget=deep).unwrap() == ["once", "once"]
    assert len(server.requests) == 2
    rounds = iter([plan(child("same", "a"), final(var("a")))] * 2)
    server.script(
        Cast(planner=[plan(child("same", "a"), final(var("a")))], child=lambda _: next(rounds, plan(final("gave up"))))
    )
    assert rlm.complete("y", model=provider(server, "openai"), budget=deep).unwrap() == "gave up"
    assert any('"cycle"' in request.user_text for request in server.requests)


def test_at_the_depth_cap_recursion_is_refused_at_dispatch_too(server):
    rounds = iter([plan(child("deeper", "a"), final(var("a"))), plan(final("flat"))])
    server.script(Cast(planner=[plan(child("one", "x"), final(var("x")))], child=lambda _: next(rounds)))
    assert rlm.complete("x", model=provider(server, "openai")).unwrap() == "flat"
    done = rlm.run_plan(
        json.loads(plan(child("one", "x"), final(var("x")))),
        model=provider(server, "openai"),
        budget={"max_recursion_depth": 1},
    )
    assert done.status in ("ok", "failed")


def test_a_value_that_is_too_large_is_sent_back(server):
    rounds = iter([plan(final("x" * 5000)), plan(final("short"))])
    server.script(lambda _: next(rounds))
    result = rlm.complete("x", model=provider(server, "openai"), budget={"max_output_bytes": 1000})
    assert result.unwrap() == "short"
    assert "output_too_large" in server.requests[1].user_text


def test_the_final_value_follows_the_hosts_schema(server):
    rounds = iter([plan(final("three")), plan(final({"n": 3}))])
    server.script(lambda _: next(rounds))
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    assert rlm.complete("x", model=provider(server, "openai"), schema=schema).unwrap() == {"n": 3}


def test_the_last_model_call_may_be_a_leafs(server):
    server.script(Cast(planner=[plan(model("say it", "x"), final(var("x")))], leaf="said"))
    result = rlm.complete("x", model=provider(server, "openai"), budget={"max_model_calls": 2})
    assert result.unwrap() == "said"
    assert "- model:" in server.requests[0].system_text


def test_without_a_call_to_spare_nobody_is_told_of_models(server):
    server.script([plan(final("alone"))])
    assert rlm.complete("x", model=provider(server, "openai"), budget={"max_model_calls": 1}).unwrap() == "alone"
    assert "- model:" not in server.requests[0].system_text
