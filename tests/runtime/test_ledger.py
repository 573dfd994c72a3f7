"""One ledger for the tree: reserved before, settled after, never promised twice."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rlm
from rlm.errors import ConfigurationError, RunError
from rlm.model.budget import Budget
from rlm.providers.base import Usage
from rlm.providers.prices import Price
from rlm.sending.run_budget import LEAST_OUTPUT, RunBudget

DEAR = Price(input_per_million=1_000_000, output_per_million=1_000_000)


def run_budget(**fields):
    return RunBudget(Budget(**fields))


def test_a_reservation_is_the_input_and_the_smaller_of_reserve_and_rest():
    root = run_budget(max_total_tokens=1000)
    first = root.reserve(100, 500, None)
    assert (first.input_tokens, first.output_tokens) == (100, 500)
    second = root.reserve(100, 500, None)
    assert second.output_tokens == 300
    with pytest.raises(RunError) as raised:
        root.reserve(10, 500, None)
    assert (raised.value.kind, raised.value.detail["field"]) == ("budget_exhausted", "max_total_tokens")
    assert raised.value.terminal


def test_what_was_not_used_comes_back():
    root = run_budget(max_total_tokens=1000)
    reservation = root.reserve(100, 900, None)
    root.settle(reservation, Usage(input_tokens=90, output_tokens=10))
    assert root.tokens == 110  # our own count of the input is greater than the server's
    assert root.spent(0).total_tokens == root.spent(0).reported.total_tokens == 100
    assert root.spent(0).charged.total_tokens == 110
    assert root.spent(0).estimated_tokens == 0


def test_a_reply_that_did_not_arrive_costs_the_reservation_and_says_so():
    root = run_budget(max_total_tokens=1000)
    root.settle(root.reserve(100, 200, None), None)
    assert (root.spent(0).total_tokens, root.spent(0).estimated_tokens) == (300, 300)
    root.settle(root.reserve(100, 200, None), Usage(output_tokens=5))
    assert (root.spent(0).input_tokens, root.spent(0).output_tokens, root.spent(0).estimated_tokens) == (200, 205, 400)


def test_children_draw_from_the_same_ledger():
    root = run_budget(max_total_tokens=1000, max_model_calls=2)
    child = root.child()
    grandchild = child.child(Budget(max_total_tokens=150))
    reservation = grandchild.reserve(50, 500, None)
    assert reservation.output_tokens == 100
    assert root.tokens == child.tokens == 150
    root.reserve(10, 20, None)
    with pytest.raises(RunError) as raised:
        child.reserve(10, 20, None)
    assert raised.value.detail["field"] == "max_model_calls"
    assert child.spent(0).model_calls == 1


def test_a_cost_cap_shortens_the_reply_and_then_refuses():
    root = run_budget(max_cost_usd=100, max_total_tokens=10_000)
    reservation = root.reserve(50, 500, DEAR)
    assert reservation.output_tokens == 50
    with pytest.raises(RunError) as raised:
        root.reserve(1, 500, DEAR)
    assert raised.value.detail["field"] == "max_cost_usd"
    root.settle(reservation, Usage(input_tokens=50, output_tokens=10))
    assert root.spent(0).cost_usd == pytest.approx(60)


def test_what_a_provider_says_it_cost_counts():
    root = run_budget()
    root.settle(root.reserve(10, 10, None), Usage(input_tokens=1, output_tokens=1, cost_usd=0.2))
    assert root.spent(0).cost_usd == pytest.approx(0.2)


def test_a_released_reservation_took_nothing_but_the_call():
    root = run_budget(max_total_tokens=100)
    root.release(root.reserve(50, 50, None))
    assert (root.tokens, root.spent(0).model_calls) == (0, 1)


def test_iterations_are_an_agents_own():
    root = run_budget(max_iterations=1)
    child = root.child()
    child.count("turns")
    root.count("turns")
    with pytest.raises(RunError) as raised:
        root.count("turns")
    assert root.spent(0).iterations == 2
    assert (raised.value.kind, raised.value.terminal) == ("max_iterations", False)


@pytest.mark.parametrize("field", ["max_tokens", "time_limits"])
def test_a_misspelt_budget_key_is_an_error_that_suggests(field):
    with pytest.raises(ConfigurationError) as raised:
        rlm.Budget(**{field: 1})
    assert "did you mean" in str(raised.value)


@pytest.mark.parametrize("value", [True, "5", -1, float("nan"), float("inf")])
def test_a_budget_is_made_of_numbers(value):
    with pytest.raises(ConfigurationError):
        rlm.Budget(time_limit=value)


steps = st.lists(
    st.tuples(
        st.sampled_from(["root", "child", "other"]),
        st.integers(0, 400),
        st.integers(1, 400),
        st.sampled_from(["said", "silent", "half", "release", "open"]),
        st.floats(0, 1),
    ),
    max_size=30,
)


@settings(max_examples=300, deadline=None)
@given(steps, st.integers(0, 2000), st.booleans())
def test_no_cap_is_ever_broken_by_what_keeps_to_its_limit(steps, cap, priced):
    """Whatever is reserved, settled and given back in whatever order: as long as replies keep to the limit that they
    were sent with, no run budget goes over its cap, and what is spent is what was said."""
    price = Price(input_per_million=1000, output_per_million=2000) if priced else None
    root = RunBudget(Budget(max_total_tokens=cap, max_cost_usd=0.5, max_model_calls=20))
    child = root.child(Budget(max_total_tokens=cap // 2, max_cost_usd=0.5))
    run_budgets = {"root": root, "child": child, "other": root.child()}
    said = 0
    for who, tokens, most, how, share in steps:
        try:
            reservation = run_budgets[who].reserve(tokens, most, price)
        except RunError as problem:
            assert problem.kind == "budget_exhausted"  # noqa: PT017
            continue
        assert min(LEAST_OUTPUT, most) <= reservation.output_tokens <= most
        used = int(reservation.output_tokens * share)
        if how == "said":
            run_budgets[who].settle(reservation, Usage(input_tokens=tokens, output_tokens=used))
            said += tokens + used
        elif how == "silent":
            run_budgets[who].settle(reservation, None)
            said += reservation.tokens
        elif how == "half":
            run_budgets[who].settle(reservation, Usage(output_tokens=used))
            said += tokens + used
        elif how == "release":
            run_budgets[who].release(reservation)
        for each in run_budgets.values():
            assert each.tokens <= each.budget.max_total_tokens
            assert each.cost <= each.budget.max_cost_usd + 1e-9
    assert root.spent(0).total_tokens == said
    assert root.spent(0).model_calls <= 20


def test_who_is_refused_for_a_promise_to_another_can_wait_for_it():
    root = run_budget(max_total_tokens=1000)
    first = root.reserve(100, 900, None)
    with pytest.raises(RunError):
        root.child().reserve(100, 500, None)
    freed = root.child().freed(100, None)
    assert freed is not None
    assert not freed.is_set()
    root.settle(first, Usage(input_tokens=100, output_tokens=10))
    assert freed.is_set()
    assert root.child().reserve(100, 500, None).output_tokens == 500
    root.reserve(100, 500, None)
    assert root.freed(2000, None) is None
