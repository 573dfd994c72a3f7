"""Answers of a model, written as each wire format has them: whole and as a stream of events.

An ``Answer`` says what the model says; in which format is decided by the request that it answers. Tokens are counted
by a real tokenizer, so that what a client reports can be held against what the server counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from rlm.compiler.tokens.token_counter import counter

CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"
MESSAGE_TOKENS = 3
"""Tokens that a message costs beside its text, and that the beginning of the reply costs: OpenAI's own numbers."""

Ending = Literal["finish", "close", "drop", "reset", "stall"]
"""How a reply ends. ``finish``: as it should. ``close``: without a Content-Length, by the end of the connection.
``drop``: the connection ends in the middle. ``reset``: it is torn down in the middle. ``stall``: silence, until the
client goes or the server closes."""


@dataclass(frozen=True)
class Request:
    """One request as it arrived: ``body`` is the very bytes, ``json`` what they say (None where they say nothing)."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @cached_property
    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @property
    def said(self) -> dict[str, Any]:
        """``json`` where it is an object, else an empty one."""
        return self.json if isinstance(self.json, dict) else {}

    @property
    def wire(self) -> Literal["openai", "anthropic"]:
        return "anthropic" if self.path.endswith("/messages") else "openai"

    @property
    def streamed(self) -> bool:
        return self.said.get("stream") is True

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.said.get("messages", []))

    @property
    def text(self) -> str:
        """All text of all messages, in order."""
        return "\n".join(texts(self.messages))

    @property
    def system_text(self) -> str:
        """The text of the provider's durable instruction place."""
        if self.wire == "anthropic":
            return "\n".join(texts(self.said.get("system", "")))
        return "\n".join(texts([said for said in self.messages if said.get("role") in ("system", "developer")]))

    @property
    def user_text(self) -> str:
        """The text of the messages that are neither instructions nor the model's."""
        apart = ("system", "developer", "assistant")
        return "\n".join(texts([said for said in self.messages if said.get("role") not in apart]))

    @property
    def all_text(self) -> str:
        """Everything that a model would see: instructions, messages, tools, the schema of the reply."""
        shown = [*texts(self.said.get("system", "")), *texts(self.messages)]
        shown += [json.dumps(self.said[name], ensure_ascii=False) for name in _SHOWN if name in self.said]
        return "\n".join(shown)

    @cached_property
    def tokens(self) -> int:
        """What this request counts as input: its texts and tools, and the framing of its messages."""
        places = [*texts(self.said.get("system", "")), *texts(self.messages)]
        counted = sum(tokens(text) for text in places) + MESSAGE_TOKENS * (len(self.messages) + 1)
        tools = self.said.get("tools")
        return counted + (tokens(json.dumps(tools, ensure_ascii=False, separators=(",", ":"))) if tools else 0)


_SHOWN = ("tools", "response_format", "output_config")


@dataclass(frozen=True)
class Reply:
    """What the server does with one request.

    Args:
        status: 0 for an end before the status line.
        chunks: the body in pieces, in place of ``body``; sent with chunked encoding unless the end of the
            connection ends it.
        then: see ``Ending``. With ``drop``, ``reset`` and ``stall`` the reply promised more than was sent.
        delay, pause: seconds before the reply, and between its pieces. They end when the client goes.
        tokens_out: tokens that making this reply took; None where the request was refused and nothing was made.
        usage_told: whether the reply, arriving whole, says what the server counted.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    then: Ending = "finish"
    chunks: tuple[bytes, ...] | None = None
    delay: float = 0.0
    pause: float = 0.0
    tokens_out: int | None = None
    usage_told: bool = False


@dataclass(frozen=True)
class Answer:
    """What the model says.

    Args:
        tool_calls: names and arguments (JSON text as the model wrote it, or a value).
        usage: ``counted`` is true; None is left out; a mapping is sent as it is, however wrong.
        finish: in OpenAI's words.
        cached: tokens of the input that were read from a cache.
        written: those that were written to one, for five minutes and for an hour; only Anthropic tells them.
        cost: USD, as OpenRouter tells it (in the OpenAI format only).
        share: how much of the reply is sent before it ends as ``then`` says: from 0 to 1.
        delay, pause: seconds before the reply, and between the pieces of a stream.
    """

    text: str = "ok"
    tool_calls: tuple[tuple[str, Any], ...] = ()
    usage: Literal["counted"] | dict[str, Any] | None = "counted"
    finish: str | None = None
    model: str = "loopback"
    cached: int = 0
    written: tuple[int, int] = (0, 0)
    cost: float | None = None
    share: float = 1.0
    then: Ending = "finish"
    delay: float = 0.0
    pause: float = 0.0
    piece: int = 7

    @property
    def tokens(self) -> int:
        """What this answer counts as output."""
        return sum(tokens(text) for text in (self.text, *(arguments(call) for _, call in self.tool_calls)))

    @property
    def reason(self) -> str:
        return self.finish or ("tool_calls" if self.tool_calls else "stop")

    def pieces(self, text: str) -> list[str]:
        """A text in the pieces in which it is streamed."""
        return re.findall(rf"(?s).{{1,{self.piece}}}", text)


def answers(text: str = "ok", **fields: Any) -> Answer:
    """An ``Answer``."""
    return Answer(text, **{**fields, "tool_calls": tuple(fields.get("tool_calls", ()))})


def written(answer: Answer, request: Request) -> Reply:
    """The answer as a reply to this request."""
    usage = _usage(answer, request)
    value = _message(answer, usage) if request.wire == "anthropic" else completion(answer, usage)
    common: dict[str, Any] = {
        "then": answer.then,
        "delay": answer.delay,
        "pause": answer.pause,
        "tokens_out": answer.tokens,
        "usage_told": answer.usage == "counted" and answer.share >= 1,
    }
    if not request.streamed:
        body = json.dumps(value).encode()
        sent = body[: int(len(body) * answer.share)]
        return Reply(200, sent, {"Content-Type": "application/json"}, **common)
    if request.wire == "anthropic":
        events = list(_message_events(answer, value))
    else:
        wanted = (request.said.get("stream_options") or {}).get("include_usage") is True
        events = list(_completion_events(answer, value, usage if wanted else None))
        common["usage_told"] &= wanted
    sent_events = events[: int(len(events) * answer.share)]
    return Reply(200, b"", {"Content-Type": "text/event-stream"}, chunks=tuple(sent_events), **common)


# OpenAI's


def completion(answer: Answer, usage: dict[str, Any] | None) -> dict[str, Any]:
    """The answer as a chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    calls = [
        {"id": f"call_{place}", "type": "function", "function": {"name": name, "arguments": arguments(given)}}
        for place, (name, given) in enumerate(answer.tool_calls)
    ]
    if calls:
        message["tool_calls"] = calls
    value: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": answer.model,
        "choices": [{"index": 0, "message": message, "finish_reason": answer.reason}],
    }
    return value if usage is None else {**value, "usage": usage}


