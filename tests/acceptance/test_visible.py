"""What the planner sees: P01, P03, P04, P06, P12, P14-P17."""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis import strategies as st

import rlm
from rlm.model.unit import CALLABLE
from tests.acceptance.seen import PLACES, Asking, Seen
from tests.acceptance.shelf import (
    REVIEW,
    SEARCHING,
    UNRELATED,
    git_diff,
    marker,
    project_search,
    tool,
    two_tools,
)
from tests.support.loopback import Loopback


def test_p01_the_request_shows_what_the_query_needs_and_both_tools_stay_registered_and_bound(ask: Asking) -> None:
    catalog = two_tools()
    seen = ask(catalog, REVIEW, policy=rlm.Policy(capabilities={"tool:git_diff", "tool:project_search"}))
    assert seen.tools == ["git_diff"]
    assert not seen.says("project_search")
    assert not seen.says(project_search.description)
    assert set(catalog.units) == {"tool:git_diff", "tool:project_search"}
    assert (git_diff("v1"), project_search("x", 1)) == ("diff against v1", "1 places of x")
    assert ask(catalog, SEARCHING).tools == ["project_search"]


def test_p03_all_tools_shows_both_and_takes_the_same_path(ask: Asking) -> None:
    catalog = two_tools()
    some = ask(catalog, REVIEW)
    every = ask(catalog, REVIEW, policy=rlm.Policy(mode="all_tools"))
    assert sorted(every.tools) == ["git_diff", "project_search"]
    assert type(every.view) is type(some.view) is rlm.CompiledContext
    assert every.view.ledger.total > some.view.ledger.total
    assert every.view.ledger.model_dump().keys() == some.view.ledger.model_dump().keys()
    assert every.answer.fingerprint != some.answer.fingerprint
    assert every.answer.fingerprint == ask(catalog, REVIEW, policy=rlm.Policy(mode="all_tools")).answer.fingerprint
    (reason,) = every.view.explain("tool:project_search").reasons
    assert reason.kind == "all_tools"


def test_p03_all_tools_is_under_every_other_rule(ask: Asking) -> None:
    catalog = two_tools()
    catalog.add(tool("broken", "not there at the moment", available=False), tool("older", "an older search"))
    catalog.add(tool("newer", "a newer search", supersedes=["tool:older"]))
    seen = ask(catalog, REVIEW, policy=rlm.Policy(mode="all_tools", denied={"tool:project_search"}))
    assert sorted(seen.tools) == ["git_diff", "newer"]


@pytest.mark.parametrize("mode", ["compiled", "all_tools"])
def test_p04_a_tool_without_its_capability_is_absent_and_the_reason_is_recorded(ask: Asking, mode: str) -> None:
    catalog = two_tools()
    seen = ask(catalog, REVIEW, policy=rlm.Policy(mode=mode, capabilities={"tool:project_search"}))
    assert not seen.says("git_diff")
    assert not seen.says(git_diff.description)
    found = seen.view.explain("tool:git_diff")
    assert found.state != "active"
    assert {"kind": "capability_missing", "capability": "tool:git_diff"} in [r.to_dict() for r in found.reasons]
    assert ("project_search" in seen.tools) == (mode == "all_tools")


@pytest.mark.parametrize("mode", ["compiled", "all_tools"])
def test_p04_imported_tools_are_granted_by_nobody_but_the_host(ask: Asking, mode: str) -> None:
    catalog = rlm.Catalog()
    catalog.add_tool_list([{"name": "git_show", "description": REVIEW}], server="git")
    shut = ask(catalog, REVIEW, policy=rlm.Policy(mode=mode))
    assert not shut.says("git_show")
    assert shut.view.explain("mcp_tool:git/git_show").reasons[0].kind == "capability_missing"
    opened = ask(catalog, REVIEW, policy=rlm.Policy(mode=mode, capabilities={"mcp_tool:git/*"}))
    assert opened.tools == ["git_show"]


