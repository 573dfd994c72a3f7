"""A candidate that was raised and then turned away says what raised it, in Python and at the Prolog prompt alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rlm
from tests.compiler.blocks import tool
from tests.support.bare import asked

pytest.importorskip("numpy")
TEXT = "find and book flights between two cities on a date for a passenger. forecast rain"
BESIDE = ["over_candidate_limit", "intent", "sensor", "lexical"]
LONG = "It rained for a very long time. " * 200


def _catalog(*more: rlm.Unit) -> rlm.Catalog:
    return rlm.Catalog(
        [
            tool("flight_search", "Find flights between two cities on a date"),
            tool("flight_book", "Book flights for a passenger, flight by flight"),
            *(tool(f"plain{number}", "an ordinary text about nothing") for number in range(30)),
            *more,
        ]
    )


RAIN = tool("rain", "Forecast of rain")
HEARD = {"ear": {"tool:rain": 0.2, "resource:rain": 0.2}}


def _kinds(view: rlm.CompiledContext, unit: str) -> list[str]:
    return [reason.kind.value for reason in view.explain(unit).reasons]


def _is_told_at_the_prompt(view: rlm.CompiledContext, unit: str, tmp_path: Path) -> None:
    said = asked(view.save(tmp_path / "raised.rlm"), f"why('{unit}')")
    assert said == f"{view.explain(unit)}\n".replace("packed out:", "packed_out:", 1)


@pytest.mark.parametrize("size", [0, 6_000], ids=["scored in Prolog", "scored in Python"])
def test_past_the_limit(tmp_path: Path, size: int) -> None:
    catalog = _catalog(RAIN, *(tool(f"many{number}", f"number {number}") for number in range(size)))
    view = rlm.compile(catalog, TEXT, policy=rlm.Policy(candidate_limit=1), sensors=HEARD)
    shown = rlm.compile(catalog, TEXT, sensors=HEARD)
    assert view.state("tool:rain") == "rejected"
    assert _kinds(view, "tool:rain") == BESIDE
    assert view.explain("tool:rain").reasons[1:] == shown.explain("tool:rain").reasons
    if not size:
        _is_told_at_the_prompt(view, "tool:rain", tmp_path)
    catalog.destroy()


def test_in_conflict_with_what_came_first(tmp_path: Path) -> None:
    catalog = _catalog(RAIN.model_copy(update={"conflicts": ("tool:flight_search",)}))
    view = rlm.compile(catalog, TEXT, sensors=HEARD)
    assert _kinds(view, "tool:rain") == ["conflict_with", "intent", "sensor", "lexical"]
    _is_told_at_the_prompt(view, "tool:rain", tmp_path)


def test_where_a_requirement_is_out(tmp_path: Path) -> None:
    catalog = _catalog(RAIN.model_copy(update={"requires": ("tool:plain1",)}))
    view = rlm.compile(catalog, TEXT, sensors=HEARD, policy=rlm.Policy(denied={"tool:plain1"}))
    assert _kinds(view, "tool:rain")[0] == "dependency_out"
    assert {"sensor", "lexical"} <= set(_kinds(view, "tool:rain"))
    _is_told_at_the_prompt(view, "tool:rain", tmp_path)


def test_where_there_was_no_room(tmp_path: Path) -> None:
    catalog = _catalog(rlm.Unit("resource:rain", description="Forecast of rain", content=LONG))
    views = (
        rlm.compile(catalog, TEXT, sensors=HEARD, policy=rlm.Policy(budget=budget)) for budget in range(40, 200, 4)
    )
    view = next(view for view in views if view.state("resource:rain") == "packed_out")
    assert _kinds(view, "resource:rain") == ["packed_out", "intent", "sensor", "lexical"]
    _is_told_at_the_prompt(view, "resource:rain", tmp_path)


def test_a_rule_of_the_host_that_moved_it(tmp_path: Path) -> None:
    rules = tmp_path / "rules.pl"
    rules.write_text("boost(tool(rain), _, 500, 'it is April').\n")
    policy = rlm.Policy(candidate_limit=1, rules=rules)
    view = rlm.compile(_catalog(RAIN), TEXT, policy=policy, sensors=HEARD)
    assert _kinds(view, "tool:rain") == ["over_candidate_limit", "intent", "sensor", "boosted", "lexical"]
    _is_told_at_the_prompt(view, "tool:rain", tmp_path)


def test_what_was_not_raised_says_nothing_of_it() -> None:
    heard: dict[str, Any] = {"ear": {"tool:flight_book": 0.1}}
    view = rlm.compile(_catalog(RAIN), TEXT, policy=rlm.Policy(candidate_limit=1), sensors=heard)
    assert _kinds(view, "tool:flight_book") == ["over_candidate_limit", "sensor", "lexical"]
    assert _kinds(view, "tool:rain") == ["over_candidate_limit", "intent", "lexical"]
    assert _kinds(view, "tool:plain1") == ["no_evidence"]
