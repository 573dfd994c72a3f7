"""What is charged, what must stay, and what may go: P07, P13, P22, K08."""

from __future__ import annotations

import json
from typing import Any

import pytest

import rlm
from rlm.errors import BudgetError
from tests.acceptance.seen import Asking, Seen, count
from tests.acceptance.shelf import REVIEW, UNRELATED, marker, tool

NATIVE_MARGIN = 12
"""Tokens a native tool may be charged above its JSON."""


def _full_house() -> rlm.Catalog:
    catalog = rlm.Catalog()
    catalog.add(
        rlm.Unit("instruction:house", content="Answer in one short sentence.", activation="always"),
        rlm.Unit("skill:kind", content="Be kind.\r\n\r\nBe 友好 🙂.", activation="always", priority=200),
        tool("git_diff", "Show the change in the git working tree", mandatory=True),
        tool("git_log", "Show the history of a change in git"),
        tool("git_blame", 'Say "who" wrote a change in git, \\and when'),
        rlm.Unit("resource:hunks", description="How to review a change in git", content="A hunk\nis a piece.\n" * 9),
        rlm.Unit(
            "skill:foreign", description="How to review a change in git", content="# Title\n```", trust="stranger"
        ),
        rlm.Unit("resource:empty", description="A git change to review", trust="stranger"),
    )
    imported = {
        "name": "git.show/all",
        "description": "Show a change in git",
        "parameters": {"type": "object", "properties": {marker("show"): {"type": "string"}}},
    }
    catalog.add_tool_list([imported], server="git")
    return catalog


EVERYTHING = rlm.Policy(capabilities={"*"}, floor=0.001, relative_floor=0)
"""Any shared word is enough: the rows here are about room."""
TALK: list[dict[str, str]] = [
    {"role": "system", "content": "The user is a sailor."},
    {"role": "user", "content": "hello\n\nthere"},
    {"role": "assistant", "content": "# hello <yourself>"},
]


def _recount(seen: Seen) -> tuple[int, list[int]]:
    """Tokens of the texts of the request, and of each native tool as it is written there."""
    texts = sum(count(content) for _, content in seen.texts)
    tools = []
    for entry in seen.request.json.get("tools", []):
        written = json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
        assert seen.body.count(written.encode()) == 1
        tools.append(count(written))
    return texts, tools


def _check_charges(seen: Seen) -> None:
    ledger = seen.view.ledger
    texts, tools = _recount(seen)
    assert ledger.exact
    stages = (ledger.task, ledger.headings, ledger.pinned, ledger.mandatory, ledger.periphery, ledger.frontier)
    assert sum(stages) + ledger.framing == ledger.total <= ledger.limit
    charged = ledger.total - ledger.framing - texts
    assert sum(tools) <= charged <= sum(tools) + NATIVE_MARGIN * len(tools)
    assert ledger.framing >= 3 * (len(seen.texts) + 1)
    said = [content for _, content in seen.texts][1 + (seen.texts[1][1].startswith(("# Third", "# Active"))) :]
    assert ledger.task == sum(map(count, said))


@pytest.mark.parametrize("messages", [None, TALK], ids=["alone", "in a conversation"])
def test_p07_the_ledger_charges_what_is_sent(ask: Asking, messages: list[dict[str, str]] | None) -> None:
    catalog = _full_house()
    whole = ask(catalog, REVIEW, policy=EVERYTHING, messages=messages)
    assert len(whole.tools) == 4
    _check_charges(whole)
    for budget in range(whole.view.ledger.total, 0, -19):
        try:
            seen = ask(catalog, REVIEW, policy=_roomy(budget), messages=messages)
        except BudgetError:
            break
        _check_charges(seen)
        assert seen.view.ledger.limit == budget
    assert budget < whole.view.ledger.total / 2


