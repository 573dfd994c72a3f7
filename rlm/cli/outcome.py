"""The exit codes of a command: 0 for success, 1 for a failure (as one JSON object on stderr), 2 for a usage error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import typer

from rlm.cli.terminal import MOST_FINDINGS, one_object, visible
from rlm.errors import RlmError

P = ParamSpec("P")
T = TypeVar("T")


def report_errors(command: Callable[P, T]) -> Callable[P, T]:
    """Decorate a command: an error of the library is printed on stderr, and the exit code is 1."""

    @wraps(command)
    def run_command(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except RlmError as problem:
            raise failed(problem.to_dict(), whole=bool(kwargs.get("json_output"))) from None

    return run_command


def failed(error: Mapping[str, Any], *, whole: bool = False) -> typer.Exit:
    """Print an error on stderr as ``{"error": ...}``, and return the exit to raise.

    On a terminal the error is a sentence and a table of its findings. Of many findings only the first ones and
    their number are printed, unless ``whole`` is set. If stderr cannot be written, only the exit code reports the
    error.
    """
    try:
        findings = (error.get("detail") or {}).get("findings") or []
        if not whole:
            error = _shortened(error, findings)
        if sys.stderr.isatty():
            typer.secho(visible(f"rlm: {error['message']}"), fg="red", err=True)
            if findings and not whole:
                from rlm.cli import show

                show.finding_rows(findings, sys.stderr)
                return typer.Exit(1)
        print(one_object({"error": error}, sys.stderr), file=sys.stderr, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # for what is still to be flushed
    return typer.Exit(1)


def _shortened(error: Mapping[str, Any], findings: list[Any]) -> Mapping[str, Any]:
    """Return the error with its first findings and the number of the others."""
    others = len(findings) - MOST_FINDINGS
    if others <= 0:
        return error
    detail = {**error["detail"], "findings": findings[:MOST_FINDINGS], "other_findings": others}
    return {**error, "detail": detail}


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object on stdout."""
    print(one_object(value, sys.stdout))
