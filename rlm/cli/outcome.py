"""How a command ends: 0 done, 1 the thing failed (one JSON object on stderr says how), 2 a mistake of usage."""

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


def told(command: Callable[P, T]) -> Callable[P, T]:
    """Tell an error of the library and end with code 1."""

    @wraps(command)
    def run_command(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except RlmError as problem:
            raise failed(problem.to_dict(), whole=bool(kwargs.get("json_output"))) from None

    return run_command


def failed(error: Mapping[str, Any], *, whole: bool = False) -> typer.Exit:
    """Tell an error as ``{"error": ...}`` on stderr, after a sentence where a person reads it; then raise this.

    Of many findings, the first are told and how many there are; all of them where it is told ``whole``. On a
    terminal they are a table instead of JSON.

    Where stderr itself cannot be written, the exit code has to say it.
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
    """The error with its first findings, and how many others there are."""
    others = len(findings) - MOST_FINDINGS
    if others <= 0:
        return error
    detail = {**error["detail"], "findings": findings[:MOST_FINDINGS], "other_findings": others}
    return {**error, "detail": detail}


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON object on stdout."""
    print(one_object(value, sys.stdout))
