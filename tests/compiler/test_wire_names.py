"""Wire names: legal, one for each unit, and the same in every catalog."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rlm
from rlm.errors import CompileError, ToolError
from rlm.model.unit import checked_id
from rlm.model.wire_names import safe_name, wire_name
from tests.compiler.blocks import tool

LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")


def _is_id(id: str) -> bool:
    try:
        return checked_id(id) == id
    except ValueError:
        return False


KINDS = st.sampled_from(["tool", "mcp_tool"])
LETTERS = st.text("aB0_-./: é字", min_size=1, max_size=70)
ANY = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=80)
PLAIN = st.builds(lambda kind, path: f"{kind}:{path}", KINDS, LETTERS | ANY).filter(_is_id)
IMPOSTORS = st.builds(lambda unit: f"tool:{wire_name(unit)}", PLAIN)
"""Tools that are called as another unit is on the wire."""
TWICE = st.builds(lambda unit: f"tool:{wire_name(unit)}", IMPOSTORS)
NEAR = st.builds(lambda unit, change: unit[:-1] + change, PLAIN, st.sampled_from("_-.a")).filter(_is_id)
IDS = st.one_of(PLAIN, IMPOSTORS, TWICE, NEAR)


@given(IDS)
@settings(max_examples=2000, deadline=None)
def test_a_wire_name_is_legal(id: str) -> None:
    assert LEGAL.fullmatch(wire_name(id))


@given(st.lists(PLAIN, min_size=1, max_size=6))
@settings(max_examples=600, deadline=None)
def test_no_two_units_have_the_same_one(ids: list[str]) -> None:
    every = set(ids)
    for _ in range(2):
        every |= {f"tool:{wire_name(id)}" for id in every}
    every |= {near for id in ids for near in (id + "_", id + "-", id.replace("/", "_"), id.swapcase()) if _is_id(near)}
    assert len({wire_name(id) for id in every}) == len(every)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tool:a.b", "tool:a_b"),
        ("tool:a/b", "tool:a_b"),
        ("tool:a/b", "mcp_tool:a/b"),
        ("tool:x", "mcp_tool:x"),
        ("mcp_tool:a/b_c", "mcp_tool:a_b/c"),
        ("tool:" + "n" * 64, "tool:" + "n" * 65),
        ("tool:" + "n" * 65, "tool:" + "n" * 66),
        ("tool:Git", "tool:git"),
        ("tool:字", "tool:学"),
        ("tool:é", "tool:e\N{COMBINING ACUTE ACCENT}"),
        ("tool:git\N{CYRILLIC SMALL LETTER A}", "tool:gita"),
        ("tool:a b", "tool:a  b"),
    ],
)
def test_close_names_stay_apart(one: str, other: str) -> None:
    assert wire_name(one) != wire_name(other)
    assert wire_name(one) != wire_name(f"tool:{wire_name(other)}")


@pytest.mark.parametrize(
    ("id", "name"),
    [
        ("tool:git_diff", "git_diff"),
        ("tool:a-b", "a-b"),
        ("tool:" + "n" * 64, "n" * 64),
        ("tool:0123456789ab", "0123456789ab"),
    ],
)
def test_a_legal_name_stays_as_it_is(id: str, name: str) -> None:
    assert wire_name(id) == name


def test_a_name_is_legible_and_does_not_change_from_release_to_release() -> None:
    """Conversations that are stored hold these names."""
    assert wire_name("mcp_tool:github/create_issue") == "github_create_issue-7f770201d302"
    assert wire_name("tool:files.read") == "files_read-13c865553691"
    assert wire_name("tool:字") == "tool-b90b17e5ac32"


@given(st.lists(IDS, min_size=1, max_size=5, unique=True), st.data())
@settings(max_examples=60, deadline=None)
def test_a_name_depends_on_no_other_unit_and_resolves_to_its_own(ids: list[str], data: st.DataObject) -> None:
    some = data.draw(st.sets(st.sampled_from(ids), min_size=1))
    seen: dict[str, set[str]] = {}
    for chosen in (ids, sorted(some)):
        with rlm.Catalog() as catalog:
            catalog.add(*(rlm.Unit(id, activation="always") for id in chosen))
            view = rlm.compile(catalog, "x")
            assert len(view.tools("openai")) == len(chosen)
            for openai, anthropic in zip(view.tools("openai"), view.tools("anthropic"), strict=True):
                assert openai["function"]["name"] == anthropic["name"]
                seen.setdefault(view.resolve(anthropic["name"]), set()).add(anthropic["name"])
    assert seen.keys() == set(ids)
    assert all(len(names) == 1 for names in seen.values())


def test_two_names_that_somebody_made_alike_are_refused_by_name_before_anything_is_sent() -> None:
    """Found in a minute among 30 million ids."""
    one, other = "tool:x\u5393\u4f2a\u4e01", "tool:x\u548b\u4e9c\u4e05"
    assert wire_name(one) == wire_name(other)
    catalog = rlm.Catalog([rlm.Unit(one, activation="always"), rlm.Unit(other, activation="always")])
    for place in ("native", "text"):
        with pytest.raises(CompileError) as caught:
            rlm.compile(catalog, "x", tools=place)  # type: ignore[arg-type]
        assert caught.value.kind == "wire_name_clash"
        assert caught.value.detail["units"] == [one, other]
    view = rlm.compile(catalog, "x", pack=False)
    assert view.active == (one, other)


# -- resolve -----------------------------------------------------------------------------------------


@dataclass
class Call:
    """A call as a client library's object."""

    name: Any


