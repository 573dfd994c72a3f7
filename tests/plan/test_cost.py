"""What a plan may cost at most, and what does not fit a budget."""

from __future__ import annotations

from typing import Any

import pytest

from rlm.errors import ConfigurationError
from rlm.plan import Estimate, PlanLimits, Prices, preflight, worst_case
from rlm.plan.cost import MEASURES
from tests.plan.world import FRAME, World, add, ended, final, plan, var

ASK = {"op": "model", "prompt": "?", "bind": "said"}
LOOK = {"op": "context", "handle": "log", "action": "info", "bind": "seen"}
CHILD = {"op": "rlm", "query": "?", "bind": "found"}


def cost(*steps: dict[str, Any], **options: Any) -> Estimate:
    frame = options.pop("frame", FRAME)
    return worst_case(plan(*steps, frame=frame), frame, **options)


def each(over: Any, *steps: dict[str, Any], name: str = "it", bind: str = "out") -> dict[str, Any]:
    return {"op": "map", "over": over, "as": name, "steps": list(steps), "bind": bind}


def test_steps_are_counted_by_what_they_take() -> None:
    estimate = cost(ASK, LOOK, add(1, 2, "x"), {"op": "checkpoint", "label": "x"}, final(1))
    assert (estimate.model_calls, estimate.context_ops, estimate.tool_calls) == (1, 1, 1)
    assert (estimate.children, estimate.iterations, estimate.depth, estimate.unbounded) == (0, 0, 0, ())
    assert estimate.dearest == {"model_calls": "steps[0]", "context_ops": "steps[1]", "tool_calls": "steps[2]"}


def test_a_plan_of_values_costs_nothing() -> None:
    assert cost(final(1)) == Estimate()


def test_bodies_are_counted_as_often_as_they_run() -> None:
    assert cost(each([1, 2, 3], ASK, LOOK), final(1)).model_calls == 3
    assert cost(each([[1], [2]], each([1, 2, 3], ASK, name="in", bind="o")), final(1)).model_calls == 6
    assert cost({"op": "retry", "attempts": 4, "steps": [ASK], "bind": "x"}, final(1)).model_calls == 4
    assert cost({"op": "parallel", "plans": [[ASK], [ASK, LOOK]], "bind": "x"}, final(1)).model_calls == 2
    assert cost(each([], ASK), final(1)).model_calls == 0


def test_a_reduce_by_a_model_is_a_request() -> None:
    reduce = {"op": "reduce", "over": [1], "with": "model", "prompt": "?", "bind": "x"}
    assert cost(reduce, final(1)).model_calls == 1
    assert cost({**reduce, "with": "sum", "prompt": "?"} | {"with": "model"}, final(1)).model_calls == 1


def test_observe_means_another_turn() -> None:
    estimate = cost({"op": "observe", "values": [1]})
    assert (estimate.iterations, estimate.model_calls) == (1, 1)


@pytest.mark.parametrize(
    ("over", "times"),
    [({"input": "names"}, 3), ({"literal": [1, 2]}, 2), (var("two"), 2), (var("both"), 2), (var("old"), 7)],
)
def test_lengths_that_are_known_are_used(over: Any, times: int) -> None:
    frame = FRAME.model_copy(update={"variables": {"old": 7}})
    two = each([1, 2], final(1), bind="two")
    both = {"op": "parallel", "plans": [[final(1)], [final(2)]], "bind": "both"}
    estimate = cost(two, both, each(over, ASK), final(1), frame=frame)
    assert (estimate.model_calls, estimate.unbounded) == (times, ())


@pytest.mark.parametrize("over", [var("seen"), {"input": "question"}, {"input": "names", "path": "[0]"}])
def test_a_list_of_unknown_length_is_unbounded_unless_the_host_bounds_it(over: Any) -> None:
    estimate = cost(LOOK, each(over, ASK), final(1))
    assert (estimate.model_calls, estimate.unbounded) == (1, ("steps[1]",))
    frame = FRAME.model_copy(update={"limits": PlanLimits(max_items=50)})
    estimate = cost(LOOK, each(over, ASK), final(1), frame=frame)
    assert (estimate.model_calls, estimate.unbounded) == (50, ())


