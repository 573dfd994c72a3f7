"""One question: compile, send, answer. No plan, no recursion, no execution of what the model asks for."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

import anyio

from rlm.compiler.compile import acompile
from rlm.compiler.compile import compile as compile_view
from rlm.errors import ConfigurationError, ProviderError, RlmError, ToolError, did_you_mean
from rlm.model.policy import DEFAULT_RESERVE_OUTPUT, Policy
from rlm.providers import resolve
from rlm.providers.base import Provider, ProviderReply, ProviderRequest, ToolCall, Wire
from rlm.runtime import gate
from rlm.runtime.answer import Answer, AnsweredCall, Projection
from rlm.sync import run_sync

if TYPE_CHECKING:
    from rlm.catalog.catalog import Catalog
    from rlm.compiler.view import CompiledContext

DEFAULT_TIME_LIMIT = 120.0
OUTPUT_SHARE = 4
"""Where nobody says how much a reply may take, it gets the policy's reserve, but at most one part in four of the
model's window."""

NOT_OPTIONS = frozenset({"compile_options", "pack", "text"})

ToolPlace = Literal["native", "text"]


async def aask(
    query: str,
    catalog: Catalog,
    *,
    model: str | Provider,
    policy: Policy | None = None,
    tools: ToolPlace | None = None,
    schema: Mapping[str, Any] | None = None,
    max_output_tokens: int | None = None,
    temperature: float | None = None,
    seed: int | None = None,
    time_limit: float = DEFAULT_TIME_LIMIT,
    **compile_options: Any,
) -> Answer:
    """Compile ``query`` against ``catalog``, send the one request that comes out, and return the answer.

    Args:
        model: ``"openai:..."``, ``"openrouter:vendor/model"``, ``"local"``, ``"local:FILE.gguf"``,
            ``"http://host:port/v1#model"`` or a provider.
        policy: the host's policy; a window that the provider knows narrows it.
        tools: show tools in the provider's own field (``native``) or in the ``text``; default: native, but text for
            the local model, whose template has no place for them.
        schema: a JSON Schema that the reply's text must follow, where the provider can enforce one.
        max_output_tokens: tokens for the reply; default: the policy's ``reserve_output``, at most a quarter of the
            model's window.
        time_limit: seconds for everything, the start of a local model included.
        compile_options: further options of ``rlm.compile``.

    Returns: an Answer; what the provider or the line did wrong is its ``error``, with ``status == "failed"``.

    Raises: ConfigurationError, CompileError (nothing was sent then), and ProviderError ``local_missing`` or
    ``model_missing`` where the model that was named cannot be there.
    """
    _check_options(policy, tools, time_limit, compile_options)
    provider = resolve(model)
    tools = tools or ("text" if provider.name == "local" else "native")
    deadline = anyio.current_time() + time_limit
    window, failure = await _window(provider, deadline)
    policy, most = _fitted(policy or Policy(), window, max_output_tokens)
    view = await acompile(catalog, query, policy=policy, tools=tools, **compile_options)
    wire: Wire = provider.wire if tools == "native" else "text"
    request = ProviderRequest(
        model=provider.model,
        parts=view.messages(wire),
        max_output_tokens=most,
        temperature=temperature,
        seed=seed,
        response_format=dict(schema) if schema is not None else None,
    )
    sent: list[gate.Sent] = []
    reply: ProviderReply | None = None
    if failure is None:
        try:
            reply = await gate.send(provider, request, deadline=deadline, record=sent.append)
        except ProviderError as problem:
            failure = problem
    return _answer(provider, view, sent[0].digest if sent else None, reply, failure)


def ask(query: str, catalog: Catalog, *, model: str | Provider, **options: Any) -> Answer:
    """As ``aask``, for callers that wait; it works inside a running event loop (a notebook) too."""
    return run_sync(aask, query, catalog, model=model, **options)


def _check_options(policy: object, tools: str | None, time_limit: float, options: Mapping[str, Any]) -> None:
    if not isinstance(policy, Policy | None):
        raise ConfigurationError("not_a_policy", f"a Policy is wanted, not {type(policy).__name__}")
    if tools is not None and tools not in get_args(ToolPlace):
        raise ConfigurationError("invalid_option", f"tools must be 'native' or 'text', not {tools!r}")
    if not 0 < time_limit < math.inf:
        raise ConfigurationError("invalid_time_limit", f"time_limit must be seconds, more than 0: {time_limit!r}")
    known = {*inspect.signature(aask).parameters, *inspect.signature(compile_view).parameters} - NOT_OPTIONS
    for name in options:
        if name not in known:
            raise ConfigurationError("unknown_option", f"ask has no option {name!r}{did_you_mean(name, known)}")


async def _window(provider: Provider, deadline: float) -> tuple[int | None, ProviderError | None]:
    """The provider's window in tokens, or why it cannot be had (a local model that does not start)."""
    with anyio.CancelScope(deadline=deadline):
        try:
            return await provider.window(), None
        except ProviderError as problem:
            return None, problem
    return None, ProviderError(
        "timeout",
        "the deadline passed before the provider was ready",
        {"source": "deadline", "provider": provider.name},
    )


def _fitted(policy: Policy, window: int | None, most: int | None) -> tuple[Policy, int]:
    """The policy with the window and the output reserve of this request, and the tokens that a reply may take."""
    given = {name: getattr(policy, name) for name in policy.model_fields_set}
    room = policy.window if window is None else min(window, given.get("window", window))
    if most is None:
        most = given.get("reserve_output", min(DEFAULT_RESERVE_OUTPUT, room // OUTPUT_SHARE))
    reserve = max(most, given.get("reserve_output", 0))
    if (room, reserve) == (policy.window, policy.reserve_output):
        return policy, most
    return Policy(**{**given, "window": room, "reserve_output": reserve}), most


def _answer(
    provider: Provider,
    view: CompiledContext,
    digest: str | None,
    reply: ProviderReply | None,
    failure: ProviderError | None,
) -> Answer:
    shown = Projection(fingerprint=view.fingerprint, active_units=view.active, tool_count=len(view.callable))
    if reply is None:
        error = failure.to_dict() if failure else None
        return Answer(
            status="failed",
            model=provider.model,
            prompt_projection=shown,
            request_digest=digest,
            error=error,
            view=view,
        )
    return Answer(
        status="ok",
        text=reply.text,
        tool_calls=tuple(_resolved(view, call) for call in reply.tool_calls),
        finish_reason=reply.finish_reason,
        usage=reply.usage,
        model=reply.model or provider.model,
        prompt_projection=shown,
        request_digest=digest,
        view=view,
    )


def _resolved(view: CompiledContext, call: ToolCall) -> AnsweredCall:
    """The call with the unit that it means; refused where that is not visible or the arguments are no object."""
    unit, arguments, error = None, {}, None
    try:
        unit = view.resolve(call)
        arguments = _arguments(call)
    except RlmError as problem:
        unit, error = None, problem.to_dict()
    return AnsweredCall(id=call.id, name=call.name, arguments=arguments, unit=unit, error=error)


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        value = json.loads(call.arguments)
    except (ValueError, RecursionError) as problem:
        reason = str(problem)
    else:
        if isinstance(value, dict):
            return value
        reason = f"expected an object, got {type(value).__name__}"
    raise ToolError(
        "invalid_arguments", f"{call.name}: {reason}", {"tool": call.name, "arguments": call.arguments[:500]}
    )
