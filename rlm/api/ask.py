"""``ask``: compile one question, send it, and return the answer. There is no plan, no recursion and no tool
execution."""

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
"""Output tokens of a local model. A processor needs a while for each token, and a small model that does not stop would
run for minutes."""

ToolPlace = Literal["native", "text"]

KEPT_INCOMPLETE = ("reply_cut", "reply_unfinished")
"""Kinds of incomplete replies with a usable text; ``finish_reason`` says that it is not complete. A filtered,
refused or empty reply is a failure."""


_OPTIONS_ELSEWHERE = {
    **{name: words for name, words in ELSEWHERE.items() if name not in ("model", "query")},
    "api_key": f"a {KEY_HINT}",
}
"""Options that belong to another function, and their place."""


def check_keywords(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Wrap a function so that a misspelt option is answered with the right spelling."""
    known = inspect.signature(function).parameters

    @wraps(function)
    async def check_names(*args: P.args, **kwargs: P.kwargs) -> T:
        for name in kwargs:
            if name not in known:
                raise ConfigurationError("unknown_option", f"ask has no option {name!r}{did_you_mean(name, known)}")
        return await function(*args, **kwargs)

    return check_names


def synchronous(function: Callable[P, Coroutine[Any, Any, T]], name: str) -> Callable[P, T]:
    """Return a synchronous form of a coroutine function under another name, with the same parameters and
    documentation."""

    @wraps(function)
    def wait(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_sync(function, *args, **kwargs)

    wait.__name__ = wait.__qualname__ = name
    return wait


def _failed_answer(problem: RlmError) -> Answer:
    return Answer(status="failed", model="", error=problem.to_dict())


@boundary("ask", _failed_answer, _OPTIONS_ELSEWHERE)
@check_keywords
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
    """Compile ``query`` against ``catalog``, send the one request, and return the answer.

    No tool call of the model is executed. ``aask`` is awaited; ``ask`` blocks, and also works inside a running event
    loop, such as a notebook.

    Args:
        query: the current text of the user.
        catalog: the units.
        model: ``"openai:..."``, ``"anthropic:..."``, ``"openrouter:vendor/model"``, ``"local"``, ``"local:FILE.gguf"``,
            ``"http://host:port/v1#model"`` or a provider.
        policy: the host's policy. The window of the provider's model narrows it.
        tools: the place of tools: the provider's own field (``native``) or the ``text``. Default: native, but text for
            a local model, because its template has no such field.
        schema: a JSON Schema for the reply's text, if the provider can enforce one.
        max_output_tokens: tokens of the reply. Default: the policy's ``reserve_output``. Without it: 16,384, at most a
            quarter of the model's window, and 256 for a local model.
        temperature: as the provider takes it; default: the provider's own.
        seed: as the provider takes it; default: the provider's own.
        time_limit: seconds for everything, including the start of a local model.
        messages: the conversation so far, as in ``rlm.compile``. Messages in a provider's own form go only to that
            provider.
        tail: messages after the query. They are shown, and are no evidence.
        history: earlier texts of the user, last first: evidence that decays.
        needs: the wishes of a model: evidence, never authority.
        signals: host signals by name, for triggers.
        sensors: scores between 0 and 1 by sensor and unit id, from a scorer of the host.
        sensor: scores all units by similarity of meaning (``rlm.Sensor()``).
        admitted: preselected units, with class and premises.
        retained: ids that a session keeps.
        standing: extra pinned units of the host, for this request only; the catalog does not change.

    Returns: an Answer. A cut text is ``ok`` with ``finish_reason`` ``length``. A refused, filtered or empty reply is
    ``failed`` (``reply_refused``, ``reply_filtered``, ``reply_empty``). Failures of the provider or the connection, and
    defects of this library, stand in ``error``, with ``status == "failed"``.

    Raises: ConfigurationError and CompileError, before anything is sent; ProviderError ``local_missing`` or
    ``model_missing`` for a local model that does not exist.
    """
    policy = checked_policy(policy)
    _check_options(tools, max_output_tokens, time_limit)
    response_schema = None if schema is None else mapping("schema", schema)
    provider = resolve(model)
    is_local = provider.name == "local"
    tools = tools or ("text" if is_local else "native")
    deadline = anyio.current_time() + time_limit
    window, failure = await _window(provider, deadline)
    default_output = LOCAL_OUTPUT if is_local else DEFAULT_RESERVE_OUTPUT
    policy, max_output = policy_for_window(policy, window, max_output_tokens, default_output)
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
        max_output_tokens=max_output,
        temperature=temperature,
        seed=seed,
        response_format=response_schema,
    )
    sent: list[gate.SentRequest] = []
    reply: ProviderReply | None = None
    if failure is None:
        try:
            reply = await gate.send(provider, request, deadline=deadline, record=sent.append)
        except ProviderError as problem:
            failure = problem
    return _answer(provider, view, sent[0].digest if sent else None, reply, failure, request)


ask = boundary("ask", _failed_answer, _OPTIONS_ELSEWHERE)(synchronous(aask, "ask"))


def _check_options(tools: Any, max_output: Any, time_limit: Any) -> None:
    if tools is not None:
        checked_place(tools)
    if max_output is not None and (not isinstance(max_output, int) or max_output < 1):
        raise ConfigurationError(
            "invalid_field",
            f"max_output_tokens must be a number of tokens, 1 or more: {max_output!r}",
            {"field": "max_output_tokens"},
        )
    if isinstance(time_limit, bool) or not isinstance(time_limit, int | float) or not 0 < time_limit < math.inf:
        raise ConfigurationError("invalid_time_limit", f"time_limit must be seconds, more than 0: {time_limit!r}")


async def _window(provider: Provider, deadline: float) -> tuple[int | None, ProviderError | None]:
    """Return the provider's window in tokens, or the error of a local model that does not start."""
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
    projection = PromptProjection(fingerprint=view.fingerprint, active_units=view.active, tool_count=len(view.callable))
    if reply is None:
        error = failure.to_dict() if failure else None
        return Answer(
            status="failed",
            model=provider.model,
            prompt_projection=projection,
            request_digest=digest,
            error=error,
            view=view,
        )
    problem = None if reply.tool_calls else unfinished(reply)
    ok = problem is None or problem.kind in KEPT_INCOMPLETE
    return Answer(
        status="ok" if ok else "failed",
        error=None if ok or problem is None else problem.to_dict(),
        text=reply.text,
        tool_calls=tuple(_resolve_call(view, call) for call in reply.tool_calls),
        finish_reason=reply.finish_reason,
        usage=reply.usage,
        model=reply.model or provider.model,
        prompt_projection=projection,
        request_digest=digest,
        view=view,
        form=request.response_format,
        material=material_of(request.parts),
    )


def _resolve_call(view: CompiledContext, call: ToolCall) -> AnsweredCall:
    """Return a call with its unit. The call is refused if the unit is not visible, or if the arguments are no
    object."""
    unit, arguments, error = None, {}, None
    try:
        unit = view.resolve(call)
        arguments = view.arguments(call)
    except RlmError as problem:
        unit, error = None, problem.to_dict()
    return AnsweredCall(id=call.id, name=call.name, arguments=arguments, unit=unit, error=error)
