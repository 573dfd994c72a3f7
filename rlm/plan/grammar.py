"""The fields of every operation in one table, for ``validate``, the reply schema and the text for a model."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
"""The form of the name of a variable."""

MAX_LABEL = 200
MAX_NEEDS = 16
MAX_NEED = 500


class Shape(enum.Enum):
    """The kinds of content that a field may have, with their words in problems."""

    VALUE = "an expression"
    TEXT = "a string or an expression"
    HANDLE = "the name of a context or an expression"
    ACTION = "an action of a context"
    ARGUMENTS = "an object of arguments"
    TOOL = "the name of a tool"
    NAME = "a name: letters, digits and _"
    SCHEMA = "a JSON Schema"
    STEPS = "a list of steps"
    PLANS = "a list of plans"
    PLAN = "a plan"
    REDUCTION = "a way to reduce"
    FAILED = '"fail" or "skip"'
    PATH = 'a path like "a.b[0]"'
    ATTEMPTS = "a number of attempts"
    LABEL = "a string"
    VALUES = "an object or a list of expressions"
    NEEDS = "a list of strings"


@dataclass(frozen=True)
class StepField:
    """A field of an operation."""

    shape: Shape
    required: bool = True


def _may(shape: Shape) -> StepField:
    return StepField(shape, required=False)


_BIND = StepField(Shape.NAME)

FIELDS: Mapping[str, Mapping[str, StepField]] = {
    "context": {
        "handle": StepField(Shape.HANDLE),
        "action": StepField(Shape.ACTION),
        "args": _may(Shape.ARGUMENTS),
        "bind": _BIND,
    },
    "model": {"prompt": StepField(Shape.TEXT), "schema": _may(Shape.SCHEMA), "bind": _BIND},
    "rlm": {"query": StepField(Shape.TEXT), "context": _may(Shape.VALUE), "plan": _may(Shape.PLAN), "bind": _BIND},
    "tool": {"name": StepField(Shape.TOOL), "args": _may(Shape.ARGUMENTS), "bind": _BIND},
    "map": {
        "over": StepField(Shape.VALUE),
        "as": StepField(Shape.NAME),
        "steps": StepField(Shape.STEPS),
        "bind": _BIND,
    },
    "reduce": {
        "over": StepField(Shape.VALUE),
        "with": StepField(Shape.REDUCTION),
        "path": _may(Shape.PATH),
        "failed": _may(Shape.FAILED),
        "separator": _may(Shape.LABEL),
        "prompt": _may(Shape.TEXT),
        "schema": _may(Shape.SCHEMA),
        "bind": _BIND,
    },
    "parallel": {"plans": StepField(Shape.PLANS), "bind": _BIND},
    "retry": {"attempts": StepField(Shape.ATTEMPTS), "steps": StepField(Shape.STEPS), "bind": _BIND},
    "checkpoint": {"label": StepField(Shape.LABEL)},
    "observe": {"values": StepField(Shape.VALUES), "needs": _may(Shape.NEEDS)},
    "final": {"value": StepField(Shape.VALUE), "schema": _may(Shape.SCHEMA)},
}
"""The fields by operation and name. ``op`` itself is not among them."""

ONLY_WITH: Mapping[str, str] = {"prompt": "model", "schema": "model", "separator": "concat"}
"""Fields of ``reduce`` that belong to one reduction only."""

ENDINGS = frozenset({"final", "observe"})
FAILED = ("fail", "skip")
