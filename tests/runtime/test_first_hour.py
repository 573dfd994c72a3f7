"""What a new user is told of a first run that does not work."""

from __future__ import annotations

import json
from typing import Any

import pytest

import rlm
from rlm.errors import BudgetError
from rlm.providers import ScriptedProvider


@rlm.tool(effect="process")
def shell(command: str) -> str:
    """Run a shell command."""
    return command


@rlm.tool(effect="read")
def broken_tool() -> str:
    """Read the broken thing."""
    raise KeyError("no such row")


def calls(name: str, **arguments: Any) -> str:
    steps = [{"op": "tool", "name": name, "args": arguments, "bind": "x"}, {"op": "final", "value": {"var": "x"}}]
    return json.dumps({"steps": steps})


@pytest.mark.parametrize(
    ("tool", "arguments", "text", "kind", "words"),
    [
        (
            shell,
            {"command": "ls"},
            "run a shell command",
            "approval_required",
            "the host has no approver: set approve= or authority=",
        ),
        (broken_tool, {}, "read the broken thing", "handler_failed", "KeyError: 'no such row'"),
    ],
)
def test_a_run_without_progress_ends_with_what_went_wrong(
    tool: Any, arguments: dict[str, Any], text: str, kind: str, words: str
) -> None:
    model = ScriptedProvider([calls(tool.name, **arguments)] * 3)
    result = rlm.complete(text, model=model, tools=[tool])
    assert result.error is not None
    assert result.error["kind"] == "no_progress"
    assert result.error["message"].startswith("the same plan had the same result 3 times: at steps[0]: ")
    assert words in result.error["message"]
    assert result.error["detail"]["cause"]["kind"] == kind


def test_a_tool_that_is_a_unit_without_a_function_is_told_so() -> None:
    catalog = rlm.Catalog()
    catalog.add_tool_list([{"name": "list_pods", "description": "List the pods"}], trust="host")
    result = rlm.complete("list the pods", model=ScriptedProvider([calls("list_pods")] * 3), catalog=catalog)
    assert result.error is not None
    assert result.error["message"].endswith(
        "no tool 'list_pods' can be called in this run; a unit alone does nothing: the host gives its function in tools="
    )


def test_a_budget_that_holds_not_even_the_text_is_told_so() -> None:
    with pytest.raises(BudgetError, match=r"no unit is among them: the texts and their framing .* allow more"):
        rlm.compile(rlm.Catalog(), "list the pods", policy=rlm.Policy(budget=5))


def test_a_value_that_never_follows_the_schema_is_told_at_the_end() -> None:
    model = ScriptedProvider(['{"steps": [{"op": "final", "value": 3}]}'] * 3)
    result = rlm.complete("How many?", model=model, schema={"type": "string"})
    assert result.error is not None
    assert "does not follow the wanted schema" in result.error["message"]