@pytest.mark.parametrize("mode", ["compiled", "all_tools"])
def test_p04_no_dependency_suggestion_or_pin_brings_a_tool_past_its_capability(ask: Asking, mode: str) -> None:
    catalog = rlm.Catalog()
    catalog.add(
        tool("walled", "reads the secret vault", requires_capability="vault"),
        tool("needy", REVIEW, requires=["tool:walled"]),
        tool("hopeful", REVIEW, suggests=["tool:walled"]),
        tool("pinned", "always there", activation="always", requires_capability="vault"),
    )
    seen = ask(catalog, REVIEW, policy=rlm.Policy(mode=mode, capabilities={"tool:*"}))
    assert seen.tools == ["hopeful"]
    assert not seen.says(marker("walled"))
    assert not seen.says(marker("pinned"))
    for id in ("tool:walled", "tool:pinned"):
        reasons = [r.to_dict() for r in seen.view.explain(id).reasons]
        assert {"kind": "capability_missing", "capability": "vault"} in reasons
    assert "dependency_out" in {r.kind for r in seen.view.explain("tool:needy").reasons}


def test_p06_schemas_are_called_active_and_never_registered(ask: Asking) -> None:
    catalog = two_tools()
    catalog.add(
        rlm.Unit("instruction:house", content="Answer in one short sentence.", activation="always"),
        rlm.Unit("resource:notes", content=f"About how to {REVIEW}.", trust="stranger"),
    )
    catalog.add_tool_list([{"name": "git_show", "description": REVIEW}], server="git", trust="stranger")
    everything = rlm.Policy(capabilities={"*"}, mode="all_tools")
    most = ask(catalog, REVIEW, policy=everything).view.ledger.total
    for total in (most, *range(most - 60, most, 7)):
        seen = ask(catalog, REVIEW, policy=everything.model_copy(update={"budget": total}))
        assert b"registered" not in seen.body.lower()
        if ask.place == "text":
            assert "# Active tool schemas\n" in seen.request.text
            assert "tools" not in seen.request.json
        else:
            assert seen.request.json["tools"]
            assert "Active tool schemas" not in seen.request.text


@pytest.mark.parametrize("trust", ["host", "stranger"])
@pytest.mark.parametrize("kind", ["instruction", "skill", "resource"])
def test_p12_a_unit_that_is_no_tool_reaches_the_request_when_it_matches(ask: Asking, kind: str, trust: str) -> None:
    body = "Read the hunks from the last one to the first."
    unit = rlm.Unit(f"{kind}:hunks", description="How to review a change in git", content=body, trust=trust)
    catalog = two_tools()
    catalog.add(unit)
    seen = ask(catalog, REVIEW)
    assert seen.says(body) == 1
    assert (body in seen.system) == (trust == "host")
    assert not ask(catalog, UNRELATED).says(body)


def test_p15_an_optional_tool_that_was_packed_out_is_absent_and_explained(ask: Asking) -> None:
    catalog = rlm.Catalog()
    catalog.add(
        tool("keeper", "review a change in git", mandatory=True),
        tool("leaver", "review a change in git, slowly and with many words about it", category="git"),
    )
    whole = ask(catalog, REVIEW)
    assert sorted(whole.tools) == ["keeper", "leaver"]
    out = 0
    for budget in range(whole.view.ledger.total - 1, 0, -1):
        try:
            seen = ask(catalog, REVIEW, policy=rlm.Policy(budget=budget))
        except rlm.errors.BudgetError:
            break
        assert seen.tools == ["keeper"]
        assert not seen.says('"leaver"')
        found = seen.view.explain("tool:leaver")
        if found.state == "packed_out":
            out += 1
            assert not seen.says("leaver")
            assert found.reasons[0].kind == "packed_out"
            assert found.reasons[0].data["tokens"] > found.reasons[0].data["free"]
            assert "tool:leaver" not in seen.view.active
            assert "tool:leaver" in seen.view.packed_out
        else:
            assert found.form != "full"
    assert out > 1


def test_p16_a_pinned_tool_is_visible_on_an_unrelated_query(ask: Asking) -> None:
    catalog = two_tools()
    catalog.add(tool("clock", "the time of day", activation="always"))
    assert ask(catalog, UNRELATED).tools == ["clock"]
    assert ask(catalog, "").tools == ["clock"]
    assert ask(catalog, REVIEW).tools[0] == "clock"


def test_p17_stateless_turns_show_hide_and_show_again(ask: Asking) -> None:
    catalog = two_tools()
    handler, revision = git_diff.handler, catalog.revision
    requests = [ask(catalog, query) for query in (REVIEW, UNRELATED, REVIEW)]
    assert ["git_diff" in seen.tools for seen in requests] == [True, False, True]
    assert not requests[1].says("git_diff")
    assert requests[0].body == requests[2].body
    assert catalog.revision == revision == 1
    assert git_diff.handler is handler


