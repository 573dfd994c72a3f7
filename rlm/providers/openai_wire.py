"""The OpenAI chat completions format: a request as bytes, a reply as a noun. Pure: nothing is sent here."""

from __future__ import annotations

import json
from typing import Any, Literal

from rlm.errors import ConfigurationError, valid_text
from rlm.providers.base import ProviderReply, ProviderRequest, ToolCall, encoded
from rlm.providers.endings import ending
from rlm.providers.openai_strict import has_object_root, is_strict, without_siblings
from rlm.providers.usage import openai_usage
from rlm.providers.wire import NotAReply

OutputLimit = Literal["max_tokens", "max_completion_tokens"]
"""An endpoint's name for the limit on output tokens. OpenAI's own newer models refuse the older name, and many
compatible servers know only that."""

NO_ROOT = (
    "the schema of a reply must be an object at the top on this wire, without anyOf, oneOf, allOf, not or enum there: "
    'wrap it, {"type": "object", "properties": {"value": ...}, "required": ["value"], "additionalProperties": false}'
)

_THOUGHTS = ("thinking", "reasoning", "reasoning_content", "refusal")
"""Types of parts of a ``content`` list that are no part of the answer."""


def encode_request(
    request: ProviderRequest,
    output_limit: OutputLimit = "max_tokens",
    *,
    enforces_schema: bool = True,
    any_root: bool = False,
) -> bytes:
    """Return the body: the model, the rendered parts, then the settings.

    A response format is sent only if the endpoint enforces one. With ``any_root`` the endpoint takes schemas with any
    top, for example a list.

    Raises: ConfigurationError ``invalid_request``; ``unsupported_schema`` if the top must be an object.
    """
    fields: dict[str, Any] = {"model": request.model, **request.parts, output_limit: request.max_output_tokens}
    if request.temperature is not None:
        fields["temperature"] = request.temperature
    if request.seed is not None:
        fields["seed"] = request.seed
    if request.stop:
        fields["stop"] = list(request.stop)
    if request.response_format is not None and enforces_schema:
        form = without_siblings(request.response_format)
        strict = {"strict": True} if is_strict(form) else {}
        schema = {"name": "reply", **strict, "schema": form}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.delivery == "streamed":
        fields |= {"stream": True, "stream_options": {"include_usage": True}}
    body = encoded({**fields, **request.extra})
    if "response_format" in fields and not any_root and not has_object_root(request.response_format):
        raise ConfigurationError("unsupported_schema", NO_ROOT, {"field": "schema"})
    return body


def decode_reply(value: Any, request_id: str | None) -> ProviderReply:
    """Return the first choice of a chat completion. Raises: NotAReply; FailedReply if the choice holds an error."""
    choices = value.get("choices") if isinstance(value, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        raise NotAReply("choices: expected a list with an object in it")
    message, failure, usage = choice.get("message"), choice.get("error"), value.get("usage")
    if not isinstance(message, dict):
        ending(choice.get("finish_reason"), failure=failure, usage=usage)
        raise NotAReply("choices[0].message: expected an object")
    text = valid_text(content_text(message.get("content")))
    finish, stop_word = ending(choice.get("finish_reason"), failure=failure, text=text, usage=usage)
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise NotAReply("choices[0].message.tool_calls: expected a list")
    tool_calls = tuple(_tool_call(call, place) for place, call in enumerate(calls))
    refusal = refusal_text(message)
    return ProviderReply(
        text=text,
        tool_calls=tool_calls,
        finish_reason="refusal" if refusal else "tool_calls" if tool_calls and finish == "stop" else finish,
        refusal=valid_text(refusal),
        stop_word=stop_word,
        usage=openai_usage(usage),
        model=valid_text(str(value.get("model") or "")),
        request_id=request_id or (valid_text(value["id"]) if isinstance(value.get("id"), str) else None),
    )


def content_text(content: Any) -> str:
    """Return the text of a message's or a delta's ``content``. Raises: NotAReply."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict) and part.get("type") not in _THOUGHTS]
        return "".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    raise NotAReply("choices[0].message.content: expected text")


def refusal_text(message: dict[str, Any]) -> str:
    """Return the refusal of a message or a delta: its ``refusal``, or the parts of that type."""
    content = message.get("content")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    texts = [message.get("refusal"), *(part.get("refusal") for part in parts)]
    return "".join(text for text in texts if isinstance(text, str))


def _tool_call(call: Any, place: int) -> ToolCall:
    function = call.get("function") if isinstance(call, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(name, str) or not name:
        raise NotAReply(f"choices[0].message.tool_calls[{place}].function.name: expected a name")
    arguments = function.get("arguments")
    if isinstance(arguments, dict):  # some servers parse the arguments, which are text in the format
        arguments = json.dumps(arguments, ensure_ascii=False)
    if arguments is not None and not isinstance(arguments, str):
        raise NotAReply(f"choices[0].message.tool_calls[{place}].function.arguments: expected JSON text")
    own_id = call.get("id")
    call_id = own_id if isinstance(own_id, str) and own_id else f"call_{place}"
    return ToolCall(id=valid_text(call_id), name=valid_text(name), arguments=valid_text(arguments or "{}"))
