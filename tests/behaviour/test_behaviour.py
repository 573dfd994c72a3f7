"""K21-K26: the judge tells good behaviour from bad, by real traces; and the gate, where there is a model to ask."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

import rlm
from rlm.behaviour import FIXTURES, TrialRow, behave, unasked
from rlm.behaviour.fixtures import SOLVER, Fixture, Trial
from rlm.behaviour.report import Tried, tried
from rlm.errors import ConfigurationError
from rlm.providers import LocalProvider, ScriptedProvider
from tests.behaviour.players import BAD, GOOD, Player, says
from tests.runtime.actors import plan

FIXTURE = {fixture.id: fixture for fixture in FIXTURES}
Gate = Callable[[str], TrialRow]


def play(id: str, player: Player, number: int = 0) -> Tried:
    trial = FIXTURE[id].trial(number)
    return tried(trial, player(trial), {}, {})


def judged(id: str) -> None:
    """Whoever behaves well passes, and who does not fails for the right reason and no other."""
    for number in (0, 1):
        for name, player in GOOD[id].items():
            done = play(id, player, number)
            assert done.passed, (name, done)
        for name, (player, wrong) in BAD[id].items():
            done = play(id, player, number)
            missed = {check for check, held in done.checks.items() if not held}
            assert missed, name
            assert missed == wrong & done.checks.keys(), (name, done)


def test_k21_decomposable_the_model_chooses_sub_calls_by_itself_and_combines_them(gate: Gate) -> None:
    judged("K21")
    gate("K21")


def test_k22_trivial_it_does_not_recurse(gate: Gate) -> None:
    judged("K22")
    gate("K22")


def test_k23_facts_it_uses_the_supplied_facts(gate: Gate) -> None:
    judged("K23")
    gate("K23")


def test_k24_finite_constraints_it_takes_the_solver(gate: Gate) -> None:
    judged("K24")
    gate("K24")


def test_k25_without_the_solver_it_does_not_invent_one(gate: Gate) -> None:
    judged("K25")
    gate("K25")


def test_k26_unknown_information_it_looks_and_does_not_guess(gate: Gate) -> None:
    judged("K26")
    gate("K26")


# -- the fixtures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.id)
def test_no_plan_is_in_any_prompt(fixture: Fixture) -> None:
    """The host says what it wants and nothing of how; nor do the descriptions of tools."""
    for number in range(4):
        trial = fixture.trial(number)
        said = trial.query + json.dumps([tool.description for tool in trial.tools if tool.id != SOLVER])
        found = re.findall(
            r"\b(steps?|plans?|recurs\w+|sub-?\w*|child\w*|map|reduce|partition|split|divide|search|solver|tools?|model|"
            r"rlm|observe|final|op)\b",
            said,
            re.IGNORECASE,
        )
        assert found == []


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.id)
def test_each_trial_is_another_one_and_the_same_for_everybody(fixture: Fixture) -> None:
    def words(trial: Trial) -> str:
        return trial.query + str(trial.context)

    assert words(fixture.trial(3)) == words(fixture.trial(3))
    assert len({words(fixture.trial(number)) for number in range(5)}) == 5
    assert 0.5 <= fixture.rate <= 1


def test_k24_k25_are_one_question_and_only_one_shows_the_solver() -> None:
    shown = {}
    for id in ("K24", "K25"):
        provider = says("?")
        trial = FIXTURE[id].trial(0)
        tried(trial, provider, {}, {})
        shown[id] = (trial.query, b"solve_constraints" in provider.bodies[0])
    with_one, without = FIXTURE["K24"].trial(7), FIXTURE["K25"].trial(7)
    assert with_one.query.splitlines()[-1] == without.query.splitlines()[-1]
    assert [shown[id][1] for id in ("K24", "K25")] == [True, False]


def test_a_puzzle_has_exactly_one_answer() -> None:
    import itertools

    from rlm.behaviour.material import holds

    for number in range(3):
        trial = FIXTURE["K24"].trial(number)
        people = trial.query.partition(" stand")[0].split(", ")
        orders = [dict(zip(each, range(1, 7), strict=True)) for each in itertools.permutations(people)]
        assert sum(all(holds(order, each) for each in trial.answer) for order in orders) == 1


# -- the report -----------------------------------------------------------------------------------------


def test_a_report_counts_trials_and_says_what_is_met() -> None:
    answers = iter(_sums(right=4, wrong=1))
    told: list[tuple[str, int, bool]] = []
    report = behave(
        ScriptedProvider(lambda _: next(answers)),
        repeat=5,
        only=["K22"],
        on_trial=lambda id, number, trial: told.append((id, number, trial.passed)),
    )
    (row,) = report.rows
    assert (row.passed, row.met, report.met) == (4, True, True)
    assert told == [("K22", number, number < 4) for number in range(5)]
    data = report.to_dict()
    assert json.loads(json.dumps(data))["rows"][0]["of"] == 5
    answers = iter(_sums(right=3, wrong=2))
    assert not behave(ScriptedProvider(lambda _: next(answers)), repeat=5, only=["K22"]).met


def _sums(right: int, wrong: int) -> list[str]:
    answers = [FIXTURE["K22"].trial(number).answer for number in range(right + wrong)]
    return [plan({"op": "final", "value": answer + (number >= right)}) for number, answer in enumerate(answers)]


def test_what_nobody_was_asked_is_not_met() -> None:
    report = unasked()
    assert [row.id for row in report.rows] == ["K21", "K22", "K23", "K24", "K25", "K26"]
    assert [row.met for row in report.rows] == [False] * 6
    assert (report.met, report.model) == (False, None)


def test_mistakes() -> None:
    with pytest.raises(ConfigurationError, match="did you mean"):
        behave(says("?"), only=["K2"])
    with pytest.raises(ConfigurationError, match="repeat"):
        behave(says("?"), repeat=0)


@pytest.mark.timeout(400)
def test_a_real_small_model_is_reported_honestly() -> None:
    """It cannot plan, and nothing here hides that: the report is whole, and a row is met only by what the trace shows."""
    pytest.importorskip("xllamacpp")
    report = behave(
        LocalProvider(),
        repeat=1,
        only=["K22", "K26"],
        budget={"time_limit": 150, "max_iterations": 1},
        policy=rlm.Policy(reserve_output=96),
        max_repairs=0,
        temperature=0,
    )
    assert report.model is not None
    assert report.model.startswith("local:")
    for row in report.rows:
        (trial,) = row.trials
        assert trial.model_calls >= 1
        assert trial.total_tokens > 500
        assert row.met == trial.passed == all(trial.checks.values())
        assert (trial.error is None) == (trial.status == "ok")
