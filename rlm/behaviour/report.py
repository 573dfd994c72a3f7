"""Running the tasks against a model, and saying how it did: honestly, row by row."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from rlm.api.complete import complete
from rlm.behaviour.fixtures import FIXTURES, Fixture, Trial
from rlm.behaviour.run_summary import RunSummary
from rlm.errors import ConfigurationError, did_you_mean
from rlm.providers import resolve
from rlm.providers.base import Provider
from rlm.sending.completion import Completion
from rlm.sending.results import ResultModel
from rlm.trace.writer import Record

REPEAT = 5
"""Trials of each task where nobody says how many."""


class Tried(ResultModel):
    """One trial. ``checks`` says of each condition whether the trace meets it; all must be met to pass."""

    passed: bool
    checks: dict[str, bool]
    status: str
    value: Any = None
    answer: Any = None
    error: dict[str, Any] | None = None
    model_calls: int = 0
    total_tokens: int = 0
    seconds: float = 0.0


class TrialRow(ResultModel):
    """One task: how many of its trials were passed, and whether those are enough. Without a trial nothing is met."""

    id: str
    name: str
    claim: str
    rate: float
    trials: tuple[Tried, ...] = ()

    @property
    def passed(self) -> int:
        """Trials that were passed."""
        return sum(trial.passed for trial in self.trials)

    @property
    def met(self) -> bool:
        """Whether at least ``rate`` of the trials were passed."""
        return bool(self.trials) and self.passed >= self.rate * len(self.trials)


class Report(ResultModel):
    """The results of the tasks. ``model`` is None for a report without a model; then no condition is met."""

    model: str | None
    repeat: int
    rows: tuple[TrialRow, ...]

    @property
    def met(self) -> bool:
        """Whether every row is met."""
        return bool(self.rows) and all(row.met for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON data."""
        rows = [
            {**row.model_dump(mode="json"), "passed": row.passed, "met": row.met, "of": len(row.trials)}
            for row in self.rows
        ]
        return {"type": "behaviour_report", "model": self.model, "repeat": self.repeat, "met": self.met, "rows": rows}


def unasked() -> Report:
    """The report where there is no model to ask: no row is met."""
    return Report(model=None, repeat=0, rows=tuple(_row(fixture, ()) for fixture in FIXTURES))


def behave(
    model: str | Provider,
    *,
    repeat: int = REPEAT,
    only: Iterable[str] = (),
    budget: Mapping[str, float] | None = None,
    on_trial: Callable[[str, int, Tried], Any] | None = None,
    **options: Any,
) -> Report:
    """Run the tasks and judge their traces.

    Args:
        model: the model that plans and answers, with a window of at least 8,192 tokens.
        repeat: trials of each task. Trial 0 is the same on every machine, and so are the others.
        only: ids of tasks, for example ``K21``; all tasks where it is empty.
        budget: fields that replace those of the tasks.
        on_trial: called at the end of each trial with the task's id, the trial's number from 0, and its row.
        options: further options of ``rlm.complete``.

    Raises: ConfigurationError ``unknown_fixture``, ``invalid_repeat``, and the errors of ``rlm.complete``.
    """
    if repeat < 1:
        raise ConfigurationError("invalid_repeat", f"repeat must be 1 or more: {repeat}")
    provider = resolve(model)
    rows = []
    for fixture in _chosen(only):
        trials = []
        for number in range(repeat):
            trials.append(tried(fixture.trial(number), provider, budget or {}, options))
            if on_trial is not None:
                on_trial(fixture.id, number, trials[-1])
        rows.append(_row(fixture, trials))
    return Report(model=f"{provider.name}:{provider.model}", repeat=repeat, rows=tuple(rows))


def tried(trial: Trial, provider: Provider, budget: Mapping[str, float], options: Mapping[str, Any]) -> Tried:
    """One trial, run and judged."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        result = complete(
            trial.query,
            trial.context,
            model=provider,
            tools=trial.tools,
            trace=path,
            **{**options, "budget": {**trial.budget, **budget}},
        )
        return _judged(trial, result, RunSummary.of(result, Record(path)))


def _judged(trial: Trial, result: Completion, seen: RunSummary) -> Tried:
    checks = {"came to an end": result.status == "ok", **trial.judge(seen)}
    return Tried(
        passed=all(checks.values()),
        checks=checks,
        status=result.status,
        value=result.value,
        answer=trial.answer,
        error=result.error,
        model_calls=result.usage.model_calls,
        total_tokens=result.usage.total_tokens,
        seconds=result.usage.seconds,
    )


def _row(fixture: Fixture, trials: Iterable[Tried]) -> TrialRow:
    return TrialRow(id=fixture.id, name=fixture.name, claim=fixture.claim, rate=fixture.rate, trials=tuple(trials))


def _chosen(only: Iterable[str]) -> tuple[Fixture, ...]:
    chosen, known = list(only), {fixture.id: fixture for fixture in FIXTURES}
    for id in chosen:
        if id not in known:
            raise ConfigurationError("unknown_fixture", f"no fixture is called {id!r}{did_you_mean(id, known)}")
    return tuple(fixture for fixture in FIXTURES if not chosen or fixture.id in chosen)
