"""The runtime's own tools of the ``tools`` loop, and the plan that a native call stands for.

The runtime's tools are pinned units of the host, each behind the capability of its operation. So the rules decide which
of them a request shows. Every call becomes a small plan: the same check, budget, authority, trace and replay hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from rlm.agent.roles import CONTEXT, MODEL, PLAN, RECURSE, TOOL
from rlm.context.arguments import ACTIONS
from rlm.errors import ToolError
from rlm.model.unit import Activation, Provenance, Unit

PREFIX = "tool:rlm/"
"""The beginning of the ids of the runtime's tools."""

RUN_PLAN, FIND_TOOLS = f"{PREFIX}run_plan", f"{PREFIX}find_tools"
ASK_MODEL, ASK_RLM = f"{PREFIX}ask_model", f"{PREFIX}ask_rlm"
ACTION = f"{PREFIX}context_"

OFFERED_ACTIONS = ("search", "slice", "count", "verify", "partition", "info")
"""The context actions that are tools; a plan may use all."""

Steps = list[dict[str, Any]]

_PRIORITY = 1_000
_CONTEXT = {"type": "string", "description": "name or handle of a context"}


def context_tools(names: tuple[str, ...]) -> tuple[Unit, ...]:
    """Return the tools that look into contexts and hand them to models. ``names`` are the contexts not shown whole."""
    if not names:
        return ()
    actions = [
        _unit(
            f"{ACTION}{action}",
            f"Of a context: {ACTIONS[action].summary}.",
            _with_context(ACTIONS[action].schema, names),
            CONTEXT,
        )
        for action in OFFERED_ACTIONS
    ]
    prompt = {"type": "string", "description": "all that it needs to know: it sees nothing else"}
    some = {"type": "array", "items": _CONTEXT, "description": "contexts or parts that it reads whole"}
    query = {"type": "string", "description": "the sub-task"}
    asks = [
        _unit(
            ASK_MODEL,
            "Ask a model about a text that is too long for you.",
            _schema(prompt=prompt, contexts=some),
            MODEL,
        ),
        _unit(
            ASK_RLM, "Let a child with tools of its own do a sub-task.", _schema(query=query, context=_CONTEXT), RECURSE
        ),
    ]
    return (*actions, *asks)


@lru_cache(maxsize=64)
def plan_tool(grammar: str) -> Unit:
    """Return the tool that runs a plan; ``grammar`` is the text of the plan language."""
    steps = {"type": "array", "items": {"type": "object"}, "description": "the steps of the plan"}
    text = f"Run many calls side by side, or one after the other, as one plan over tools shown here.\n{grammar}"
    return _unit(RUN_PLAN, text, _schema(steps=steps), PLAN)


@lru_cache(maxsize=1)
def finding_tool() -> Unit:
    """Return the tool that states needs."""
    needs = {"type": "array", "items": {"type": "string"}, "maxItems": 4, "description": "each in a few words"}
    return _unit(FIND_TOOLS, "Bring further tools for what you need to do.", _schema(needs=needs), TOOL)


def body_of(id: str, name: str, arguments: Mapping[str, Any], contexts: tuple[str, ...]) -> Steps:
    """Return the steps of a call. Their value is ``{"ok": value}``.

    Args:
        id: the unit that the call names.
        name: the name of the tool in a plan.
        arguments: the arguments, by the tool's own names.
        contexts: the contexts; a call without a context means the only one.

    Raises:
        ToolError: ``invalid_arguments``.
    """
    if not id.startswith(PREFIX):
        return _bound({"op": "tool", "name": name, "args": _literals(arguments)})
    rest = dict(arguments)
    if id == RUN_PLAN:
        return _wrapped(name, rest)
    if id == ASK_MODEL:
        handles = [{"handle": each} for each in rest.get("contexts") or []]
        return _bound({"op": "model", "prompt": {"join": [_text(name, rest, "prompt"), *handles]}})
    context = rest.pop("context", None) or (contexts[0] if len(contexts) == 1 else None)
    if id == ASK_RLM:
        step = {"op": "rlm", "query": {"literal": _text(name, rest, "query")}}
        return _bound(step | ({"context": {"handle": context}} if context is not None else {}))
    if context is None:
        raise ToolError("invalid_arguments", f"{name}: name the context, one of {', '.join(contexts)}", {"tool": name})
    return _bound({"op": "context", "handle": context, "action": id.removeprefix(ACTION), "args": _literals(rest)})


def _bound(step: dict[str, Any]) -> Steps:
    return [{**step, "bind": "result"}, {"op": "final", "value": {"ok": {"var": "result"}}}]


def _wrapped(name: str, arguments: dict[str, Any]) -> Steps:
    """Return the steps of a model's plan, whose final value is under ``ok``."""
    steps = arguments.get("steps")
    if not isinstance(steps, list) or not steps or not all(isinstance(step, dict) for step in steps):
        raise ToolError("invalid_arguments", f"{name}: `steps` must be a list of steps", {"tool": name})
    *first, last = steps
    return [*first, {**last, "value": {"ok": last["value"]}} if "value" in last else last]


def _text(name: str, arguments: Mapping[str, Any], field: str) -> str:
    value = arguments.get(field)
    if not isinstance(value, str) or not value.strip():
        raise ToolError("invalid_arguments", f"{name}: `{field}` must be a text", {"tool": name})
    return value


def _literals(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {key: {"literal": value} for key, value in arguments.items()}


def _with_context(schema: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    required = [*(["context"] if len(names) > 1 else []), *schema.get("required", ())]
    return {**schema, "properties": {"context": _CONTEXT, **schema["properties"]}, "required": required}


def _schema(**properties: Any) -> dict[str, Any]:
    optional = ("contexts", "context")
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _unit(id: str, description: str, schema: dict[str, Any], capability: str) -> Unit:
    return Unit(
        id,
        description=description,
        schema=schema,
        activation=Activation.ALWAYS,
        priority=_PRIORITY,
        requires_capability=capability,
        provenance=Provenance(source="runtime"),
    )
