"""A plan is found wherever it stands in a reply, or the reply says why there is none."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm.plan import PlanError, normalise, parse
from tests.plan.world import refusal

STEP = {"op": "final", "value": '  two  spaces\n{not} a "plan" { } ```json'}
PLAN = {"steps": [STEP]}
TEXT = json.dumps(PLAN)


def error(text: str) -> PlanError:
    with pytest.raises(PlanError) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize(
    "reply",
    [
        TEXT,
        f"```json\n{json.dumps(PLAN, indent=4)}\n```",
        f"Let me think {{x}} about {{this}}: the set {{1, 2}} is small.\n\n{TEXT}\n\nThat {{is}} all.",
        f'The input was {{"name": 3}} and [1, 2].\n{TEXT}',
        f"{TEXT} I repeat: {TEXT}",
        json.dumps({"plan": PLAN}),
        json.dumps([STEP]),
        json.dumps(STEP),
        f'an example of a step is {{"op": "final", "value": 1}}, and here is the plan: {TEXT}',
        '{"a": oops} ' + TEXT,
    ],
    ids=["alone", "fence", "prose", "other", "twice", "wrapped", "list", "step", "quoted", "broken"],
)
def test_the_plan_is_found_and_its_strings_are_kept(reply: str) -> None:
    assert parse(reply) == PLAN


def test_a_raw_line_end_inside_a_string_is_what_it_is() -> None:
    assert parse('{"steps": [{"op": "final", "value": "a\n\tb"}]}')["steps"][0]["value"] == "a\n\tb"


def test_a_step_with_steps_is_a_step() -> None:
    step = {"op": "map", "over": [1], "as": "x", "steps": [], "bind": "y"}
    assert parse(json.dumps(step)) == {"steps": [step]}


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        ("", "no_plan", "empty"),
        (" \n", "no_plan", "empty"),
        ("null", "no_plan", "only null"),
        ("[]", "no_plan", "only a list"),
        ("42", "no_plan", "only a number"),
        ("The answer is {42}.", "no_plan", "no JSON object"),
        ('{"final": 3}', "no_plan", "no `steps`"),
        ('{"stops": []}', "no_plan", '["stops"]'),
        (f"{TEXT} or rather " + json.dumps({"steps": []}), "several_plans", "2 plans"),
        ('{"op": "final", "value": 1} {"op": "final", "value": 2}', "several_plans", "2 plans"),
        (TEXT[:-3], "invalid_json", "ends in the middle"),
        ('{"steps": [{"op": "final", "value": "a', "invalid_json", "ends in the middle"),
        ('{"steps": [{"op": "final", "value": 1},]}', "invalid_json", "(line 1, column"),
        ("{'steps': [{'op': 'final', 'value': 1}]}", "invalid_json", "double quotes"),
        ('{steps: [{op: "final"}]}', "invalid_json", "double quotes"),
        ('{"steps": [], "steps": []}', "duplicate_key", '"steps" twice'),
        ('{"steps": ' + "[" * 80 + "]" * 80 + "}", "too_deep", "nested"),
        ('{"steps": ' + "[" * 100_000, "too_deep", "nested"),
        ("x" * 300_000, "too_large", "too long"),
    ],
)
def test_a_reply_without_a_plan_says_what_is_wrong(reply: str, kind: str, said: str) -> None:
    problem = error(reply)
    assert (problem.kind, len(problem.problems)) == (kind, 1)
    assert said in str(problem)
    assert problem.to_dict()["phase"] == "plan"


def test_a_broken_plan_is_never_taken_for_one_of_its_own_steps() -> None:
    reply = '{"steps": [{"op": "tool", "name": "deploy", "bind": "x"}, {"op": oops}]}'
    assert error(reply).kind == "invalid_json"
    assert error("Here: " + reply + ' {"op": "final", "value": 1}').kind == "invalid_json"


@pytest.mark.parametrize("value", [{"final": 1}, {"steps": 3}, {"plan": 3}, [1], [], "steps", None, {"op": 3}])
def test_what_is_not_clear_stays_as_it_is(value: Any) -> None:
    assert normalise(value) == value


@pytest.mark.parametrize(
    "piece", ['{"a":', "[{", '{"":[0,0,0,', '{"a":"{', '[{"b":"', '{"steps', '{"a" ', '[{"a":[1,]']
)
def test_hostile_replies_take_no_time(piece: str) -> None:
    began = time.process_time()
    error(piece * (260_000 // len(piece)))
    assert time.process_time() - began < 1


@settings(deadline=None)
@given(st.text())
def test_no_text_raises_anything_but_a_problem(text: str) -> None:
    problem = refusal(parse, text)
    assert "steps" in parse(text) if problem is None else problem.problems


@settings(deadline=None)
@given(st.text(alphabet="{}[]\":,\\ stepo1n'`"))
def test_no_heap_of_brackets_raises_anything_but_a_problem(text: str) -> None:
    problem = refusal(parse, text)
    assert "steps" in parse(text) if problem is None else problem.problems


@settings(deadline=None)
@given(
    before=st.text(alphabet="abc {}.\n", max_size=30), text=st.text(max_size=50), after=st.text("ab }\n", max_size=30)
)
def test_whatever_a_string_holds_comes_back(before: str, text: str, after: str) -> None:
    made = {"steps": [{"op": "final", "value": text}]}
    assert parse(before + json.dumps(made) + after) == made
