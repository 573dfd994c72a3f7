"""The OpenAI chat completions format: a request as bytes, a reply as a noun. Pure: nothing is sent here."""

from __future__ import annotations

import json
from typing import Any, Literal

from rlm.providers.base import FinishReason, ProviderReply, ProviderRequest, ToolCall, Usage, encoded
from rlm.providers.openai_strict import is_strict
from rlm.providers.wire import NotAReply, clean, cost, count

OutputLimit = Literal["max_tokens", "max_completion_tokens"]
"""How an endpoint spells the limit on output tokens: OpenAI's own newer models refuse the older name, and many
compatible servers know nothing else."""

_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}


def encode_request(
    request: ProviderRequest, output_limit: OutputLimit = "max_tokens", *, enforces_schema: bool = True
) -> bytes:
    """The body: model, the parts as they were rendered, then the settings that were given; a response format only
    where the endpoint enforces one.

    Raises: ConfigurationError ``invalid_request``.
    """
    fields: dict[str, Any] = {"model": request.model, **request.parts, output_limit: request.max_output_tokens}
    if request.temperature is not None:
        fields["temperature"] = request.temperature
    if request.seed is not None:
        fields["seed"] = request.seed
    if request.stop:
        fields["stop"] = list(request.stop)
    if request.response_format is not None and enforces_schema:
        strict = {"strict": True} if is_strict(request.response_format) else {}
        schema = {"name": "reply", **strict, "schema": request.response_format}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.delivery == "streamed":
        fields |= {"stream": True, "stream_options": {"include_usage": True}}
    return encoded({**fields, **request.extra})


def decode_reply(value: Any, request_id: str | None) -> ProviderReply:
    """The first choice of a chat completion. Raises: NotAReply."""
    choices = value.get("choices") if isinstance(value, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        raise NotAReply("choices: expected a list with an object in it")
    message = choice.get("message")
    if not isinstance(message, dict):
        raise NotAReply("choices[0].message: expected an object")
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise NotAReply("choices[0].message.tool_calls: expected a list")
    tool_calls = tuple(_tool_call(call, place) for place, call in enumerate(calls))
    finish = _FINISH.get(str(choice.get("finish_reason")), "other")
    return ProviderReply(
        text=clean(content_text(message.get("content"))),
        tool_calls=tool_calls,
        finish_reason="tool_calls" if tool_calls and finish == "stop" else finish,
        usage=_usage(value.get("usage")),
        model=clean(str(value.get("model") or "")),
        request_id=request_id or (clean(value["id"]) if isinstance(value.get("id"), str) else None),
    )


def content_text(content: Any) -> str:
    """The text of a message's or a delta's ``content``. Raises: NotAReply."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    raise NotAReply("choices[0].message.content: expected text")


def _tool_call(call: Any, place: int) -> ToolCall:
    function = call.get("function") if isinstance(call, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(name, str) or not name:
        raise NotAReply(f"choices[0].message.tool_calls[{place}].function.name: expected a name")
    arguments = function.get("arguments")
    if isinstance(arguments, dict):  # some servers parse what the format wants as text
        arguments = json.dumps(arguments, ensure_ascii=False)
    if arguments is not None and not isinstance(arguments, str):
        raise NotAReply(f"choices[0].message.tool_calls[{place}].function.arguments: expected JSON text")
    own_id = call.get("id")
    call_id = own_id if isinstance(own_id, str) and own_id else f"call_{place}"
    return ToolCall(id=clean(call_id), name=clean(name), arguments=clean(arguments or "{}"))


def _usage(said: Any) -> Usage:
    if not isinstance(said, dict):
        return Usage()
    details = said.get("prompt_tokens_details")
    return Usage(
        input_tokens=count(said.get("prompt_tokens")),
        output_tokens=count(said.get("completion_tokens")),
        cached_input_tokens=count(details.get("cached_tokens")) if isinstance(details, dict) else None,
        cost_usd=cost(said.get("cost")),  # OpenRouter's, in USD
    )
