"""How a command ends: 0 done, 1 the thing failed (one JSON object on stderr says how), 2 a mistake of usage."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import typer

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
    """Tell an error as ``{"error": ...}`` on stderr, after a sentence where a person reads it; then raise this."""
    if sys.stderr.isatty():
        typer.secho(f"rlm: {error['message']}", fg="red", err=True)
    print(json.dumps({"error": error}, ensure_ascii=False, default=str), file=sys.stderr)
    return typer.Exit(1)


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON object on stdout, in letters that stdout can write."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, default=str)
    print(text)
