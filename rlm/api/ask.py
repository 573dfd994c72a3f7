"""One question: compile, send, answer. No plan, no recursion, no execution of what the model asks for."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

import anyio

from rlm.boundary import boundary, host_code
from rlm.compiler.compile import ELSEWHERE, acompile, checked_place, checked_policy
from rlm.errors import ConfigurationError, ProviderError, RlmError, did_you_mean
from rlm.model.arguments import mapping
from rlm.model.message import in_form
from rlm.model.policy import DEFAULT_RESERVE_OUTPUT, Policy
from rlm.plan.reply_json import material_of
from rlm.providers import KEY_HINT, resolve
from rlm.providers.base import Provider, ProviderReply, ProviderRequest, ToolCall, Wire
from rlm.sending import gate
from rlm.sending.gate import policy_for_window
from rlm.sending.incomplete import unfinished
from rlm.sending.results import Answer, AnsweredCall, PromptProjection
from rlm.sync import run_sync

if TYPE_CHECKING:
    from rlm.catalog.catalog import Catalog
    from rlm.compiler.view import CompiledContext
    from rlm.model.message import Message
    from rlm.model.turn import Preselected
    from rlm.model.unit import Unit
    from rlm.similarity.sensor import Sensor

P = ParamSpec("P")
T = TypeVar("T")

DEFAULT_TIME_LIMIT = 120.0
LOCAL_OUTPUT = 256
"""Tokens, for a local model: on a processor each takes a while, and a small model that does not find its end would
go on for minutes."""

ToolPlace = Literal["native", "text"]

SHOWN_AS_THEY_ARE = ("reply_cut", "reply_unfinished")
"""Kinds of incomplete replies whose text is an answer all the same: ``finish_reason`` says that it is not whole. What a
filter held back, a model refused, or that holds nothing is a failure."""


_ELSEWHERE = {
    **{name: words for name, words in ELSEWHERE.items() if name not in ("model", "query")},
    "api_key": f"a {KEY_HINT}",
}
"""Options that people give to a question, and where they belong."""


def suggesting(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """The same function, which answers a misspelt option with the right one."""
    known = inspect.signature(function).parameters

    @wraps(function)
    async def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        for name in kwargs:
            if name not in known:
                raise ConfigurationError("unknown_option", f"ask has no option {name!r}{did_you_mean(name, known)}")
        return await function(*args, **kwargs)

    return checked


def waiting(function: Callable[P, Coroutine[Any, Any, T]], name: str) -> Callable[P, T]:
    """A coroutine function for callers that wait, under another name: same parameters, same documentation."""

    @wraps(function)
    def wait(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_sync(function, *args, **kwargs)

    wait.__name__ = wait.__qualname__ = name
    return wait


def _defect(problem: RlmError) -> Answer:
    return Answer(status="failed", model="", error=problem.to_dict())


@boundary("ask", _defect, _ELSEWHERE)
@suggesting
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
    messages: Iterable[Message | Mapping[str, Any]] | None = None,
    tail: Iterable[Message | Mapping[str, Any]] = (),
    history: Iterable[str] = (),
    needs: Iterable[str] = (),
    signals: Mapping[str, Any] | None = None,
    sensors: Mapping[str, Mapping[str, float]] | None = None,
    sensor: Sensor | None = None,
    admitted: Iterable[Preselected] = (),
    retained: Iterable[str] = (),
    standing: Iterable[Unit] = (),
) -> Answer:
    """Compile ``query`` against ``catalog``, send the one request that comes out, and return the answer.

    Nothing that the model asks for is executed. ``aask`` is awaited; ``ask`` waits, inside a running event loop (a
    notebook) too.

    Args:
        query: what the user says now.
        catalog: the units.
        model: ``"openai:..."``, ``"anthropic:..."``, ``"openrouter:vendor/model"``, ``"local"``,
            ``"local:FILE.gguf"``, ``"http://host:port/v1#model"`` or a provider.
        policy: the host's policy; a window that the provider knows narrows it.
        tools: show tools in the provider's own field (``native``) or in the ``text``; default: native, but text for
            the local model, whose template has no place for them.
        schema: a JSON Schema that the reply's text must follow, where the provider can enforce one.
        max_output_tokens: tokens for the reply; default: the policy's ``reserve_output``; where the policy does not
            say, 16,384, but at most a quarter of the model's window, and 256 for a local model.
        temperature: as the provider takes it; its own default if not given.
        seed: likewise.
        time_limit: seconds for everything, the start of a local model included.
        messages: the conversation so far, as in ``rlm.compile``; in a provider's own form only for that provider.
        tail: messages that came after the query: shown, and no evidence.
        history: earlier texts of the user, last first: evidence that decays.
        needs: what a model said it needs: evidence, never authority.
        signals: host signals by name, for triggers.
        sensors: scores between 0 and 1 by sensor and unit id, from a host's own scorer.
        sensor: what scores all units by likeness of meaning (``rlm.Sensor()``).
        admitted: units that something upstream chose, with class and premises.
        retained: ids that a session keeps.
        standing: further pinned units of the host, for this request only; the catalog is not touched.

    Returns: an Answer. A text that was cut is ``ok`` with ``finish_reason`` ``length``; a reply that was refused,
    filtered or empty has failed (``reply_refused``, ``reply_filtered``, ``reply_empty``). What the provider or the line
    did wrong, and a defect of this library, is its ``error``, with ``status == "failed"``.

    Raises: ConfigurationError, CompileError (nothing was sent then), and ProviderError ``local_missing`` or
    ``model_missing`` where the model that was named cannot be there.
    """
    policy = checked_policy(policy)
    _check_options(tools, max_output_tokens, time_limit)
    form = None if schema is None else mapping("schema", schema)
    provider = resolve(model)
    local = provider.name == "local"
    tools = tools or ("text" if local else "native")
    deadline = anyio.current_time() + time_limit
    window, failure = await _window(provider, deadline)
    usual = LOCAL_OUTPUT if local else DEFAULT_RESERVE_OUTPUT
    policy, most = policy_for_window(policy, window, max_output_tokens, usual)
    view = await acompile(
        catalog,
        query,
        policy=policy,
        messages=messages,
        tail=tail,
        history=history,
        needs=needs,
        signals=signals,
        sensors=sensors,
        sensor=sensor,
        admitted=admitted,
        retained=retained,
        standing=standing,
        tools=tools,
        wire=None if provider.wire == "text" else provider.wire,
    )
    if provider.wire != "text":
        in_form((*view.turn.messages, *view.turn.tail), provider.wire)
    wire: Wire = provider.wire if tools == "native" else "text"
    request = ProviderRequest(
        model=provider.model,
        parts=view.messages(wire),
        max_output_tokens=most,
        temperature=temperature,
        seed=seed,
        response_format=form,
    )
    sent: list[gate.SentRequest] = []
    reply: ProviderReply | None = None
    if failure is None:
        try:
            reply = await gate.send(provider, request, deadline=deadline, record=sent.append)
        except ProviderError as problem:
            failure = problem
    return _answer(provider, view, sent[0].digest if sent else None, reply, failure, request)


ask = boundary("ask", _defect, _ELSEWHERE)(waiting(aask, "ask"))


def _check_options(tools: Any, most: Any, time_limit: Any) -> None:
    if tools is not None:
        checked_place(tools)
    if most is not None and (not isinstance(most, int) or most < 1):
        raise ConfigurationError(
            "invalid_field",
            f"max_output_tokens must be a number of tokens, 1 or more: {most!r}",
            {"field": "max_output_tokens"},
        )
    if isinstance(time_limit, bool) or not isinstance(time_limit, int | float) or not 0 < time_limit < math.inf:
        raise ConfigurationError("invalid_time_limit", f"time_limit must be seconds, more than 0: {time_limit!r}")


async def _window(provider: Provider, deadline: float) -> tuple[int | None, ProviderError | None]:
    """The provider's window in tokens, or why it cannot be had (a local model that does not start)."""
    with anyio.CancelScope(deadline=deadline):
        try:
            with host_code(*gate.provider_failed(provider)):
                return await provider.window(), None
        except ProviderError as problem:
            return None, problem
    return None, ProviderError(
        "timeout",
        "the deadline passed before the provider was ready",
        {"source": "deadline", "provider": provider.name},
    )