@pytest.fixture
def view() -> rlm.CompiledContext:
    catalog = rlm.Catalog()
    catalog.add(tool("git_diff", "Show the change in git"), tool("clock", "The time of day"))
    catalog.add_tool_list([{"name": "git.show", "description": "Show a change in git"}], server="git")
    return rlm.compile(catalog, "a change in git", policy=rlm.Policy(capabilities={"*"}, relative_floor=0))


SHOW = wire_name("mcp_tool:git/git.show")


@pytest.mark.parametrize(
    "call",
    [
        "NAME",
        {"id": "call_1", "type": "function", "function": {"name": "NAME", "arguments": "{}"}},
        {"function": {"name": "NAME"}},
        {"type": "tool_use", "id": "toolu_1", "name": "NAME", "input": {}},
        Call("NAME"),
    ],
    ids=["name", "openai", "openai, short", "anthropic", "object"],
)
@pytest.mark.parametrize(
    ("name", "unit"), [("git_diff", "tool:git_diff"), (SHOW, "mcp_tool:git/git.show")], ids=["host", "mcp"]
)
def test_a_call_resolves_to_its_unit(view: rlm.CompiledContext, call: Any, name: str, unit: str) -> None:
    def named(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: named(item) for key, item in value.items()}
        if isinstance(value, Call):
            return Call(name)
        return name if value == "NAME" else value

    assert view.resolve(named(call)) == unit


@pytest.mark.parametrize(
    "call",
    [
        "clock",
        "tool:git_diff",
        "mcp_tool:git/git.show",
        "git.show",
        "git_diff ",
        "GIT_DIFF",
        "",
        {"function": {"name": "clock", "arguments": "{}"}},
        {"type": "tool_use", "name": "clock", "input": {}},
        Call("clock"),
        {},
        {"function": None},
        {"function": "git_diff"},
        {"name": ["git_diff"]},
        {"function": {"name": None}},
        {"function": {}, "name": None},
        Call(None),
        None,
        7,
        ["git_diff"],
        b"git_diff",
    ],
    ids=repr,
)
def test_what_is_not_visible_is_refused_in_every_spelling(view: rlm.CompiledContext, call: Any) -> None:
    with pytest.raises(ToolError) as caught:
        view.resolve(call)
    assert caught.value.kind == "tool_not_visible"
    assert caught.value.phase == "tool"


def test_a_refusal_names_what_is_visible_and_nothing_hidden(view: rlm.CompiledContext) -> None:
    with pytest.raises(ToolError, match="did you mean 'git_diff'") as caught:
        view.resolve("git_dif")
    assert caught.value.detail == {"name": "git_dif", "visible": sorted(["git_diff", SHOW])}


def test_a_tool_that_is_only_listed_is_not_callable() -> None:
    catalog = rlm.Catalog()
    wide = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(60)}}
    catalog.add(tool("git_diff", "Show the change in git", schema=wide))
    whole = rlm.compile(catalog, "the change in git")
    view = rlm.compile(catalog, "the change in git", policy=rlm.Policy(budget=whole.ledger.total - 1))
    assert view.active == ("tool:git_diff",)
    assert view.explain("tool:git_diff").form != "full"
    assert view.callable == ()
    with pytest.raises(ToolError):
        view.resolve("git_diff")


@given(st.text(max_size=60))
@settings(max_examples=500)
def test_a_label_holds_nothing_that_could_leave_it(text: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_./:-]*", safe_name(text))
