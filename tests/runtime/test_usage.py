"""What servers say that replies took: charged where it can be right, never below our own count, never negative."""

from __future__ import annotations

import math
import random
from typing import Any

import anyio
import pytest

import rlm
from rlm.errors import ProviderError
from rlm.model.budget import Budget
from rlm.providers import AnthropicProvider, OpenAIProvider, ProviderReply, ProviderRequest, ScriptedProvider
from rlm.providers.base import Usage
from rlm.providers.prices import Price
from rlm.sending import gate
from rlm.sending.charges import Bill
from rlm.sending.gate import RequestTerms
from rlm.sending.run_budget import RunBudget
from tests.support.loopback import Loopback
from tests.support.replies import replies_json

WINDOW, LIMIT, OWN_INPUT = 8_000, 500, 300
MOST = WINDOW + LIMIT
TEXT = "forty two " * 20
PRICE = Price(input_per_million=3, output_per_million=15)
FINAL = '{"steps": [{"op": "final", "value": "ok"}]}'
PARTS = {"messages": [{"role": "user", "content": "q"}]}

GOOD: list[Any] = [0, 1, 7, 250, 300, 301, 4_000, 8_400, 250.0]
BAD: list[Any] = ["12", -1, -0.5, 1.5, True, [], {}, math.nan, math.inf, -math.inf, 10**6, 10**30, 1e300, MOST + 1]


def figure(rng: random.Random) -> Any:
    return rng.choice([None, *GOOD, *GOOD, *BAD])


def counted(value: Any) -> int:
    """A figure as a count that a reply of this request can have; nothing for what is none."""
    whole = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return int(value) if whole and value == int(value) and 0 <= value <= MOST else 0


def openai_usage(rng: random.Random) -> Any:
    usage: dict[str, Any] = {
        "prompt_tokens": figure(rng),
        "completion_tokens": figure(rng),
        "cost": rng.choice([None, 0, 0.01, "x", -1, 1e9]),
    }
    if rng.random() < 0.4:
        usage["total_tokens"] = figure(rng)
    if rng.random() < 0.4:
        usage["completion_tokens_details"] = {"reasoning_tokens": figure(rng)}
    if rng.random() < 0.3:
        usage["prompt_tokens_details"] = {"cached_tokens": figure(rng)}
    return rng.choice([usage, usage, usage, usage, None, "many", [1], {}])


def anthropic_usage(rng: random.Random) -> Any:
    usage = {"input_tokens": figure(rng), "output_tokens": figure(rng)}
    for name in ("cache_read_input_tokens", "cache_creation_input_tokens"):
        if rng.random() < 0.4:
            usage[name] = figure(rng)
    return rng.choice([usage, usage, usage, usage, None, "many", [1], {}])


def reply(wire: str, usage: Any) -> dict[str, Any]:
    if wire == "anthropic":
        return {"content": [{"type": "text", "text": TEXT}], "stop_reason": "end_turn", "usage": usage}
    return {"choices": [{"message": {"content": TEXT}, "finish_reason": "stop"}], "usage": usage}


