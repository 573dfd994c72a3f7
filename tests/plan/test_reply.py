"""What a model is told of plans: the schema that its reply must follow, and the language in words."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest

from rlm.compiler.tokens.token_counter import counter
from rlm.model.plan import REDUCTIONS
from rlm.plan import Frame, PlanLimits, grammar_text, plan_schema, read
from rlm.plan.grammar import OFFERED
from rlm.plan.grammar import OFFERED_LEVELS as LEVELS
from rlm.plan.grammar import OFFERED_STEPS as STEPS
from rlm.plan.reply_text import _VALUES
from tests.plan.world import FRAME, World, add, final, var

MODEL_FRAME = FRAME.model_copy(update={"child": None})
LEAF = MODEL_FRAME.without("rlm", "tool", "map", "parallel", "retry", "reduce", "observe", "context")


def follows(data: Any, frame: Frame = MODEL_FRAME) -> bool:
    return jsonschema.Draft202012Validator(plan_schema(frame)).is_valid(data)


def steps(*made: dict[str, Any]) -> dict[str, Any]:
    return {"steps": list(made)}


# -- the schema ---------------------------------------------------------------------------------------

COUNT = {"op": "context", "handle": "log", "action": "count", "args": {"literal": "ERROR"}, "bind": "n"}
ASK = {"op": "model", "prompt": {"join": ["Q: ", {"input": "question"}]}, "bind": "said"}
EACH = {"op": "map", "over": {"input": "names"}, "as": "it", "steps": [add(1, var("it"), "x")], "bind": "out"}
GOOD = [
    steps(final(1)),
    steps(final({"var": "x"})),
    steps(COUNT, final({"join": ["n = ", var("n", "count")]})),
    steps({**COUNT, "action": "slice", "args": {}}, final(1)),
    steps({k: v for k, v in COUNT.items() if k != "args"} | {"action": "slice"}, final(1)),
    steps({**COUNT, "handle": var("part")}, final(1)),
    steps(ASK, final({"answer": var("said"), "ok": True})),
    steps({**ASK, "schema": {"type": "object"}}, final([1, var("said")])),
    steps({"op": "rlm", "query": "q", "context": {"handle": "log"}, "bind": "x"}, final(1)),
    steps({"op": "tool", "name": "find", "args": {"words": ["a", "b"], "mode": "any", "range": {"from": 3}}, "bind": "x"}, final(1)),
    steps({"op": "tool", "name": "find", "args": {"words": {"input": "names"}}, "bind": "x"}, final(1)),
    steps(EACH, {"op": "reduce", "over": var("out"), "with": "sum", "failed": "skip", "bind": "s"}, final(1)),
    steps({"op": "reduce", "over": [1, 2], "with": "model", "prompt": "merge", "bind": "s"}, final(1)),
    steps({**EACH, "steps": [{"op": "retry", "attempts": 2, "steps": [ASK], "bind": "y"}]}, final(1)),
    {"note": "first the sum", "steps": [final(1)]},
    steps(final({"a": [{"b": var("x")}, {"literal": {"var": 1}}], "c": {"join": [1, {"join": ["x"]}]}})),
    steps({**ASK, "prompt": {"join": ["Read.", {"handle": "log"}]}}, {"op": "observe", "values": [[var("said")], 1]}),
    steps({**COUNT, "handle": {"handle": "log"}}, final({"handle": "log"})),
    steps(COUNT, {"op": "observe", "values": [{"input": "names"}], "needs": ["a solver"]}),
]  # fmt: skip
BAD = [
    steps(),
    steps(COUNT),
    steps(final(1), COUNT),
    steps({"op": "oops"}, final(1)),
    steps({"op": "tool", "name": "deploy", "args": {}, "bind": "x"}, final(1)),
    steps({"op": "tool", "name": "nope", "bind": "x"}, final(1)),
    steps(add("one", 2, "x"), final(1)),
    steps({**add(1, 2, "x"), "args": {"a": 1}}, final(1)),
    steps({**add(1, 2, "x"), "args": {"a": 1, "b": 2, "c": 3}}, final(1)),
    steps({**COUNT, "handle": "lag"}, final(1)),
    steps({**COUNT, "action": "serch"}, final(1)),
    steps({**COUNT, "args": {"by": "words"}}, final(1)),
    steps(final({"input": "nams"}), final(1)),
    steps({**ASK, "bind": "a b"}, final(1)),
    steps({**ASK, "promt": "x"}, final(1)),
    steps({**EACH, "steps": [{"op": "observe", "values": [var("it")]}]}, final(1)),
    steps({"op": "reduce", "over": [1], "with": "model", "bind": "s"}, final(1)),
    steps({"op": "retry", "attempts": 9, "steps": [ASK], "bind": "y"}, final(1)),
    {"steps": [final(1)], "comment": "x"},
    {"note": 1, "steps": [final(1)]},
    steps({"op": "checkpoint", "label": "x"}, final(1)),
    steps({"op": "parallel", "plans": [steps(ASK), steps(COUNT, final(1))], "bind": "s"}, final(1)),
    steps({**COUNT, "action": "peek", "args": {}}, final(1)),
]


@pytest.mark.parametrize("data", GOOD, ids=range(len(GOOD)))
def test_a_plan_that_may_be_written_follows_the_schema(data: Any) -> None:
    assert follows(data)


@pytest.mark.parametrize("data", BAD, ids=range(len(BAD)))
def test_a_plan_that_would_be_refused_does_not(data: Any) -> None:
    assert not follows(data)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(plan_schema(MODEL_FRAME))
    jsonschema.Draft202012Validator.check_schema(plan_schema(LEAF))


def test_p18_the_schema_lists_the_tools_of_the_frame_and_no_other() -> None:
    text = json.dumps(plan_schema(MODEL_FRAME))
    assert '"const": "add"' in text
    assert "deploy" not in text


@pytest.mark.parametrize("op", [op for op in OFFERED if op != "final"])
def test_an_operation_that_is_not_there_cannot_be_written(op: str) -> None:
    assert f'"const": "{op}"' in json.dumps(plan_schema(MODEL_FRAME))
    assert f'"const": "{op}"' not in json.dumps(plan_schema(MODEL_FRAME.without(op)))


def test_without_contexts_inputs_and_tools_there_are_none() -> None:
    text = json.dumps(plan_schema(Frame()))
    assert '"input"' not in text
    assert '"tool"' not in text
    assert '"context"}' not in text.replace('"context": {"', "")
    assert follows(steps({"op": "rlm", "query": "q", "bind": "x"}, final(1)), Frame())


def test_only_a_few_levels_and_steps_so_that_a_grammar_stays_small() -> None:
    nested = final(1)
    for level in range(LEVELS):
        nested = {"op": "retry", "attempts": 1, "steps": [nested], "bind": f"x{'abc'[level]}"}
    assert follows(steps(nested, final(1)))
    assert not follows(steps({"op": "retry", "attempts": 1, "steps": [nested], "bind": "x"}, final(1)))
    marks = [{"op": "reduce", "over": [1], "with": "sum", "bind": "x"}] * STEPS
    assert follows(steps(*marks[1:], final(1)))
    assert not follows(steps(*marks, final(1)))
    short = MODEL_FRAME.model_copy(update={"limits": PlanLimits(max_steps=2, max_nesting=0)})
    assert not follows(steps(*marks[:2], final(1)), short)
    assert not follows(steps(EACH, final(1)), short)


def test_a_strangers_schema_is_taken_as_far_as_a_grammar_can_follow() -> None:
    schema = {
        "type": "object",
        "properties": {
            "node": {"$ref": "#/$defs/Node"},
            "far": {"$ref": "https://example.com/x"},
            "either": {"oneOf": [{"type": "integer", "minimum": 3}, {"type": "null"}]},
            "odd": {"not": {"type": "string"}},
            "text": {"type": "string", "pattern": "(?<look>behind)", "description": "x" * 1000},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "any": True,
        },
        "required": ["node"],
        "$defs": {
            "Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "id": {"type": "integer"}}}
        },
    }
    frame = MODEL_FRAME.model_copy(update={"tools": {"t": schema, "open": {"type": "object"}}})

    def call(**args: Any) -> Any:
        return steps({"op": "tool", "name": "t", "args": args, "bind": "x"}, final(1))

    assert follows(
        call(node={"id": 1, "next": {"id": 2}}, far=1, either=3, odd=1, text="t", map={"k": 1}, any=0), frame
    )
    assert follows(call(node=var("n"), either=var("n"), text={"join": [var("n")]}), frame)
    for bad in (
        {},
        {"node": {"id": "x"}},
        {"node": {}, "either": "x"},
        {"node": {}, "map": {"k": "x"}},
        {"node": {}, "u": 1},
    ):
        assert not follows(call(**bad), frame)
    assert follows(steps({"op": "tool", "name": "open", "args": {"what": ["ever"]}, "bind": "x"}, final(1)), frame)
    text = json.dumps(plan_schema(frame))
    assert "look" not in text
    assert "xxx" not in text
    assert "example.com" not in text


def test_the_schema_is_the_same_every_time_and_not_large() -> None:
    text = json.dumps(plan_schema(MODEL_FRAME), separators=(",", ":"))
    assert text == json.dumps(plan_schema(MODEL_FRAME.model_copy()), separators=(",", ":"))
    assert counter("o200k_base").count(text) < 4_000


# -- the words ----------------------------------------------------------------------------------------


def test_the_whole_language_takes_at_most_740_tokens() -> None:
    text = grammar_text(MODEL_FRAME)
    assert counter("o200k_base").count(text) <= 740
    assert text.startswith("# ")
    assert text.endswith("\n")


def test_the_words_speak_of_what_is_there_and_of_nothing_else() -> None:
    text = grammar_text(MODEL_FRAME)
    assert [op for op in OFFERED if f"- {op}: " not in text] == []
    assert [kind for kind in REDUCTIONS if kind not in text] == []
    for op in OFFERED:
        if op != "final":
            less = grammar_text(MODEL_FRAME.without(op))
            assert f"- {op}: " not in less
            assert f'"op":"{op}"' not in less
    assert "child" not in grammar_text(LEAF)
    assert "child" not in grammar_text(MODEL_FRAME.without("rlm"))
    assert "model" not in grammar_text(MODEL_FRAME.without("model"))


def test_the_words_depend_on_no_name_that_changes_from_request_to_request() -> None:
    other = MODEL_FRAME.model_copy(update={"inputs": ["z"], "handles": ("q",), "tools": {}, "variables": ["v"]})
    assert grammar_text(other) == grammar_text(MODEL_FRAME)


@pytest.mark.parametrize(
    "frame",
    [
        MODEL_FRAME,
        MODEL_FRAME.without("map"),
        MODEL_FRAME.without("map", "context"),
        LEAF,
        LEAF.without("model"),
    ],
    ids=["all", "no map", "no context", "leaf", "values"],
)
def test_the_example_is_a_valid_plan_that_follows_the_schema(frame: Frame) -> None:
    tools = {"TOOL": {"type": "object", "properties": {"ARGUMENT": {"type": "string"}}}}
    frame = frame.model_copy(update={"handles": ("context",), "tools": tools})
    examples = re.findall(r"^Example: (.*)$", grammar_text(frame), re.MULTILINE)
    assert examples
    for example in examples:
        assert read(example, frame).data["steps"]
        assert follows(json.loads(example), frame)


def test_the_examples_fit_the_case_and_each_has_a_schema() -> None:
    shown = {
        "with both": re.findall(r"^Example: (.*)$", grammar_text(MODEL_FRAME), re.MULTILINE),
        "with material": re.findall(r"^Example: (.*)$", grammar_text(MODEL_FRAME.without("tool")), re.MULTILINE),
        "with tools": re.findall(r"^Example: (.*)$", grammar_text(MODEL_FRAME.without("context")), re.MULTILINE),
        "with neither": re.findall(
            r"^Example: (.*)$", grammar_text(MODEL_FRAME.without("context", "tool")), re.MULTILINE
        ),
    }
    material, call = (
        ['"op":"context"' in each for each in shown["with both"]],
        ['"op":"tool"' in each for each in shown["with both"]],
    )
    assert (material, call) == ([True, False], [False, True])
    assert shown["with material"] == shown["with both"][:1]
    assert shown["with tools"] == shown["with both"][1:]
    assert ['"op":"context"' in each or '"op":"tool"' in each for each in shown["with neither"]] == [False]
    assert all('"schema"' in each for examples in shown.values() for each in examples)


@pytest.mark.anyio
async def test_the_field_that_is_named_is_the_one_that_an_action_gives() -> None:
    arguments: dict[str, dict[str, Any]] = {
        "search": {"literal": "disk"},
        "count": {"literal": "disk"},
        "partition": {"by": "lines"},
        "verify": {"quote": "disk"},
    }
    for action, field in _VALUES.items():
        assert field in await World().context("log", action, arguments.get(action, {}))
