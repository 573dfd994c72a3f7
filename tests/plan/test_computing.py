"""``let``, ``check`` and ``optional``: values that are computed, expectations, and steps that may fail."""

from __future__ import annotations

import json
import time
from typing import Any

import anyio
import jmespath
import pytest

import rlm
from rlm.model.plan import Failed, Final, Observe, PlanError
from rlm.plan import Scope, run, validate
from rlm.plan.computing import MAX_WORK, compute, names_in, problem_of
from rlm.providers import ScriptedProvider
from tests.plan.world import FRAME, INPUTS, World
from tests.runtime.test_steps import timed

PEOPLE = [{"name": "Ann", "age": 31, "team": "red"}, {"name": "Bo", "age": 9, "team": "blue"}]
PEOPLE += [{"name": "Cy", "age": 20, "team": "red"}]
VALUES: dict[str, Any] = {"people": PEOPLE, "names": ["a", "b"], "results": [{"n": 1}, {"n": 2.5}]}


def let(expr: str, bind: str = "x") -> dict[str, Any]:
    return {"op": "let", "expr": expr, "bind": bind}


def check(expr: str) -> dict[str, Any]:
    return {"op": "check", "expr": expr}


def final(value: Any) -> dict[str, Any]:
    return {"op": "final", "value": value}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("people[?age > `10`].name", ["Ann", "Cy"]),
        ("people[*].{who: name, old: age}", [{"who": each["name"], "old": each["age"]} for each in PEOPLE]),
        ("zip(names, results)[*].{name: [0], n: [1].n}", [{"name": "a", "n": 1}, {"name": "b", "n": 2.5}]),
        ("from_items(zip(names, results[*].n))", {"a": 1, "b": 2.5}),
        ("group_by(people, &team).red[*].name", ["Ann", "Cy"]),
        ("count_by(people, &team)", {"red": 2, "blue": 1}),
        ("unique(people[*].team)", ["red", "blue"]),
        ("sort_by(people, &age)[*].name", ["Bo", "Cy", "Ann"]),
        ("map(&upper(@), names)", ["A", "B"]),
        ("sum(results[*].n)", 3.5),
        ("[divide(`6`, `3`), subtract(`1`, `3`), multiply(`2`, `0.5`), add(`1`, `1`)]", [2, -2, 1.0, 2]),
        ("join(', ', people[*].name)", "Ann, Bo, Cy"),
        ("split(trim(' a-b '), '-')", ["a", "b"]),
        ("replace('a.b', '.', '')", "ab"),
        ("items({k: `1`})", [["k", 1]]),
        ("people[?name == 'Zed'] | [0]", None),
    ],
)
def test_values_are_computed_from_bound_values(expression: str, value: Any) -> None:
    assert problem_of(expression) is None
    assert compute(expression, VALUES)[0] == value


@pytest.mark.parametrize(
    "expression", ["people[*].name", "results[?n > `1`].n", "length(people)", "max_by(people, &age)"]
)
def test_what_the_library_knows_is_as_in_the_library(expression: str) -> None:
    assert compute(expression, VALUES)[0] == jmespath.search(expression, VALUES)


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("people[?age > limit].name", {"people"}),
        ("{a: one.b, c: [two, `3`]}", {"one", "two"}),
        ("zip(names, map(&inner, rows)) | [0].x", {"names", "rows"}),
        ("`1`", set()),
    ],
)
def test_the_names_that_an_expression_reads_are_known_before_it_runs(expression: str, names: set[str]) -> None:
    assert names_in(expression) == names


ITEMS = "`" + json.dumps([1] * 300, separators=(",", ":")) + "`"
HARD = {
    "three nested maps over 300 items": f"map(&map(&map(&[@, @], {ITEMS}), {ITEMS}), {ITEMS})",
    "three nested sums over 300 items": f"sum(map(&sum(map(&sum(map(&@, {ITEMS})), {ITEMS})), {ITEMS}))",
    "a value that doubles": "|".join(["[@,@]"] * 60),
    "an object that doubles": "|".join(["{a:@,b:@}"] * 60),
    "a text that doubles": "'abcdefgh'" + " | join('', [@, @])" * 60,
    "a text of texts": "'abcdefgh'" + " | to_string([@, @])" * 60,
    "a number that doubles": "`12345678`" + " | multiply(@, @)" * 60,
    "deep brackets": "(" * 900 + "a" + ")" * 900,
    "a separator": "map(&join(join('', [" + "'x'," * 200 + "'x']), @), [[" + "'y'," * 100 + "'y']])",
}


@pytest.mark.parametrize("kind", HARD)
def test_no_expression_takes_long_or_makes_much(kind: str) -> None:
    began = time.perf_counter()
    problems = []
    try:
        value, work = compute(HARD[kind], VALUES)
        assert work <= MAX_WORK
        assert len(json.dumps(value)) < 20_000_000
    except PlanError as problem:
        problems.append(problem.kind)
    assert set(problems) <= {"too_much_work", "too_large", "invalid_expression"}
    assert time.perf_counter() - began < 10


