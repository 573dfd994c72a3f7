"""The chat completions format, without a network."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rlm.errors import ConfigurationError
from rlm.providers.base import ProviderRequest, ToolCall, Usage
from rlm.providers.openai_wire import NotAReply, decode_reply, encode_request

MESSAGES = [{"role": "system", "content": "Règle {x} — 守る"}, {"role": "user", "content": 'a "quote"\n'}]
TOOLS = [{"type": "function", "function": {"name": "z", "parameters": {"b": 1, "a": 2}}}]


def request(**fields: Any) -> ProviderRequest:
    return ProviderRequest(**{"model": "m", "parts": {"messages": MESSAGES}, "max_output_tokens": 5, **fields})


def reply(**message: Any) -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": "stop"}]}


def test_a_request_is_the_parts_as_rendered_then_the_settings_that_were_given() -> None:
    body = encode_request(request(parts={"messages": MESSAGES, "tools": TOOLS}), "max_tokens")
    assert (
        body
        == (
            '{"model":"m","messages":[{"role":"system","content":"Règle {x} — 守る"},'
            '{"role":"user","content":"a \\"quote\\"\\n"}],'
            '"tools":[{"type":"function","function":{"name":"z","parameters":{"b":1,"a":2}}}],"max_tokens":5}'
        ).encode()
    )


def test_every_setting_has_its_place() -> None:
    schema = {"type": "object"}
    full = request(temperature=0, seed=7, stop=("END",), response_format=schema, extra={"top_p": 0.5})
    fields = json.loads(encode_request(full, "max_completion_tokens"))
    assert fields["max_completion_tokens"] == 5
    assert "max_tokens" not in fields
    assert (fields["temperature"], fields["seed"], fields["stop"], fields["top_p"]) == (0, 7, ["END"], 0.5)
    assert fields["response_format"]["json_schema"]["schema"] == schema


@pytest.mark.parametrize("field", ["messages", "tools", "model", "max_tokens", "stream", "n"])
def test_extra_cannot_replace_what_has_a_place_of_its_own(field: str) -> None:
    with pytest.raises(ConfigurationError, match=field):
        request(extra={field: 1})


def test_parts_cannot_name_another_model() -> None:
    with pytest.raises(ConfigurationError, match="model"):
        request(parts={"messages": MESSAGES, "model": "other"})


@pytest.mark.parametrize("bad", ["\ud800", float("nan"), object()])
def test_what_is_no_json_is_a_configuration_error(bad: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        encode_request(request(parts={"messages": [bad]}), "max_tokens")
    assert caught.value.kind == "invalid_request"


def test_a_reply_is_read_whole() -> None:
    value = {
        **reply(content="hi", tool_calls=[{"id": "c1", "function": {"name": "f", "arguments": '{"a":1}'}}]),
        "id": "chat-1",
        "model": "m-2",
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "cost": 0.25},
    }
    read = decode_reply(value, None)
    assert (read.text, read.model, read.request_id, read.finish_reason) == ("hi", "m-2", "chat-1", "tool_calls")
    assert read.tool_calls == (ToolCall(id="c1", name="f", arguments='{"a":1}'),)
    assert read.usage == Usage(input_tokens=3, output_tokens=2, cost_usd=0.25)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("", ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
        ([], ""),
        ("lone \ud83d surrogate", "lone \N{REPLACEMENT CHARACTER} surrogate"),
    ],
)
def test_content_in_its_usual_spellings(content: Any, text: str) -> None:
    assert decode_reply(reply(content=content), None).text == text


def test_arguments_that_a_server_parsed_or_left_out() -> None:
    calls = [{"function": {"name": "f", "arguments": {"a": "é"}}}, {"function": {"name": "g"}}]
    read = decode_reply(reply(tool_calls=calls), None)
    assert read.tool_calls == (
        ToolCall(id="call_0", name="f", arguments='{"a": "é"}'),
        ToolCall(id="call_1", name="g", arguments="{}"),
    )


@pytest.mark.parametrize(
    ("said", "usage"),
    [
        (None, Usage()),
        ("many", Usage(unread=("input_tokens", "output_tokens"))),
        (
            {"prompt_tokens": -1, "completion_tokens": True, "cost": "free"},
            Usage(unread=("input_tokens", "output_tokens", "cost_usd")),
        ),
        ({"prompt_tokens": 4, "cost": float("inf")}, Usage(input_tokens=4, unread=("cost_usd",))),
        ({"prompt_tokens": 1000.0, "completion_tokens": 100.0}, Usage(input_tokens=1000, output_tokens=100)),
        ({"prompt_tokens": 4.5, "completion_tokens": "4"}, Usage(unread=("input_tokens", "output_tokens"))),
        ({"prompt_tokens": float("nan"), "completion_tokens": 1e30}, Usage(unread=("input_tokens", "output_tokens"))),
        ({"input_tokens": 3, "output_tokens": 2}, Usage(input_tokens=3, output_tokens=2)),
        ({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}, Usage(input_tokens=3, output_tokens=2)),
        ({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 9}, Usage(input_tokens=3, output_tokens=6)),
        ({"prompt_tokens": 3, "total_tokens": 9}, Usage(input_tokens=3, output_tokens=6)),
        ({"completion_tokens": 2, "total_tokens": 9}, Usage(input_tokens=7, output_tokens=2)),
        ({"total_tokens": 9}, Usage(input_tokens=9)),
        (
            {"prompt_tokens": 3, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 5}},
            Usage(input_tokens=3, output_tokens=7),
        ),
        (
            {"prompt_tokens": 3, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 5}},
            Usage(input_tokens=3, output_tokens=9),
        ),
        (
            {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 50}},
            Usage(input_tokens=53, output_tokens=2, cached_input_tokens=50),
        ),
        ({"completion_tokens": 4, "cost": 0}, Usage(output_tokens=4, cost_usd=0.0)),
    ],
)
def test_usage_is_what_was_said_and_never_a_guess(said: Any, usage: Usage) -> None:
    assert decode_reply({**reply(content="x"), "usage": said}, None).usage == usage


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ([], "choices"),
        ({}, "choices"),
        ({"choices": []}, "choices"),
        ({"choices": [None]}, "choices"),
        ({"choices": [{}]}, "message"),
        (reply(content=5), "content"),
        (reply(tool_calls={"a": 1}), "tool_calls"),
        (reply(tool_calls=[None]), r"tool_calls\[0\].function.name"),
        (reply(tool_calls=[{"function": {"name": ""}}]), r"tool_calls\[0\].function.name"),
        (reply(tool_calls=[{"function": {"name": "f", "arguments": 5}}]), "arguments"),
    ],
)
def test_what_is_no_reply_says_where_it_differs(value: Any, where: str) -> None:
    with pytest.raises(NotAReply, match=where):
        decode_reply(value, None)


@pytest.mark.parametrize(
    ("said", "finish"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        (None, "other"),
        ("", "other"),
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("pause_turn", "pause"),
        ("refusal", "refusal"),
        ("wat", "unknown"),
        (7, "unknown"),
    ],
)
def test_finish_reasons_are_a_closed_vocabulary(said: Any, finish: str) -> None:
    value = {"choices": [{"message": {"content": "x"}, "finish_reason": said}]}
    assert decode_reply(value, None).finish_reason == finish


CLOSED = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


def strict(schema: dict[str, Any]) -> bool:
    fields = json.loads(encode_request(request(response_format=schema)))
    return bool(fields["response_format"]["json_schema"].get("strict", False))


def inside(part: Any) -> dict[str, Any]:
    return {**CLOSED, "properties": {"n": part}}


@pytest.mark.parametrize(
    "schema",
    [
        CLOSED,
        inside({"enum": ["a", "b"]}),
        inside({"type": ["string", "null"], "format": "date"}),
        inside({"type": "array", "items": CLOSED, "minItems": 1}),
        inside({"anyOf": [{"type": "string"}, {"$ref": "#/$defs/one"}]}) | {"$defs": {"one": CLOSED}},
        {"type": "object", "properties": {}, "additionalProperties": False},
    ],
)
def test_a_schema_of_openais_subset_is_sent_as_strict(schema: dict[str, Any]) -> None:
    assert strict(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {**CLOSED, "required": []},
        {key: value for key, value in CLOSED.items() if key != "additionalProperties"},
        inside({}),
        inside(True),
        inside({"type": "array"}),
        inside({"type": "array", "prefixItems": [{"type": "string"}]}),
        inside({"type": "object", "additionalProperties": {"type": "string"}}),
        inside({"type": "string", "minLength": 1}),
        inside({"type": "string", "format": "uri"}),
        inside({"allOf": [{"type": "string"}]}),
        inside({"$ref": "https://example.com/schema"}),
        inside({"anyOf": [{"type": "object"}]}),
        {**CLOSED, "$defs": {"one": {"type": "object"}}},
    ],
)
def test_any_other_schema_is_sent_without_it(schema: dict[str, Any]) -> None:
    """OpenAI answers 400 to ``strict`` with a schema that is outside."""
    assert not strict(schema)


def test_the_levels_of_openais_subset_are_counted() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for level in range(1, 13):
        deep = inside(deep)
        assert strict(deep) == (level <= 10)
