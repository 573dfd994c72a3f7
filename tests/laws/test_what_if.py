"""What would have to change: every answer tried out, with nothing of the library's own search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

import rlm
from rlm.errors import CompileError
from tests.laws.facts import matches, reached
from tests.laws.generate import Case, seeded_cases
from tests.laws.survey import facts_of

MOST = 4
PLENTY = 1_000_000

BLOCKERS = {
    *("unavailable", "disabled", "out_of_scope", "missing_dependency", "dependency_out", "vetoed", "negated"),
    *("superseded_by", "conflict_with", "contradicts_itself", "no_evidence", "capability_missing", "denied"),
}

Answer = tuple[Case, str, Any]


@pytest.fixture(scope="module")
def answers() -> list[Answer]:
    """For each case, the answers for its units that are not active."""
    found: list[Answer] = []
    for _, case in seeded_cases(80_000, 160, most=10):
        with case.catalog() as catalog:
            try:
                view = case.compile(catalog)
            except CompileError:
                continue
            found += [(case, unit.id, view.what_if(unit.id)) for unit in case.units if unit.id not in view.active]
    return found


def changed(case: Case, changes: Iterable[Mapping[str, Any]]) -> Case:
    """The case under the changes, as a host would make them by hand."""
    policy = case.policy
    for change in changes:
        ((what, value),) = change.items()
        if what == "grant":
            own = {unit.capability for unit in case.units if unit.trust is rlm.Trust.HOST and unit.capability}
            granted = policy.capabilities if policy.capabilities is not None else own
            shut = frozenset(pattern for pattern in policy.withheld if not matches([pattern], value))
            policy = policy.model_copy(update={"capabilities": frozenset({*granted, value}), "withheld": shut})
        elif what == "select":
            policy = policy.model_copy(update={"selected": policy.selected | {value}})
        elif what == "budget":
            policy = policy.model_copy(update={"budget": policy.limit + value})
        else:
            field = {"undeny": "denied", "enable": "disabled"}[what]
            kept = frozenset(pattern for pattern in getattr(policy, field) if not matches([pattern], value))
            policy = policy.model_copy(update={field: kept})
    return replace(case, policy=policy)


def shows(case: Case, changes: Iterable[Mapping[str, Any]], id: str) -> bool:
    try:
        return id in changed(case, changes).compile().active
    except CompileError:
        return False


def test_what_if_gives_all_kinds_of_answers(answers: list[Answer]) -> None:
    kinds = Counter(what for _, _, answer in answers for change in answer.changes for what in change)
    assert {"grant", "undeny", "enable", "select", "budget"} == set(kinds)
    assert max(len(answer.changes) for _, _, answer in answers) > 2
    assert sum(answer.blocker is not None for _, _, answer in answers) > 40


def test_what_if_changes_are_enough(answers: list[Answer]) -> None:
    for case, id, answer in answers:
        assert len(answer.changes) <= MOST
        assert bool(answer.changes) != (answer.blocker is not None), (id, answer, str(case))
        if answer.changes:
            assert shows(case, answer.changes, id), f"{id}: {answer.changes}\n{case}"


def test_what_if_changes_are_irreducible(answers: list[Answer]) -> None:
    for case, id, answer in answers:
        for place in range(len(answer.changes)):
            fewer = [*answer.changes[:place], *answer.changes[place + 1 :]]
            assert not shows(case, fewer, id), f"{id}: {answer.changes}, but {fewer} is enough\n{case}"


def test_what_if_none_only_where_something_stands_in_the_way(answers: list[Answer]) -> None:
    """No set of at most four changes that concern the unit and what it needs would show it."""
    for case, id, answer in answers:
        if answer.blocker is not None:
            assert answer.blocker.kind in BLOCKERS
            for size in range(1, MOST + 1):
                for changes in combinations(possible(case, id), size):
                    assert not shows(case, changes, id), f"{id}: {answer.blocker}, but {changes}\n{case}"


def possible(case: Case, id: str) -> list[dict[str, Any]]:
    """Everything about a unit and its requirements that a host could change."""
    return list(_possible(case, id))[:9]


def _possible(case: Case, id: str) -> Iterator[dict[str, Any]]:
    facts = facts_of(case)
    yield {"select": id}
    if case.policy.budget is not None:
        yield {"budget": PLENTY}
    granted: set[str] = set()
    for at in reached([id], lambda at: facts.needs.get(at, ())):
        if at in facts.units:
            blockers, capability = facts.blockers(at), facts.units[at].capability
            if "capability_missing" in blockers and capability and capability not in granted:
                granted.add(capability)
                yield {"grant": capability}
            if "denied" in blockers:
                yield {"undeny": at}
            if matches(case.policy.disabled, at):
                yield {"enable": at}


def test_what_if_of_an_active_unit_is_nothing() -> None:
    case = Case((rlm.Unit("tool:a"),), policy=rlm.Policy(selected={"tool:a"}))
    with case.catalog() as catalog:
        answer = case.compile(catalog).what_if("tool:a")
    assert (answer.changes, answer.blocker) == ((), None)


def test_what_if_needs_no_catalog() -> None:
    """A view answers when its catalog is gone, and leaves no catalog behind."""
    case = Case((rlm.Unit("tool:a", description="river"),), "river", rlm.Policy(denied={"tool:*"}))
    view = case.compile()
    living = rlm.Catalog.living()
    assert view.what_if("tool:a").changes == ({"undeny": "tool:a"},)
    assert rlm.Catalog.living() == living


def test_a_wrong_answer_would_be_found() -> None:
    """The checks above can fail."""
    case = Case((rlm.Unit("tool:a", description="river"),), "river", rlm.Policy(denied={"tool:a"}))
    assert not shows(case, [{"select": "tool:a"}], "tool:a")
    assert shows(case, [{"undeny": "tool:a"}], "tool:a")
    assert shows(case, [{"undeny": "tool:a"}, {"select": "tool:a"}], "tool:a")