def test_p07_each_visible_schema_stands_once_in_the_request(ask: Asking) -> None:
    seen = ask(_full_house(), REVIEW, policy=EVERYTHING)
    names = sorted(seen.tools)
    assert len(names) == len(set(names)) == 4
    for name in ("git_diff", "git_log", "git_blame", "show"):
        assert seen.says(marker(name)) == 1
    for name in names:
        assert seen.says(name) == 1
    assert seen.says("Show the change in the git working tree") == 1


def test_p07_what_is_listed_and_not_callable_shows_no_schema(ask: Asking) -> None:
    catalog = rlm.Catalog()
    wide = {"type": "object", "properties": {f"p{n}": {"type": "string", "description": "x y z"} for n in range(40)}}
    catalog.add(tool("git_diff", "Show the change in git"), tool("git_log", "The change in git", schema=wide))
    whole = ask(catalog, REVIEW, policy=_roomy())
    seen = ask(catalog, REVIEW, policy=_roomy(whole.view.ledger.total - 1))
    assert seen.tools == ["git_diff"]
    assert seen.view.explain("tool:git_log").form in ("compact", "reference")
    assert seen.says("Listed, not callable: git_log") == 1
    assert "# Listed tools\n" in seen.system
    assert not seen.says('"p0"')
    assert not seen.says('\\"p0\\"')
    _check_charges_lax(seen)


def _check_charges_lax(seen: Seen) -> None:
    texts, tools = _recount(seen)
    ledger = seen.view.ledger
    assert texts + sum(tools) <= ledger.total - ledger.framing <= texts + sum(tools) + NATIVE_MARGIN * len(tools)


# -- P13, K08 ----------------------------------------------------------------------------------------


def _roomy(budget: int | None = None, **policy: Any) -> rlm.Policy:
    return rlm.Policy(**{**dict(EVERYTHING), "budget": budget, **policy})


def _refused(ask: Asking, catalog: rlm.Catalog, query: str, budget: int, **policy: Any) -> BudgetError:
    before = ask.requests
    with pytest.raises(BudgetError) as caught:
        ask(catalog, query, policy=_roomy(budget, **policy))
    assert ask.requests == before
    assert (caught.value.phase, caught.value.kind) == ("budget", "over_budget")
    json.dumps(caught.value.to_dict())
    return caught.value


def _with_mandatory() -> rlm.Catalog:
    catalog = rlm.Catalog()
    catalog.add(
        tool("must", "review a change in git", mandatory=True, requires=["resource:premise"]),
        rlm.Unit("resource:premise", description="An octopus", content="What every reviewer must know. " * 40),
        tool("may", "review a change in git", priority=0),
        rlm.Unit("resource:may", description="review a change in git", content="Nice to know. " * 5),
    )
    return catalog


