"""What a newcomer gets wrong, and what is said then: one sentence that names the thing and the right spelling."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable
from typing import Any

import pytest

import rlm
from rlm.errors import RlmError, did_you_mean
from rlm.model.words import counted


@rlm.tool(effect="read")
def git_diff(base: str = "main") -> str:
    """Show what changed in git against a base branch."""
    return base


def undecorated() -> None:
    """Nothing."""


REVIEW = rlm.Unit("skill:review", description="How to review a change")


@pytest.fixture
def catalog() -> rlm.Catalog:
    catalog = rlm.Catalog([REVIEW])
    catalog.add_tools([git_diff])
    return catalog


def mistake(call: Callable[[], Any]) -> RlmError:
    with pytest.raises(RlmError) as caught:
        call()
    return caught.value


# -- an id, or a thing that has one -----------------------------------------------------------------


@pytest.mark.parametrize(("thing", "id"), [(git_diff, "tool:git_diff"), (REVIEW, "skill:review")])
def test_a_thing_with_an_id_will_do_for_the_id(catalog: rlm.Catalog, thing: Any, id: str) -> None:
    view = rlm.compile(catalog, "git")
    assert view.explain(thing) == view.explain(id)
    assert view.what_if(thing) == view.what_if(id)
    assert view.what_if(thing).unit == id
    assert view.state(thing) is view.state(id)
    assert thing in catalog
    assert catalog[thing].id == id
    catalog.set_available(thing, False)
    assert not catalog[id].available
    catalog.remove(thing)
    assert id not in catalog


@pytest.mark.parametrize("thing", [undecorated, 5, None, {"id": "tool:git_diff"}])
def test_for_anything_else_an_id_is_asked_for(catalog: rlm.Catalog, thing: Any) -> None:
    view = rlm.compile(catalog, "git")
    calls: list[Callable[[Any], Any]] = [view.what_if, view.state, catalog.__getitem__, catalog.remove]
    if thing is not None:  # the whole view
        calls.append(view.explain)
    for call in calls:
        error = mistake(lambda call=call: call(thing))  # type: ignore[misc]
        assert error.kind == "not_an_id"
        assert error.message == f"an id such as 'tool:git_diff' is wanted, not {type(thing).__name__}"
    assert len(catalog) == 2


def test_a_unit_that_is_not_there_is_told_by_its_id(catalog: rlm.Catalog) -> None:
    view = rlm.compile(catalog, "git")
    error = mistake(lambda: view.explain(rlm.Unit("tool:git_dif", description="x")))
    assert error.message == "no unit 'tool:git_dif'; did you mean 'tool:git_diff'?"


# -- patterns that match nothing --------------------------------------------------------------------


@pytest.mark.parametrize("field", ["denied", "disabled", "scope", "capabilities", "withheld"])
def test_a_pattern_that_matches_no_unit_is_told_with_the_closest_id(catalog: rlm.Catalog, field: str) -> None:
    for pattern in ("tool:git_dif", "git_diff"):
        *first, warning = rlm.compile(catalog, "git", policy=rlm.Policy(**{field: {pattern}})).warnings
        assert [text.partition(":")[0] for text in first] == ["nothing is granted"] * (field == "capabilities")
        assert warning.startswith(f"{field} names {pattern!r}, which ")
        assert warning.endswith("; did you mean 'tool:git_diff'?")
    for pattern in ("tool:git_diff", "tool:later_*", "*"):
        found = rlm.compile(catalog, "git", policy=rlm.Policy(**{field: {pattern}})).warnings
        nothing = field == "capabilities" and pattern == "tool:later_*"
        assert [text.partition(":")[0] for text in found] == ["nothing is granted"] * nothing


def test_a_capability_of_its_own_name_is_known(catalog: rlm.Catalog) -> None:
    catalog.add(rlm.Unit("skill:deploy", description="How to deploy", requires_capability="deploy"))
    assert rlm.compile(catalog, "x", policy=rlm.Policy(capabilities={"deploy"})).warnings == ()
    (warning,) = rlm.compile(catalog, "x", policy=rlm.Policy(withheld={"deplo"})).warnings
    assert warning == "withheld names 'deplo', which no unit of the catalog needs; did you mean 'deploy'?"
    first, warning = rlm.compile(catalog, "x", policy=rlm.Policy(capabilities={"skill:review"})).warnings
    assert first.startswith("nothing is granted: ")
    assert warning.startswith("capabilities names 'skill:review', which no unit of the catalog needs")


def test_warnings_stand_where_a_view_explains_itself(catalog: rlm.Catalog) -> None:
    view = rlm.compile(catalog, "git", policy=rlm.Policy(denied={"git_dif", "zzz"}))
    first, second = view.warnings
    assert second == "denied names 'zzz', which is no unit of the catalog"
    assert str(view.explain()).endswith(f"hidden.\nWarning: {first}\nWarning: {second}")
    assert view.to_dict()["warnings"] == view.explain().to_dict()["warnings"] == [first, second]
    assert view.fingerprint == rlm.compile(catalog, "git", policy=view.policy).fingerprint


# -- words ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "words"), [(0, "0 tools"), (1, "1 tool"), (2, "2 tools"), (1000, "1,000 tools")])
def test_a_number_agrees_with_its_noun(number: int, words: str) -> None:
    assert counted(number, "tool") == words


def test_an_overview_counts_in_english() -> None:
    units = [rlm.Unit(f"tool:{name}", description=f"The {name} thing") for name in ("red", "green", "blue")]
    said = [str(rlm.compile(rlm.Catalog(units), text).explain()).splitlines()[-1] for text in ("red", "red green")]
    assert said == ["2 other units are hidden.", "1 other unit is hidden."]
    assert str(rlm.compile(rlm.Catalog(units), "red green blue").explain()).endswith("\nNo other unit is hidden.")
    assert str(rlm.compile(rlm.Catalog(), "red").explain()) == "There is no unit."


def test_what_begins_a_word_is_close_to_it_where_it_begins_no_other() -> None:
    assert did_you_mean("all", ["compiled", "all_tools"]) == "; did you mean 'all_tools'?"
    assert did_you_mean("t", ["tool:aaaaaa", "tool:bbbbbb"]) == ""
    assert did_you_mean("", ["compiled"]) == ""


def test_what_is_no_word_is_close_to_what_it_looks_like() -> None:
    assert did_you_mean(404, ["4044", "x"]) == "; did you mean '4044'?"
    assert did_you_mean("40", [404, None]) == "; did you mean '404'?"
    assert did_you_mean(None, ["x"]) == ""


# -- options and fields -----------------------------------------------------------------------------

SAID: dict[str, tuple[Callable[[rlm.Catalog], Any], str]] = {
    "a place": (
        lambda c: rlm.compile(c, "x", tools="txt"),  # type: ignore[arg-type]
        "tools must be 'native' or 'text', not 'txt'; did you mean 'text'?",
    ),
    "a mode": (
        lambda c: rlm.Policy(mode="all"),
        "mode 'all' is none of compiled, all_tools; did you mean 'all_tools'?",
    ),
    "an activation": (
        lambda c: rlm.Unit("tool:x", activation="alway"),
        "unit 'tool:x', field 'activation': Input should be 'always' or 'relevant'; did you mean 'always'?",
    ),
    "a trust": (
        lambda c: rlm.Unit("tool:x", trust="hots"),
        "unit 'tool:x', field 'trust': Input should be 'host' or 'stranger'; did you mean 'host'?",
    ),
    "no id": (lambda c: rlm.Unit(description="x"), "a unit, field 'id': Field required"),
    "a policy of fields": (
        lambda c: rlm.compile(c, "x", policy={"budget": 500}),  # type: ignore[arg-type]
        "a Policy is wanted, not dict: rlm.Policy(**{'budget': 500})",
    ),
    "a list of units": (lambda c: c.add([REVIEW]), "list is no Unit; write add(*units)"),
    "one tool": (lambda c: c.add_tools(git_diff), "tools: a list of tools is wanted: write [tool]"),
    "one function": (lambda c: c.add_tools(undecorated), "tools: a list of tools is wanted: write [tool]"),
    "a name for tools": (lambda c: c.add_tools("git_diff"), "tools: a list of tools is wanted: write [tool]"),
    "one unit": (lambda c: rlm.Catalog(REVIEW), "units: a list of units is wanted: write [unit]"),  # type: ignore[arg-type]
    "a lambda": (lambda c: c.add_tools([lambda x: x]), "has no name: write rlm.tool(name=...)(function)"),
    "a partial": (
        lambda c: rlm.tool(functools.partial(undecorated)),
        "has no name: write rlm.tool(name=...)(function)",
    ),
    "no units": (lambda c: rlm.Catalog(None), "units: a list of units is wanted, not None"),  # type: ignore[arg-type]
    "an id twice": (
        lambda c: rlm.Unit("tool:a", id="tool:b"),
        "unit 'tool:a', field 'id': it is given twice, as 'tool:b' too",
    ),
    "a second text": (lambda c: rlm.Unit("tool:a", "text"), "unit 'tool:a' takes fields by name, not 'text'"),
    "a field without a name": (lambda c: rlm.Policy(5), "Policy takes fields by name, not 5"),  # type: ignore[misc]
    "a budget that is a truth": (
        lambda c: rlm.Policy(budget=True),
        "Policy, field 'budget': a number is wanted, not True",
    ),
    "a floor in quotes": (
        lambda c: rlm.Policy(floor="0.5"),  # type: ignore[arg-type]
        "Policy, field 'floor': a number is wanted, not '0.5'",
    ),
    "a time limit in quotes": (
        lambda c: rlm.Budget(time_limit="5"),
        "Budget, field 'time_limit': a number is wanted, not '5'",
    ),
    "a time limit that is a truth": (
        lambda c: rlm.ask("x", c, model="local", time_limit=True),
        "time_limit must be seconds, more than 0: True",
    ),
    "a tool's time limit that is a truth": (
        lambda c: rlm.tool(effect="read", time_limit=True)(undecorated),
        "time_limit True must be a number of seconds above 0",
    ),
    "a budget that is none": (lambda c: rlm.Budget.of(5), "budget: a Budget or a mapping is wanted, not 5"),  # type: ignore[arg-type]
    "a word for a truth": (
        lambda c: rlm.Unit("tool:x", mandatory="no"),
        "unit 'tool:x', field 'mandatory': True or False is wanted, not 'no'",
    ),
    "bytes": (
        lambda c: rlm.Unit("tool:x", content=b"abc"),
        "unit 'tool:x', field 'content': text is wanted, not b'abc': decode it",
    ),
    "bytes among texts": (
        lambda c: rlm.Unit("tool:x", aliases=["a", b"abc"]),
        "unit 'tool:x', field 'aliases': text is wanted, not b'abc': decode it",
    ),
    "no file": (lambda c: c.add_file("nope.jsonl"), "nope.jsonl: No such file or directory"),
}


@pytest.mark.parametrize("case", SAID)
def test_a_mistake_is_told_with_what_to_write(catalog: rlm.Catalog, case: str) -> None:
    call, words = SAID[case]
    error = mistake(lambda: call(catalog))
    assert error.message.endswith(words)
    assert "line 0" not in error.message
    json.dumps(error.to_dict())


def test_a_function_is_no_unit(catalog: rlm.Catalog) -> None:
    error = mistake(lambda: catalog.add(undecorated))  # type: ignore[arg-type]
    assert error.message.startswith("<function undecorated at ")
    assert error.message.endswith(": function is no Unit; use add_tools for functions and add_tool_list for JSON")


def test_a_lambda_with_a_name_is_a_tool() -> None:
    assert rlm.tool(name="double")(lambda x: 2 * x).id == "tool:double"


def test_the_awaited_compile_has_the_signature_and_words_of_the_other() -> None:
    assert inspect.signature(rlm.acompile) == inspect.signature(rlm.compile)
    assert rlm.acompile.__doc__ == rlm.compile.__doc__
    assert inspect.iscoroutinefunction(rlm.acompile)
    assert rlm.acompile.__name__ == "acompile"
