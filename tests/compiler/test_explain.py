"""Explanations as objects, data and English; and what differs between two views."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import rlm
from rlm.errors import CatalogError
from tests.compiler.blocks import tool

WIDE = {"type": "object", "properties": {f"p{n}": {"type": "string", "description": "of it"} for n in range(30)}}


def _shelf() -> rlm.Catalog:
    catalog = rlm.Catalog()
    catalog.add(
        tool("git_diff", "Show a change in git", suggests=["tool:annals"]),
        tool("annals", "The history of a file"),
        tool("clock", "The time of day", aliases=("wall clock",)),
        tool("vault", "Opens the vault", requires_capability="money"),
        tool("banker", "Moves money", requires=["tool:vault"]),
        tool("old_diff", "Show a change", supersedes=[]),
        tool("lamp", "Lights a room", conflicts=["tool:dark"]),
        tool("dark", "Darkens a room"),
        tool("deaf", "Never there", available=False),
        tool("mute", "Never shown", visible=False),
        tool("lost", "Looks for a ghost", requires=["tool:ghost"]),
        tool("herring", "unlike anything", triggers=(rlm.Trigger(value="red herring", weight=0.9),)),
        tool("moody", "unlike anything else", triggers=(rlm.Trigger(signal="mood", value="calm"),)),
        rlm.Unit("skill:house", content="Be brief.", activation="always"),
        allow_missing=True,
    )
    return catalog


CASES: dict[str, tuple[str, str, dict[str, Any], str, str, str]] = {
    # what: unit, text, options, state, the kind that decided, a part of what is said
    "pinned": ("skill:house", "x", {}, "active", "pinned", "the host pinned it"),
    "words": ("tool:clock", "the time of day", {}, "active", "lexical", "words of the text count"),
    "a name": ("tool:git_diff", "call git_diff", {}, "active", "name", "git diff"),
    "an alias": ("tool:clock", "look at the wall clock", {}, "active", "name", "wall clock"),
    "a phrase": ("tool:herring", "a red herring", {}, "active", "trigger", "red herring"),
    "a signal": ("tool:moody", "x", {"signals": {"mood": "calm"}}, "active", "trigger", "calm"),
    "a need": ("tool:clock", "x", {"needs": ["the time"]}, "active", "need", "the time"),
    "history": (
        "tool:clock",
        "x",
        {"history": ["time of day"], "policy": {"floor": 0.05}},
        "active",
        "history",
        "turn",
    ),
    "a sensor": ("tool:clock", "x", {"sensors": {"ear": {"tool:clock": 1.0}}}, "active", "sensor", "ear"),
    "the host's choice": (
        "tool:clock",
        "x",
        {"policy": {"selected": {"tool:clock"}}},
        "active",
        "selected_by_host",
        "host",
    ),
    "a session": ("tool:clock", "x", {"retained": ["tool:clock"]}, "active", "retained", "session"),
    "a suggestion": (
        "tool:annals",
        "a change in git",
        {"policy": {"relative_floor": 0}},
        "active",
        "suggested_by",
        "tool:git_diff",
    ),
    "a dependency": (
        "tool:vault",
        "x",
        {"policy": {"selected": {"tool:banker"}, "capabilities": {"*"}}},
        "active",
        "dependency_of",
        "tool:banker",
    ),
    "all tools": ("tool:clock", "x", {"policy": {"mode": "all_tools"}}, "active", "all_tools", "tool"),
    "no evidence": ("tool:clock", "x", {}, "hidden", "no_evidence", "asks for it"),
    "below the floor": ("tool:clock", "time", {"policy": {"floor": 9}}, "hidden", "below_floor", "floor of 9"),
    "denied": ("tool:clock", "time", {"policy": {"denied": {"tool:cl*"}}}, "rejected", "denied", "denied"),
    "disabled": ("tool:clock", "time", {"policy": {"disabled": {"tool:clock"}}}, "rejected", "disabled", "disabled"),
    "out of scope": ("tool:clock", "time", {"policy": {"scope": {"skill:*"}}}, "rejected", "out_of_scope", "scope"),
    "no capability": (
        "tool:vault",
        "vault",
        {"policy": {"capabilities": set()}},
        "rejected",
        "capability_missing",
        "money",
    ),
    "unavailable": ("tool:deaf", "deaf", {}, "rejected", "unavailable", "available"),
    "invisible": ("tool:mute", "mute", {}, "rejected", "disabled", "not visible"),
    "negated": ("tool:clock", "the time, but do not use clock", {}, "rejected", "negated", "text"),
    "a ghost": ("tool:lost", "look for a ghost", {}, "rejected", "missing_dependency", "tool:ghost"),
    "a dependency that is out": (
        "tool:banker",
        "moves money",
        {"policy": {"denied": {"tool:vault"}}},
        "rejected",
        "dependency_out",
        "tool:vault",
    ),
    "a conflict": (
        "tool:dark",
        "lights, a room that darkens",
        {"policy": {"selected": {"tool:lamp"}}},
        "rejected",
        "conflict_with",
        "tool:lamp",
    ),
    "the limit": (
        "tool:clock",
        "time of day",
        {"policy": {"candidate_limit": 0}},
        "rejected",
        "over_candidate_limit",
        "limit",
    ),
}


def _view(text: str, options: dict[str, Any], **more: Any) -> rlm.CompiledContext:
    options = {**options, **more}
    if "policy" in options:
        options["policy"] = rlm.Policy(**options["policy"])
    return rlm.compile(_shelf(), text, **options)


@pytest.mark.parametrize("case", CASES)
def test_every_outcome_says_what_decided_it(case: str) -> None:
    unit, text, options, state, kind, said = CASES[case]
    view = _view(text, options)
    found = view.explain(unit)
    assert (found.state, found.reasons[0].kind) == (state, kind), str(found)
    assert said in found.sentences[0]
    assert (found.state == "active") == (unit in view.active)
    assert (found.form is None) == (found.klass is None) == (found.tier is None) == (state != "active")
    assert str(found).startswith(f"{unit} is {state}")
    data = found.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["reasons"][0]["kind"] == kind
    assert data["text"] == list(found.sentences)
    assert len(found.sentences) == len(found.reasons)
    assert view.state(unit) == state


def test_a_unit_that_was_packed_out_says_how_much_it_needs() -> None:
    catalog = rlm.Catalog([tool("git_diff", "a change in git", schema=WIDE, mandatory=True)])
    catalog.add(rlm.Unit("resource:tale", description="a change in git", content="Long ago. " * 200))
    for budget in range(420, 700, 4):
        try:
            view = rlm.compile(catalog, "the change in git", policy=rlm.Policy(budget=budget))
        except rlm.errors.BudgetError:
            continue
        break
    found = view.explain("resource:tale")
    assert found.state == "packed_out"
    assert found.reasons[0].kind == "packed_out"
    assert found.reasons[0].data["tokens"] > found.reasons[0].data["free"] >= 0
    assert "packed out" in str(found)
    assert [item.unit for item in view.explain().turned_away] == ["resource:tale"]


def test_words_are_told_with_their_shares() -> None:
    found = _view("the time of day", {}).explain("tool:clock")
    assert {word for word, _ in found.words} == {"time", "day"}
    (lexical,) = [reason for reason in found.reasons if reason.kind == "lexical"]
    assert sum(share for _, share in found.words) == lexical.data["score"]
    assert "time" in str(found)


def test_an_unknown_unit_is_answered_with_the_closest() -> None:
    view = _view("x", {})
    asks: list[Callable[[], object]] = [
        lambda: view.explain("tool:clokc"),
        lambda: view.state("tool:clokc"),
        lambda: view.what_if("tool:clokc"),
    ]
    for ask in asks:
        with pytest.raises(CatalogError, match="did you mean 'tool:clock'") as caught:
            ask()
        assert caught.value.kind == "unknown_unit"


def test_the_overview_holds_every_unit_once() -> None:
    view = _view("the time; lights, a room that darkens", {"policy": {"candidate_limit": 2}})
    overview = view.explain()
    shown = [item.unit for item in overview.active]
    assert tuple(shown) == view.active
    away = [item.unit for item in overview.turned_away]
    assert not set(shown) & set(away)
    assert len(shown) + len(away) + overview.hidden == view.counts["units"]
    data = overview.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert f"{overview.hidden} other units are hidden." in str(overview)


def test_a_view_as_data_is_what_the_command_line_prints() -> None:
    view = _view("the time of day", {})
    data = view.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["active"] == list(view.active)
    assert data["tools"] == ["clock"]
    assert data["ledger"]["total"] == view.ledger.total
    assert data["fingerprint"] == view.fingerprint
    assert data["counts"] == {"units": 14, "candidates": len(view.selection.ranked), "active": 2}
    assert {"select", "pack", "render", "seal"} <= set(data["timings_ms"])


def test_a_selection_that_was_not_packed_can_be_explained() -> None:
    view = _view("the time of day", {}, pack=False)
    assert view.explain("tool:clock").state == "active"
    assert view.to_dict()["tools"] == []
    assert view.ledger.total == 0


# -- two views ---------------------------------------------------------------------------------------


def test_two_turns_are_compared_and_explained_in_the_second() -> None:
    catalog = _shelf()
    first = rlm.compile(catalog, "the time of day")
    second = rlm.compile(catalog, "a red herring", policy=rlm.Policy(denied={"tool:clock"}))
    change = first.compare(second)
    assert [item.unit for item in change.appeared] == ["tool:herring"]
    assert change.appeared[0].reasons[0].kind == "trigger"
    assert [item.unit for item in change.vanished] == ["tool:clock"]
    assert change.vanished[0].reasons[0].kind == "denied"
    assert change.tokens == second.ledger.total - first.ledger.total
    assert change.changed_form == ()
    text = str(change)
    assert "+ tool:herring is active" in text
    assert "- tool:clock is hidden" in text
    data = change.to_dict()
    assert json.loads(json.dumps(data)) == data
    back = second.compare(first)
    assert [item.unit for item in back.appeared] == ["tool:clock"]
    assert back.tokens == -change.tokens
    nothing = first.compare(first)
    assert (nothing.appeared, nothing.vanished, nothing.changed_form, nothing.tokens) == ((), (), (), 0)


def test_a_changed_form_is_told() -> None:
    catalog = rlm.Catalog([tool("git_diff", "a change in git", schema=WIDE)])
    whole = rlm.compile(catalog, "the change in git")
    less = rlm.compile(catalog, "the change in git", policy=rlm.Policy(budget=whole.ledger.total - 1))
    ((unit, before, after),) = whole.compare(less).changed_form
    assert (unit, before) == ("tool:git_diff", "full")
    assert after in ("compact", "reference")
    assert "~ tool:git_diff: full -> " in str(whole.compare(less))


def test_a_unit_that_was_removed_meanwhile_is_no_stumbling_block() -> None:
    catalog = _shelf()
    first = rlm.compile(catalog, "the time of day")
    catalog.remove("tool:clock")
    change = first.compare(rlm.compile(catalog, "the time of day"))
    assert change.vanished == ()
    assert change.tokens < 0


def test_at_most_sixteen_units_come_in_by_name_the_longest_names_first() -> None:
    short = [f"make_part_{letter}" for letter in "abcdefghijklmnopqrst"]
    long = [f"make_a_part_of_{letter}" for letter in "uvwxyz"]
    catalog = rlm.Catalog([rlm.Unit(f"tool:{name}") for name in (*short, *long)])
    policy = rlm.Policy(floor=1000, candidate_limit=0)
    view = rlm.compile(catalog, " ".join([*short, *long]), policy=policy)
    assert sorted(view.active) == sorted(f"tool:{name}" for name in (*long, *short[:10]))
    for name in short[10:]:
        kinds = [reason.kind.value for reason in view.explain(f"tool:{name}").reasons]
        assert kinds in (["no_evidence"], ["below_floor", "lexical"])


def _lexical(view: rlm.CompiledContext, unit: str) -> int:
    (score,) = (reason.data["score"] for reason in view.explain(unit).reasons if reason.kind == "lexical")
    return int(score)


def test_a_word_that_stands_in_quotes_only_counts_less() -> None:
    catalog = rlm.Catalog([tool("one", "an albatross"), tool("two", "a barnacle"), tool("three", "something else")])
    policy = rlm.Policy(floor=0)
    said = _lexical(rlm.compile(catalog, "albatross barnacle", policy=policy), "tool:one")
    quoted = _lexical(rlm.compile(catalog, 'barnacle "of the albatross"', policy=policy), "tool:one")
    both = _lexical(rlm.compile(catalog, 'albatross barnacle "albatross"', policy=policy), "tool:one")
    alone = _lexical(rlm.compile(catalog, '"albatross"', policy=policy), "tool:one")
    assert quoted == pytest.approx(0.4 * said, abs=2)
    assert (both, alone) == (said, said)


def test_one_name_does_not_fill_the_first_places() -> None:
    hubs = [rlm.Unit(f"mcp_tool:hub{n}/find_issue", description="Find an issue", priority=100 - n) for n in range(4)]
    catalog = rlm.Catalog([*hubs, tool("reports", "Find an issue in reports of all kinds"), tool("clock", "The time")])
    view = rlm.compile(catalog, "find an issue", policy=rlm.Policy(capabilities={"*"}, floor=0))
    ranked = view.selection.ranked
    assert [id for id in ranked if id.startswith("mcp_tool")] == [unit.id for unit in hubs]
    assert ranked[0] == hubs[0].id
    assert ranked.index("tool:reports") < ranked.index(hubs[-1].id)
