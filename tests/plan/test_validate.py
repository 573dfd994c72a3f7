"""Plans are checked whole: each kind of problem, with the path of its place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm.errors import ConfigurationError
from rlm.model.plan import OPS
from rlm.plan import Frame, PlanError, PlanLimits, PlanProblem, read, validate
from tests.plan.world import FRAME, add, final, kinds, plan, problems, refusal, var

END = final(1)


def only(*steps: Any, frame: Frame = FRAME) -> PlanProblem:
    found = problems(*steps, frame=frame)
    assert len(found) == 1, found
    return found[0]


def body(*steps: Any, **fields: Any) -> dict[str, Any]:
    return {"op": "map", "over": [1, 2], "as": "it", "steps": list(steps), "bind": "out", **fields}


def test_a_valid_plan_keeps_its_data_and_names_its_tools() -> None:
    made = plan(add(1, 2, "x"), final(var("x")))
    assert made.data == {"steps": [add(1, 2, "x"), final(var("x"))]}
    assert made.tools == ("add",)
    assert made.digest == validate([add(1, 2, "x"), final(var("x"))], FRAME).digest


def test_a_reply_is_read_and_checked_at_once() -> None:
    assert read(f"Sure: {json.dumps([END])}", FRAME).data == {"steps": [END]}
    with pytest.raises(PlanError, match="no ending"):
        read(json.dumps(add(1, 2, "x")), FRAME)


# -- each kind, with its path -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "kind", "path", "said"),
    [
        ([{"op": "fnal", "value": 1}], "unknown_op", "steps[0].op", "did you mean 'final'?"),
        ([{"op": 3, "value": 1}], "wrong_type", "steps[0].op", "one of check"),
        ([{"final": 3}], "missing_field", "steps[0]", 'write {"op": "final", ...}'),
        (["final", END], "wrong_type", "steps[0]", '"op"'),
        ([], "empty", "steps", "at least one step"),
        ([{"op": "final", "vlue": 1, "value": 1}], "unknown_field", "steps[0].vlue", "did you mean 'value'?"),
        ([{"op": "final"}], "missing_field", "steps[0].value", "`final` needs `value`"),
        ([add(1, 2, "x")], "missing_ending", "steps[0]", "no ending"),
        ([END, add(1, 2, "x"), END], "misplaced_ending", "steps[0]", "nothing may follow"),
        ([add(1, 2, "x"), add(1, 2, "x"), END], "bound_twice", "steps[1].bind", "first at steps[0].bind"),
        ([add(1, 2, "a b"), END], "invalid_name", "steps[0].bind", "letters, digits"),
        ([{**add(1, 2, ""), "bind": None}, END], "invalid_name", "steps[0].bind", "null"),
        ([final(var("x"))], "unbound", "steps[0].value.var", '"x" is bound here'),
        ([add(1, 2, "sum"), final(var("smu"))], "unbound", "steps[1].value.var", "did you mean 'sum'?"),
        ([{"op": "observe", "values": [1]}, END], "misplaced_ending", "steps[0]", "nothing may follow"),
        ([final(var("names"))], "unbound", "steps[0].value.var", '{"input": "names"}'),
        ([final({"input": "nams"})], "unknown_input", "steps[0].value.input", "did you mean 'names'?"),
        ([final({"input": 3})], "wrong_type", "steps[0].value.input", "name of an input"),
        ([final({"var": 3})], "wrong_type", "steps[0].value.var", "name of a variable"),
        ([final({"input": "names", "path": "a..b"})], "invalid_path", "steps[0].value.path", "a.b[0]"),
        ([final({"handle": "lgo"})], "unknown_handle", "steps[0].value", "did you mean 'log'?"),
        ([final({"handle": 3})], "wrong_type", "steps[0].value.handle", "name of a context"),
        ([final({"join": "text"})], "wrong_type", "steps[0].value.join", "list of parts"),
        ([final({"var": "x", "pth": "a"})], "ambiguous_object", "steps[0].value", "did you mean 'path'?"),
        ([final([0, {"a b": {"join": [var("x")]}}])], "unbound", 'steps[0].value[1]["a b"].join[0].var', ""),
        ([final(1, schema=3)], "invalid_schema", "steps[0].schema", "object"),
        ([final(1, schema={"type": "nmber"})], "invalid_schema", "steps[0].schema", "nmber"),
        ([final(1, schema={"$ref": "http://x.example/y"})], "invalid_schema", "steps[0].schema", "$ref"),
        ([final(1, schema={"pattern": "(?=a)"})], "invalid_schema", "steps[0].schema", "RE2"),
        ([{"op": "model", "prompt": 3, "bind": "x"}, END], "wrong_type", "steps[0].prompt", '{"join": [...]}'),
        ([{"op": "model", "prompt": {"a": 1}, "bind": "x"}, END], "wrong_type", "steps[0].prompt", ""),
        ([{"op": "rlm", "query": ["a"], "bind": "x"}, END], "wrong_type", "steps[0].query", ""),
        ([{"op": "checkpoint", "label": 3}, END], "wrong_type", "steps[0].label", "a string"),
        ([{"op": "checkpoint", "label": "x" * 201}, END], "out_of_range", "steps[0].label", "200"),
        ([{"op": "observe", "values": "x"}], "wrong_type", "steps[0].values", '[{"var": "x"}]'),
        ([{"op": "observe", "values": []}], "wrong_type", "steps[0].values", ""),
        ([{"op": "observe", "values": [1], "needs": "x"}], "wrong_type", "steps[0].needs", "list of strings"),
        ([{"op": "observe", "values": [1], "needs": ["x"] * 17}], "out_of_range", "steps[0].needs", "16"),
        # tools
        ([{"op": "tool", "name": "ad", "bind": "x"}, END], "unknown_tool", "steps[0].name", "did you mean 'add'?"),
        ([{"op": "tool", "name": "deploy", "bind": "x"}, END], "tool_not_visible", "steps[0].name", "`needs`"),
        ([{"op": "tool", "name": ["add"], "bind": "x"}, END], "wrong_type", "steps[0].name", "add, fail, find"),
        ([{"op": "tool", "name": "add", "args": [], "bind": "x"}, END], "wrong_type", "steps[0].args", "an object"),
        ([add("one", 2, "x"), END], "invalid_argument", "steps[0].args.a", '{"type": "number"}'),
        # contexts
        (
            [{"op": "context", "handle": "lag", "action": "info", "bind": "x"}, END],
            "unknown_handle",
            "steps[0].handle",
            "did you mean 'log'?",
        ),
        (
            [{"op": "context", "handle": 3, "action": "info", "bind": "x"}, END],
            "wrong_type",
            "steps[0].handle",
            "name of a context",
        ),
        (
            [{"op": "context", "handle": "log", "action": "serch", "bind": "x"}, END],
            "unknown_action",
            "steps[0].action",
            "did you mean 'search'?",
        ),
        (
            [{"op": "context", "handle": "log", "action": "partition", "args": {"by": "word"}, "bind": "x"}, END],
            "invalid_argument",
            "steps[0].args.by",
            "headings",
        ),
        # bodies
        ([body(), END], "empty", "steps[0].steps", ""),
        ([body("x"), END], "wrong_type", "steps[0].steps[0]", ""),
        ([body({"op": "checkpoint", "label": "x"}), END], "no_value", "steps[0].steps[0]", "gives its value"),
        ([body({"op": "observe", "values": [1]}), END], "misplaced_ending", "steps[0].steps[0]", "whole plan"),
        ([body(END, add(1, 2, "x")), END], "misplaced_ending", "steps[0].steps[0]", "nothing may follow"),
        ([add(1, 2, "it"), body(END), END], "bound_twice", "steps[1].as", "first at steps[0].bind"),
        ([body(END, bind="it"), END], "bound_twice", "steps[0].bind", ""),
        ([body(add(1, 2, "it")), END], "bound_twice", "steps[0].steps[0].bind", "first at steps[0].as"),
        ([body(add(1, 2, "x")), final(var("x"))], "unbound", "steps[1].value.var", "bound at steps[0].steps[0].bind"),
        ([body(END), final(var("it"))], "unbound", "steps[1].value.var", "bound at steps[0].as"),
        ([body(final(var("out"))), END], "unbound", "steps[0].steps[0].value.var", "bound at steps[0].bind"),
        ([{"op": "retry", "attempts": 6, "steps": [END], "bind": "x"}, END], "out_of_range", "steps[0].attempts", "5"),
        ([{"op": "retry", "attempts": True, "steps": [END], "bind": "x"}, END], "wrong_type", "steps[0].attempts", ""),
        ([{"op": "parallel", "plans": [], "bind": "x"}, END], "out_of_range", "steps[0].plans", "16"),
        ([{"op": "parallel", "plans": {}, "bind": "x"}, END], "wrong_type", "steps[0].plans", ""),
        ([{"op": "parallel", "plans": [3], "bind": "x"}, END], "wrong_type", "steps[0].plans[0]", ""),
        ([{"op": "parallel", "plans": [{"stps": []}, [END]], "bind": "x"}, END], "unknown_field", "steps[0].plans[0].stps", "did you mean 'steps'?"),
        # reduce
        ([{"op": "reduce", "over": [1], "with": "mean", "bind": "x"}, END], "unknown_choice", "steps[0].with", "sum"),
        ([{"op": "reduce", "over": [1], "with": "model", "bind": "x"}, END], "missing_field", "steps[0].prompt", ""),
        ([{"op": "reduce", "over": [1], "with": "sum", "prompt": "x", "bind": "x"}, END], "unknown_field", "steps[0].prompt", "'model' only"),
        ([{"op": "reduce", "over": [1], "with": "sum", "separator": "x", "bind": "x"}, END], "unknown_field", "steps[0].separator", "'concat' only"),
        ([{"op": "reduce", "over": [1], "with": "sum", "failed": "ignore", "bind": "x"}, END], "unknown_choice", "steps[0].failed", "skip"),
        ([{"op": "reduce", "over": [1], "with": "sum", "path": 3, "bind": "x"}, END], "invalid_path", "steps[0].path", ""),
        # children
        ([{"op": "rlm", "query": "x", "plan": [add(1, 2, "x"), END], "bind": "x"}, END], "unknown_tool", "steps[0].plan.steps[0].name", ""),
        ([add(1, 2, "y"), {"op": "rlm", "query": "x", "plan": [final(var("y"))], "bind": "x"}, END], "unbound", "steps[1].plan.steps[0].value.var", ""),
        # no JSON
        ([final(float("nan"))], "invalid_number", "steps[0].value", "finite"),
        ([final("\ud800")], "invalid_text", "steps[0].value", "Unicode"),
        ([final({1: 2})], "wrong_type", "steps[0].value", "strings"),
        ([final((1, 2))], "wrong_type", "steps[0].value", "JSON"),
    ],
)  # fmt: skip
def test_a_problem_says_where_and_what(steps: list[Any], kind: str, path: str, said: str) -> None:
    found = problems(*steps)
    assert (kind, path) in [(problem.kind, problem.path) for problem in found]
    problem = next(problem for problem in found if problem.kind == kind)
    assert said in str(problem)
    assert problem.expected


def test_a_problem_reads_like_this() -> None:
    assert str(only(add("one", 2, "x"), END)) == (
        'at steps[0].args.a: \'one\' is not of type \'number\'; expected {"type": "number"}; got "one"'
    )
    assert str(only({"op": "tool", "name": "ad", "bind": "x"}, END)) == (
        'at steps[0].name: there is no tool "ad" here; did you mean \'add\'?; expected one of add, fail, find; got "ad"'
    )


@pytest.mark.parametrize(
    "data", [None, 3, "steps", [], {}, {"steps": {}}, {"steps": None}, {"steps": [END], "note": 1}, {"plan": 1}]
)
def test_what_is_no_plan_at_all_is_a_problem_too(data: Any) -> None:
    with pytest.raises(PlanError) as caught:
        validate(data, FRAME)
    assert caught.value.problems


def test_all_problems_come_at_once_and_not_more_than_can_be_read() -> None:
    assert kinds({"op": "tool", "name": "nope", "bind": "x"}, {"op": "oops"}, final(var("y"))) == [
        ("unknown_tool", "steps[0].name"),
        ("unknown_op", "steps[1].op"),
        ("unbound", "steps[2].value.var"),
    ]
    assert len(problems(*[{"op": "oops"}] * 40)) == 20


def test_the_error_carries_its_problems_through_pickling() -> None:
    import pickle

    with pytest.raises(PlanError) as caught:
        plan({"op": "oops"}, final(var("y")))
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.problems == caught.value.problems
    assert (again.kind, again.detail["path"]) == ("unknown_op", "steps[0].op")
    assert "(and 1 more)" in str(again)


# -- scopes -------------------------------------------------------------------------------------------


def test_siblings_may_use_the_same_name() -> None:
    plans = [[add(1, 2, "x")], {"steps": [add(3, 4, "x"), final(var("x"))]}]
    assert not problems(
        {"op": "parallel", "plans": plans, "bind": "both"}, body(add(var("it"), 1, "x")), final(var("out"))
    )


def test_a_body_sees_what_was_bound_around_it() -> None:
    inner = {"op": "retry", "attempts": 2, "steps": [add(var("x"), var("it"), "y")], "bind": "z"}
    assert not problems(add(1, 2, "x"), body(inner), final(var("out")))


def test_a_name_of_an_earlier_turn_may_be_read_and_bound_anew() -> None:
    frame = FRAME.model_copy(update={"variables": {"old": None}})
    assert not problems(add(var("old"), 1, "new"), add(1, 1, "old"), final(var("old")), frame=frame)
    assert kinds(add(1, 1, "old"), add(1, 1, "old"), END, frame=frame) == [("bound_twice", "steps[1].bind")]


# -- arguments ----------------------------------------------------------------------------------------


def find(**args: Any) -> dict[str, Any]:
    return {"op": "tool", "name": "find", "args": args, "bind": "x"}


@pytest.mark.parametrize(
    ("args", "path"),
    [
        ({}, "args"),
        ({"words": ["a", 3]}, "args.words[1]"),
        ({"words": "a"}, "args.words"),
        ({"words": [{"input": "question"}, 3]}, "args.words[1]"),
        ({"words": [{"input": "question"}] * 4}, "args.words"),
        ({"words": ["a"], "mode": "some"}, "args.mode"),
        ({"words": ["a"], "mod": "any"}, "args.mod"),
        ({"words": {"input": "names"}, "mod": "any"}, "args.mod"),
        ({"words": ["a"], "range": {}}, "args.range"),
        ({"words": ["a"], "range": {"from": -1}}, "args.range.from"),
        ({"words": ["a"], "range": {"literal": {"from": "x"}}}, "args.range.from"),
    ],
)
def test_literal_arguments_follow_the_schema(args: dict[str, Any], path: str) -> None:
    assert kinds(find(**args), END) == [("invalid_argument", f"steps[0].{path}")]


@pytest.mark.parametrize(
    "args",
    [
        {"words": {"input": "names"}},
        {"words": [{"input": "question"}, {"join": ["a", {"input": "question"}]}], "mode": {"input": "question"}},
        {"words": ["a"], "range": {"from": {"input": "question"}}},
        {"words": ["a"], "range": {"input": "question"}},
        {"words": {"literal": ["a"]}},
    ],
)
def test_an_expression_may_stand_for_any_argument(args: dict[str, Any]) -> None:
    assert not problems(find(**args), END)


@pytest.mark.parametrize("word", ["var", "input", "join", "handle", "literal"])
def test_an_argument_may_be_called_like_a_form(word: str) -> None:
    tools = {"t": {"type": "object", "properties": {word: {"type": "string"}}, "additionalProperties": False}}
    frame = FRAME.model_copy(update={"tools": tools})
    assert not problems({"op": "tool", "name": "t", "args": {word: "x"}, "bind": "b"}, END, frame=frame)


def test_a_condition_on_an_unknown_value_refuses_nothing() -> None:
    schema = {
        "type": "object",
        "properties": {"kind": {}, "size": {}},
        "if": {"properties": {"kind": {"const": "big"}}},
        "then": {"required": ["size"]},
        "else": {"not": {"required": ["size"]}},
    }
    frame = FRAME.model_copy(update={"tools": {"t": schema}})

    def call(**args: Any) -> dict[str, Any]:
        return {"op": "tool", "name": "t", "args": args, "bind": "b"}

    assert not problems(call(kind={"input": "question"}, size=1), END, frame=frame)
    assert kinds(call(kind="small", size=1), END, frame=frame) == [("invalid_argument", "steps[0].args")]


# -- what is there at all -----------------------------------------------------------------------------


def test_p18_a_tool_that_is_not_visible_is_refused_and_says_how_to_get_it() -> None:
    problem = only({"op": "tool", "name": "deploy", "args": {"to": "prod"}, "bind": "x"}, END)
    assert problem.kind == "tool_not_visible"
    assert "deploy" not in problem.expected


def test_p02_a_host_plan_may_name_a_tool_that_a_model_was_not_shown() -> None:
    step = {"op": "tool", "name": "deploy", "bind": "x"}
    host = FRAME.model_copy(update={"tools": {**FRAME.tools, "deploy": {"type": "object"}}, "known_tools": ()})
    assert problems(step, END)
    assert not problems(step, END, frame=host)


@pytest.mark.parametrize("op", [op for op in OPS if op != "final"])
def test_an_operation_that_is_not_there_is_refused(op: str) -> None:
    problem = problems({"op": op}, END, frame=FRAME.without(op))[0]
    assert (problem.kind, problem.path) == ("op_not_allowed", "steps[0].op")
    assert op not in problem.expected.split(", ")


def test_without_models_nothing_is_reduced_by_one() -> None:
    step = {"op": "reduce", "over": [1], "with": "model", "prompt": "x", "bind": "x"}
    assert not problems(step, END)
    assert kinds(step, END, frame=FRAME.without("model")) == [("unknown_choice", "steps[0].with")]


def test_without_a_frame_for_it_a_child_takes_no_plan() -> None:
    step = {"op": "rlm", "query": "x", "plan": [END], "bind": "x"}
    assert not problems(step, END)
    assert kinds(step, END, frame=FRAME.model_copy(update={"child": None})) == [("unknown_field", "steps[0].plan")]


def test_a_plan_has_its_limits() -> None:
    small = FRAME.model_copy(update={"limits": PlanLimits(max_steps=3, max_nesting=1, max_attempts=2, max_plans=1)})
    assert kinds(*[add(1, 1, f"x{n}") for n in range(3)], END, frame=small) == [("too_many_steps", "steps[3]")]
    assert kinds(body(body(END, **{"as": "u", "bind": "v"})), END, frame=small) == [
        ("too_deep", "steps[0].steps[0].steps")
    ]
    assert kinds({"op": "retry", "attempts": 3, "steps": [END], "bind": "x"}, END, frame=small) == [
        ("out_of_range", "steps[0].attempts")
    ]


def test_steps_of_children_count_too() -> None:
    child = Frame(limits=PlanLimits(max_steps=3))
    frame = FRAME.model_copy(update={"child": child})
    steps = [{"op": "checkpoint", "label": "x"}, {"op": "checkpoint", "label": "y"}, END]
    assert kinds({"op": "rlm", "query": "x", "plan": steps, "bind": "x"}, END, frame=frame)[0][0] == "too_many_steps"


@pytest.mark.parametrize(
    ("value", "kind"),
    [([0] * 100_001, "too_large"), ("x" * 300_000, "too_large")],
)
def test_a_plan_is_bounded_in_size(value: Any, kind: str) -> None:
    assert problems(final(value))[0].kind == kind


def test_a_plan_is_bounded_in_depth_and_may_not_hold_itself() -> None:
    circle: list[Any] = []
    circle.append(circle)
    assert problems(final(circle))[0].kind == "too_deep"
    wide: Any = 0
    for _ in range(60):
        wide = [wide, wide]
    assert problems(final(wide))[0].kind == "too_large"


def test_a_frame_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'model'"):
        Frame(ops=frozenset({"modle", "final"}))
    with pytest.raises(ConfigurationError, match="cannot end"):
        Frame(ops=frozenset({"model"}))
    with pytest.raises(ConfigurationError, match="names are wanted"):
        Frame(inputs="question")
    with pytest.raises(ConfigurationError, match="not the value"):
        Frame(inputs={"names": ["Ann"]})
    assert Frame(inputs=["a", "b"]).inputs == {"a": None, "b": None}


# -- any JSON -----------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    [*OPS, "op", "steps", "bind", "var", "path", "input", "join", "handle", "literal", "args", "name", "over", "as",
     "with", "plans", "attempts", "value", "values", "prompt", "schema", "plan", "query", "action", "add", "log", "x"]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=6),
    max_leaves=30,
)


@settings(max_examples=500, deadline=None)
@given(JSON)
def test_no_json_raises_anything_but_problems(data: Any) -> None:
    for tried in (data, {"steps": data}, {"steps": [data, END]}):
        error = refusal(validate, tried, FRAME)
        if error is None:
            assert validate(tried, FRAME).data["steps"]
        else:
            assert error.problems
            assert all(problem.kind and problem.message for problem in error.problems)
