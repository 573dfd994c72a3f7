"""The checker can fail: views that break one law each, made from lawful ones, and laws that the seal catches too."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

import rlm
from rlm.errors import CompileError
from rlm.model.selection import Chosen, Selection
from tests.laws.brute import READINGS
from tests.laws.checker import violations
from tests.laws.generate import Case
from tests.laws.survey import allowed, outcome

UNITS = (
    rlm.Unit("skill:pin", content="Always.", activation="always"),
    rlm.Unit("tool:main", description="river stone", requires=["resource:need"], suggests=["resource:tip"]),
    rlm.Unit("resource:need", content="Needed by main.", mandatory=True),
    rlm.Unit("resource:tip", content="A tip."),
    rlm.Unit("tool:rival", description="river", conflicts=["tool:main"]),
    rlm.Unit("tool:old", description="river"),
    rlm.Unit("tool:new", description="river cloud", supersedes=["tool:old"]),
    rlm.Unit("tool:away", description="river stone", available=False),
    rlm.Unit("tool:banned", description="river stone"),
    rlm.Unit("tool:theirs", description="river stone", trust="stranger"),
    rlm.Unit("tool:quiet", description="quartz"),
    rlm.Unit("resource:long", description="stone", content="Much to say. " * 40),
)
POLICY = rlm.Policy(denied={"tool:banned"}, relative_floor=0)
CASE = Case(UNITS, "river stone. never use tool:quiet", POLICY)

Change = Callable[[rlm.CompiledContext], None]


@pytest.fixture
def view() -> Iterator[rlm.CompiledContext]:
    with CASE.catalog() as catalog:
        yield copy.copy(CASE.compile(catalog))


def broken(view: rlm.CompiledContext, change: Change) -> set[str]:
    """The laws that the view breaks after a change."""
    assert violations(view, UNITS) == []
    change(view)
    vars(view).pop("active", None)
    return {breach.partition(":")[0] for breach in violations(view, UNITS)}


def choosing(view: rlm.CompiledContext, *more: str, without: str = "", **fields: Any) -> None:
    """Change what the rules chose."""
    kept = [chosen for chosen in view.selection.chosen if chosen.id != without]
    reason = {"kind": "lexical", "score": 1}
    kept += [Chosen(id, "evidence", rlm.PackingClass.PERIPHERY, 1, (reason,), ()) for id in more]
    view.selection = replace(view.selection, chosen=tuple(kept), **fields)


def test_checker_catches_a_missing_requirement(view: rlm.CompiledContext) -> None:
    assert "L1" in broken(view, lambda view: choosing(view, without="resource:need"))


def test_checker_catches_a_conflict(view: rlm.CompiledContext) -> None:
    assert "L2" in broken(view, lambda view: choosing(view, "tool:rival"))


def test_checker_catches_a_superseded_unit(view: rlm.CompiledContext) -> None:
    assert "L3" in broken(view, lambda view: choosing(view, "tool:old"))


@pytest.mark.parametrize("id", ["tool:away", "tool:banned", "tool:theirs", "tool:quiet"])
def test_checker_catches_a_unit_that_may_not_be_shown(view: rlm.CompiledContext, id: str) -> None:
    assert "L4" in broken(view, lambda view: choosing(view, id))


def test_checker_catches_a_missing_pin(view: rlm.CompiledContext) -> None:
    assert "L5" in broken(view, lambda view: choosing(view, without="skill:pin"))


def test_checker_catches_a_loss_to_something_later(view: rlm.CompiledContext) -> None:
    def turned(view: rlm.CompiledContext) -> None:
        loser = {"kind": "conflict_with", "unit": "tool:rival", "through": "tool:main"}
        choosing(view, "tool:rival", without="tool:main", rejected={"tool:main": [loser]})

    assert "L6" in broken(view, turned)


LIES: list[tuple[str, dict[str, Any]]] = [
    ("tool:main", {"kind": "pinned"}),
    ("tool:main", {"kind": "selected_by_host"}),
    ("tool:main", {"kind": "retained"}),
    ("tool:main", {"kind": "all_tools"}),
    ("tool:main", {"kind": "name", "name": "main"}),
    ("tool:main", {"kind": "trigger", "signal": "phrase", "value": "river", "score": 1000}),
    ("tool:main", {"kind": "lexical", "score": 1}),
    ("tool:main", {"kind": "history", "score": 100, "turn": 1}),
    ("tool:main", {"kind": "need", "need": "river", "score": 100}),
    ("tool:main", {"kind": "sensor", "sensor": "embed", "score": 500}),
    ("resource:need", {"kind": "dependency_of", "unit": "tool:new"}),
    ("resource:tip", {"kind": "suggested_by", "unit": "tool:new"}),
    ("tool:rival", {"kind": "denied"}),
    ("tool:rival", {"kind": "capability_missing", "capability": "tool:rival"}),
    ("tool:rival", {"kind": "negated"}),
    ("tool:rival", {"kind": "no_evidence"}),
    ("tool:rival", {"kind": "below_floor", "score": 100, "floor": 300}),
    ("tool:rival", {"kind": "over_candidate_limit", "rank": 1}),
    ("tool:rival", {"kind": "missing_dependency", "unit": "tool:ghost"}),
    ("tool:rival", {"kind": "dependency_out", "unit": "resource:need"}),
    ("tool:rival", {"kind": "superseded_by", "unit": "tool:new", "through": "tool:rival"}),
    ("tool:rival", {"kind": "conflict_with", "unit": "tool:new", "through": "tool:rival"}),
    ("tool:rival", {"kind": "conflict_with", "unit": "tool:main", "through": "tool:old"}),
    ("tool:rival", {"kind": "contradicts_itself", "units": ["tool:rival", "tool:main"]}),
    ("tool:rival", {"kind": "packed_out", "tokens": 10, "free": 5}),
    ("tool:main", {"kind": "shortened", "tokens": 10, "free": 5}),
    ("tool:rival", {"kind": "because"}),
]


@pytest.mark.parametrize(("id", "lie"), LIES, ids=[f"{lie['kind']}-{number}" for number, (_, lie) in enumerate(LIES)])
def test_checker_catches_a_reason_that_is_not_true(view: rlm.CompiledContext, id: str, lie: dict[str, Any]) -> None:
    """A reason that would do for another unit, instead of the true one."""
    honest = view.explain

    def explain(asked: str) -> Any:
        found = honest(asked)
        return Told(found, lie) if asked == id else found

    assert violations(view, UNITS, honest) == []
    assert any(breach.startswith(f"L9: {id} says {lie}") for breach in violations(view, UNITS, explain))


class Told:
    """An explanation with another reason."""

    def __init__(self, honest: Any, lie: dict[str, Any]) -> None:
        self.state, self.words = honest.state, honest.words
        self.reasons = (Word(lie),)


class Word:
    def __init__(self, row: dict[str, Any]) -> None:
        self.kind = Kind(row["kind"])
        self._row = row

    def to_dict(self) -> dict[str, Any]:
        return self._row


class Kind(str):
    """Looks like one of the vocabulary."""

    __slots__ = ()

    @property
    def value(self) -> str:
        return str(self)


def test_checker_catches_a_state_that_is_not_true(view: rlm.CompiledContext) -> None:
    honest = view.explain
    hidden = violations(view, UNITS, lambda asked: honest("tool:quiet" if asked == "tool:main" else asked))
    assert any(breach.startswith("L9: tool:main is explained as") for breach in hidden)


def test_checker_catches_a_mandatory_unit_that_was_packed_out(view: rlm.CompiledContext) -> None:
    assert "packing" in broken(view, lambda view: view._dropped.update({"resource:need": (10, 5)}))


def test_checker_catches_a_dropped_requirement(view: rlm.CompiledContext) -> None:
    assert "L1" in broken(view, lambda view: view._dropped.update({"resource:need": (10, 5)}))


@pytest.mark.parametrize("stage", ["task", "headings", "pinned", "periphery", "framing", "total", "limit"])
def test_checker_catches_a_ledger_that_is_not_the_text(view: rlm.CompiledContext, stage: str) -> None:
    def miscount(view: rlm.CompiledContext) -> None:
        view.ledger = view.ledger.model_copy(update={stage: getattr(view.ledger, stage) + 1})

    assert "packing" in broken(view, miscount)


def test_checker_catches_a_ledger_that_undercharges_consistently(view: rlm.CompiledContext) -> None:
    def undercharge(view: rlm.CompiledContext) -> None:
        less = {"task": view.ledger.task - 1, "total": view.ledger.total - 1}
        view.ledger = view.ledger.model_copy(update=less)

    assert "packing" in broken(view, undercharge)


def test_checker_catches_too_many_tokens(view: rlm.CompiledContext) -> None:
    def tight(view: rlm.CompiledContext) -> None:
        view.policy = rlm.Policy(**{**dict(POLICY), "budget": view.ledger.total - 1})
        view.ledger = view.ledger.model_copy(update={"limit": view.policy.limit})

    assert "packing" in broken(view, tight)


def test_checker_catches_a_tool_that_is_not_visible(view: rlm.CompiledContext) -> None:
    def hide(view: rlm.CompiledContext) -> None:
        view._shown = tuple(item for item in view.shown if item.unit.id != "tool:main")

    assert "P14" in broken(view, hide)


def test_checker_catches_a_schema_in_two_places(view: rlm.CompiledContext) -> None:
    def double(view: rlm.CompiledContext) -> None:
        view._shown = (*view.shown, view.shown[-1])

    assert "P14" in broken(view, double)


# -- the library's own seal, and the naive semantics ----------------------------------------------------


@pytest.mark.parametrize(
    ("law", "without", "more"),
    [("L1", "resource:need", ""), ("L2", "", "tool:rival"), ("L3", "", "tool:old"), ("L4", "", "tool:banned")],
)
def test_the_seal_catches_it_too(monkeypatch: pytest.MonkeyPatch, law: str, without: str, more: str) -> None:
    tampered(monkeypatch, without, more)
    with pytest.raises(CompileError, match=f"breaks {law}") as caught:
        CASE.compile()
    assert caught.value.kind == "unlawful"


def test_the_seal_catches_a_missing_pin(monkeypatch: pytest.MonkeyPatch) -> None:
    tampered(monkeypatch, "skill:pin", "")
    with pytest.raises(CompileError, match="breaks L5"):
        CASE.compile()


@pytest.mark.parametrize(("without", "more"), [("tool:main", ""), ("resource:tip", ""), ("", "tool:quiet")])
def test_the_naive_semantics_catch_a_choice_that_is_lawful_but_not_the_right_one(
    monkeypatch: pytest.MonkeyPatch, without: str, more: str
) -> None:
    assert outcome(CASE) == allowed(CASE, READINGS[0])
    wanted = [allowed(CASE, reading) for reading in READINGS]
    tampered(monkeypatch, without, more)
    assert outcome(CASE) not in wanted


def tampered(monkeypatch: pytest.MonkeyPatch, without: str, more: str) -> None:
    """Let the rules choose otherwise."""
    honest = Selection.of

    def of(reply: Any) -> Selection:
        rows = [row for row in reply["active"] if row[0] != without]
        rows += [[more, "evidence", "periphery", 1, [{"kind": "lexical", "score": 1}], []]] if more else []
        return honest({**reply, "active": rows})

    monkeypatch.setattr(Selection, "of", of)