def test_an_item_is_not_as_long_as_what_has_its_name_outside() -> None:
    frame = FRAME.model_copy(update={"variables": {"it": 7}})
    inner = each(var("it"), ASK, name="deep", bind="o")
    assert cost(each([1], inner), final(1), frame=frame).unbounded == ("steps[0].steps[0]",)


def test_children_are_counted_with_the_least_they_take_or_with_their_plan() -> None:
    estimate = cost(each([1, 2], CHILD), final(1))
    assert (estimate.children, estimate.iterations, estimate.model_calls, estimate.depth) == (2, 2, 2, 1)
    assert estimate.dearest["depth"] == "steps[0]"
    planned = {**CHILD, "plan": [ASK, {**ASK, "bind": "b"}, {**CHILD, "bind": "c"}, final(1)]}
    estimate = cost(planned, final(1))
    assert (estimate.children, estimate.iterations, estimate.model_calls, estimate.depth) == (2, 1, 3, 2)


def test_prices_make_tokens_and_usd() -> None:
    assert (cost(ASK, final(1)).tokens, cost(ASK, final(1)).cost_usd) == (None, None)
    estimate = cost(each([1, 2, 3], ASK), final(1), prices=Prices(tokens_per_call=1000, usd_per_call=0.02))
    assert (estimate.tokens, estimate.cost_usd) == (3000, 0.06)


def test_no_run_takes_more_than_its_estimate() -> None:
    steps = (each([1, 2], ASK, {"op": "retry", "attempts": 3, "steps": [add(1, 2, "x")], "bind": "y"}), LOOK, final(1))
    world = World()
    ended(*steps, world=world)
    started = [data["op"] for _, kind, data in world.events if kind == "started"]
    estimate = cost(*steps)
    assert started.count("model") == estimate.model_calls == 2
    assert started.count("tool") == 2 < estimate.tool_calls == 6
    assert started.count("context") == estimate.context_ops == 1


# -- preflight ----------------------------------------------------------------------------------------


def test_what_fits_is_no_problem() -> None:
    assert preflight(cost(each([1, 2, 3], ASK), final(1)), {"max_model_calls": 3, "max_tool_calls": 0}) == ()
    assert preflight(cost(LOOK, each(var("seen"), ASK), final(1)), {"max_model_calls": 1}) == ()
    assert preflight(cost(ASK, final(1)), {"max_model_calls": None, "max_cost_usd": 0, "max_total_tokens": 0}) == ()


def test_what_is_too_dear_names_the_step_and_the_numbers() -> None:
    estimate = cost(ASK, each([1, 2, 3], {**ASK, "bind": "y"}), final(1))
    (problem,) = preflight(estimate, {"max_model_calls": 2, "max_context_ops": 5})
    assert (problem.kind, problem.path, problem.expected, problem.got) == ("over_budget", "steps[1]", "<= 2", "4")
    assert "4 requests to a model, and 2 are left" in problem.message


def test_every_cap_is_looked_at() -> None:
    prices = Prices(tokens_per_call=10, usd_per_call=0.1)
    estimate = cost(CHILD, LOOK, add(1, 2, "x"), final(1), prices=prices)
    found = preflight(estimate, dict.fromkeys(MEASURES, 0))
    assert [problem.path for problem in found] == [
        "steps[0]", "steps[2]", "steps[1]", "steps[0]", "steps[0]", "steps[0]", "steps[0]"
    ]  # fmt: skip


def test_a_cap_that_is_none_is_a_mistake() -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'max_model_calls'"):
        preflight(Estimate(), {"max_model_cals": 1})
    assert preflight(Estimate(), {"time_limit": 1.0}) == ()