async def ended(*steps: dict[str, Any], world: World | None = None) -> Any:
    frame = FRAME.model_copy(update={"variables": dict.fromkeys(VALUES)})
    plan = validate({"steps": list(steps)}, frame)
    return await run(plan, world or World(says=lambda prompt: "said"), Scope(INPUTS, VALUES), width=4)


def ending(*steps: dict[str, Any], world: World | None = None) -> Any:
    async def work() -> Any:
        return await ended(*steps, world=world)

    return anyio.run(work)


def test_a_step_binds_what_it_computed_from_earlier_steps() -> None:
    adding = {"op": "tool", "name": "add", "args": {"a": {"var": "n"}, "b": 1}, "bind": "sum"}
    last = let("{n: n, sum: sum, ask: length(names)}", "all")
    assert ending(let("length(people)", "n"), adding, last, final({"var": "all"})) == Final(
        {"n": 3, "sum": 4, "ask": 2}
    )


def test_a_map_computes_for_each_item() -> None:
    each = {"op": "map", "over": {"var": "people"}, "as": "p", "steps": [let("p.name", "name")], "bind": "all"}
    assert ending(each, final({"var": "all"})) == Final(["Ann", "Bo", "Cy"])


@pytest.mark.parametrize(
    ("step", "kind", "words"),
    [
        (let("people[?"), "invalid_expression", "no JMESPath"),
        (let("nothing(people)"), "invalid_expression", "there is no function nothing()"),
        (let("peple[0]"), "unbound", "did you mean 'people'"),
        (let("a" * 2_001), "invalid_expression", "at most 2,000 characters"),
        ({"op": "let", "expr": 3, "bind": "x"}, "wrong_type", "a JMESPath expression"),
        (check("nobody"), "unbound", "no variable"),
        (
            {"op": "tool", "name": "add", "args": {"a": 1, "b": 2}, "optional": "yes", "bind": "x"},
            "wrong_type",
            "true",
        ),
    ],
)
def test_a_wrong_expression_is_found_before_anything_runs(step: dict[str, Any], kind: str, words: str) -> None:
    with pytest.raises(PlanError) as raised:
        ending(step, final(1))
    assert raised.value.problems[0].kind == kind
    assert words in str(raised.value)


def test_a_check_stands_in_no_body() -> None:
    with pytest.raises(PlanError, match="ends the whole plan"):
        ending({"op": "map", "over": [1], "as": "i", "steps": [check("i"), final(1)], "bind": "x"}, final(1))


# -- check and optional -------------------------------------------------------------------------------


def test_a_check_that_holds_costs_nothing_and_one_that_fails_shows_its_values() -> None:
    assert ending(check("length(people) == `3`"), final("sure")) == Final("sure")
    found = ending(check("length(people) == `4`"), final("sure"))
    assert found == Observe({"the check": False, "people": PEOPLE}, failed_check="steps[0]")


def test_an_optional_step_that_fails_is_bound_as_its_error() -> None:
    failing = {"op": "tool", "name": "fail", "args": {}, "optional": True, "bind": "tried"}
    world = World(says=lambda prompt: "said")
    result = ending(failing, final({"var": "tried", "path": "error.kind"}), world=world)
    assert isinstance(result, Final)
    assert isinstance(ending({**failing, "optional": False}, final(1)), Failed)


# -- in a run -----------------------------------------------------------------------------------------


def test_a_failed_check_is_seen_in_the_next_turn() -> None:
    first = json.dumps({"steps": [let("`3`", "n"), check("n > `4`"), final("sure")]})
    model = ScriptedProvider([first, json.dumps({"steps": [final("looked")]})])
    assert rlm.complete("Is it?", model=model).unwrap() == "looked"
    seen = model.requests[1].parts["messages"][-1]["content"]
    assert "# Observed: the check at steps[1] does not hold" in seen
    assert "n = 3" in seen


def test_a_plan_of_the_host_fails_with_its_check() -> None:
    result = rlm.run_plan({"steps": [check("`false`"), final(1)]})
    assert (result.status, result.error["kind"] if result.error else "") == ("failed", "check_failed")


@pytest.mark.parametrize("budget", [{"max_steps": None, "time_limit": 0.5}, {"max_steps": 500, "time_limit": 20}])
def test_a_hard_expression_neither_hangs_nor_blocks_the_event_loop(budget: dict[str, Any]) -> None:
    plan = {"steps": [let(HARD["three nested sums over 300 items"]), final(1)]}

    async def work() -> Any:
        return await rlm.arun_plan(plan, budget=budget)

    result = timed(work, within=5)
    assert result.error is not None
    assert result.error["kind"] in ("timeout", "budget_exhausted", "too_much_work")
