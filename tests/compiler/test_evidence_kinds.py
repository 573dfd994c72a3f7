"""Intents, examples, synonyms and abstention: what each counts, and what the explanation says of it."""

from __future__ import annotations

from typing import Any

import pytest

import rlm
from rlm.catalog import prolog_facts
from tests.compiler.blocks import tool

FILLERS = [tool(f"filler{n}", f"word{n} other{n} things{n}") for n in range(40)]
LONG = "zebra giraffe lion tiger panther badger otter beaver marmot lynx jackal hyena"


def _catalog(*units: rlm.Unit) -> rlm.Catalog:
    return rlm.Catalog([*units, *FILLERS])


def _reason(view: rlm.CompiledContext, id: str, kind: str) -> dict[str, Any]:
    return next(reason.to_dict() for reason in view.explain(id).reasons if reason.kind == kind)


@pytest.mark.parametrize("threshold", [0, 10**9], ids=["numpy", "rules"])
def test_no_intent_starves_beside_a_longer_one(monkeypatch: pytest.MonkeyPatch, threshold: int) -> None:
    monkeypatch.setattr(prolog_facts, "SCORED_HERE", threshold)
    loud = [tool(f"loud{n}", f"{LONG} {n}") for n in range(3)]
    catalog = _catalog(*loud, tool("kettle", "Boil the kettle"))
    view = rlm.compile(catalog, f"show the {LONG}, then boil the kettle", policy=rlm.Policy(relative_floor=0))
    raised = _reason(view, "tool:kettle", "intent")
    assert raised["part"] == "boil the kettle"
    best, own = view.selection.scores[0], view.selection.scores[view.selection.ranked.index("tool:kettle")]
    assert own == best * 800 // 1000
    assert raised["score"] + _reason(view, "tool:kettle", "lexical")["score"] == own
    assert '"boil the kettle"' in str(view.explain("tool:kettle"))


def test_a_text_with_one_part_raises_nothing() -> None:
    view = rlm.compile(_catalog(tool("kettle", "Boil the kettle")), "boil the kettle")
    assert "intent" not in {reason.kind for reason in view.explain("tool:kettle").reasons}


def test_what_is_denied_is_not_raised_and_the_next_best_is() -> None:
    catalog = _catalog(
        *(tool(f"loud{n}", f"{LONG} {n}") for n in range(3)),
        tool("kettle", "Boil the kettle"),
        tool("stove", "Boil the kettle on the stove"),
    )
    view = rlm.compile(catalog, f"show the {LONG}, then boil the kettle", policy=rlm.Policy(denied={"tool:kettle"}))
    assert _reason(view, "tool:stove", "intent")["part"] == "boil the kettle"


def test_the_best_example_counts_and_the_others_do_not() -> None:
    examples = ("put the kettle on", "I would like some tea", "kettle")
    one = rlm.compile(_catalog(tool("boiler", "Heats", examples=examples[:1])), "put the kettle on")
    all_of_them = rlm.compile(_catalog(tool("boiler", "Heats", examples=examples)), "put the kettle on")
    assert _reason(one, "tool:boiler", "example") == _reason(all_of_them, "tool:boiler", "example")
    assert _reason(one, "tool:boiler", "example")["example"] == "put the kettle on"


def test_an_example_is_no_description() -> None:
    view = rlm.compile(_catalog(tool("boiler", "Heats", examples=("put the kettle on",))), "put the kettle on")
    assert view.explain("tool:boiler").words == ()


def test_a_unit_that_went_takes_its_examples_along() -> None:
    catalog = _catalog(tool("boiler", "Heats", examples=("put the kettle on",)))
    rlm.compile(catalog, "put the kettle on")
    catalog.remove("tool:boiler")
    assert rlm.compile(catalog, "put the kettle on").active == ()


def test_the_explanation_says_which_synonym_counted() -> None:
    found = rlm.compile(_catalog(tool("resize", "Resize a picture")), "my photo").explain("tool:resize")
    assert found.through == (("photo", "pictur"),)
    assert "photo as pictur" in str(found)


def test_small_talk_shows_nothing() -> None:
    catalog = _catalog(tool("send_alert", "Send an alert about an incident to the people who are on call"))
    view = rlm.compile(catalog, "send gmail email", policy=rlm.Policy(abstain=3))
    assert view.active == ()
    found = view.explain("tool:send_alert")
    assert found.reasons[0].to_dict()["kind"] == "below_floor"
    assert found.reasons[0].data["floor"] == 3000


def test_a_name_is_shown_whatever_the_bar() -> None:
    view = rlm.compile(_catalog(tool("send_alert", "x")), "call `send_alert`", policy=rlm.Policy(abstain=1000))
    assert view.active == ("tool:send_alert",)


def test_a_handful_of_units_never_abstains() -> None:
    catalog = rlm.Catalog([tool("clock", "The time of day"), tool("day", "The day")])
    assert rlm.compile(catalog, "day", policy=rlm.Policy(abstain=1000)).active


@pytest.mark.parametrize("name", ["search@2", "search#3"])
def test_a_name_with_its_number_is_found(name: str) -> None:
    catalog = _catalog(*(tool(other, "Search") for other in ("search", "search@2", "search#3")))
    view = rlm.compile(catalog, f"Please use `{name}` for it.")
    assert _reason(view, f"tool:{name}", "name")
