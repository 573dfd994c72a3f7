"""The plan language in one table. ``validate``, the reply schema and the text for a model are made from it.

An operation is a row of ``OPERATIONS``, a form of an expression a row of ``FORMS``, a field of the plan itself a row of
``PLAN_FIELDS``. A new row is in the check of plans, in the schema and in the text at once. A new ``Shape`` needs one
check in ``rlm.plan.fields`` and one row in ``rlm.plan.reply_schema``. ``tests/plan/test_agreement.py`` generates plans
from the text, and holds text, schema, check and run together.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
"""The form of the name of a variable."""

OFFERED_NAME = "[a-z_][a-z0-9_]*"
"""The form of a name that a model is offered."""

MAX_LABEL = 200
MAX_NEEDS = 16
MAX_NEED = 500

OFFERED_NEEDS = 4
"""The most needs that a model is offered."""

OFFERED_STEPS = 8
"""The most steps of a plan, or of a body, that a model is offered."""

OFFERED_LEVELS = 2
"""The most levels of steps in steps that a model is offered, whatever the frame allows."""

FAILED = ("fail", "skip")


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
    NOTE = "a text"
    VALUES = "an object or a list of expressions"
    NEEDS = "a list of strings"
    VARIABLE = "the name of a variable"
    INPUT = "the name of an input"
    CONTEXT = "the name of a context"
    PARTS = "a list of parts"
    JSON = "any JSON"
    EXPRESSION = "a JMESPath expression"
    FLAG = "true"


NOTATION: Mapping[Shape, str] = {
    Shape.VARIABLE: "NAME",
    Shape.INPUT: "NAME",
    Shape.CONTEXT: "NAME",
    Shape.PATH: "PATH",
    Shape.PARTS: "[E,...]",
    Shape.JSON: "JSON",
    Shape.NOTE: "THOUGHTS",
    Shape.STEPS: '[{"op":OP,...},...]',
}
"""The notation of a shape in the text for a model, for the fields that are written as JSON there."""


@dataclass(frozen=True)
class StepField:
    """A field of an operation, of a form or of a plan.

    Args:
        shape: the content of the field.
        required: whether it must be there.
        offered: whether a model is offered it, in the text and in the schema. Other fields are for a host's plans.
        choices: the fixed words that a model is offered; empty where any content of the shape fits.
        beside: an operation without which the field is of no use, and not offered; empty for none.
    """

    shape: Shape
    required: bool = True
    offered: bool = True
    choices: tuple[str, ...] = ()
    beside: str = ""


Fields = Mapping[str, StepField]


@dataclass(frozen=True)
class Operation:
    """An operation: its fields apart from ``op``, and its words in the text for a model.

    ``$actions``, ``$reductions``, ``$attempts``, ``$needs`` and ``$pack`` in the words are filled in from
    the frame and the limits of this table. ``offered`` is whether a model is offered the operation; others are for
    plans of hosts.
    """

    words: str
    fields: Fields = field(default_factory=dict)
    is_ending: bool = False
    offered: bool = True


def _may(shape: Shape, *choices: str) -> StepField:
    return StepField(shape, required=False, choices=choices)


def _host(shape: Shape) -> StepField:
    """Return an optional field that only plans of hosts have."""
    return StepField(shape, required=False, offered=False)


_BIND = StepField(Shape.NAME)

OPERATIONS: Mapping[str, Operation] = {
    "context": Operation(
        "Action(args).field of its value: $actions. A pattern is RE2: no look-around, no back-references.",
        {
            "handle": StepField(Shape.HANDLE),
            "action": StepField(Shape.ACTION),
            "args": _may(Shape.ARGUMENTS),
            "bind": _BIND,
        },
    ),
    "model": Operation(
        "A model that sees the prompt alone; JSON by schema.",
        {"prompt": StepField(Shape.TEXT), "schema": _may(Shape.SCHEMA), "bind": _BIND},
    ),
    "rlm": Operation(
        "A child that plans for itself.",
        {"query": StepField(Shape.TEXT), "context": _may(Shape.VALUE), "plan": _host(Shape.PLAN), "bind": _BIND},
    ),
    "tool": Operation(
        'optional: a failure is bound as {"error":{}}.',
        {"name": StepField(Shape.TOOL), "args": _may(Shape.ARGUMENTS), "optional": _may(Shape.FLAG), "bind": _BIND},
    ),
    "let": Operation(
        "JMESPath over NAMEs, like rows[?n > `3`].id; also zip, group_by, count_by, unique.",
        {"expr": StepField(Shape.EXPRESSION), "bind": _BIND},
    ),
    "map": Operation(
        'Steps for each item, side by side; failed items are {"error":{}}.$pack',
        {
            "over": StepField(Shape.VALUE),
            "as": StepField(Shape.NAME),
            "steps": StepField(Shape.STEPS),
            "pack": StepField(Shape.FLAG, required=False, beside="model"),
            "bind": _BIND,
        },
    ),
    "reduce": Operation(
        "One value of a list by $reductions. path is a part of each item.",
        {
            "over": StepField(Shape.VALUE),
            "with": StepField(Shape.REDUCTION),
            "path": _may(Shape.PATH),
            "failed": _may(Shape.FAILED, "skip"),
            "separator": _host(Shape.LABEL),
            "prompt": _may(Shape.TEXT),
            "schema": _host(Shape.SCHEMA),
            "bind": _BIND,
        },
    ),
    "parallel": Operation(
        '[{"steps":[]}] side by side.', {"plans": StepField(Shape.PLANS), "bind": _BIND}, offered=False
    ),
    "retry": Operation(
        "Steps until they succeed, at most $attempts times.",
        {"attempts": StepField(Shape.ATTEMPTS), "steps": StepField(Shape.STEPS), "bind": _BIND},
    ),
    "check": Operation(
        "JMESPath; if it is not true, the plan ends and shows you its NAMEs.",
        {"expr": StepField(Shape.EXPRESSION)},
    ),
    "checkpoint": Operation("", {"label": StepField(Shape.LABEL)}, offered=False),
    "observe": Operation(
        "Shows you [E,...] ([] beside needs); up to $needs needs bring tools.",
        {"values": StepField(Shape.VALUES), "needs": _may(Shape.NEEDS)},
        is_ending=True,
    ),
    "final": Operation(
        "The answer.",
        {"value": StepField(Shape.VALUE), "assumptions": _may(Shape.NOTE), "schema": _host(Shape.SCHEMA)},
        is_ending=True,
    ),
}
"""Every operation with its fields. ``op`` itself is not among them. The order is that of the text."""

FIELDS: Mapping[str, Fields] = {op: operation.fields for op, operation in OPERATIONS.items()}
"""The fields by operation and name."""

PLAN_FIELDS: Fields = {"note": _may(Shape.NOTE), "steps": StepField(Shape.STEPS)}
"""The fields of a plan. A ``note`` is a place to think; it does nothing."""

HOST_ACTIONS = frozenset({"info", "peek"})
"""Actions of a context that a model is not offered: an overview of each context stands in its request."""

HOST_ARGUMENTS: Mapping[str, frozenset[str]] = {
    "search": frozenset({"case"}),
    "count": frozenset({"case"}),
    "partition": frozenset({"overlap", "level", "max_parts"}),
}
"""Arguments of actions that a model is not offered. ``(?i)`` in a pattern folds case."""


def offered_actions(actions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the actions that a model is offered, with the schema of their offered arguments."""
    offered = {}
    for name, schema in actions.items():
        if name not in HOST_ACTIONS:
            hidden = HOST_ARGUMENTS.get(name, frozenset())
            kept = {key: part for key, part in schema.get("properties", {}).items() if key not in hidden}
            offered[name] = {**schema, "properties": kept}
    return offered


FORMS: Mapping[str, Fields] = {
    "var": {"var": StepField(Shape.VARIABLE), "path": _may(Shape.PATH)},
    "input": {"input": StepField(Shape.INPUT), "path": _may(Shape.PATH)},
    "join": {"join": StepField(Shape.PARTS)},
    "handle": {"handle": StepField(Shape.CONTEXT)},
    "literal": {"literal": StepField(Shape.JSON)},
}
"""The forms of expressions: the key that marks a form, with all the fields that the form may have."""

ONLY_WITH: Mapping[str, str] = {"prompt": "model", "schema": "model", "separator": "concat"}
"""Fields of ``reduce`` that belong to one reduction only."""

OFFERED: Mapping[str, Operation] = {op: operation for op, operation in OPERATIONS.items() if operation.offered}
"""The operations that a model is offered, in the text and in the schema."""

ENDINGS = frozenset(op for op, operation in OPERATIONS.items() if operation.is_ending)

BODIES = frozenset(
    op for op, fields in FIELDS.items() if any(each.shape in (Shape.STEPS, Shape.PLANS) for each in fields.values())
)
"""The operations with steps in them."""