def test_p13_a_mandatory_tool_is_shown_or_the_ask_fails_before_anything_is_sent(ask: Asking) -> None:
    catalog = _with_mandatory()
    most = ask(catalog, REVIEW, policy=_roomy()).view.ledger.total
    least = None
    for budget in range(most + 25, 0, -9):
        try:
            seen = ask(catalog, REVIEW, policy=_roomy(budget))
        except BudgetError:
            break
        least = budget
        assert "must" in seen.tools
        assert seen.says("What every reviewer must know.") == 40
        assert seen.view.ledger.total <= budget
    assert least is not None
    assert least < most - 20
    for budget in (0, 1, least // 2, least - 9):
        error = _refused(ask, catalog, REVIEW, budget)
        missing = error.detail["missing_tokens"]
        assert [row["unit"] for row in error.detail["biggest"]] == ["resource:premise", "tool:must"]
        assert [row["tokens"] for row in error.detail["biggest"]] == sorted(
            (row["tokens"] for row in error.detail["biggest"]), reverse=True
        )
        assert "resource:premise" in error.message
        assert str(missing) in error.message
        assert "must" in ask(catalog, REVIEW, policy=_roomy(budget + missing)).tools
        _refused(ask, catalog, REVIEW, budget + missing - 1)


def test_p13_mandatory_binds_only_what_is_selected(ask: Asking) -> None:
    catalog = _with_mandatory()
    seen = ask(catalog, UNRELATED, policy=_roomy(60))
    assert seen.tools == []
    assert not seen.says("What every reviewer must know.")


def test_p13_a_text_too_long_for_the_budget_is_refused_too(ask: Asking) -> None:
    error = _refused(ask, rlm.Catalog(), "word " * 500, 400)
    assert error.detail["biggest"] == []
    assert error.detail["missing_tokens"] > 100


def test_k08_a_pinned_unit_is_never_packed_out_and_an_impossible_budget_is_an_error(ask: Asking) -> None:
    fish = ("cod", "eel", "hake", "herring", "ling", "perch", "pike", "roach", "salmon", "sole", "trout", "tuna")
    query = f"catch {' '.join(fish)}"
    catalog = rlm.Catalog()
    catalog.add(
        rlm.Unit("skill:operate", content="Divide the task, then look. " * 30, activation="always"),
        rlm.Unit("skill:small", content="Be kind.", activation="always", requires=["resource:base"]),
        rlm.Unit("resource:base", description="unrelated", content="The base of it all. " * 10),
        *(tool(f"fetch_{name}", f"where a {name} swims") for name in fish),
    )
    most = ask(catalog, query, policy=_roomy()).view.ledger.total
    lengths = set()
    for budget in range(most + 25, 0, -29):
        try:
            seen = ask(catalog, query, policy=_roomy(budget))
        except BudgetError:
            break
        lengths.add(len(seen.tools))
        assert seen.says("Divide the task, then look.") == 30
        assert seen.says("Be kind.") == 1
        assert seen.says("The base of it all.") == 10
        assert not {"skill:operate", "skill:small", "resource:base"} & set(seen.view.packed_out)
    assert lengths >= {0, len(fish)}
    error = _refused(ask, catalog, query, budget)
    assert [row["unit"] for row in error.detail["biggest"]][:2] == ["skill:operate", "resource:base"]
    assert _refused(ask, catalog, UNRELATED, 100, mode="all_tools").detail["missing_tokens"] > 0


# -- P22 ---------------------------------------------------------------------------------------------

SAID = {
    "resource:conclusion": "Therefore the tide is late.",
    "resource:premise": "The moon was late.",
    "instruction:rule": "A late moon makes a late tide.",
    "resource:counter": "Yet the harbour gauge disagrees.",
}


def _argument() -> rlm.Catalog:
    units = [rlm.Unit(id, content=(text + " ") * 12, title=id) for id, text in SAID.items()]
    catalog = rlm.Catalog(units)
    catalog.add(*(rlm.Unit(f"resource:tide{n}", description=f"The tide {n}", content="High. " * 30) for n in range(6)))
    return catalog


@pytest.mark.parametrize("klass", list(rlm.PackingClass))
def test_p22_a_conclusion_is_never_shown_without_its_premises(ask: Asking, klass: rlm.PackingClass) -> None:
    premises = [id for id in SAID if id != "resource:conclusion"]
    admitted = [rlm.Preselected(unit="resource:conclusion", klass=klass, premises=premises)]
    catalog = _argument()
    whole = ask(catalog, "the tide", policy=_roomy(), admitted=admitted)
    assert all(whole.says(text) == 12 for text in SAID.values())
    outcomes = set()
    for budget in range(whole.view.ledger.total + 25, 0, -15):
        try:
            seen = ask(catalog, "the tide", admitted=admitted, policy=_roomy(budget))
        except BudgetError:
            outcomes.add("refused")
            break
        if "resource:conclusion" in seen.view.active and seen.view.explain("resource:conclusion").form == "full":
            outcomes.add("shown")
        else:
            outcomes.add("smaller")
            assert not seen.says(SAID["resource:conclusion"]) or "Not shown in full" in seen.system
        if "resource:conclusion" in seen.view.active:
            assert set(premises) <= set(seen.view.active)
            shown = {item.unit.id: item.block.text for item in seen.view.shown}
            assert all(seen.says(shown[id].strip()) == 1 for id in premises)
        else:
            assert seen.view.explain("resource:conclusion").state == "packed_out"
    obliged = klass in (rlm.PackingClass.PINNED, rlm.PackingClass.MANDATORY)
    assert "shown" in outcomes
    assert ("smaller" in outcomes) != obliged


@pytest.mark.parametrize("klass", [rlm.PackingClass.PINNED, rlm.PackingClass.MANDATORY])
def test_p22_what_is_obliged_takes_its_premises_along_whole(ask: Asking, klass: rlm.PackingClass) -> None:
    premises = [id for id in SAID if id != "resource:conclusion"]
    catalog = _argument()
    admitted = [rlm.Preselected(unit="resource:conclusion", klass=klass, premises=premises)]
    before = ask.requests
    with pytest.raises(BudgetError) as caught:
        ask(catalog, "the tide", policy=_roomy(40), admitted=admitted)
    assert ask.requests == before
    assert {row["unit"] for row in caught.value.detail["biggest"]} == set(SAID)
    enough = 40 + caught.value.detail["missing_tokens"]
    seen = ask(catalog, "the tide", policy=_roomy(enough), admitted=admitted)
    assert all(seen.says(text) == 12 for text in SAID.values())
    assert not seen.says("High.")


def test_p22_classes_survive_packing_in_their_order(ask: Asking) -> None:
    """With less and less room the frontier goes first, then the periphery, and never an obligation."""
    catalog = rlm.Catalog()
    bodies = {klass: f"This is the {klass.value} piece. " * 20 for klass in rlm.PackingClass}
    catalog.add(*(rlm.Unit(f"resource:{klass.value}", content=body) for klass, body in bodies.items()))
    admitted = [rlm.Preselected(unit=f"resource:{klass.value}", klass=klass) for klass in rlm.PackingClass]
    whole = ask(catalog, UNRELATED, admitted=admitted)
    stages = whole.view.ledger.model_dump()
    assert all(stages[klass.value] >= 100 for klass in rlm.PackingClass)
    assert {id: whole.view.explain(id).klass for id in whole.view.active} == {
        f"resource:{klass.value}": klass for klass in rlm.PackingClass
    }
    order = ("frontier", "periphery")
    lost: list[str] = []
    for budget in range(whole.view.ledger.total - 1, 0, -15):
        try:
            seen = ask(catalog, UNRELATED, admitted=admitted, policy=_roomy(budget))
        except BudgetError:
            break
        full = {item.unit.name for item in seen.view.shown if item.block.form == "full"}
        assert {"pinned", "mandatory"} <= full
        assert seen.says("This is the pinned piece.") == seen.says("This is the mandatory piece.") == 20
        lost += [name for name in order if name not in full and name not in lost]
        if "periphery" not in full:
            assert "frontier" not in full
    assert lost == list(order)


def test_p22_premises_reach_through_premises_and_denial_reaches_through_them(ask: Asking) -> None:
    admitted = [
        rlm.Preselected(unit="resource:conclusion", premises=["resource:premise"]),
        rlm.Preselected(unit="resource:premise", premises=["instruction:rule"]),
    ]
    catalog = _argument()
    assert {"resource:conclusion", "resource:premise", "instruction:rule"} <= set(
        ask(catalog, UNRELATED, admitted=admitted).view.active
    )
    seen = ask(catalog, UNRELATED, admitted=admitted, policy=rlm.Policy(denied={"instruction:rule"}))
    assert not any(seen.says(SAID[id]) for id in ("resource:conclusion", "resource:premise", "instruction:rule"))
    found = seen.view.explain("resource:conclusion").reasons[0]
    assert found.kind == "dependency_out"


def test_p22_nobody_admits_what_is_not_there(ask: Asking) -> None:
    before = ask.requests
    with pytest.raises(rlm.errors.ConfigurationError, match="resource:conclusion") as caught:
        ask(_argument(), UNRELATED, admitted=[rlm.Preselected(unit="resource:conclusio")])
    assert caught.value.kind == "unknown_unit"
    assert ask.requests == before
