"""Many random catalogs, compiled and checked once; the tests of the laws read the outcome."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import rlm
from rlm.errors import CompileError
from rlm.model.turn import CompileInput
from tests.laws.brute import Evidence, ImpossibleError, Reading, select, viable
from tests.laws.checker import producers_of, violations
from tests.laws.facts import Facts, reached
from tests.laws.generate import Case, law_case, remade, without
from tests.laws.reasons import Explain, is_lone_weak_hit
from tests.laws.shrink import smallest

CATALOGS = int(os.environ.get("RLM_LAWS", "2000"))
"""How many catalogs: 20,000 in a long run."""

FIRST = int(os.environ.get("RLM_LAWS_FIRST", "0"))


@dataclass(frozen=True)
class Surveyed:
    """One catalog: the view and what is wrong with it, or the error in its place; and what makes it hard."""

    seed: int
    case: Case
    view: rlm.CompiledContext | None
    error: CompileError | None
    breaches: tuple[str, ...]
    troubles: frozenset[str]

    @property
    def facts(self) -> Facts:
        return facts_of(self.case)


def facts_of(case: Case) -> Facts:
    """The facts of a case that need no view."""
    options = {name: value for name, value in case.options.items() if name != "tools"}
    turn = CompileInput(text=case.text, **options)
    return Facts({unit.id: unit for unit in case.units}, case.policy, turn)


def evidence_of(case: Case) -> Evidence:
    """What speaks for the units, with nothing that the host or a relation says: the words alone."""
    showable = can_be_shown(case)
    units = tuple(
        remade(without(unit, *RELATIONS), available=unit.available and unit.id in showable) for unit in case.units
    )
    policy = without(case.policy, "selected", "budget")  # beyond the limit, strangers and others take turns
    options = {name: value for name, value in case.options.items() if name not in ("admitted", "retained", "tools")}
    view = Case(units, case.text, policy, options).compile(pack=False)
    named = {unit.id for unit in units if any(reason.kind == "name" for reason in view.explain(unit.id).reasons)}
    weak = [unit.id for unit in units if is_lone_weak_hit(unit, view, facts_of(case))]
    return Evidence(view.selection.ranked, named, view.selection.negated, weak, producers_of(view))


def can_be_shown(case: Case) -> set[str]:
    """The units that can be shown, whatever the evidence: in a catalog without relations, the others are unavailable."""
    facts = facts_of(case)
    bare = replace(case, policy=without(case.policy, "selected", "budget"))
    negated = negated_of(bare) if re.search("use|avoid|without", case.text) else frozenset()
    wanted = [*facts.pinned, *facts.host]
    spared = {*facts.every_tool, *reached(wanted, lambda at: facts.needs.get(at, ()))}
    return viable(facts, facts.eligible - (negated - spared), facts.units)


def negated_of(case: Case) -> frozenset[str]:
    """The ids that the text rules out, as the library reads it."""
    units = tuple(without(unit, *RELATIONS) for unit in case.units)
    options = {name: value for name, value in case.options.items() if name not in ("admitted", "retained", "tools")}
    return Case(units, case.text, case.policy, options).compile(pack=False).selection.negated


RELATIONS = ("requires", "suggests", "conflicts", "supersedes", "activation")


def outcome(case: Case) -> list[str] | str:
    """What the library makes of a case."""
    try:
        return sorted(case.compile(pack=False).active)
    except CompileError as problem:
        return problem.kind


def allowed(case: Case, reading: Reading) -> list[str] | str:
    """What the document makes of it."""
    try:
        return sorted(select(facts_of(case), evidence_of(case), reading).active)
    except ImpossibleError as problem:
        return problem.kind


def survey(first: int = FIRST, count: int = CATALOGS) -> list[Surveyed]:
    return [surveyed(seed, law_case(seed)) for seed in range(first, first + count)]


def surveyed(seed: int, case: Case) -> Surveyed:
    """Compile a case and check the view, as long as its catalog lives."""
    with case.catalog() as catalog:
        try:
            view = case.compile(catalog)
        except CompileError as problem:
            return Surveyed(seed, case, None, problem, (), frozenset((problem.kind, *troubles(case))))
        explain = cache(view.explain)
        breaches = tuple(violations(view, case.units, explain))
        return Surveyed(seed, case, view, None, breaches, frozenset((*troubles(case), *words_of(view, case, explain))))


def troubles(case: Case) -> Iterator[str]:
    """What makes a case hard: the tests see to it that there is enough of each."""
    facts = facts_of(case)
    units = facts.units
    if any(unit.id in reached(unit.requires, lambda at: facts.needs.get(at, ())) for unit in case.units):
        yield "cycle"
    if any(facts.conflict(one, other) for one in units for other in units[one].conflicts if other in units):
        yield "conflict"
    if any(len(above) > len([u for u in case.units if id in u.supersedes]) for id, above in facts.declared.items()):
        yield "supersession chain"
    if any("denied" in facts.blockers(need) for id in units for need in facts.needs[id] if need in units):
        yield "denied dependency"
    if facts.policy.budget is not None:
        yield "tight budget"


def words_of(view: rlm.CompiledContext, case: Case, explain: Explain) -> Iterator[str]:
    """What a view says of its units, and where it shows them."""
    yield "view"
    yield from (f"text {place}" for place in ("system", "data") if getattr(view, place))
    yield from (f"class {item.klass}" for item in view.selection.chosen)
    for unit in case.units:
        yield f"state {explain(unit.id).state}"
        yield from (f"reason {reason.kind}" for reason in explain(unit.id).reasons)


def lawless(case: Case) -> list[str]:
    """What is wrong with a case."""
    with case.catalog() as catalog:
        try:
            return violations(case.compile(catalog), case.units)
        except CompileError as problem:
            return [problem.kind] if problem.kind in ("unlawful", "unpackable") else []


def told_small(case: Case, wrong: Callable[[Case], Any]) -> str:
    """What is wrong with a case, told of the smallest case that has it; empty where nothing is wrong."""
    if not wrong(case):
        return ""
    small = smallest(case, lambda other: bool(wrong(other)))
    return f"{wrong(small)}\n{small}"
