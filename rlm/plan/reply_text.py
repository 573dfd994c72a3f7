"""The plan language in words, for a model: the operations that a frame allows and no others.

The text depends on the operations, actions and limits of a frame only. So it is the same from request to request, and
providers can cache it. The names of tools, inputs and contexts stand elsewhere in the prompt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from string import Template
from typing import Any

from rlm.model.plan import REDUCTIONS, Frame
from rlm.plan.grammar import (
    BODIES,
    FORMS,
    NOTATION,
    OFFERED,
    OFFERED_LEVELS,
    OFFERED_NEEDS,
    OFFERED_STEPS,
    ONLY_WITH,
    OPERATIONS,
    PLAN_FIELDS,
    Fields,
    offered_actions,
)

_VALUES: Mapping[str, str] = {
    "peek": "text",
    "slice": "text",
    "search": "matches",
    "count": "count",
    "verify": "found",
    "partition": "parts",
}
"""The most used field of the value of each action."""

Steps = list[dict[str, Any]]

_MATERIAL: Steps = [
    {
        "op": "context",
        "handle": "context",
        "action": "partition",
        "args": {"by": "tokens", "size": 6000},
        "bind": "cut",
    },
    {
        "op": "map",
        "over": {"var": "cut", "path": "parts"},
        "as": "part",
        "steps": [
            {
                "op": "model",
                "prompt": {"join": ["Which complaints?\n", {"var": "part"}]},
                "schema": {"type": "array"},
                "bind": "found",
            }
        ],
        "pack": True,
        "bind": "all",
    },
    {"op": "observe", "values": [{"var": "all"}]},
]
_COUNT: Steps = [
    {"op": "context", "handle": "context", "action": "count", "args": {"literal": "ERROR"}, "bind": "found"},
    {"op": "final", "value": {"errors": {"var": "found", "path": "count"}}},
]
_CALL: Steps = [
    {
        "op": "retry",
        "attempts": 3,
        "steps": [{"op": "tool", "name": "TOOL", "args": {"ARGUMENT": "x"}, "bind": "row"}],
        "bind": "found",
    },
    {
        "op": "model",
        "prompt": {"join": ["Which state?\n", {"var": "found"}]},
        "schema": {"enum": ["open", "closed"]},
        "bind": "state",
    },
    {"op": "final", "value": {"state": {"var": "state"}}},
]
_ASK: Steps = [
    {"op": "model", "prompt": "Name a prime.", "schema": {"type": "integer"}, "bind": "n"},
    {"op": "final", "value": {"prime": {"var": "n"}}},
]
_SAY: Steps = [{"op": "final", "value": {"answer": 42}}]

EXAMPLES: tuple[Steps, ...] = (_MATERIAL, _COUNT, _ASK, _SAY)
"""The examples, the best first; a text has the first one that its frame allows, and ``_CALL`` where it has tools."""


def grammar_text(frame: Frame) -> str:
    """Return the plan language with the operations of a frame, and an example, as Markdown with a final line end."""
    lines = [_head(frame)]
    lines += [f"- {op}: {_operation(op, frame)}" for op in OFFERED if op in frame.ops]
    if frame.ops & BODIES:
        lines.append(f"Steps in steps, at most {_levels(frame)} levels, give the value of the last one.")
    lines.append(_expressions())
    for steps in _examples(frame):
        lines.append("Example: " + json.dumps({"steps": steps}, separators=(",", ":")))
    return "\n".join(lines) + "\n"


def _head(frame: Frame) -> str:
    """Return the form of a plan, its length and ending, and the rule of ``bind``."""
    ops = [op for op in OFFERED if op in frame.ops]
    endings = " or ".join(f"`{op}`" for op in reversed(ops) if OFFERED[op].is_ending)
    most = min(OFFERED_STEPS, frame.limits.max_steps)
    head = f"# Plan\n{_object(PLAN_FIELDS)}: at most {most} steps, the last {endings}."
    others = [op for op in ops if not OFFERED[op].is_ending]
    without = "".join(f" but {op}" for op in others if "bind" not in OFFERED[op].fields)
    return f"{head} All others{without} have `bind`, a new NAME of a-z, 0-9, _." if others else head


def _operation(op: str, frame: Frame) -> str:
    """Return the fields of an operation that a model is offered, and its words."""
    operation = OPERATIONS[op]
    names = [
        name + ("" if field.required else "?") + ("=" + "|".join(field.choices) if field.choices else "")
        for name, field in operation.fields.items()
        if field.offered
        and (not field.beside or field.beside in frame.ops)
        and name != "bind"
        and (field.required or name not in ONLY_WITH or op != "reduce")
    ]
    words = Template(operation.words).substitute(_parts(frame))
    return ", ".join(names) + (f". {words}" if words else "")


def _parts(frame: Frame) -> dict[str, Any]:
    """Return the parts of the words of operations that depend on the frame."""
    reductions = [_reduction(kind) for kind in REDUCTIONS if kind != "model" or "model" in frame.ops]
    return {
        "actions": " ".join(_signature(name, schema) for name, schema in offered_actions(frame.actions).items()),
        "reductions": ", ".join(reductions),
        "attempts": frame.limits.max_attempts,
        "needs": OFFERED_NEEDS,
        "pack": " pack, with one model step: many items a request." if "model" in frame.ops else "",
    }


def _levels(frame: Frame) -> int:
    return min(OFFERED_LEVELS, frame.limits.max_nesting)


def _reduction(kind: str) -> str:
    """Return a way to reduce with the fields that it alone has, for example ``model (prompt)``."""
    fields = OPERATIONS["reduce"].fields
    own = [name for name, only in ONLY_WITH.items() if only == kind and fields[name].offered]
    return f"{kind} ({', '.join(own)})" if own else kind


def _signature(name: str, schema: Mapping[str, Any]) -> str:
    """Return an action in short, for example ``partition(by=lines|tokens, size?).parts``."""
    needed, value = schema.get("required", ()), _VALUES.get(name)
    rows = []
    for argument, part in schema.get("properties", {}).items():
        words = "=" + "|".join(map(str, part["enum"])) if "enum" in part else ""
        rows.append(f"{argument}{'' if argument in needed else '?'}{words}")
    return f"{name}({', '.join(rows)})" + (f".{value}" if value else "")


def _expressions() -> str:
    forms = ", ".join(map(_object, FORMS.values()))
    return (
        f'Values E: JSON with E in it, {forms}. PATH is like "a.b[0]"; a join is one text. Strings are never filled in.'
    )


def _object(fields: Fields) -> str:
    """Return an object of fields, for example ``{"var":NAME,"path"?:PATH}``."""
    rows = [f'"{name}"{"" if field.required else "?"}:{NOTATION[field.shape]}' for name, field in fields.items()]
    return "{" + ",".join(rows) + "}"


def _examples(frame: Frame) -> list[Steps]:
    """Return the first example that the frame allows; with a tool also the example of a call."""
    fitting = [steps for steps in EXAMPLES if _allows(frame, steps)][:1]
    if not _allows(frame, _CALL):
        return fitting
    return [*(steps for steps in fitting if steps in (_MATERIAL, _COUNT)), _CALL]


def _allows(frame: Frame, steps: Steps) -> bool:
    ops = {step["op"] for step in steps} | {inner["op"] for step in steps for inner in step.get("steps", ())}
    actions = {step["action"] for step in steps if "action" in step}
    return ops <= frame.ops and actions <= frame.actions.keys()
