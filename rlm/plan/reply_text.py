"""The plan language in words, for a model: the operations that a frame allows and no others.

The text depends on the operations, actions and limits of a frame only. So it is the same from request to request, and
providers can cache it. The names of tools, inputs and contexts stand elsewhere in the prompt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rlm.model.plan import Frame

_HEAD = """\
# Plan
{"steps":[{"op":OP,...},...]} with these fields."""

_ENDS = {
    frozenset({"final", "observe"}): " The last step is `final` or `observe`.",
    frozenset({"final"}): " The last step is `final`.",
    frozenset({"observe"}): " The last step is `observe`.",
}

_STEPS: Mapping[str, str] = {
    "context": "context: handle, action, args. Action(args).value:",
    "model": "model: prompt, schema?. A model that sees the prompt alone; JSON by schema.",
    "rlm": "rlm: query, context?. A child that plans for itself.",
    "tool": "tool: name, args",
    "map": 'map: over, as, steps. Steps for each item, side by side; failed items are {"error":{}}.',
    "reduce": "reduce: over, with. One value of a list by",
    "parallel": 'parallel: plans. [{"steps":[]}] side by side.',
    "retry": "retry: attempts, steps",
    "checkpoint": "checkpoint: label",
    "observe": "observe: values, needs?. Shows you [E,...], then you plan on; needs bring tools.",
    "final": "final: value. The answer.",
}

_REDUCE = ' count, concat, sum, max, min, vote{model}. path? is a part of each item; failed? "skip".'

_INNER = "Steps in steps give the value of the last one."

_EXPRESSIONS = (
    'Values E: JSON, {"var":NAME,"path"?:"a.b[0]"}, {"input":NAME}, {"handle":NAME}, {"literal":JSON}, '
    '{"join":[E,...]} for one text. Strings are never filled in.'
)

_VALUES: Mapping[str, str] = {
    "peek": "text",
    "slice": "text",
    "search": "matches",
    "count": "count",
    "partition": "parts",
}
"""The most used field of the value of each action."""

_MOST_ARGUMENTS = 4
"""The most arguments of an action that the text names, from the first one on."""

_LONG: list[dict[str, Any]] = [
    {"op": "context", "handle": "context", "action": "partition", "args": {"by": "lines", "size": 500}, "bind": "cut"},
    {
        "op": "map",
        "over": {"var": "cut", "path": "parts"},
        "as": "part",
        "steps": [{"op": "model", "prompt": {"join": ["How many errors?\n", {"var": "part"}]}, "bind": "n"}],
        "bind": "all",
    },
    {"op": "reduce", "over": {"var": "all"}, "with": "sum", "bind": "total"},
    {"op": "final", "value": {"var": "total"}},
]
_LOOK: list[dict[str, Any]] = [
    {"op": "context", "handle": "context", "action": "count", "args": {"literal": "ERROR"}, "bind": "found"},
    {"op": "final", "value": {"join": ["Errors: ", {"var": "found", "path": "count"}]}},
]
_ASK: list[dict[str, Any]] = [
    {"op": "model", "prompt": "Name a prime. Only the number.", "bind": "n"},
    {"op": "final", "value": {"join": ["A prime: ", {"var": "n"}]}},
]
_SAY: list[dict[str, Any]] = [{"op": "final", "value": {"answer": 42}}]


def grammar_text(frame: Frame) -> str:
    """Return the plan language with the operations of a frame, and one example, as Markdown with a final line end."""
    ops = frame.ops
    lines = [_HEAD + _binding(ops) + _ENDS.get(ops & {"final", "observe"}, "")]
    for op, words in _STEPS.items():
        if op in ops:
            lines.append(f"- {words}{_more(op, frame)}")
    if ops & {"map", "parallel", "retry"}:
        lines.append(_INNER)
    lines.append(_EXPRESSIONS)
    example = _example(frame)
    if example:
        lines.append("Example: " + json.dumps({"steps": example}, separators=(",", ":")))
    return "\n".join(lines) + "\n"


def _binding(ops: frozenset[str]) -> str:
    without = [op for op in ("checkpoint", "observe", "final") if op in ops]
    return f" All but {', '.join(without)} have `bind`, a new name." if len(without) < len(ops) else ""


def _more(op: str, frame: Frame) -> str:
    if op == "reduce":
        return _REDUCE.replace("{model}", ", model (prompt)" if "model" in frame.ops else "")
    if op == "context":
        return " " + " ".join(_signature(name, schema) for name, schema in frame.actions.items())
    return ""


def _signature(name: str, schema: Mapping[str, Any]) -> str:
    """Return an action in short, for example ``partition(by=lines|tokens, size?) parts``."""
    needed, value = schema.get("required", ()), _VALUES.get(name)
    rows = []
    for argument, part in list(schema.get("properties", {}).items())[:_MOST_ARGUMENTS]:
        words = "=" + "|".join(map(str, part["enum"])) if "enum" in part else ""
        rows.append(f"{argument}{'' if argument in needed else '?'}{words}")
    return f"{name}({', '.join(rows)})" + (f".{value}" if value else "")


def _example(frame: Frame) -> list[dict[str, Any]]:
    """Return the first example that the operations and actions of the frame allow."""
    for steps in (_LONG, _LOOK, _ASK, _SAY):
        ops = {step["op"] for step in steps} | {inner["op"] for step in steps for inner in step.get("steps", ())}
        actions = {step["action"] for step in steps if "action" in step}
        if ops <= frame.ops and actions <= frame.actions.keys():
            return steps
    return []
