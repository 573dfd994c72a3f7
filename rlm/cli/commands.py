"""Hints in usage errors: the right name of a command that does not exist, and a remedy for an extra argument.

For example ``rlm why`` gets the hint ``rlm explain QUERY UNIT``."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

UsageError: Any = typer.BadParameter.__mro__[1]
"""The class of all usage errors: typer brings a click of its own, and does not export this class."""

OTHER_NAMES = {
    "check": "rlm catalog check FILE",
    "complete": "rlm run QUERY",
    "help": "rlm --help",
    "list": "rlm skills list",
    "test": "rlm eval CATALOG QUERIES",
    "tools": "rlm catalog check FILE",
    "version": "rlm --version",
    "what-if": "rlm explain QUERY UNIT",
    "why": "rlm explain QUERY UNIT",
    "why-not": "rlm explain QUERY UNIT",
}
"""Names that people write for a command, and the command that does it."""


class CommandGroup(TyperGroup):
    """The commands of the program."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command and its arguments. For an unknown name the error suggests a command of ``OTHER_NAMES``."""
        try:
            return super().resolve_command(ctx, args)
        except UsageError as problem:
            meant = OTHER_NAMES.get(args[0].replace("_", "-")) if args else None
            if meant is not None and "Did you mean" not in problem.message:
                problem.message += f" Did you mean '{meant}'?"
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command. The error about an extra argument names the options that take files."""
        try:
            return super().invoke(ctx)
        except UsageError as problem:
            if "unexpected extra argument" in problem.message:
                problem.message += ". A QUERY is one argument, in quotes; files are named by options: --help lists them"
            raise
