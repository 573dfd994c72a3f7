"""Calls in the dialects of many servers: one reply, however its pieces come."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

from rlm.providers.anthropic_stream import MessageAssembly
from rlm.providers.anthropic_wire import decode_reply as decode_message
from rlm.providers.openai_stream import ChatAssembly
from rlm.providers.openai_wire import decode_reply
from rlm.providers.stream_calls import joined_arguments

NAMES = ("get_weather", "get", "search_all", "x")
Pieces = list[dict[str, Any]]


def piece(index: Any = None, id: Any = None, name: str | None = None, arguments: Any = None) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {key: value for key, value in (("index", index), ("id", id), ("function", function)) if value is not None}


def calls(*pieces: dict[str, Any]) -> list[tuple[str, str]]:
    """What an OpenAI stream of these pieces gives: names and arguments."""
    assembly = ChatAssembly()
    for each in pieces:
        assembly.take({"choices": [{"index": 0, "delta": {"tool_calls": [each]}}]})
    assembly.take({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    return [(call.name, call.arguments) for call in decode_reply(assembly.value(), None).tool_calls]


def inputs(*parts: str, start: dict[str, Any] | None = None) -> list[Any]:
    """What an Anthropic stream of these parts gives: the input of each call."""
    assembly = MessageAssembly()
    assembly.take({"type": "message_start", "message": {"content": []}})
    block = {"type": "tool_use", "id": "t", "name": "f", "input": start or {}}
    assembly.take({"type": "content_block_start", "index": 0, "content_block": block})
    for part in parts:
        delta = {"type": "input_json_delta", "partial_json": part}
        assembly.take({"type": "content_block_delta", "index": 0, "delta": delta})
    assembly.take({"type": "message_delta", "delta": {"stop_reason": "tool_use"}})
    return [json.loads(call.arguments) for call in decode_message(assembly.value(), None).tool_calls]


@pytest.mark.parametrize(
    ("pieces", "found"),
    [
        ([piece(0, "c", "a", '{"q":'), piece(0, None, None, "1}")], [("a", '{"q":1}')]),
        # the arguments so far, again and again
        ([piece(0, "c", "a", '{"q":"a'), piece(0, "c", "a", '{"q":"ab'), piece(0, "c", "a", '{"q":"abc"}')],
         [("a", '{"q":"abc"}')]),
        ([piece(0, "c", "a", "{"), piece(0, None, None, '{"q"'), piece(0, None, None, '{"q":1}')], [("a", '{"q":1}')]),
        # the whole at the end, once, twice, in other words, with and without a name or an id
        ([piece(0, "c", "a", '{"q":'), piece(0, "c", None, "1}"), piece(0, "c", "a", '{"q":1}')], [("a", '{"q":1}')]),
        ([piece(0, "c", "a", '{"q":'), piece(0, None, None, "1}"), piece(0, None, None, '{"q": 1}')],
         [("a", '{"q": 1}')]),
        ([piece(0, "c", "a", '{"q":1}'), piece(0, "c", "a", '{"q":1}'), piece(0, "c", "a", '{"q":1}')],
         [("a", '{"q":1}')]),
        # an object in an object, cut where it looks like a repetition
        ([piece(0, "c", "a", '{"a":'), piece(0, None, None, '{"a":1}}')], [("a", '{"a":{"a":1}}')]),
        # one index for all calls
        ([piece(0, "c1", "a", '{"p":1}'), piece(0, "c2", "a", '{"p":2}')], [("a", '{"p":1}'), ("a", '{"p":2}')]),
        ([piece(0, "c1", "a", '{"p":1}'), piece(0, "c1", "b", '{"p":2}')], [("a", '{"p":1}'), ("b", '{"p":2}')]),
        ([piece(0, None, "a", '{"p":1}'), piece(0, None, "a", '{"p":2}')], [("a", '{"p":1}'), ("a", '{"p":2}')]),
        ([piece(0, "c1", "a", '{"p"'), piece(0, "c2", "b", '{"q"'), piece(0, "c1", None, ":1}"),
          piece(0, "c2", None, ":2}")], [("a", '{"p":1}'), ("b", '{"q":2}')]),
        ([piece(0, "c1", "a", ""), piece(0, None, None, '{"p":1}'), piece(0, "c2", "a", ""),
          piece(0, None, None, '{"p":2}')], [("a", '{"p":1}'), ("a", '{"p":2}')]),
        ([piece(0, "c1", "a", ""), piece(0, "c2", "a", "")], [("a", "{}"), ("a", "{}")]),
        # no index at all
        ([piece(None, None, "a", '{"p":1}'), piece(None, None, "b", '{"p":2}')], [("a", '{"p":1}'), ("b", '{"p":2}')]),
        ([piece(None, None, "a", {"p": 1}), piece(None, None, "a", {"p": 2})], [("a", '{"p": 1}'), ("a", '{"p": 2}')]),
        # a new id for each piece
        ([piece(0, "x1", "a", ""), piece(0, "x2", None, '{"q":'), piece(0, "x3", None, "1}")], [("a", '{"q":1}')]),
        ([piece(0, "x1", "a", '{"q'), piece(0, "x2", "a", '":'), piece(0, "x3", "a", "1}")], [("a", '{"q":1}')]),
        # a name in parts, with every piece, growing
        ([piece(0, "c", "get_", ""), piece(0, None, "weather", ""), piece(0, None, None, "{}")],
         [("get_weather", "{}")]),
        ([piece(0, "c", "get_", ""), piece(0, None, "get_weather", ""), piece(0, None, None, "{}")],
         [("get_weather", "{}")]),
        ([piece(0, "c", "a", '{"q'), piece(0, "c", "a", '":1}'), piece(0, None, "a", "")], [("a", '{"q":1}')]),
        # braces and quotes in texts
        ([piece(0, "c1", "a", '{"q":"}{\\"'), piece(0, "x", "a", '\\\\"}'), piece(0, "y", "a", '{"q":2}')],
         [("a", '{"q":"}{\\"\\\\"}'), ("a", '{"q":2}')]),
        # cut off in the middle: what there was
        ([piece(0, "c", "a", '{"q": "b')], [("a", '{"q": "b')]),
        ([piece({"odd": []}, "c", "a", "{}")], [("a", "{}")]),
    ],
)  # fmt: skip
def test_calls_come_out_of_every_dialect(pieces: Pieces, found: list[tuple[str, str]]) -> None:
    assert calls(*pieces) == found


def cut(text: str, rng: random.Random) -> list[str]:
    places = sorted({rng.randrange(len(text) + 1) for _ in range(rng.randrange(7))} | {0, len(text)})
    return [text[start:end] for start, end in itertools.pairwise(places)]


def written(rng: random.Random, number: int, name: str, arguments: str, style: str) -> Pieces:
    """One call in one dialect."""
    index = 0 if style == "one index" else number
    parts = cut(arguments, rng)
    if style in ("growing", "growing, named"):
        parts = ["".join(parts[: count + 1]) for count in range(len(parts))]
    if style == "summary":
        parts.append(rng.choice([arguments, json.dumps(json.loads(arguments), indent=1)]))
    named = style in ("named", "growing, named", "new ids, named")
    made = []
    for count, part in enumerate(parts):
        fresh = style.startswith("new ids")
        own_id = f"call-{number}-{count}" if fresh else f"call-{number}" if not count or rng.random() < 0.3 else None
        made.append(piece(index, own_id, name if named or not count else None, part))
    if style == "name in parts":
        middle = rng.randrange(len(name) + 1)
        halves = [piece(index, f"call-{number}", name[:middle], ""), piece(index, None, name[middle:], "")]
        made = [*halves, *(piece(index, None, None, part) for part in parts)]
    return made


@pytest.mark.parametrize(
    "style",
    ["plain", "one index", "growing", "growing, named", "summary", "named", "new ids", "new ids, named",
     "name in parts"],
)  # fmt: skip
def test_three_hundred_random_replies_of_each_dialect(style: str) -> None:
    rng = random.Random(style)
    for _ in range(300):
        wanted = []
        for number in range(rng.randrange(1, 4)):
            value = {rng.choice("abc{"): rng.choice(['x"}', "{", number, [1, {}], {"a": {"a": "\\"}}]), "n": number}
            wanted.append((rng.choice(NAMES), json.dumps(value, separators=rng.choice([(",", ":"), (", ", ": ")]))))
        pieces = [
            part for number, (name, said) in enumerate(wanted) for part in written(rng, number, name, said, style)
        ]
        found = [(name, json.loads(said)) for name, said in calls(*pieces)]
        assert found == [(name, json.loads(said)) for name, said in wanted], pieces


@pytest.mark.parametrize(
    ("parts", "value"),
    [
        (['{"q":', "1}"], {"q": 1}),
        (['{"q":"a', '{"q":"ab', '{"q":"abc"}'], {"q": "abc"}),
        (['{"q":', "1}", '{"q": 1}'], {"q": 1}),
        (["", '{"q":1}', ""], {"q": 1}),
    ],
)
def test_inputs_of_the_other_wire_are_joined_by_the_same_rules(parts: list[str], value: Any) -> None:
    assert inputs(*parts) == [value]
    assert inputs(*parts, start=value) == [value]


def test_two_blocks_with_one_index_stand_beside_each_other() -> None:
    assembly = MessageAssembly()
    assembly.take({"type": "message_start", "message": {"content": []}})
    for number in (1, 2):
        block = {"type": "tool_use", "id": f"t{number}", "name": "f", "input": {}}
        assembly.take({"type": "content_block_start", "index": 0, "content_block": block})
        delta = {"type": "input_json_delta", "partial_json": f'{{"n": {number}}}'}
        assembly.take({"type": "content_block_delta", "index": 0, "delta": delta})
    assembly.take({"type": "message_delta", "delta": {"stop_reason": "tool_use"}})
    found = decode_message(assembly.value(), None).tool_calls
    assert [(call.id, call.arguments) for call in found] == [("t1", '{"n": 1}'), ("t2", '{"n": 2}')]


def test_a_text_that_the_last_chunk_sums_up_is_told_once() -> None:
    assembly = ChatAssembly()
    pieces = ["one ", "two ", "three"]
    told = [assembly.take({"choices": [{"delta": {"content": text}}]}) for text in pieces]
    told.append(assembly.take({"choices": [{"delta": {"content": "one two three"}, "finish_reason": "stop"}]}))
    assert "".join(told) == assembly.text == "one two three"


def test_a_reply_in_one_piece_within_a_stream_is_read() -> None:
    assembly = ChatAssembly()
    message = {"content": "hi", "tool_calls": [piece(None, "c", "a", "{}")]}
    assembly.take({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    reply = decode_reply(assembly.value(), None)
    assert (reply.text, len(reply.tool_calls)) == ("hi", 1)


def test_many_pieces_cost_time_that_grows_with_them() -> None:
    parts = [piece(0, f"x{count}", "a", "1," * 20) for count in range(20_000)]
    assert len(calls(piece(0, "x", "a", '{"q":['), *parts, piece(0, "y", "a", "1]}"))) == 1
    assert joined_arguments(["{"] * 20_000) == "{"  # each is a beginning of the next
