"""Execute a tool call of the host's own loop: ``rlm.execute``, and ``rlm.tool_message`` for the next request."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import anyio

from rlm.boundary import boundary
from rlm.catalog.catalog import Catalog
from rlm.compiler.tool_calls import arguments_of, name_of, resolved
from rlm.compiler.view import CompiledContext
from rlm.errors import ConfigurationError, RlmError, ToolError
from rlm.model.arguments import instance
from rlm.sync import run_sync
from rlm.tools.execute import execute as execute_tool
from rlm.tools.grant import Grant
from rlm.tools.outcome import Status, ToolOutcome, failure_of
from rlm.tools.registry import Registry
from rlm.tools.tool import Tool

TIME_LIMIT = 30.0
"""Seconds that a call may take, as for the tool calls of a run's child."""


def _refused(problem: RlmError) -> ToolOutcome:
    return ToolOutcome(tool="", status=Status.FAILED, error=problem.to_dict())


@boundary("aexecute", _refused)
async def aexecute(
    source: CompiledContext | Catalog | Registry | Iterable[Any],
    call: Any,
    *,
    grant: Grant | None = None,
    tools: Iterable[Any] | Registry = (),
    time_limit: float = TIME_LIMIT,
) -> ToolOutcome:
    """Execute one tool call of a model, and return the outcome.

    A view executes only what it shows: the call of any other name is an outcome with ``tool_not_visible``. Every
    failure is an outcome with an ``error``, so that a loop can hand it to the model. For example::

        view = rlm.compile(catalog, messages=messages, policy=policy)
        reply = client.chat.completions.create(model="gpt-5-mini", **view.messages("openai"))
        for call in reply.choices[0].message.tool_calls or ():
            outcome = await rlm.aexecute(view, call)
            messages.append(rlm.tool_message(call, outcome))

    Args:
        source: a view; or a catalog, a registry or a list of tools: then any of its tools may be called.
        call: the call, as an object of the provider's SDK or as a mapping; for other sources also a name alone.
        grant: what the call may do. Without it: the capabilities of the view's policy, or the tools of the host.
        tools: further tools, for units of the view without a function in its catalog.
        time_limit: seconds.

    Raises:
        ConfigurationError: ``not_a_tool_source``, ``invalid_grant``, ``not_registered`` for a tool without a function.
    """
    try:
        tool, arguments = _resolved(source, call, tools)
    except ToolError as problem:
        return ToolOutcome(tool=_name(call), status=Status.REFUSED, error=failure_of(problem))
    deadline = anyio.current_time() + _seconds(time_limit)
    return await execute_tool(tool, arguments, _grant(source, grant), deadline=deadline)


@boundary("execute", _refused)
def execute(source: Any, call: Any, **options: Any) -> ToolOutcome:
    """As ``aexecute``, for synchronous callers. It also works inside a running event loop, such as a notebook."""
    return run_sync(aexecute, source, call, **options)


def _resolved(source: Any, call: Any, tools: Any) -> tuple[Tool, Any]:
    """Return the tool that a call names, and its arguments. Raises: ToolError; ConfigurationError."""
    more = tools if isinstance(tools, Registry) else Registry(tools)
    if isinstance(source, CompiledContext):
        unit, arguments = source.resolve(call), source.arguments(call)
        found = _by_id((more, source._material.catalog.registry), unit)
        if found is None:
            what = f"{unit} has no function here: give it in tools=, or register it with catalog.add_tools"
            raise ConfigurationError("not_registered", what, {"tool": unit})
        return found, arguments
    if isinstance(source, Catalog):
        registries: tuple[Registry, ...] = (more, source.registry)
    elif isinstance(source, Registry):
        registries = (more, source)
    elif isinstance(source, Iterable) and not isinstance(source, str | bytes | Mapping):
        registries = (more, Registry(source))
    else:
        kind = type(source).__name__
        what = f"execute: a view, a catalog, a registry or a list of tools is expected, not {kind}"
        raise ConfigurationError("not_a_tool_source", what)
    names = {name: tool for registry in reversed(registries) for tool in registry for name in (tool.name, tool.id)}
    id = resolved(name_of(call), {name: tool.id for name, tool in names.items()})
    arguments = {} if isinstance(call, str) else arguments_of(call)
    return next(tool for tool in names.values() if tool.id == id), arguments


def _by_id(registries: Iterable[Registry], id: str) -> Tool | None:
    return next((tool for registry in registries for tool in registry if tool.id == id), None)


def _grant(source: Any, grant: Any) -> Grant:
    if grant is None:
        return Grant.of(source.policy) if isinstance(source, CompiledContext) else Grant()
    if not isinstance(grant, Grant):
        raise ConfigurationError("invalid_grant", f"grant: a Grant is expected, not {type(grant).__name__}")
    return grant


def _seconds(time_limit: Any) -> float:
    if isinstance(time_limit, bool) or not isinstance(time_limit, int | float) or not 0 < time_limit < float("inf"):
        raise ConfigurationError("invalid_option", f"time_limit: seconds above 0 are expected, not {time_limit!r}")
    return float(time_limit)


def _name(call: Any) -> str:
    try:
        return name_of(call)
    except ToolError:
        return ""


@boundary("tool_message")
def tool_message(call: Any, outcome: ToolOutcome) -> dict[str, Any]:
    """Return the message that tells a model the outcome of its call, in the form of the call.

    * OpenAI chat completions: ``{"role": "tool", "tool_call_id": ..., "content": ...}``;
    * OpenAI Responses: ``{"type": "function_call_output", "call_id": ..., "output": ...}``;
    * Anthropic: a block ``{"type": "tool_result", "tool_use_id": ..., "content": ...}`` for the ``content`` of a
      message of the user, with ``is_error`` after a failure.

    The content is the text or the JSON of the value, or ``{"error": {...}}`` with ``kind`` and ``message``.

    Args:
        call: the call that was executed.
        outcome: its outcome.

    Raises:
        ConfigurationError: ``invalid_option``; ``no_call_id`` for a call without an id.
    """
    instance("outcome", outcome, ToolOutcome)
    text = _content(outcome)
    kind = _field(call, "type")
    if _field(call, "function") is not None:
        return {"role": "tool", "tool_call_id": _id(call, "id"), "content": text}
    if kind == "function_call":
        return {"type": "function_call_output", "call_id": _id(call, "call_id"), "output": text}
    block = {"type": "tool_result", "tool_use_id": _id(call, "id"), "content": text}
    return block if outcome.ok else {**block, "is_error": True}


def _content(outcome: ToolOutcome) -> str:
    if outcome.ok:
        value = outcome.value
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    error = outcome.error or {}
    return json.dumps({"error": {"kind": error.get("kind"), "message": error.get("message")}}, ensure_ascii=False)


def _field(call: Any, name: str) -> Any:
    return call.get(name) if isinstance(call, Mapping) else getattr(call, name, None)


def _id(call: Any, name: str) -> str:
    id = _field(call, name)
    if not isinstance(id, str) or not id:
        raise ConfigurationError("no_call_id", f"tool_message: the call has no {name!r}, which its result must name")
    return id