def _answer(
    provider: Provider,
    view: CompiledContext,
    digest: str | None,
    reply: ProviderReply | None,
    failure: ProviderError | None,
    request: ProviderRequest,
) -> Answer:
    shown = PromptProjection(fingerprint=view.fingerprint, active_units=view.active, tool_count=len(view.callable))
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
    problem = None if reply.tool_calls else unfinished(reply)
    ok = problem is None or problem.kind in SHOWN_AS_THEY_ARE
    return Answer(
        status="ok" if ok else "failed",
        error=None if ok or problem is None else problem.to_dict(),
        text=reply.text,
        tool_calls=tuple(_resolved(view, call) for call in reply.tool_calls),
        finish_reason=reply.finish_reason,
        usage=reply.usage,
        model=reply.model or provider.model,
        prompt_projection=shown,
        request_digest=digest,
        view=view,
        form=request.response_format,
        material=material_of(request.parts),
    )


def _resolved(view: CompiledContext, call: ToolCall) -> AnsweredCall:
    """The call with the unit that it means; refused where that is not visible or the arguments are no object."""
    unit, arguments, error = None, {}, None
    try:
        unit = view.resolve(call)
        arguments = view.arguments(call)
    except RlmError as problem:
        unit, error = None, problem.to_dict()
    return AnsweredCall(id=call.id, name=call.name, arguments=arguments, unit=unit, error=error)
