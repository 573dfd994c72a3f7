"""A server that repeats the key: 500 times, in random spellings and places, and it stands nowhere afterwards."""

from __future__ import annotations

import itertools
import json
import logging
import random
from pathlib import Path
from typing import Any

import pytest

import rlm
from rlm.errors import ProviderError
from rlm.providers import AnthropicProvider, OpenAIProvider
from tests.providers.sending import WIRES, a_request, everything
from tests.support.echoes import echo, holds
from tests.support.loopback import Loopback, Reply, Request

KEY = "sk-proj_4f9A+zZ/q0123456789abcdefGHIJKLmnop"
pytestmark = pytest.mark.anyio


def completion(text: str, arguments: str | None, rng: random.Random) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if arguments is not None:
        message["tool_calls"] = [{"id": text[:40], "function": {"name": "alpha", "arguments": arguments}}]
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": text, "model": text if rng.random() < 0.2 else "m", "choices": [choice]}


def message(text: str, arguments: str | None, rng: random.Random) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": text[:7]}, {"type": "text", "text": text[7:]}]
    if arguments is not None:
        content.append({"type": "tool_use", "id": text[:40], "name": "alpha", "input": {"q": arguments}})
    model = text if rng.random() < 0.2 else "m"
    return {"id": text, "type": "message", "model": model, "content": content, "stop_reason": "end_turn"}


def pieces(text: str, rng: random.Random) -> list[str]:
    cuts = sorted({rng.randrange(len(text) + 1) for _ in range(rng.randrange(8))} | {0, len(text)})
    return [text[start:end] for start, end in itertools.pairwise(cuts)]


def events(text: str, arguments: str | None, wire: str, rng: random.Random) -> list[dict[str, Any]]:
    if wire == "openai":
        deltas: list[dict[str, Any]] = [{"content": piece} for piece in pieces(text, rng)]
        if arguments is not None:
            parts = [{"arguments": piece} for piece in pieces(arguments, rng)]
            parts[0] |= {"name": "alpha"}
            deltas += [{"tool_calls": [{"index": 0, "id": "c", "function": part}]} for part in parts]
        chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        return [*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
    found: list[dict[str, Any]] = [{"type": "message_start", "message": {"id": "m", "model": "m", "content": []}}]
    found.append({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    for piece in pieces(text, rng):
        delta = {"type": "text_delta", "text": piece}
        found.append({"type": "content_block_delta", "index": 0, "delta": delta})
    if arguments is not None:
        call = {"type": "tool_use", "id": "c", "name": "alpha", "input": {}}
        found.append({"type": "content_block_start", "index": 1, "content_block": call})
        for piece in pieces(arguments, rng):
            delta = {"type": "input_json_delta", "partial_json": piece}
            found.append({"type": "content_block_delta", "index": 1, "delta": delta})
    found.append({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}})
    return [*found, {"type": "message_stop"}]


def answer(request: Request, rng: random.Random) -> Reply:
    """A reply that repeats the key in one place or several: text, calls, ids, refusals, headers."""
    said = f"look: {echo(KEY, rng)} and {echo(KEY, rng)}."
    arguments = json.dumps({"q": echo(KEY, rng)}) if rng.random() < 0.5 else None
    head = echo(KEY, rng).replace("\n", "")
    headers = {"Content-Type": "application/json", "x-request-id": head, "X-Other": head, "Retry-After": head}
    shape = rng.randrange(6)
    if shape == 0:
        error = {"message": said, "code": echo(KEY, rng), "type": said}
        return Reply(rng.choice([400, 401, 403, 429, 500, 200]), json.dumps({"error": error}).encode(), headers)
    if shape == 1:
        body = f"<html>{said}</html>" if rng.random() < 0.5 else json.dumps(said)[:-1]
        return Reply(rng.choice([200, 404, 502]), body.encode(), headers)
    if shape == 2:
        return Reply(307, said.encode(), {**headers, "Location": f"https://{KEY}.example/{head}"})
    if request.streamed:
        found = [f"data: {json.dumps(value)}\n\n" for value in events(said, arguments, request.wire, rng)]
        if shape == 3:
            broken = rng.choice(['data: {"error": {"message": ' + json.dumps(said) + "}}\n\n", f"data: {said!r}\n\n"])
            found = [*found[: rng.randrange(1, len(found))], broken]
        body = "".join(found).encode()
        return Reply(200, body, {**headers, "Content-Type": "text/event-stream"})
    value = (message if request.wire == "anthropic" else completion)(said, arguments, rng)
    return Reply(200, json.dumps(value).encode(), headers)


@pytest.mark.parametrize("delivery", ["whole", "streamed"])
@pytest.mark.parametrize("wire", WIRES)
async def test_125_random_echoes_stand_in_no_reply_error_or_log(
    loopback: Loopback, wire: str, delivery: Any, caplog: pytest.LogCaptureFixture
) -> None:
    rng = random.Random(f"{wire} {delivery}")
    loopback.script(lambda request: answer(request, rng))
    caplog.set_level(logging.DEBUG)
    kind = AnthropicProvider if wire == "anthropic" else OpenAIProvider
    to = kind("m", loopback.anthropic_url if wire == "anthropic" else loopback.url, api_key=lambda: KEY)
    request = a_request(delivery=delivery)
    replies = errors = 0
    async with to:
        for _ in range(125):
            told: list[str] = []
            try:
                reply = await to.send(request, to.encode(request), told.append)
                shown = [repr(reply), reply.text, "".join(told), *(call.arguments for call in reply.tool_calls)]
                assert "".join(told) == reply.text
                replies += 1
            except ProviderError as problem:
                shown = [everything(problem), problem.message, *map(str, problem.detail.values()), "".join(told)]
                errors += 1
            for text in [*shown, repr(to)]:
                assert not holds(KEY, text), text
    assert min(replies, errors) > 25
    logged = "\n".join(record.getMessage() for record in caplog.records)
    assert "HTTP Request: POST" in logged
    assert "receive_response_headers" in logged
    assert not any(holds(KEY, record.getMessage()) for record in caplog.records)


@pytest.mark.parametrize("wire", WIRES)
def test_a_run_whose_server_echoes_the_key_leaves_none_in_its_trace(
    loopback: Loopback, wire: str, tmp_path: Path
) -> None:
    rng = random.Random(wire)
    loopback.script(lambda request: answer(request, rng))
    kind = AnthropicProvider if wire == "anthropic" else OpenAIProvider
    model = kind("m", loopback.anthropic_url if wire == "anthropic" else loopback.url, api_key=lambda: KEY)
    for number in range(6):
        trace = tmp_path / f"{number}.jsonl"
        result = rlm.complete("q", "c", model=model, trace=trace, budget={"time_limit": 20, "max_model_calls": 6})
        assert not holds(KEY, json.dumps(result.error)), result.error
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert written
    for path in written:
        assert not holds(KEY, path.read_text("utf-8", "replace")), path
    assert not any(holds(KEY, request.body.decode()) for request in loopback.requests)
