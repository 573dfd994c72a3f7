"""Expressions: every form, total, and never evaluated twice."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm.plan import PlanError, Scope, evaluate, sizes
from rlm.plan.expressions import form_of, keys_of, pieces, text
from rlm.plan.problems import joined
from rlm.plan.sizes import bounded
from tests.plan.world import refusal

SCOPE = Scope(
    {"user": 'a {x} ${y} {"var": "secret"}', "doc": {"a": {"b": [10, {"c d": 2}]}}},
    {"secret": "s3cret", "n": 3, "none": None, "rows": [1, 2, 3], "part": {"handle": "log:0-9"}, "form": {"var": "n"}},
)


def error(expression: Any) -> PlanError:
    with pytest.raises(PlanError) as caught:
        evaluate(expression, SCOPE, "steps[0].value")
    return caught.value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("text {x}", "text {x}"),
        (None, None),
        (1.5, 1.5),
        ([1, {"var": "n"}], [1, 3]),
        ({"k": {"var": "n"}, "l": [{"input": "user"}]}, {"k": 3, "l": [SCOPE.inputs["user"]]}),
        ({"var": "none"}, None),
        ({"input": "doc", "path": "a.b[0]"}, 10),
        ({"input": "doc", "path": ["a", "b", 1, "c d"]}, 2),
        ({"input": "doc", "path": "a.b[-1].c d"}, 2),
        ({"var": "rows", "path": "[2]"}, 3),
        ({"var": "n", "path": ""}, 3),
        ({"var": "n", "path": []}, 3),
        ({"join": ["n = ", {"var": "n"}, ", ", {"var": "rows"}, " ", True, None]}, "n = 3, [1, 2, 3] truenull"),
        ({"join": []}, ""),
        ({"join": [{"k": {"var": "n"}}]}, '{"k": 3}'),
        ({"handle": "log"}, {"handle": "log"}),
        ({"literal": {"var": "n"}}, {"var": "n"}),
        ({"literal": {"literal": 1}}, {"literal": 1}),
        ({"var": "part"}, {"handle": "log:0-9"}),
        ({}, {}),
        ({"path": "x"}, {"path": "x"}),
    ],
)
def test_each_form(expression: Any, value: Any) -> None:
    assert evaluate(expression, SCOPE) == value


def test_what_a_value_holds_is_never_looked_at_again() -> None:
    said = SCOPE.inputs["user"]
    assert evaluate({"input": "user"}, SCOPE) == said
    assert evaluate({"join": ["<", {"input": "user"}, ">"]}, SCOPE) == f"<{said}>"
    assert evaluate({"var": "form"}, SCOPE) == {"var": "n"}
    assert evaluate([{"var": "form"}], SCOPE) == [{"var": "n"}]
    assert evaluate({"join": [{"var": "form"}]}, SCOPE) == '{"var": "n"}'


@pytest.mark.parametrize(
    ("expression", "kind", "path", "said"),
    [
        ({"var": "m"}, "unbound", "steps[0].value", '"m"'),
        ({"input": "m"}, "unknown_input", "steps[0].value", '"m"'),
        ([0, {"a": {"var": "m"}}], "unbound", "steps[0].value[1].a", ""),
        ({"join": ["a", {"var": "m"}]}, "unbound", "steps[0].value.join[1]", ""),
        (
            {"input": "doc", "path": "a.x"},
            "no_such_part",
            "steps[0].value",
            "at 'a' there is an object with the keys [\"b\"]",
        ),
        ({"input": "doc", "path": "b"}, "no_such_part", "steps[0].value", "at the top"),
        ({"input": "doc", "path": "a.b[2]"}, "no_such_part", "steps[0].value", "a list of 2"),
        ({"input": "doc", "path": "a.b.x"}, "no_such_part", "steps[0].value", "a list of 2"),
        ({"var": "rows", "path": "[-4]"}, "no_such_part", "steps[0].value", "a list of 3"),
        ({"var": "n", "path": "a"}, "no_such_part", "steps[0].value", "a number"),
        ({"var": "n", "path": "a..b"}, "invalid_path", "steps[0].value.path", ""),
        ({"join": ["see ", {"var": "part"}]}, "not_text", "steps[0].value", "`context` step"),
    ],
)
def test_an_expression_without_a_value_says_where_and_why(expression: Any, kind: str, path: str, said: str) -> None:
    problem = error(expression)
    assert (problem.kind, problem.detail["path"]) == (kind, path)
    assert said in problem.message


def test_in_a_prompt_a_context_stands_for_its_text() -> None:
    part = {"handle": "log:0-9"}
    assert pieces({"join": ["a", 1, {"var": "part"}, "b", None]}, SCOPE, "p") == ("a1", part, "bnull")
    assert pieces({"var": "part"}, SCOPE, "p") == (part,)
    assert pieces("text", SCOPE, "p") == ("text",)
    assert pieces({"join": []}, SCOPE, "p") == ("",)
    assert text({"var": "rows"}, SCOPE, "p") == "[1, 2, 3]"


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("a", ("a",)),
        ("a.b[0][-1].c", ("a", "b", 0, -1, "c")),
        ("[3]", (3,)),
        ("a-b.c d", ("a-b", "c d")),
        ("", ()),
        (["a.b", 0], ("a.b", 0)),
        ("a.", None),
        (".a", None),
        ("a..b", None),
        ("a[x]", None),
        ("a[0", None),
        ("[0]a", None),
        ("a]b", None),
        (3, None),
        ([True], None),
        ([1.5], None),
        (None, None),
    ],
)
def test_paths(path: Any, keys: Any) -> None:
    assert keys_of(path) == keys


@settings(deadline=None)
@given(st.lists(st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True) | st.integers(-9, 9), min_size=1))
def test_a_path_that_is_shown_is_a_path_that_can_be_written(keys: list[Any]) -> None:
    assert keys_of(joined("", keys)) == tuple(keys)


def test_a_value_that_would_be_too_large_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    value: Any = "x"
    for _ in range(40):
        value = [value, value]  # as large as 2 ** 40, in 40 small lists
    assert error([{"literal": value}]).kind == "too_large"
    assert error({"join": [{"literal": value}]}).kind == "too_large"
    monkeypatch.setattr(sizes, "MAX_CHARS", 10)
    assert bounded("x" * 10, "p")
    with pytest.raises(PlanError, match="too large"):
        bounded({"key": "x" * 8}, "p")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(deadline=None)
@given(JSON)
def test_every_json_value_can_be_said(value: Any) -> None:
    assert evaluate({"literal": value}, SCOPE) == value
    assert evaluate({"var": "x"}, SCOPE.bind("x", value)) == value


@settings(deadline=None)
@given(st.recursive(JSON, lambda e: st.lists(e) | st.dictionaries(st.sampled_from(["var", "path", "join", "k"]), e)))
def test_evaluation_is_total(expression: Any) -> None:
    problem = refusal(evaluate, expression, SCOPE, "here")
    assert problem is None or problem.detail["path"].startswith("here")


def test_a_scope_is_never_changed() -> None:
    bound = SCOPE.bind("n", 4)
    assert (SCOPE.variables["n"], bound.variables["n"]) == (3, 4)


def test_an_object_is_a_form_only_as_a_whole() -> None:
    assert form_of({"var": "x", "path": "y"}) == "var"
    assert form_of({"var": "x", "more": 1}) is None
    assert form_of({"literal": 1, "path": "y"}) is None
    assert form_of([]) is None
