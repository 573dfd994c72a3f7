"""What a change of the input may change: L7, L8, L10, and P05, K32, K33, K38."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

import rlm
from rlm.errors import CompileError, ConfigurationError
from tests.laws.facts import INELIGIBLE
from tests.laws.generate import WORDS, Case, given_fields, random_case, seeded_cases
from tests.laws.survey import facts_of, lawless, told_small

ROOT = Path(__file__).parents[2]

HOSTS = ("pinned", "selected")
"""The tiers that no text can touch."""


def compiled(case: Case, **options: Any) -> rlm.CompiledContext | str:
    """The view, or the kind of error in its place."""
    try:
        return case.compile(**options)
    except CompileError as problem:
        return problem.kind


def result(case: Case) -> Any:
    """Everything that a request would be made of."""
    view = compiled(case)
    if isinstance(view, str):
        return view
    request = view.messages("openai" if view._native else "text")
    return view.fingerprint, view.active, view.packed_out, request, view.ledger


def pairs(first: int, count: int, **options: Any) -> Iterator[tuple[Case, rlm.CompiledContext]]:
    """Random cases that compile, with their views."""
    for _, case in seeded_cases(first, count, **options):
        view = compiled(case)
        if not isinstance(view, str):
            yield case, view


# -- L7 order-free ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(0, 300, 50))
def test_l7_order_free(seed: int) -> None:
    for number in range(seed, seed + 50):
        case = random_case(Random(number))
        assert result(case) == result(said_otherwise(case, Random(number))), f"seed {number}\n{case}"


def said_otherwise(case: Case, random: Random) -> Case:
    """The same material, in another order and with every default spelled out."""
    units = [spelled_out(unit) for unit in case.units]
    random.shuffle(units)
    policy = spelled_out(case.policy)
    options = {"tools": "native", "pack": True, "retained": (), "history": (), "needs": (), "sensors": {}}
    given = {name: case.options[name] for name in reversed(case.options)}
    return Scattered(tuple(units), case.text, policy, options | given)


class Scattered(Case):
    """Registered in several batches, and some units twice."""

    def catalog(self) -> rlm.Catalog:
        catalog = rlm.Catalog()
        for start in range(0, len(self.units), 3):
            catalog.add(*self.units[start : start + 3], allow_missing=True)
        catalog.add(*self.units[:2], allow_missing=True)
        return catalog


def spelled_out(noun: Any) -> Any:
    """A unit or policy with every field given, the last one first, and sets and relations backwards."""
    return type(noun)(**{name: backwards(name, getattr(noun, name)) for name in reversed(type(noun).model_fields)})


def backwards(name: str, value: Any) -> Any:
    if name in ("requires", "suggests", "conflicts", "supersedes"):
        return (*reversed(value), *value)
    return frozenset(sorted(value, reverse=True)) if isinstance(value, frozenset) else value


# -- L8 narrowing -----------------------------------------------------------------------------------


def test_l8_narrowing() -> None:
    """Fewer capabilities or a smaller scope make nothing eligible that was not, and nothing active."""
    narrower = 0
    for case, view in pairs(20_000, 200):
        for child in narrowed(case):
            case.policy.narrowed(child.policy)
            after = compiled(child)
            if isinstance(after, str):
                continue
            narrower += 1
            before, now = eligible(case, view), eligible(child, after)
            assert now <= before, f"{now - before}\n{child}"
            assert set(after.active) <= before
    assert narrower > 150


def test_l8_a_child_of_an_unset_grant_gets_no_more_than_the_host_registered() -> None:
    """Unset, ``capabilities`` grant nothing that was imported: a child that asks for everything asks for more."""
    unit = rlm.Unit("tool:theirs", description="river", trust="stranger")
    parent, child = rlm.Policy(), rlm.Policy(capabilities={"*"})
    assert Case((unit,), "river", parent).compile().active == ()
    with pytest.raises(ConfigurationError, match="subset of its parent"):
        parent.narrowed(child)


def narrowed(case: Case) -> Iterator[Case]:
    """Policies that grant less: one pattern is missing, nothing is left, or a kind is withheld."""
    capabilities, scope = case.policy.capabilities, case.policy.scope
    for fewer in ({*sorted(capabilities or ())[1:]}, set()):
        yield case.with_policy(capabilities=fewer)
    ids = sorted(unit.id for unit in case.units)
    yield case.with_policy(withheld={*case.policy.withheld, "tool:*"})
    yield case.with_policy(scope={*(sorted(scope)[1:] if scope is not None else ids[::2])})


def eligible(case: Case, view: rlm.CompiledContext) -> set[str]:
    """What the view itself calls eligible."""
    kinds = {unit.id: {reason.kind.value for reason in view.explain(unit.id).reasons} for unit in case.units}
    return {id for id, said in kinds.items() if not said & INELIGIBLE}


# -- L10 robust -------------------------------------------------------------------------------------


def test_l10_robust() -> None:
    """A stranger's description may say what it likes: what is shown stays lawful, and has a true reason."""
    for case, _ in pairs(30_000, 200):
        for loud in stuffed(case):
            if found := told_small(loud, lawless):
                pytest.fail(found)


def test_k38_stuffed_descriptions_displace_nothing_of_the_hosts() -> None:
    compared = 0
    for _, case in seeded_cases(40_000, 250, budget=False):
        before = of_the_host(case)
        for loud in stuffed(case):
            assert of_the_host(loud) == before, str(loud)
            compared += bool(before)
    assert compared > 40


