"""``rlm behaviour``: how a real model behaves without help, scored from its traces."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlm.cli.options import AsJson, model_name
from rlm.cli.outcome import failed, print_json, report_errors
from rlm.cli.run import MODEL_HELP, MostOutput

if TYPE_CHECKING:
    from rlm.behaviour import Report
    from rlm.behaviour.report import Tried


@report_errors
def behaviour_command(
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL",
            parser=model_name,
            envvar="RLM_BEHAVIOUR_MODEL",
            help=f"The model to try: {MODEL_HELP}",
        ),
    ] = None,
    leaf_model: Annotated[
        str | None,
        typer.Option(
            "--leaf-model",
            metavar="MODEL",
            parser=model_name,
            help="The model that answers the questions of plans; default: --model.",
        ),
    ] = None,
    repeat: Annotated[int, typer.Option("--repeat", metavar="N", min=1, help="Trials of each task.")] = 5,
    only: Annotated[list[str] | None, typer.Option("--only", metavar="ID", help="A task (K21); repeatable.")] = None,
    budget: Annotated[
        list[str] | None, typer.Option("--budget", metavar="FIELD=N", help="A budget field of each trial; repeatable.")
    ] = None,
    max_output_tokens: MostOutput = None,
    json_output: AsJson = False,
) -> None:
    """Let a model do six small tasks, and score its traces.

    No prompt holds a plan. Without a model no task runs, and every row is not met.
    """
    from rlm.behaviour import behave, unasked
    from rlm.cli import host

    if model is None:
        report = unasked()
    else:
        options = host.without_unset({"leaf_model": leaf_model, "policy": host.policy_of(max_output_tokens)})
        limits = host.budget_of(budget or ())
        report = behave(model, repeat=repeat, only=only or (), budget=limits, on_trial=_print_trial, **options)
    if json_output:
        print_json(report.to_dict())
    else:
        _show(report)
    if not report.met:
        rows = [row.id for row in report.rows if not row.met]
        error = {"phase": "runtime", "kind": "behaviour_not_met", "detail": {"model": report.model, "rows": rows}}
        raise failed({**error, "message": f"not met: {', '.join(rows)}"})


def _print_trial(id: str, number: int, trial: Tried) -> None:
    """Print the result of a trial when it ends."""
    from rlm.cli.terminal import visible

    missed = [check for check, held in trial.checks.items() if not held]
    result = "passed" if trial.passed else f"not passed: {', '.join(missed)}"
    cost = f"{trial.model_calls} requests, {trial.total_tokens:,} tokens, {trial.seconds:.1f} s"
    print(visible(f"rlm: {id}, trial {number + 1}: {result} ({cost})"), file=sys.stderr, flush=True)


def _show(report: Report) -> None:
    from rlm.cli import show

    cells: list[tuple[str, ...]] = []
    for row in report.rows:
        of: Any = f"{row.passed} of {len(row.trials)}" if row.trials else "not asked"
        cells.append((row.id, row.name, row.claim, of, f"{row.rate:.0%}", "met" if row.met else "not met"))
    show.rows(("row", "task", "the model", "passed", "needed", ""), cells)
    met = sum(row.met for row in report.rows)
    subject = report.model or "No model was asked"
    show.line(f"{subject}: {met} of {len(report.rows)} met")
