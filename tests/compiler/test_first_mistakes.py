"""Mistakes of a first hour in nouns, tools and calls: each is answered with the place and with what to write."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import rlm
from rlm.errors import RlmError, RlmWarning
from rlm.providers import ScriptedProvider


class Parcel:
    """A class without a JSON form."""


class Shop:
    def order(self, number: int) -> int:
        """Order something."""
        return number


class Point:
    """A point, made of its coordinates."""

    def __init__(self, x: int, y: int = 0) -> None:
        self.x, self.y = x, y


@rlm.tool(effect="read")
def git_diff(base: str = "main") -> str:
    """Show what changed in git."""
    return base


def posted(parcel: Parcel) -> None:
    """Post a parcel."""


def catalog() -> rlm.Catalog:
    return rlm.Catalog([rlm.Unit("tool:clock", description="Tell the time")])


def run(**options: Any) -> Any:
    return rlm.complete("q", model=ScriptedProvider(["x"]), **options)


POLICY = rlm.Policy()

MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "a field that is set": (
        lambda: setattr(POLICY, "budget", 3),
        "Policy, field 'budget': it cannot be changed; make a copy, model_copy(update={'budget': ...})",
    ),
    "a unit's field that is set": (
        lambda: setattr(catalog()["tool:clock"], "description", "x"),
        (
            "unit 'tool:clock', field 'description': it cannot be changed; make a copy, "
            "model_copy(update={'description': ...})"
        ),
    ),
    "a window that is too small": (
        lambda: rlm.Policy(window=8192),
        (
            "Policy: window 8192 leaves no room after reserve_output 16384 and the margin; raise window, lower "
            "reserve_output, or set budget"
        ),
    ),
    "a pinned unit": (lambda: rlm.Unit("tool:x", pinned=True), "no such field; write activation='always'"),  # type: ignore[call-arg]
    "parameters of a unit": (lambda: rlm.Unit("tool:x", parameters={}), "no such field; write schema=..."),  # type: ignore[call-arg]
    "a pinned id of a policy": (
        lambda: rlm.Policy(pinned={"tool:x"}),  # type: ignore[call-arg]
        "no such field; write selected={...}; what every request holds is a unit with activation='always'",
    ),
    "a kind in other case": (lambda: rlm.Unit("Tool:x"), "resource; did you mean 'tool:x'?"),
    "an id without a kind": (lambda: rlm.Unit("x"), "resource; did you mean 'tool:x'?"),
    "a tool as a unit": (
        lambda: rlm.Catalog([git_diff]),  # type: ignore[list-item]
        "tool:git_diff: Tool is no Unit; use add_tools for functions and add_tool_list for JSON",
    ),
    "a file for units": (
        lambda: rlm.Catalog("tools.jsonl"),  # type: ignore[arg-type]
        "units: a list of units is wanted, not a path; to read a file: catalog.add_file('tools.jsonl')",
    ),
    "JSON for tools": (
        lambda: rlm.Catalog().add_tools([{"name": "a"}]),
        "{'name': 'a'} is neither a function nor made with @rlm.tool; use catalog.add_tool_list for JSON",
    ),
    "an effect without its name": (
        lambda: rlm.tool("read"),  # type: ignore[call-overload]
        "@rlm.tool takes its options by name, not 'read': write @rlm.tool(effect='read')",
    ),
    "a type without JSON": (
        lambda: rlm.tool(posted),
        (
            "function 'posted': parameter 'parcel' is a Parcel, which has no JSON form; take a type such as str, int, "
            "list, a dataclass or a pydantic model, or write schema={...}"
        ),
    ),
    "a method in a class": (
        lambda: rlm.tool(Shop.order),
        (
            "function 'order': parameter 'self' is not an argument of a call; make a tool of the method of an object: "
            "rlm.tool(object.method)"
        ),
    ),
    "arguments the other way round": (
        lambda: rlm.compile("what is the time?", catalog()),  # type: ignore[arg-type]
        "a Catalog is wanted, not str: the catalog comes first",
    ),
    "a budget of a compile": (
        lambda: rlm.compile(catalog(), "q", budget=100),  # type: ignore[call-arg]
        "compile has no option 'budget'; it is a field of the policy: policy=rlm.Policy(budget=...)",
    ),
    "a model of a compile": (
        lambda: rlm.compile(catalog(), "q", model="openai:x"),  # type: ignore[call-arg]
        "compile has no option 'model'; a compile sends nothing: use rlm.ask(text, catalog, model=...)",
    ),
    "one need": (lambda: rlm.compile(catalog(), "q", needs="mail"), "needs: a list is wanted, not str: write ['mail']"),
    "a text for messages": (
        lambda: rlm.chat("hi", model=ScriptedProvider(["x"])),  # type: ignore[arg-type]
        "messages: a list is wanted, not str: write [{'role': 'user', 'content': 'hi'}]",
    ),
    "a sensor's word": (
        lambda: rlm.compile(catalog(), "q", sensor="semantic"),  # type: ignore[arg-type]
        "sensor: a Sensor is wanted, not str: write rlm.Sensor()",
    ),
    "a session of tools": (lambda: rlm.Session([git_diff]), "catalog: a Catalog is wanted, not list"),  # type: ignore[arg-type]
    "a misspelt option of a session": (
        lambda: rlm.Session(catalog(), polcy=POLICY),  # type: ignore[call-arg]
        "Session has no option 'polcy'; did you mean 'policy'?",
    ),
    "capabilities of a question": (
        lambda: rlm.ask("q", catalog(), model=ScriptedProvider(["x"]), capabilities={"*"}),  # type: ignore[call-arg]
        "ask has no option 'capabilities'; it is a field of the policy: policy=rlm.Policy(capabilities=...)",
    ),
    "capabilities of a run": (
        lambda: run(capabilities={"*"}),
        "a completion has no option 'capabilities'; it is called policy=rlm.Policy(capabilities=...) here",
    ),
    "a key of a run": (
        lambda: run(api_key="x"),
        (
            "a completion has no option 'api_key'; a key comes from the environment (OPENAI_API_KEY), or from the "
            "provider: model=OpenAIProvider(..., api_key=function)"
        ),
    ),
    "a misspelt context": (lambda: run(contxt="x"), "a completion has no option 'contxt'; did you mean 'context'?"),
    "a number for a budget": (
        lambda: run(budget=1000),
        "field 'budget': a Budget or a mapping is wanted: write {'max_total_tokens': ...} or {'time_limit': ...}",
    ),
    "a file for a catalog": (
        lambda: run(catalog="tools.jsonl"),
        (
            "field 'catalog': a Catalog is wanted, not str: make one with rlm.Catalog(), and fill it with add_file, "
            "add_tools or add_skills"
        ),
    ),
    "a class for a schema": (
        lambda: run(schema=rlm.Policy),
        "field 'schema': a JSON Schema is wanted, not a class: write Policy.model_json_schema()",
    ),
    "a truth for an approver": (
        lambda: run(approve=True),
        "field 'approve': a function of the request is wanted; authority='allow' allows every effect",
    ),
    "folders for skills": (
        lambda: run(skills=["skills"]),
        (
            "field 'skills': 'on', 'off' or a Profile is wanted, not list; a folder of skills goes into a catalog: "
            "catalog.add_skills(folder)"
        ),
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_first_mistake_is_answered_with_what_to_write(case: str) -> None:
    call, words = MISTAKES[case]
    with pytest.raises(RlmError) as caught:
        call()
    assert caught.value.message.endswith(words)


def test_a_class_is_a_tool_by_the_parameters_of_its_making() -> None:
    tool = rlm.tool(name="point")(Point)
    assert list(tool.schema["properties"]) == ["x", "y"]
    assert tool.schema["required"] == ["x"]


def test_a_method_of_an_object_is_a_tool() -> None:
    assert list(rlm.tool(Shop().order).schema["properties"]) == ["number"]


def test_a_tool_without_a_description_is_warned_of_where_it_is_added() -> None:
    catalog = rlm.Catalog()
    bare = rlm.tool(name="frob")(lambda x: x)
    with pytest.warns(RlmWarning, match="tool:frob: without a description .* write a docstring") as caught:
        catalog.add_tools([bare, git_diff])
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        catalog.add_tools([rlm.tool(name="other")(lambda x: x)], description="Do another thing")


def test_a_warning_names_the_line_of_the_host_and_not_one_of_the_library(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("x")
    with pytest.warns(RlmWarning, match="the context is the text 'notes.txt'") as caught:
        rlm.complete("q", "notes.txt", model=ScriptedProvider(['{"steps": [{"op": "final", "value": 1}]}']))
    assert {warning.filename for warning in caught} <= {__file__, "rlm"}
