"""What an error suggests where many names are known: the few that may have been meant, and never the whole list."""

from __future__ import annotations

import re
import time

import pytest

import rlm
from rlm.errors import ToolError, did_you_mean, named, nearest
from rlm.model.plan import Frame, PlanError
from rlm.plan import validate

MANY = [f"tool_number_{n}_{what}" for n in range(2_500) for what in ("read", "write")]


def refused(step: dict, frame: Frame) -> str:
    with pytest.raises(PlanError) as caught:
        validate({"steps": [{**step, "bind": "x"}, {"op": "final", "value": 1}]}, frame)
    return str(caught.value)


def test_a_misspelt_tool_among_thousands_is_answered_with_the_nearest_few() -> None:
    tools = [rlm.tool(effect="read", name=name)(lambda: 1) for name in MANY]
    step = {"op": "tool", "name": "tool_number_1700_raed", "args": {}, "bind": "x"}
    with pytest.raises(PlanError) as caught:
        rlm.run_plan({"steps": [step, {"op": "final", "value": 1}]}, tools=tools)
    (problem,) = caught.value.problems
    assert "did you mean 'tool_number_1700_read'?" in problem.message
    assert problem.expected.startswith("one of tool_number_1700_read, ")
    assert re.search(r" or 1?[49],995 others$", problem.expected)  # each tool has two or three names
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("step", "frame", "meant"),
    [
        ({"op": "tool", "name": MANY[77][:-1], "args": {}}, {"known_tools": [MANY[77][:-1]]}, MANY[77]),
        (
            {"op": "context", "handle": "page_1999_", "action": "info"},
            {"handles": [f"page_{n}" for n in range(3000)]},
            "page_1999",
        ),
        ({"op": "tool", "name": MANY[0], "args": {"value_1203x": 1}}, {}, "value_1203"),
    ],
    ids=["a hidden tool", "a context", "an argument"],
)
def test_whatever_was_misspelt(step: dict, frame: dict, meant: str) -> None:
    wide = {"type": "object", "properties": {f"value_{n}": {} for n in range(2_000)}, "additionalProperties": False}
    said = refused(step, Frame(tools=dict.fromkeys(MANY, wide), actions={"info": {}}, **frame))
    assert f"expected one of {meant}," in said
    assert len(said) < 600


def test_what_an_object_should_hold_is_told_in_short() -> None:
    wide = {"type": "object", "properties": {f"value_{n}": {} for n in range(2_000)}}
    outer = {"type": "object", "properties": {"box": wide}}
    said = refused({"op": "tool", "name": "t", "args": {"box": 3}}, Frame(tools={"t": outer}))
    assert "value_11? or 1,988 others" in said


def test_a_name_that_hundreds_of_servers_have_does_not_list_them_all() -> None:
    tools = [
        rlm.Tool(
            name="search", description="", schema={"type": "object"}, effect="read", handler=print, server=f"s{n:03}"
        )
        for n in range(300)
    ]
    with pytest.raises(ToolError) as caught:
        rlm.Registry(tools).lookup("search")
    assert caught.value.kind == "ambiguous_tool"
    assert "mcp_tool:s011/search or 288 others" in caught.value.message
    assert len(caught.value.message) < 500


def test_few_names_are_all_compared_and_all_told() -> None:
    assert nearest("gti_dif", ["git_diff", "git_log", "search"]) == ["git_diff"]
    assert named(["a", "b"]) == "a, b"


def test_the_nearest_of_very_many_is_found_soon() -> None:
    names = [f"tool:server_{n % 300}/do_{n}_{what}" for n in range(20_000) for what in ("read", "write")]
    began = time.process_time()
    assert did_you_mean("tool:server_17/do_1217_raed", names) == "; did you mean 'tool:server_17/do_1217_read'?"
    assert did_you_mean("x" * 10_000_000, names) == ""
    assert time.process_time() - began < 1.5