def _completion_events(answer: Answer, value: dict[str, Any], usage: dict[str, Any] | None) -> Iterator[bytes]:
    head = {"id": value["id"], "object": "chat.completion.chunk", "created": 0, "model": answer.model}

    def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
        return event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    yield b": a comment, as some gateways send to keep a connection\n\n"
    yield chunk({"role": "assistant", "content": ""})
    for piece in answer.pieces(answer.text):
        yield chunk({"content": piece})
    for place, call in enumerate(value["choices"][0]["message"].get("tool_calls", [])):
        begun = {**call, "index": place, "function": {**call["function"], "arguments": ""}}
        yield chunk({"tool_calls": [begun]})
        for piece in answer.pieces(call["function"]["arguments"]):
            yield chunk({"tool_calls": [{"index": place, "function": {"arguments": piece}}]})
    yield chunk({}, answer.reason)
    if usage is not None:
        yield event({**head, "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


# Anthropic's

_STOP = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


def _message(answer: Answer, usage: dict[str, Any] | None) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
    for place, (name, given) in enumerate(answer.tool_calls):
        value = json.loads(given) if isinstance(given, str) else given
        content.append({"type": "tool_use", "id": f"toolu_{place}", "name": name, "input": value})
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": _STOP.get(answer.reason, answer.reason),
        "stop_sequence": None,
        **({} if usage is None else {"usage": usage}),
    }


def _message_events(answer: Answer, value: dict[str, Any]) -> Iterator[bytes]:
    usage = value.get("usage")
    begun = {**value, "content": [], "stop_reason": None}
    if usage is not None:
        begun["usage"] = {**usage, "output_tokens": 1}
    yield event({"type": "message_start", "message": begun})
    yield event({"type": "ping"})
    for index, block in enumerate(value["content"]):
        where = {"index": index}
        empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
        yield event({"type": "content_block_start", **where, "content_block": empty})
        for piece in answer.pieces(block["text"] if block["type"] == "text" else json.dumps(block["input"])):
            typed = {"type": "text_delta", "text": piece}
            if block["type"] != "text":
                typed = {"type": "input_json_delta", "partial_json": piece}
            yield event({"type": "content_block_delta", **where, "delta": typed})
        yield event({"type": "content_block_stop", **where})
    ended: dict[str, Any] = {"type": "message_delta", "delta": {"stop_reason": value["stop_reason"]}}
    if usage is not None:
        ended["usage"] = {name: count for name, count in usage.items() if name == "output_tokens"}
    yield event(ended)
    yield event({"type": "message_stop"})


# shared


def event(value: dict[str, Any]) -> bytes:
    """One server-sent event; with the name that Anthropic gives it, where the value says one."""
    named = f"event: {value['type']}\n" if "type" in value else ""
    return f"{named}data: {json.dumps(value)}\n\n".encode()


def arguments(given: Any) -> str:
    """The arguments of a call as JSON text."""
    return given if isinstance(given, str) else json.dumps(given)


def tokens(text: str) -> int:
    """Tokens of a text, by a real tokenizer where its vocabulary is on this machine."""
    return counter("o200k_base").count(text)


def texts(value: Any) -> Iterator[str]:
    """All texts of messages or contents, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        yield from texts(value.get("content", value.get("text", "")))


def _usage(answer: Answer, request: Request) -> dict[str, Any] | None:
    if answer.usage != "counted":
        return answer.usage
    if request.wire == "anthropic":
        cached: dict[str, Any] = {
            "cache_read_input_tokens": answer.cached,
            "cache_creation_input_tokens": sum(answer.written),
        }
        if any(answer.written):
            names = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
            cached["cache_creation"] = dict(zip(names, answer.written, strict=True))
        other = request.tokens - answer.cached - sum(answer.written)
        return {"input_tokens": other, **cached, "output_tokens": answer.tokens}
    usage: dict[str, Any] = {
        "prompt_tokens": request.tokens,
        "completion_tokens": answer.tokens,
        "total_tokens": request.tokens + answer.tokens,
        "prompt_tokens_details": {"cached_tokens": answer.cached},
    }
    return usage if answer.cost is None else {**usage, "cost": answer.cost}
