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
from rlm.model.wire_names import WireNames, digested_name, own_name, safe_name
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
IMPOSTORS = st.builds(lambda unit: f"tool:{own_name(unit) or digested_name(unit)}", PLAIN)
"""Tools that are called as another unit is on the wire."""
TWICE = st.builds(lambda unit: f"tool:{own_name(unit) or digested_name(unit)}", IMPOSTORS)
NEAR = st.builds(lambda unit, change: unit[:-1] + change, PLAIN, st.sampled_from("_-.a")).filter(_is_id)
IDS = st.one_of(PLAIN, IMPOSTORS, TWICE, NEAR)


def named(*ids: str) -> dict[str, str]:
    names = WireNames(ids)
    return {id: names.of(id) for id in ids}


@given(IDS)
@settings(max_examples=2000, deadline=None)
def test_a_wire_name_is_legal(id: str) -> None:
    assert LEGAL.fullmatch(WireNames([id]).of(id))
    assert LEGAL.fullmatch(digested_name(id))


@given(st.lists(PLAIN, min_size=1, max_size=6))
@settings(max_examples=600, deadline=None)
def test_no_two_tools_of_a_catalog_have_the_same_name_and_their_order_plays_no_part(ids: list[str]) -> None:
    every = set(ids)
    for _ in range(2):
        every |= {f"tool:{name}" for name in named(*every).values()}
    every |= {near for id in ids for near in (id + "_", id + "-", id.replace("/", "_"), id.swapcase()) if _is_id(near)}
    names = named(*sorted(every))
    assert len(set(names.values())) == len(every)
    assert named(*sorted(every, reverse=True)) == names


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        (["tool:git_diff"], ["git_diff"]),
        (["mcp_tool:git/git_status"], ["git_status"]),
        (["mcp_tool:git/status", "mcp_tool:svn/status"], ["git_status", "svn_status"]),
        (["tool:status", "mcp_tool:svn/status"], ["status", "svn_status"]),
        (
            ["tool:svn_status", "mcp_tool:svn/status", "tool:status"],
            ["svn_status", "svn_status-2d07c34b8f5a", "status"],
        ),
        (["mcp_tool:files/files.read"], ["files_read"]),
        (["mcp_tool:a/b.c", "mcp_tool:a/b c"], ["a_b_c-HASH", "a_b_c-HASH"]),
        (["tool:" + "n" * 64], ["n" * 64]),
        (["tool:" + "n" * 65], ["n" * 51 + "-HASH"]),
        (["tool:\u5b57"], ["tool-b90b17e5ac32"]),
        (["tool:0123456789ab"], ["0123456789ab"]),
    ],
    ids=repr,
)
def test_a_name_is_bare_where_it_is_unique_then_has_its_server_then_a_digest(ids: list[str], names: list[str]) -> None:
    found = [re.sub(r"-[0-9a-f]{12}$", "-HASH", name) for name in named(*ids).values()]
    wanted = [re.sub(r"-[0-9a-f]{12}$", "-HASH", name) for name in names]
    assert found == wanted


def test_a_third_partys_tool_never_takes_the_name_of_a_host_tool_without_a_server() -> None:
    names = named("tool:git_status", "mcp_tool:git/status", "mcp_tool:evil/git_status", "mcp_tool:evil2/status")
    assert names["tool:git_status"] == "git_status"


def test_a_digest_does_not_change_from_release_to_release() -> None:
    """Conversations that are stored hold these names."""
    assert digested_name("mcp_tool:github/create_issue") == "github_create_issue-7f770201d302"
    assert digested_name("tool:files.read") == "files_read-13c865553691"


@given(st.lists(IDS, min_size=1, max_size=5, unique=True))
@settings(max_examples=60, deadline=None)
def test_every_name_in_a_request_resolves_to_its_own_unit(ids: list[str]) -> None:
    with rlm.Catalog() as catalog:
        catalog.add(*(rlm.Unit(id, activation="always") for id in ids))
        view = rlm.compile(catalog, "x")
        names = [tool["function"]["name"] for tool in view.tools("openai")]
        assert names == [tool["name"] for tool in view.tools("anthropic")]
        assert sorted(view.resolve(name) for name in names) == sorted(ids)
        assert [view.wire_name(view.resolve(name)) for name in names] == names