def test_p17_a_session_may_keep_a_tool_and_lets_go_of_one_that_is_denied(ask: Asking) -> None:
    catalog = two_tools()
    session = rlm.Session(catalog, tools=ask.place)

    said: list[str] = []

    def turn(query: str) -> Seen:
        kept, compactions = session.kept, len(session.compactions)
        view = session.compile(query)
        retained = kept if len(session.compactions) == compactions else ()
        seen = ask(catalog, query, policy=session.policy, retained=retained, history=said[::-1])
        said.append(query)
        assert seen.tools == [view.wire_name(id) for id in view.callable]
        return seen

    assert turn(REVIEW).tools == ["git_diff"]
    assert turn(UNRELATED).tools == ["git_diff"]
    assert turn(SEARCHING).tools == ["git_diff", "project_search"]
    assert not session.compactions
    session.policy = rlm.Policy(denied={"tool:git_diff"})
    assert not turn(REVIEW).says("git_diff")
    (compaction,) = session.compactions
    assert (compaction.turn, compaction.reason, compaction.units) == (4, "not_showable", ("tool:git_diff",))


# -- P14 ---------------------------------------------------------------------------------------------

WORDS = ("river", "stone", "cloud", "forest", "harbor", "market")
KINDS = ("tool", "tool", "mcp_tool", "skill", "instruction", "resource", "mcp_prompt")


@st.composite
def shelves(draw: st.DrawFn) -> tuple[list[rlm.Unit], str, rlm.Policy]:
    """Units with bodies of every size, a text, and a policy that may be tight."""
    count = draw(st.integers(0, 9))
    ids = [f"{draw(st.sampled_from(KINDS))}:{'s/' if draw(st.booleans()) else ''}unit{n}" for n in range(count)]
    units = []
    for id in ids:
        others = [other for other in ids if other != id]
        some = st.lists(st.sampled_from(others), max_size=2, unique=True) if others else st.just([])
        words = " ".join(draw(st.lists(st.sampled_from(WORDS), max_size=3)))
        parameters = {word: {"type": "string"} for word in draw(st.lists(st.sampled_from(WORDS), max_size=6))}
        units.append(
            rlm.Unit(
                id,
                description=words,
                content=f"About {words}. " * draw(st.integers(0, 9)),
                schema={"type": "object", "properties": parameters} if draw(st.booleans()) else None,
                requires=draw(some) if draw(st.booleans()) else (),
                conflicts=draw(some) if draw(st.integers(0, 3)) == 0 else (),
                mandatory=draw(st.integers(0, 5)) == 0,
                activation="always" if draw(st.integers(0, 7)) == 0 else "relevant",
                trust=draw(st.sampled_from(["host", "host", "stranger"])),
            )
        )
    policy = rlm.Policy(
        capabilities={"*"} if draw(st.booleans()) else None,
        mode=draw(st.sampled_from(["compiled", "compiled", "all_tools"])),
        budget=draw(st.none() | st.integers(60, 600)),
        denied={draw(st.sampled_from(ids))} if ids and draw(st.booleans()) else set(),
        candidate_limit=draw(st.sampled_from([64, 64, 1])),
    )
    return units, " ".join(draw(st.lists(st.sampled_from(WORDS), max_size=3))), policy


@pytest.mark.parametrize("place", PLACES)
@hypothesis.given(shelf=shelves())
@hypothesis.settings(
    max_examples=150, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], derandomize=True
)
def test_p14_visible_schemas_are_the_callable_tools_among_the_active_units(
    server: Loopback, place: str, shelf: tuple[list[rlm.Unit], str, rlm.Policy]
) -> None:
    units, text, policy = shelf
    ask = Asking(server, "native" if place == "native" else "text")
    before = ask.requests
    with rlm.Catalog(units) as catalog:
        try:
            seen = ask(catalog, text, policy=policy)
        except rlm.errors.CompileError:
            assert ask.requests == before
            return
        forms = {id: seen.view.explain(id).form for id in seen.answer.prompt_projection.active_units}
        tools = {seen.view.wire_name(id): id for id in forms if id.startswith(("tool:", "mcp_tool:"))}
        callable = sorted(name for name, id in tools.items() if forms[id] == "full")
        assert sorted(seen.tools) == callable
        assert seen.answer.prompt_projection.tool_count == len(callable)
        hidden = [unit for unit in units if unit.id not in forms]
        for unit in hidden:
            if unit.kind in CALLABLE:
                assert not seen.says(seen.view.wire_name(unit.id))
            assert not seen.says(unit.name)
            assert seen.view.explain(unit.id).state != "active"
