"""Anthropic's Messages format, without a network."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rlm.errors import ConfigurationError
from rlm.providers.anthropic_wire import decode_reply, encode_request
from rlm.providers.base import ProviderRequest, ToolCall, Usage
from rlm.providers.wire import NotAReply

USER = {"role": "user", "content": 'a "quote"\n'}
PARTS = {"messages": [USER], "system": "Règle {x} — 守る"}
TOOLS = [{"name": "z", "description": "", "input_schema": {"b": 1, "a": 2}}]


def request(**fields: Any) -> ProviderRequest:
    return ProviderRequest(**{"model": "m", "parts": PARTS, "max_output_tokens": 5, **fields})


def body(**fields: Any) -> dict[str, Any]:
    return json.loads(encode_request(request(**fields)))


def message(*content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "content": list(content), "stop_reason": "end_turn", **fields}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def test_a_request_is_the_parts_as_rendered_then_the_settings_that_were_given() -> None:
    assert (
        encode_request(request(parts={**PARTS, "tools": TOOLS}))
        == (
            '{"model":"m","messages":[{"role":"user","content":"a \\"quote\\"\\n"}],"system":"Règle {x} — 守る",'
            '"tools":[{"name":"z","description":"","input_schema":{"b":1,"a":2}}],"max_tokens":5}'
        ).encode()
    )


def test_every_setting_has_its_place() -> None:
    fields = body(temperature=0.5, stop=("END",), delivery="streamed", extra={"top_k": 3})
    assert (fields["temperature"], fields["stop_sequences"], fields["stream"], fields["top_k"]) == (
        0.5,
        ["END"],
        True,
        3,
    )


def test_a_schema_is_sent_where_it_is_enforced_and_nowhere_else() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    asked = request(response_format=schema, extra={"output_config": {"effort": "low"}})
    assert json.loads(encode_request(asked))["output_config"] == {"effort": "low"}
    enforced = json.loads(encode_request(asked, enforces_schema=True))["output_config"]
    assert enforced == {"effort": "low", "format": {"type": "json_schema", "schema": schema}}


@pytest.mark.parametrize(("field", "value"), [("seed", 7), ("temperature", 1.5)])
def test_what_the_format_cannot_say_is_refused_and_not_dropped(field: str, value: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        body(**{field: value})
    assert (caught.value.kind, caught.value.detail["field"]) == ("unsupported_setting", field)


def test_instructions_in_messages_move_to_the_durable_place() -> None:
    said = [
        {"role": "system", "content": "first"},
        {"role": "user", "content": "u"},
        {"role": "assistant", "content": "a"},
        {"role": "developer", "content": "second"},
        {"role": "tool", "content": "t"},
    ]
    fields = body(parts={"messages": said})
    assert fields["system"] == "first\nsecond"
    assert [(m["role"], m["content"]) for m in fields["messages"]] == [("user", "u"), ("assistant", "a"), ("user", "t")]
    assert body(parts={"messages": said, "system": "zeroth"})["system"] == "zeroth\nfirst\nsecond"


def test_adjacent_messages_of_one_speaker_stay_apart_and_empty_ones_go() -> None:
    said = [USER, {"role": "assistant", "content": ""}, {"role": "user", "content": "again"}]
    assert body(parts={"messages": said})["messages"] == [USER, {"role": "user", "content": "again"}]


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"messages": "hello"},
        {"messages": ["hello"]},
        {"messages": []},
        {"messages": [{"role": "system", "content": "s"}]},
        {"messages": [{"role": "user", "content": ""}]},
        {"messages": [USER, {"role": "system", "content": [text("x")]}]},
        {"messages": [{"role": "user", "content": "\ud800"}]},
    ],
)
def test_what_the_format_cannot_carry_is_a_configuration_error(parts: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        body(parts=parts)
    assert caught.value.kind == "invalid_request"


def test_a_reply_is_read_whole() -> None:
    read = decode_reply(
        message(
            {"type": "thinking", "thinking": "hm", "signature": "x"},
            text("hi "),
            text("you"),
            {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": "é"}},
            {"type": "tool_use", "name": "g", "input": {}},
            id="msg_1",
            model="m-2",
            stop_reason="tool_use",
            usage={
                "input_tokens": 3,
                "cache_creation_input_tokens": 10,
                "cache_read_input_tokens": 100,
                "output_tokens": 2,
            },
        ),
        None,
    )
    assert (read.text, read.model, read.request_id, read.finish_reason) == ("hi you", "m-2", "msg_1", "tool_calls")
    assert read.tool_calls == (
        ToolCall(id="toolu_1", name="f", arguments='{"a": "é"}'),
        ToolCall(id="call_4", name="g", arguments="{}"),
    )
    assert read.usage == Usage(input_tokens=113, output_tokens=2, cached_input_tokens=100, written_input_tokens=10)


def test_lone_surrogates_are_replaced() -> None:
    assert decode_reply(message(text("a\ud83d")), None).text == "a\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("said", "usage"),
    [
        (None, Usage()),
        ("many", Usage(unread=("input_tokens", "output_tokens"))),
        ({"input_tokens": -1, "output_tokens": True}, Usage(unread=("input_tokens", "output_tokens"))),
        ({"input_tokens": 4.0, "output_tokens": 2.0}, Usage(input_tokens=4, output_tokens=2)),
        ({"input_tokens": 4, "output_tokens": 2, "total_tokens": 90}, Usage(input_tokens=4, output_tokens=86)),
        ({"input_tokens": 4}, Usage(input_tokens=4)),
        ({"output_tokens": 4, "cache_read_input_tokens": 9}, Usage(output_tokens=4, cached_input_tokens=9)),
        ({"input_tokens": 4, "cache_creation_input_tokens": None}, Usage(input_tokens=4)),
        (
            {"input_tokens": 4, "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 2}},
            Usage(input_tokens=9, written_input_tokens=5, hour_input_tokens=2),
        ),
        (
            {"input_tokens": 4, "cache_creation_input_tokens": 7, "cache_creation": {"ephemeral_1h_input_tokens": "x"}},
            Usage(input_tokens=11, written_input_tokens=7, unread=("hour_input_tokens",)),
        ),
        ({"input_tokens": 4, "cache_creation": {}}, Usage(input_tokens=4)),
    ],
)
def test_usage_is_what_was_said_and_never_a_guess(said: Any, usage: Usage) -> None:
    assert decode_reply(message(text("x"), usage=said), None).usage == usage


@pytest.mark.parametrize(
    ("said", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "refusal"),
        ("pause_turn", "pause"),
        (None, "other"),
        ([], "unknown"),
        ("wat", "unknown"),
    ],
)
def test_finish_reasons_are_a_closed_vocabulary(said: Any, finish: str) -> None:
    assert decode_reply(message(text("x"), stop_reason=said), None).finish_reason == finish


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ([], "content"),
        ({}, "content"),
        (message(None), "content"),
        (message({"type": "text"}), "text block"),
        (message({"type": "tool_use", "input": {}}), r"content\[0\].name"),
    ],
)
def test_what_is_no_reply_says_where_it_differs(value: Any, where: str) -> None:
    with pytest.raises(NotAReply, match=where):
        decode_reply(value, None)
