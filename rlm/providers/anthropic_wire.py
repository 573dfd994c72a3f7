"""Anthropic's Messages format: a request as bytes, a reply as a noun. Pure: nothing is sent here."""

from __future__ import annotations

import json
from typing import Any

from rlm.errors import ConfigurationError, valid_text
from rlm.providers.anthropic_strict import output_schema
from rlm.providers.base import ProviderReply, ProviderRequest, ToolCall, encoded
from rlm.providers.endings import ending
from rlm.providers.usage import anthropic_usage
from rlm.providers.wire import NotAReply

_INSTRUCTING = ("system", "developer")


def encode_request(request: ProviderRequest, *, enforces_schema: bool = False) -> bytes:
    """Return the body: the model, the rendered parts, then the settings.

    Parts that were rendered for ``text`` have their instructions in messages. They move to ``system``, the place of
    this format for them. A message without content, which the format does not admit, is left out. A schema for the
    reply is sent if the format takes it (``anthropic_strict``).

    Raises: ConfigurationError ``invalid_request``; ``unsupported_setting`` for a seed, or a temperature over 1.
    """
    fields = {"model": request.model, **_placed(request.parts), "max_tokens": request.max_output_tokens}
    if request.seed is not None:
        raise _unsupported("no seed", "seed")
    if request.temperature is not None:
        if request.temperature > 1:
            raise _unsupported("temperatures from 0 to 1", "temperature")
        fields["temperature"] = request.temperature
    if request.stop:
        fields["stop_sequences"] = list(request.stop)
    if request.delivery == "streamed":
        fields["stream"] = True
    fields |= request.extra
    schema = output_schema(request.response_format) if enforces_schema else None
    if schema is not None:
        form = {"type": "json_schema", "schema": schema}
        fields["output_config"] = {**request.extra.get("output_config", {}), "format": form}
    return encoded(fields)


def decode_reply(value: Any, request_id: str | None) -> ProviderReply:
    """Return the reply in a message. Blocks other than text and calls, such as thinking, are skipped.

    Raises: NotAReply; FailedReply if the message holds an error.
    """
    content = value.get("content") if isinstance(value, dict) else None
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        raise NotAReply("content: expected a list of objects")
    calls = [(place, block) for place, block in enumerate(content) if block.get("type") == "tool_use"]
    text, usage = valid_text("".join(_text(block) for block in content)), value.get("usage")
    finish, stop_word = ending(value.get("stop_reason"), failure=value.get("error"), text=text, usage=usage)
    return ProviderReply(
        text=text,
        tool_calls=tuple(_tool_call(block, place) for place, block in calls),
        finish_reason=finish,
        stop_word=stop_word,
        usage=anthropic_usage(usage),
        model=valid_text(str(value.get("model") or "")),
        request_id=request_id or (valid_text(value["id"]) if isinstance(value.get("id"), str) else None),
    )


def _placed(parts: dict[str, Any]) -> dict[str, Any]:
    messages = parts.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise ConfigurationError("invalid_request", "parts: messages are a list of objects")
    kept = [
        _spoken(message) for message in messages if message.get("role") not in _INSTRUCTING and message.get("content")
    ]
    if not kept:
        raise ConfigurationError("invalid_request", "the Messages API wants a message with content besides `system`")
    instructions = [message.get("content") for message in messages if message.get("role") in _INSTRUCTING]
    placed = {**parts, "messages": kept}
    if instructions:
        texts = [parts.get("system"), *instructions]
        if not all(text is None or isinstance(text, str) for text in texts):
            raise ConfigurationError("invalid_request", "instructions that move to `system` must be text")
        placed["system"] = "\n".join(text for text in texts if text)
    return placed


def _spoken(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with a role of the format: a role other than ``assistant`` becomes ``user``."""
    return message if message.get("role") in ("user", "assistant") else {**message, "role": "user"}


def _text(block: dict[str, Any]) -> str:
    if block.get("type") != "text":
        return ""
    text = block.get("text")
    if not isinstance(text, str):
        raise NotAReply("content: a text block without text")
    return text


def _tool_call(block: dict[str, Any], place: int) -> ToolCall:
    name, input_value, own_id = block.get("name"), block.get("input"), block.get("id")
    if not isinstance(name, str) or not name:
        raise NotAReply(f"content[{place}].name: expected a name")
    arguments = input_value if isinstance(input_value, str) else json.dumps(input_value or {}, ensure_ascii=False)
    call_id = own_id if isinstance(own_id, str) and own_id else f"call_{place}"
    return ToolCall(id=valid_text(call_id), name=valid_text(name), arguments=valid_text(arguments or "{}"))


def _unsupported(what: str, field: str) -> ConfigurationError:
    return ConfigurationError("unsupported_setting", f"the Messages API knows {what}", {"field": field})
