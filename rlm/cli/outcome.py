"""How a command ends: 0 done, 1 the thing failed (one JSON object on stderr says how), 2 a mistake of usage."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import typer

from rlm.cli.terminal import one_object, visible
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
            raise failed(problem.to_dict()) from None

    return run_command


def failed(error: Mapping[str, Any]) -> typer.Exit:
    """Tell an error as ``{"error": ...}`` on stderr, after a sentence where a person reads it; then raise this.

    Where stderr itself cannot be written, the exit code has to say it.
    """
    try:
        if sys.stderr.isatty():
            typer.secho(visible(f"rlm: {error['message']}"), fg="red", err=True)
        print(one_object({"error": error}, sys.stderr), file=sys.stderr, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # for what is still to be flushed
    return typer.Exit(1)


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON object on stdout."""
    print(one_object(value, sys.stdout))
