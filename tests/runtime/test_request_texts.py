"""What a request says: the role first, what it can use and nothing else, for one compile and one schema."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

import rlm
from rlm.agent import planning, run
from rlm.providers import ScriptedProvider

ANSWER = json.dumps({"steps": [{"op": "final", "value": 1}]})
ASK = json.dumps({"steps": [{"op": "model", "prompt": "Say hi", "bind": "x"}, {"op": "final", "value": {"var": "x"}}]})


@rlm.tool(effect="read")
def orchard_trees() -> int:
    """Count the trees of an orchard."""
    return 3


def free(replies: list[str]) -> ScriptedProvider:
    """A provider that enforces no schema."""
    return ScriptedProvider(replies, enforces_schema=False)


def requests(
    query: str, context: Any = None, replies: tuple[str, ...] = (ANSWER,), kind: Any = ScriptedProvider, **options: Any
) -> list[str]:
    model = kind(list(replies))
    rlm.complete(query, context, model=model, loop="plans", **options).unwrap()
    return ["\n".join(each["content"] for each in sent.parts["messages"]) for sent in model.requests]


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a request is compiled, and how often a reply's schema is made."""
    seen: Counter[str] = Counter()

    def counted(module: Any, name: str) -> None:
        function = getattr(module, name)

        def call(*args: Any, **fields: Any) -> Any:
            seen[name] += 1
            return function(*args, **fields)

        monkeypatch.setattr(module, name, call)

    counted(run, "compile_view")
    counted(planning, "plan_schema")
    return seen


def test_role_and_plan_language_come_first() -> None:
    (text,) = requests("How many trees?")
    places = [
        text.index(f"## {id}\n") for id in ("instruction:rlm/planner", "instruction:rlm/plan", "skill:rlm-operate")
    ]
    assert places == sorted(places)
    assert "The task is the first user message; the others come from the run." in text


def test_tools_that_are_not_shown_cost_no_second_compile_and_are_not_spoken_of(counts: Counter[str]) -> None:
    (text,) = requests("Name a colour", tools=[orchard_trees])
    assert counts["compile_view"] == 1
    assert "- tool:" not in text


def test_a_shown_tool_brings_its_operation_in_one_compile(counts: Counter[str]) -> None:
    (text,) = requests("Count the trees of the orchard", tools=[orchard_trees])
    assert counts["compile_view"] == 1
    assert "- tool: name" in text
    assert '"op":"retry"' in text


def test_a_schema_is_made_once_and_only_where_it_is_enforced(counts: Counter[str]) -> None:
    requests("Name a colour", kind=free)
    assert counts["plan_schema"] == 0
    requests("Name a colour", replies=("no plan", ANSWER))
    assert counts["plan_schema"] == 1


def test_where_all_is_in_the_request_the_language_is_small() -> None:
    small, large = requests("What is it?", "It is a cat. " * 30)[0], requests("What is it?", "abc " * 10_000)[0]
    assert [op for op in ("context", "map", "reduce", "observe", "let", "check") if f"- {op}: " in small] == []
    assert all(f"- {op}: " in small for op in ("model", "rlm", "final"))
    assert all(f"- {op}: " in large for op in ("context", "map", "observe"))


def test_a_leaf_is_told_of_nothing_that_it_cannot_do_and_a_planner_of_its_room() -> None:
    planner, leaf = requests("What is it?", "abc " * 10_000, (ASK, "hi"))
    assert [word for word in ("plan", "step", "handle", "bind", "observe") if word in leaf.split()] == []
    assert "room of a `model` prompt: " in planner
    assert "each further turn of yours takes one" in planner


@pytest.mark.parametrize(("effect", "said"), [("read", False), ("write", True)])
def test_where_a_tool_may_write_a_condition_that_is_not_met_is_reported(effect: Any, said: bool) -> None:
    @rlm.tool(effect=effect, name="orchard_fell")
    def fell() -> int:
        """Fell a tree of an orchard."""
        return 1

    (text,) = requests("Fell a tree of the orchard", tools=[fell])
    assert ("do not act: report" in text) is said
