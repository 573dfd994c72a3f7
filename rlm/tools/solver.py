"""``solve_constraints``: an optional tool for finite constraint problems, solved by Prolog. A host registers it.

    catalog.add_tools([rlm.tools.solver.solver_tool()])

The problem is JSON, and the closed grammar of ``prolog/rlm_problem.pl`` reads it whole; no part of it is ever called.
The tool reads and changes nothing. It requires the capability ``tool:solve_constraints``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlm.errors import ToolError
from rlm.symbolic.engine import engine
from rlm.symbolic.values import JsonValue
from rlm.tools.function import Effect, Tool

NAME = "solve_constraints"
CAPABILITY = f"tool:{NAME}"

INFERENCES = 20_000_000
"""Logical inferences of one search: one or two seconds, and the same count on every machine. All calls share
one Prolog thread, so no problem may hold it for long. A slow search ends after two seconds (``rlm_fd``)."""

TIMEOUT = 60.0
"""Seconds for one call, including the wait for earlier calls."""

MOST_VALUES = 100_000
"""JSON values in one problem, checked before it goes to Prolog."""

MOST_LEVELS = 8

_MOST_NUMBER = 2**53

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "variables": {
            "type": "object",
            "description": 'From each name to its domain: [lowest, highest] or {"values": [integers]}.',
            "minProperties": 1,
        },
        "constraints": {"type": "array", "description": "All of them hold.", "items": {"type": "object"}},
        "minimize": {"description": "A sum."},
        "maximize": {"description": "A sum."},
    },
    "required": ["variables"],
    "additionalProperties": False,
}
"""The outer shape only. The rules check everything and name the place of an error; their text takes fewer tokens."""

DESCRIPTION = """\
Solve a problem over integer variables exactly: scheduling, timetables, rosters, allocation, assignment, packing, \
seating, logic and number puzzles, integer equations, the cheapest or the most. Use it instead of trying values.

A sum is an integer, a name, {"name": coefficient}, or a list of these, added up. A constraint is one of
{"left": sum, "op": "=", "right": sum}, a comparison; op is one of = != < <= > >=
{"all_different": [sum, ...]}
{"no_overlap": [{"start": sum, "duration": integer}, ...]}
{"element": sum, "of": [sum, ...], "is": sum}: the entry at that index, from 0
{"if": comparison, "then": comparison}
{"any": [comparison, ...]}: at least one holds

Example: {"variables": {"a": [0, 9], "b": {"values": [1, 3]}}, "constraints": [{"left": {"a": 2, "b": 1}, "op": "<=", \
"right": 12}], "maximize": ["a", "b"]}

The result has a status. solved: the assignment meets every constraint, and optimal says whether it is proved best. \
infeasible: proved to have no solution. limit: none found in time; narrow the domains or split the problem."""


def solver_tool() -> Tool:
    """Return the tool, for a host to register. Its unit is ``tool:solve_constraints``."""
    return Tool(NAME, DESCRIPTION, SCHEMA, Effect.READ, solve_constraints)


async def solve_constraints(**problem: Any) -> dict[str, Any]:
    """Solve a problem. ``SCHEMA`` describes its form. A cancelled await ends the search.

    Returns:
        ``{"status": "solved", "assignment": {name: integer}}``, with an objective also ``objective`` and ``optimal``;
        ``{"status": "infeasible"}``; or ``{"status": "limit"}``.

    Raises:
        ToolError: ``invalid_problem``, with ``path``, ``expected`` and ``got`` in its detail.
        EngineError: an error of the engine, such as ``cancelled``.
    """
    args = _args(problem, INFERENCES)
    return _answer(await engine().acall("solve", args, timeout=TIMEOUT))


def solve(problem: Mapping[str, Any], *, inferences: int = INFERENCES) -> dict[str, Any]:
    """Solve a problem from any thread, as ``solve_constraints``, with a limit of the caller.

    Args:
        problem: for example ``{"variables": {"a": [0, 9]}, "maximize": "a"}``.
        inferences: limit of logical inferences.
    """
    return _answer(engine().call("solve", _args(problem, inferences), timeout=TIMEOUT))


def _args(problem: Mapping[str, Any], inferences: int) -> dict[str, JsonValue]:
    return {"problem": _Encoder().value(problem, 0), "inferences": inferences}


def _answer(reply: Mapping[str, Any]) -> dict[str, Any]:
    wrong = reply.get("error")
    if wrong is not None:
        raise _invalid(str(wrong["path"]), str(wrong["expected"]), str(wrong["got"]))
    if "assignment" in reply:
        return {**reply, "assignment": dict(reply["assignment"])}
    return dict(reply)


def _invalid(path: str, expected: str, got: str) -> ToolError:
    where = path or "the problem"
    return ToolError(
        "invalid_problem",
        f"{where}: expected {expected}, got {got}",
        {"path": path, "expected": expected, "got": got},
    )


class _Encoder:
    """Encodes a JSON value for Prolog. Text and objects are marked, so that no text can act as a constant."""

    def __init__(self) -> None:
        self._left = MOST_VALUES

    def value(self, value: Any, level: int) -> JsonValue:
        self._left -= 1
        if self._left < 0:
            raise _invalid("", f"at most {MOST_VALUES:,} values", "more")
        if level > MOST_LEVELS:
            raise _invalid("", f"at most {MOST_LEVELS} levels of lists and objects", "more")
        if isinstance(value, Mapping):
            return {"object": [[_unicode(str(key)), self.value(item, level + 1)] for key, item in value.items()]}
        if isinstance(value, list | tuple):
            return [self.value(item, level + 1) for item in value]
        if isinstance(value, str):
            return {"text": _unicode(value)}
        if isinstance(value, int | float) and not -_MOST_NUMBER <= value <= _MOST_NUMBER:
            return {"number": str(value)[:40]}
        if value is None or isinstance(value, bool | int | float):
            return value
        raise _invalid("", "JSON values only", type(value).__name__)


def _unicode(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise _invalid("", "valid Unicode", ascii(text[:40])) from None
    return str(text)