async def charged(providers: list[Any], run_budget: RunBudget, rounds: int) -> list[tuple[ProviderReply, Bill]]:
    """Send so many requests; each reply with its bill."""
    bills: list[tuple[ProviderReply, Bill]] = []

    def begins(*_: Any) -> Any:
        return lambda outcome, bill: bills.append((outcome, bill))

    terms = RequestTerms(run_budget, OWN_INPUT, price=PRICE, window=WINDOW, attempt=begins)
    request = ProviderRequest(model="m", parts=PARTS, max_output_tokens=LIMIT)
    for provider in providers:
        async with provider:
            for _ in range(rounds):
                await gate.send(provider, request, deadline=anyio.current_time() + 60, terms=terms)
    return bills


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_250_random_usages_of_a_wire_are_charged_at_the_greater_of_both_counts(wire: str) -> None:
    rng = random.Random(f"usage {wire}")
    told: list[Any] = []

    def answer(_: Any) -> Any:
        told.append((openai_usage if wire == "openai" else anthropic_usage)(rng))
        return replies_json(reply(wire, told[-1]))

    root = RunBudget(Budget(max_total_tokens=10**9, max_cost_usd=10**6, max_model_calls=10**6))
    with Loopback(answer) as server:
        made = OpenAIProvider("m", server.url) if wire == "openai" else AnthropicProvider("m", server.anthropic_url)
        bills = anyio.run(charged, [made], root.child(), 250)
    assert len(bills) == len(told) == 250
    kinds, believed = set(), 0
    for usage, (got, bill) in zip(told, bills, strict=True):
        own_output = anyio.run(gate.received_tokens, got, "o200k_base")
        tokens, reported = bill.charged, bill.reported
        assert tokens.input_tokens >= OWN_INPUT
        assert tokens.output_tokens >= own_output > 20
        assert tokens.total_tokens >= reported.total_tokens >= 0
        assert tokens.total_tokens <= 2 * MOST
        assert tokens.cost_usd is not None
        assert 0 < tokens.cost_usd < 10
        assert tokens.cost_usd >= (reported.cost_usd or 0)
        if isinstance(usage, dict):
            names = ("prompt_tokens", "completion_tokens") if wire == "openai" else ("input_tokens", "output_tokens")
            doubted = {row["field"] for row in bill.findings}
            fields = ("input_tokens", "output_tokens")
            for name, field, least in zip(names, fields, (tokens.input_tokens, tokens.output_tokens), strict=True):
                value = usage.get(name)
                if field not in doubted:
                    assert least >= counted(value)
                    believed += counted(value) > 0
                if value is not None and value not in GOOD:
                    assert field in doubted, usage
                    kinds.add(str(value))
            if not doubted:
                assert tokens.total_tokens >= counted(usage.get("total_tokens"))
        elif usage is not None:
            assert {row["field"] for row in bill.findings} == {"input_tokens", "output_tokens"}
            assert tokens.output_tokens == LIMIT
        else:
            assert (bill.findings, tokens.input_tokens, tokens.output_tokens) == ((), OWN_INPUT, own_output)
    assert len(kinds) > 8
    assert believed > 80
    spent = root.spent(0)
    assert spent.charged.total_tokens == sum(bill.charged.total_tokens for _, bill in bills) == root.tokens
    assert spent.reported.total_tokens == sum(bill.reported.total_tokens for _, bill in bills)
    assert spent.charged.cost_usd == pytest.approx(sum(bill.charged.cost_usd or 0 for _, bill in bills))


@pytest.mark.parametrize("value", BAD)
def test_a_figure_that_cannot_be_right_is_charged_at_the_reservation_with_a_finding(value: Any) -> None:
    with Loopback(
        lambda _: replies_json(reply("openai", {"prompt_tokens": 310, "completion_tokens": value}))
    ) as server:
        run_budget = RunBudget(Budget())
        ((_, bill),) = anyio.run(charged, [OpenAIProvider("m", server.url)], run_budget, 1)
    assert (bill.charged.input_tokens, bill.charged.output_tokens) == (310, LIMIT)
    assert bill.reported.output_tokens == 0
    assert [row["kind"] for row in bill.findings] == ["usage_not_believed"]
    assert run_budget.findings == list(bill.findings)


def loopback_run(usage: Any, **options: Any) -> tuple[rlm.Completion, int]:
    answer = {"choices": [{"message": {"content": FINAL}, "finish_reason": "stop"}], "usage": usage}
    with Loopback(lambda _: replies_json(answer)) as server:
        made = rlm.complete("q", model=OpenAIProvider("m", server.url), prices={"m": PRICE}, skills="off", **options)
        return made, len(server.requests)


def test_one_reply_without_usage_takes_its_own_count_of_a_budget_and_no_more() -> None:
    result, _ = loopback_run(None, budget={"max_cost_usd": 0.25})
    assert result.unwrap() == "ok"
    assert result.usage.output_tokens < 50
    assert result.usage.charged.cost_usd == result.usage.cost_usd
    assert result.usage.charged.cost_usd < 0.02
    assert result.usage.reported.total_tokens == 0
    assert result.usage.estimated_tokens == result.usage.total_tokens == result.usage.charged.total_tokens


def test_zeros_beside_a_text_are_no_count() -> None:
    result, _ = loopback_run({"prompt_tokens": 0, "completion_tokens": 0})
    assert result.usage.estimated_tokens == result.usage.total_tokens > 0
    assert result.findings == ()


def test_a_run_says_which_figures_were_not_believed_and_a_replay_says_the_same(tmp_path: Any) -> None:
    trace = tmp_path / "run.jsonl"
    result, _ = loopback_run({"prompt_tokens": 10**9, "completion_tokens": 20}, trace=trace)
    assert result.unwrap() == "ok"
    assert [(row["kind"], row["field"]) for row in result.findings] == [("usage_not_believed", "input_tokens")]
    assert result.usage.charged.input_tokens == result.usage.input_tokens < 10_000
    again = rlm.replay(trace)
    assert again.findings == result.findings
    assert (again.usage.charged, again.usage.reported) == (result.usage.charged, result.usage.reported)
    assert result.usage.reported.total_tokens == 20