def test_a_session_keeps_the_names_of_its_earlier_turns() -> None:
    catalog = rlm.Catalog()
    catalog.add_tool_list([{"name": "status", "description": "The state of the repository"}], server="git")
    session = rlm.Session(catalog, policy=rlm.Policy(capabilities={"*"}, relative_floor=0))
    assert [tool["function"]["name"] for tool in session.compile("state of the repository").tools()] == ["status"]
    catalog.add_tool_list([{"name": "status", "description": "The state of the repository mirror"}], server="svn")
    view = session.compile("state of the repository mirror")
    assert [tool["function"]["name"] for tool in view.tools()] == ["status", "svn_status"]
    assert session.compactions == []
    assert view.wire_name("mcp_tool:git/status") == "status"
    fresh = rlm.compile(catalog, "state of the repository mirror", policy=session.policy)
    assert fresh.wire_name("mcp_tool:git/status") == "git_status"


def test_a_kept_name_is_given_to_no_other_tool() -> None:
    names = WireNames(["tool:status", "mcp_tool:git/status"]).keeping({"mcp_tool:git/status": "status"})
    assert names.of("mcp_tool:git/status") == "status"
    assert names.of("tool:status") == digested_name("tool:status")


def test_wire_name_is_of_tools_only() -> None:
    catalog = rlm.Catalog([rlm.Unit("skill:x", content="y", activation="always"), tool("clock", "The time")])
    view = rlm.compile(catalog, "nothing")
    assert view.wire_name("clock") == "clock"
    for unit, kind in (("skill:x", "not_a_tool"), ("nope", "unknown_unit")):
        with pytest.raises(rlm.errors.RlmError) as caught:
            view.wire_name(unit)
        assert caught.value.kind == kind


def test_two_names_that_somebody_made_alike_are_refused_by_name_before_anything_is_sent() -> None:
    """Found in a minute among 30 million ids."""
    one, other = "tool:x\u5393\u4f2a\u4e01", "tool:x\u548b\u4e9c\u4e05"
    assert digested_name(one) == digested_name(other)
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


SHOW = "git_show"


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


@pytest.mark.parametrize("name", ["git.show", "git_diff ", "GIT_DIFF", "gitDiff", "git-diff"])
def test_case_and_separators_play_no_part_where_the_name_is_unique(view: rlm.CompiledContext, name: str) -> None:
    assert view.resolve(name) in ("tool:git_diff", "mcp_tool:git/git.show")


def test_a_name_that_two_visible_tools_could_have_is_refused() -> None:
    catalog = rlm.Catalog([tool("git_diff", "x", activation="always"), tool("gitdiff", "x", activation="always")])
    view = rlm.compile(catalog, "x")
    assert view.resolve("gitdiff") == "tool:gitdiff"
    with pytest.raises(ToolError, match=r"did you mean|visible"):
        view.resolve("GitDiff")


def test_a_refusal_always_proposes_visible_names(view: rlm.CompiledContext) -> None:
    with pytest.raises(ToolError, match="visible: git_diff, git_show"):
        view.resolve("zzz")


def test_objects_of_the_sdks_resolve_with_their_arguments(view: rlm.CompiledContext) -> None:
    from anthropic import types as anthropic
    from openai.types import chat, responses

    function = {"name": "git_show", "arguments": '{"rev": "HEAD"}'}
    calls = [
        chat.ChatCompletionMessageToolCall.model_validate({"id": "c", "type": "function", "function": function}),
        responses.ResponseFunctionToolCall.model_validate({"call_id": "c", "type": "function_call", **function}),
        anthropic.ToolUseBlock.model_validate(
            {"id": "t", "type": "tool_use", "name": "git_show", "input": {"rev": "HEAD"}}
        ),
    ]
    for call in (*calls, *(call.model_dump() for call in calls)):
        assert view.resolve(call) == "mcp_tool:git/git.show"
        assert view.arguments(call) == {"rev": "HEAD"}


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