def test_k38_words_of_the_user_displace_nothing_of_the_hosts() -> None:
    for seed, case in seeded_cases(45_000, 300, budget=False):
        spoken = replace(case, text=" ".join([*WORDS, *(f"never use {unit.name}, but" for unit in case.units)]))
        assert of_the_host(spoken) == of_the_host(replace(case, text="")), f"seed {seed}\n{spoken}"


def stuffed(case: Case) -> Iterator[Case]:
    """The case with each stranger in turn shouting every word of the query, and of every other unit."""
    words = " ".join([case.text, *WORDS, *(unit.name for unit in case.units), *case.options.get("needs", ())])
    for unit in case.units:
        if unit.trust is rlm.Trust.STRANGER:
            yield case.with_unit(unit.id, description=f"{words} " * 5)


def of_the_host(case: Case) -> Any:
    """What is shown because the host wants it, with all that it needs; or the error."""
    view = compiled(case, pack=False)
    if isinstance(view, str):
        return view
    return {chosen.id for chosen in view.selection.chosen if chosen.tier in HOSTS}


def test_k32_a_saturated_limit_leaves_what_the_host_wants() -> None:
    wanted = 0
    for _, case in seeded_cases(60_000, 400, budget=False):
        facts = facts_of(case)
        texts = replace(case, text=" ".join(WORDS))
        limits = [of_the_host(texts.with_policy(candidate_limit=limit)) for limit in (0, 1, 64)]
        assert limits[0] == limits[1] == limits[2], str(case)
        wanted += bool(facts.pinned)
    assert wanted > 60


def test_k32_pins_remain_among_many_relevant_units() -> None:
    crowd = [rlm.Unit(f"tool:t{number}", description=" ".join(WORDS)) for number in range(40)]
    crowd += [rlm.Unit(f"tool:u{number}", description="nothing of it") for number in range(400)]
    pins = [rlm.Unit(f"skill:s{number}", content="Always.", activation="always", priority=0) for number in range(4)]
    view = Case((*crowd, *pins), " ".join(WORDS), rlm.Policy(candidate_limit=10)).compile()
    assert {pin.id for pin in pins} <= set(view.active)
    assert len(view.active) == 14


@pytest.mark.parametrize("text", ["", "alpha alpha alpha", "beta", "do not use alpha"])
@pytest.mark.parametrize("first", [True, False])
def test_k33_two_pinned_skills_that_conflict(text: str, first: bool) -> None:
    """A configuration error that names both; no word, order or priority decides."""
    alpha = rlm.Unit("skill:alpha", description="alpha", activation="always", priority=1_000_000)
    beta = rlm.Unit("skill:beta", activation="always", priority=0, conflicts=["skill:alpha"])
    units = (alpha, beta) if first else (beta, alpha)
    with pytest.raises(CompileError, match=r"skill:alpha and skill:beta") as caught:
        Case(units, text).compile()
    assert caught.value.kind == "pinned_conflict"
    assert caught.value.detail["units"] == ["skill:alpha", "skill:beta"]


# -- P05 fingerprints -------------------------------------------------------------------------------

FINGERPRINTS = """
from tests.laws.test_changes import fingerprints
print("\\n".join(fingerprints()))
"""


def fingerprints() -> list[str]:
    return [view.fingerprint for _, view in pairs(70_000, 40)]


@pytest.mark.parametrize("hashing", ["0", "4711"])
def test_p05_the_same_fingerprint_in_another_process(hashing: str) -> None:
    child = subprocess.run(
        [sys.executable, "-c", FINGERPRINTS],
        env={"PYTHONHASHSEED": hashing, "PATH": "", **environment()},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout.split() == fingerprints()
    assert len(fingerprints()) > 20


def environment() -> dict[str, str]:
    import os

    return {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}


def test_p05_another_fingerprint_for_other_material() -> None:
    for case, view in pairs(75_000, 100):
        if not case.units:
            continue
        known = {view.fingerprint}
        unit = case.units[0]
        others = [
            replace(case, text=case.text + " other"),
            case.with_policy(budget=case.policy.limit + 1),
            case.with_policy(capabilities={"tool:never"} | (case.policy.capabilities or set())),
            case.with_unit(unit.id, description=unit.description + " other"),
            case.with_unit(unit.id, version="2"),
            replace(case, units=(*case.units, rlm.Unit("resource:other"))),
        ]
        if not unit.pinned:
            others.append(case.with_unit(unit.id, activation=rlm.Activation.ALWAYS))
        views = [other for other in map(compiled, others) if not isinstance(other, str)]
        known.update(other.fingerprint for other in views)
        assert len(known) == len(views) + 1, str(case)


def test_a_need_only_adds_candidates() -> None:
    added = 0
    for case, _ in pairs(76_000, 300):
        bare = replace(case, options={**case.options, "needs": []})
        needy = replace(case, options={**case.options, "needs": ["a quartz garden", "the harbor"]})
        few, many = compiled(bare), compiled(needy)
        if isinstance(few, str) or isinstance(many, str):
            continue
        assert set(few.selection.ranked) <= set(many.selection.ranked), str(needy)
        assert few.selection.relative_floor == many.selection.relative_floor, str(needy)
        added += len(many.selection.ranked) > len(few.selection.ranked)
    assert added > 50


def test_p05_spelled_out_defaults_are_no_other_material() -> None:
    unit = rlm.Unit("tool:a", description="river")
    assert given_fields(spelled_out(unit)).keys() > given_fields(unit).keys()
    assert spelled_out(unit).digest == unit.digest