def test_a_trace_has_what_each_reply_was_charged() -> None:
    rows: list[dict[str, Any]] = []
    result, _ = loopback_run({"prompt_tokens": 5_000, "completion_tokens": 90}, on_event=rows.append)
    (row,) = [row for row in rows if row["event"] == "reply"]
    assert (row["charged"]["input_tokens"], row["charged"]["output_tokens"]) == (5_000, 90)
    (end,) = [row for row in rows if row["event"] == "end"]
    assert end["usage"]["charged"] == result.usage.charged.model_dump()
    assert end["usage"]["reported"] == {"input_tokens": 5_000, "output_tokens": 90, "cost_usd": None}


def test_a_budget_counts_what_is_charged_and_not_what_a_server_says() -> None:
    """A server that reports a tenth of what it took does not lengthen a run."""
    look = '{"steps": [{"op": "observe", "values": [1]}]}'
    low = Usage(input_tokens=1, output_tokens=1)
    made = ScriptedProvider(lambda _: look, usage=low)
    result = rlm.complete("q", model=made, skills="off", budget={"max_total_tokens": 5_000})
    assert (result.status, result.error["detail"]["field"]) == ("partial", "max_total_tokens")
    assert result.usage.total_tokens == 2 * len(made.bodies) < 100
    assert 2_500 < result.usage.charged.total_tokens <= 5_000


@pytest.mark.parametrize(
    ("status", "usage", "taken"),
    [
        (200, {"prompt_tokens": 5_000, "completion_tokens": 50}, (5_000, 50)),
        (502, {"prompt_tokens": 5_000, "completion_tokens": 50}, (5_000, 50)),
        (502, {"prompt_tokens": 0, "completion_tokens": 0}, (0, 0)),
        (502, None, (0, 0)),
    ],
)
def test_the_usage_of_a_failed_answer_is_charged(status: int, usage: Any, taken: tuple[int, int]) -> None:
    failure = replies_json({"error": {"code": 502, "message": "x"}, "usage": usage}, status)
    run_budget = RunBudget(Budget())
    with Loopback(lambda _: failure) as server, pytest.raises(ProviderError) as raised:
        anyio.run(charged, [OpenAIProvider("m", server.url)], run_budget, 1)
    assert raised.value.kind == "server_error"
    spent = run_budget.spent(0)
    assert (spent.input_tokens, spent.output_tokens) == taken
    assert spent.charged.total_tokens == spent.reported.total_tokens == sum(taken)
    assert run_budget.reserved_tokens == 0


def test_an_error_inside_a_reply_costs_the_text_that_came_and_not_the_whole_limit() -> None:
    answer = {"choices": [{"message": {"content": "part"}, "finish_reason": "error"}]}
    run_budget = RunBudget(Budget())
    with Loopback(lambda _: replies_json(answer)) as server, pytest.raises(ProviderError):
        anyio.run(charged, [OpenAIProvider("m", server.url)], run_budget, 1)
    assert (run_budget.charged.input_tokens, run_budget.charged.output_tokens) == (OWN_INPUT, 4)


def test_a_scripted_provider_counts_its_own_reply() -> None:
    result = rlm.complete("q", model=ScriptedProvider([FINAL]), skills="off")
    assert 0 < result.usage.reported.output_tokens == result.usage.output_tokens < 30
    assert result.usage.estimated_tokens == result.usage.input_tokens == result.usage.charged.input_tokens


def test_a_cost_that_cannot_be_right_is_not_believed() -> None:
    result, _ = loopback_run({"prompt_tokens": 1000, "completion_tokens": 20, "cost": 900_000})
    assert [row["field"] for row in result.findings] == ["cost_usd"]
    assert result.usage.cost_usd == pytest.approx(PRICE.cost(Usage(input_tokens=1000, output_tokens=20)))
    assert result.usage.charged.cost_usd < 1


def test_a_cost_that_a_provider_reports_is_charged_where_it_is_the_greater_one() -> None:
    dear, _ = loopback_run({"prompt_tokens": 1000, "completion_tokens": 20, "cost": 0.2})
    assert dear.usage.cost_usd == dear.usage.charged.cost_usd == dear.usage.reported.cost_usd == 0.2
    free, _ = loopback_run({"prompt_tokens": 1000, "completion_tokens": 20, "cost": 0})
    assert free.usage.cost_usd == 0
    assert free.usage.charged.cost_usd > 0.003
