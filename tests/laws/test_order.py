"""What must change nothing: the order of registration (L7), and units that cannot be shown.

``RLM_LAWS=20000`` makes it a long run; ``RLM_LAWS_FIRST`` is its first seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from random import Random
from typing import Any

import pytest

import rlm
from rlm.errors import CompileError
from tests.laws.facts import reached
from tests.laws.generate import SHADOWS, Case, hide, law_case
from tests.laws.survey import CATALOGS, FIRST, can_be_shown, facts_of, told_small

pytestmark = pytest.mark.timeout(180 + CATALOGS / 2)


def whole(case: Case) -> Any:
    """Everything that a compile says: projection, classes, ledger, and of each unit state, reasons and words; or the
    error."""
    with case.catalog() as catalog:
        try:
            view = case.compile(catalog)
        except CompileError as problem:
            return problem.to_dict()
        return {
            "request": view.messages("openai" if view._native else "text"),
            "active": view.active,
            "packed out": view.packed_out,
            "classes": [
                (item.id, item.tier, item.klass.value, item.score, item.needs) for item in view.selection.chosen
            ],
            "ledger": view.ledger,
            **{unit.id: said(view.explain(unit)) for unit in case.units},
        }


def said(found: Any) -> Any:
    return found.state, [reason.to_dict() for reason in found.reasons], found.words


def less(outcome: Any, case: Case, id: str) -> Any:
    """An outcome without one unit, and without what others say of requiring it: of a unit that is not there this is
    another reason than of one that cannot be shown, and may stand in another place."""
    needs = facts_of(case).needs
    rest = {name: value for name, value in outcome.items() if name != id}
    for other in (unit.id for unit in case.units if unit.id in rest):
        state, rows, words = rest[other]
        told = [plain(row) for row in rows if not (row["kind"] in LACKING and row["unit"] == id)]
        rest[other] = state, sorted(told, key=str) if id in needs[other] else told, words
    return rest


LACKING = ("dependency_out", "missing_dependency")


def plain(row: Any) -> Any:
    """A reason without what is said of the unit that it names, where that is of the same kind."""
    beneath = row.get("reason", {}).get("kind")
    return {name: value for name, value in row.items() if not (name == "reason" and beneath in LACKING)}


def shuffled(case: Case, random: Random) -> Case:
    units = [*case.units]
    random.shuffle(units)
    return replace(case, units=tuple(units))


def difference(one: Any, other: Any) -> str:
    """Where two outcomes differ first."""
    if one == other:
        return ""
    for name in [*one, *other]:
        if one.get(name) != other.get(name):
            return f"{name}: {one.get(name)} or {other.get(name)}"
    return "something"


# -- the order of registration ------------------------------------------------------------------------


def by_order(case: Case, outcome: Any = None) -> str:
    """How the outcome depends on the order in which units were registered."""
    return difference(outcome or whole(case), whole(shuffled(case, Random(len(str(case))))))


@pytest.fixture(scope="module")
def found() -> dict[str, list[tuple[int, str]]]:
    """What of all cases depends on the order, and on a unit that cannot be shown: seed and what was found."""
    broken: dict[str, list[tuple[int, str]]] = {"order": [], "idle": []}
    for seed in range(FIRST, FIRST + CATALOGS):
        case = law_case(seed)
        outcome = whole(case)
        broken["order"] += [(seed, text) for text in [by_order(case, outcome)] if text]
        broken["idle"] += [(seed, text) for text in [by_idle_unit(case, outcome)] if text]
    return broken


def test_l7_a_shuffled_order_of_registration_changes_nothing(found: dict[str, list[tuple[int, str]]]) -> None:
    for seed, text in found["order"][:1]:
        pytest.fail(f"{len(found['order'])}, first seed {seed}: {text}\n{told_small(law_case(seed), by_order)}")


# -- what cannot be shown -----------------------------------------------------------------------------


def idle_units(case: Case) -> Iterator[str]:
    """The units that cannot be shown and that nothing shown needs, and that the host does not name.

    A unit between one that supersedes it and one that it supersedes is needed: by it the one supersedes the other. So is
    one that is required by a unit that can be shown, with another in its place: what nothing has is never met.
    """
    facts = facts_of(case)
    if not {*case.policy.selected, *(item.unit for item in facts.turn.admitted)} <= facts.units.keys():
        return
    showable = can_be_shown(case)
    turn = facts.turn
    named = {*facts.pinned, *facts.host, *turn.retained, *(id for item in turn.admitted for id in item.premises)}
    for id in (*facts.pinned, *facts.host):
        named.update(facts.reach(id))  # what may stand in for the host's sake, whatever the text says
    for unit in case.units:
        between = facts.declared[unit.id] and unit.supersedes
        needed = any(unit.id in facts.needs[id] for id in showable)
        if unit.id not in showable and unit.id not in named and not (between or needed):
            yield unit.id


def by_idle_unit(case: Case, outcome: Any = None) -> str:
    """How the outcome depends on a unit that cannot be shown."""
    facts = facts_of(case)
    for id in [*idle_units(case)][:1]:
        before = outcome or whole(case)
        shown = [*before.get("active", ()), *facts.pinned, *facts.host]
        if id in reached(shown, lambda at: facts.needs.get(at, ())):
            continue
        after = leaving_out(case, id)
        if text := difference(less(before, case, id), less(whole(after), case, id)):
            return f"{id} cannot be shown, but with it or without it, {text}"
    return ""


def leaving_out(case: Case, id: str) -> Case:
    options = dict(case.options)
    if "sensors" in options:
        options["sensors"] = {
            name: {u: s for u, s in row.items() if u != id} for name, row in options["sensors"].items()
        }
    return replace(case, units=tuple(unit for unit in case.units if unit.id != id), options=options)


def test_a_unit_that_cannot_be_shown_changes_nothing_for_the_others(found: dict[str, list[tuple[int, str]]]) -> None:
    for seed, text in found["idle"][:1]:
        pytest.fail(f"{len(found['idle'])}, first seed {seed}: {text}\n{told_small(law_case(seed), by_idle_unit)}")


def test_the_cases_have_ties_and_superseders_that_cannot_be_shown_in_a_third_each() -> None:
    counts: Counter[str] = Counter()
    for seed in range(FIRST, FIRST + 600):
        case = law_case(seed)
        facts, showable = facts_of(case), can_be_shown(case)
        counts["tied"] += len({(unit.description, unit.priority) for unit in case.units}) < len(case.units)
        counts["hidden"] += any({id, *above} - showable for id, above in facts.declared.items() if above)
        counts["idle"] += bool([*idle_units(case)])
    assert min(counts[name] for name in ("tied", "hidden", "idle")) >= 200, counts


# -- the same, in the smallest cases --------------------------------------------------------------------


def ranked(units: tuple[rlm.Unit, ...], best_first: str) -> Case:
    """A case in which a sensor ranks these units, by name."""
    names = best_first.split()
    scores = {f"tool:{name}": 1 - place / 10 for place, name in enumerate(names)}
    return Case(units, "", rlm.Policy(), {"sensors": {"given": scores}})


def in_every_order(*units: rlm.Unit, best_first: str) -> rlm.CompiledContext:
    """The view of these units, which must be the same in every order of registration."""
    case = ranked(units, best_first)
    outcomes = [whole(replace(case, units=order)) for order in permutations(units)]
    assert all(outcome == outcomes[0] for outcome in outcomes)
    return case.compile()


def first_reason(view: rlm.CompiledContext, id: str) -> dict[str, Any]:
    return dict(view.explain(id).reasons[0].to_dict())


def test_l7_of_two_that_stand_in_for_a_requirement_the_first_admitted_counts() -> None:
    view = in_every_order(
        rlm.Unit("tool:user", requires=["tool:old"]),
        rlm.Unit("tool:old", available=False),
        rlm.Unit("tool:zoo", supersedes=["tool:old"]),
        rlm.Unit("tool:ant", supersedes=["tool:old"]),
        best_first="zoo ant user",
    )
    assert view.active == ("tool:zoo", "tool:ant", "tool:user")
    assert {item.id: item.needs for item in view.selection.chosen}["tool:user"] == ("tool:zoo",)


def test_l7_of_several_that_a_unit_conflicts_with_the_first_admitted_is_named() -> None:
    view = in_every_order(
        rlm.Unit("tool:zoo", conflicts=["tool:late"]),
        rlm.Unit("tool:ant", conflicts=["tool:late"]),
        rlm.Unit("tool:late"),
        best_first="zoo ant late",
    )
    assert view.active == ("tool:zoo", "tool:ant")
    assert first_reason(view, "tool:late") == {"kind": "conflict_with", "unit": "tool:zoo", "through": "tool:late"}


def test_l7_of_several_that_supersede_a_unit_the_first_admitted_is_named() -> None:
    view = in_every_order(
        rlm.Unit("tool:zoo", supersedes=["tool:late"]),
        rlm.Unit("tool:ant", supersedes=["tool:late"]),
        rlm.Unit("tool:late"),
        best_first="zoo ant late",
    )
    assert view.active == ("tool:zoo", "tool:ant")
    assert first_reason(view, "tool:late") == {"kind": "superseded_by", "unit": "tool:zoo", "through": "tool:late"}


def test_l7_of_several_that_a_unit_would_supersede_too_late_the_first_admitted_is_named() -> None:
    view = in_every_order(
        rlm.Unit("tool:zoo", activation="always"),
        rlm.Unit("tool:ant", activation="always", priority=50),
        rlm.Unit("tool:late", supersedes=["tool:zoo", "tool:ant"]),
        best_first="late",
    )
    assert view.active == ("tool:zoo", "tool:ant")
    assert first_reason(view, "tool:late") == {"kind": "conflict_with", "unit": "tool:zoo", "through": "tool:late"}


def test_l7_a_unit_that_contradicts_itself_names_the_same_two_in_every_order() -> None:
    view = in_every_order(
        rlm.Unit("tool:top", requires=["tool:a", "tool:b", "tool:c"]),
        rlm.Unit("tool:a", conflicts=["tool:b", "tool:c"]),
        rlm.Unit("tool:b"),
        rlm.Unit("tool:c"),
        best_first="top",
    )
    assert list(first_reason(view, "tool:top")["units"]) == ["tool:a", "tool:b"]


@pytest.mark.parametrize("shadow", SHADOWS)
def test_a_unit_that_cannot_be_shown_pulls_no_superseder_forward(shadow: str) -> None:
    """The superseder would come before the best unit and throw it out."""
    units = (
        rlm.Unit("tool:best_one"),
        rlm.Unit("tool:hidden_one"),
        rlm.Unit("tool:rival", supersedes=["tool:hidden_one"], conflicts=["tool:best_one"]),
    )
    case = ranked(units, "hidden_one best_one rival")
    assert case.compile().active == ("tool:rival",)
    hidden = hide(case, "tool:hidden_one", shadow)
    assert hidden.compile().active == ("tool:best_one",)
    assert not by_idle_unit(hidden)


@pytest.mark.parametrize("shadow", SHADOWS)
def test_a_requirement_that_cannot_be_shown_pulls_nothing_that_it_requires(shadow: str) -> None:
    """Another one stands in for it; what it would have required is not in the closure."""
    units = (
        rlm.Unit("tool:user", requires=["tool:old_one"]),
        rlm.Unit("tool:old_one", requires=["tool:base"]),
        rlm.Unit("tool:new_one", supersedes=["tool:old_one"]),
        rlm.Unit("tool:base"),
        rlm.Unit("tool:rival", supersedes=["tool:base"], conflicts=["tool:user"]),
    )
    hidden = hide(ranked(units, "user new_one rival"), "tool:old_one", shadow)
    assert set(hidden.compile().active) == {"tool:user", "tool:new_one"}


def test_l5_a_pinned_unit_whose_tool_was_replaced_is_shown_with_the_successor() -> None:
    """A text can neither bring nor forbid the successor."""
    units = (
        rlm.Unit("skill:pin", content="Always.", activation="always", requires=["tool:old_one"]),
        rlm.Unit("tool:old_one", available=False),
        rlm.Unit("tool:new_one", supersedes=["tool:old_one"]),
    )
    for text in ("", "new one", "do not use new_one"):
        assert Case(units, text).compile().active == ("skill:pin", "tool:new_one")
