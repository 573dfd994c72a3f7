"""The gate on K21-K26: a model is asked where an endpoint's key is set; elsewhere the rows are reported as not met."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from rlm.behaviour import TrialRow, behave, unasked

KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY")
MODEL = "RLM_BEHAVIOUR_MODEL"
REPEAT = "RLM_BEHAVIOUR_REPEAT"

reported: dict[str, TrialRow] = {}


def endpoint() -> str | None:
    """The model that is to be asked; None where there is no endpoint with a key."""
    named = os.environ.get(MODEL)
    keys = [key for key in KEYS if os.environ.get(key)]
    if keys and not named:
        pytest.fail(f"{keys[0]} is set, so K21-K26 gate: {MODEL} must say which model is asked, such as openai:NAME")
    return named


@pytest.fixture
def gate() -> Callable[[str], TrialRow]:
    """The row of a fixture, from the model's own trials; without a model, not met."""

    def row(id: str) -> TrialRow:
        model = endpoint()
        rows = (
            unasked().rows if model is None else behave(model, repeat=int(os.environ.get(REPEAT, "5")), only=[id]).rows
        )
        reported[id] = next(row for row in rows if row.id == id)
        if model is None:
            assert not reported[id].met
        else:
            assert reported[id].met, reported[id].model_dump_json(indent=2)
        return reported[id]

    return row


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say of each row whether it is met: a row that nobody asked a model about is not."""
    if not reported:
        return
    terminalreporter.section("behaviour of a real model (K21-K26)")
    for id, row in sorted(reported.items()):
        asked = (
            f"{row.passed} of {len(row.trials)} trials, {row.rate:.0%} needed"
            if row.trials
            else "no endpoint's key is set"
        )
        terminalreporter.write_line(f"{id} {row.name}: {'met' if row.met else 'NOT MET'} ({asked})")
