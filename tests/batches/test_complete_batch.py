"""Many completions under one budget, over a real HTTP server."""

from __future__ import annotations

import json
from typing import Any

import pytest

import rlm
from rlm.errors import ConfigurationError
from rlm.providers import OpenAIProvider, ScriptedProvider
from tests.support.loopback import Loopback, stalls

FINAL = json.dumps({"steps": [{"op": "final", "value": "done"}]})


def scripted(count: int) -> ScriptedProvider:
    return ScriptedProvider([FINAL] * count)


def test_the_outcomes_are_in_order() -> None:
    seen: list[tuple[int, int]] = []
    outcomes = rlm.complete_batch(
        [f"question {number}" for number in range(12)],
        model=scripted(12),
        at_once=4,
        on_progress=lambda done, all: seen.append((done, all)),
    )
    assert [outcome.value for outcome in outcomes] == ["done"] * 12
    assert seen[-1] == (12, 12)


def test_each_query_may_have_its_own_arguments() -> None:
    rows = [{"query": "what?", "context": "a text"}, {"query": "which?", "instruction": "Be brief."}]
    assert [outcome.status for outcome in rlm.complete_batch(rows, model=scripted(2))] == ["ok", "ok"]


def test_one_budget_of_calls_holds_for_all() -> None:
    outcomes = rlm.complete_batch(
        [f"q{n}" for n in range(8)], model=scripted(8), total={"max_model_calls": 5}, at_once=2
    )
    good = [outcome for outcome in outcomes if outcome.status == "ok"]
    rest = [outcome for outcome in outcomes if outcome.status != "ok"]
    assert len(good) == 5
    assert {outcome.error["kind"] for outcome in rest if outcome.error} == {"budget_exhausted"}
    assert len(rest) == 3


def test_without_a_total_each_run_has_its_own_budget_alone() -> None:
    outcomes = rlm.complete_batch(["a", "b", "c"], model=scripted(3), budget={"max_model_calls": 1})
    assert [outcome.status for outcome in outcomes] == ["ok"] * 3


def test_a_cap_on_cost_needs_a_price() -> None:
    with pytest.raises(ConfigurationError, match="max_cost_usd needs a price"):
        rlm.complete_batch(["a"], model=OpenAIProvider("m", "http://127.0.0.1:1"), total={"max_cost_usd": 1.0})


def test_all_runs_end_with_the_time_limit_of_the_batch() -> None:
    with Loopback(lambda _: stalls()) as server:
        model = OpenAIProvider("m", server.url)
        outcomes = rlm.complete_batch([f"q{n}" for n in range(6)], model=model, total={"time_limit": 1.0}, at_once=2)
    assert {outcome.status for outcome in outcomes} == {"partial"}
    assert {outcome.error["kind"] for outcome in outcomes if outcome.error} == {"timeout"}


@pytest.mark.parametrize(
    ("queries", "options", "message"),
    [
        ("one", {}, "queries: a list of queries is expected, not one str"),
        ([1], {}, r"queries\[0\]: a text or a mapping"),
        ([{"qery": "a"}], {}, r"queries\[0\]: there is no 'query'; did you mean"),
        (["a"], {"at_once": 0}, "at_once must be a whole number from 1"),
        (["a"], {"total": {"max_calls": 1}}, "max_calls"),
    ],
)
def test_mistakes_are_named(queries: Any, options: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        rlm.complete_batch(queries, model=scripted(1), **options)
