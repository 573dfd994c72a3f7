"""The server that other tests believe: what it counts, what it remembers, how it breaks. Asked by plain httpx."""

from __future__ import annotations

import concurrent.futures
import json
from typing import Any

import anyio
import httpx
import pytest

from rlm.compiler.tokens.token_counter import counter
from tests.support.loopback import CHAT, MESSAGES, Loopback, Reply, Request, answers, fails, resets, stalls

SYSTEM = "You are terse."
QUESTION = "Which service failed first?"
TOOL = {"name": "f", "input_schema": {"type": "object"}}


def chat(server: Loopback, **fields: Any) -> httpx.Response:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    return httpx.post(f"{server.anthropic_url}{CHAT}", json={"messages": messages, **fields}, timeout=20)


def message(server: Loopback, **fields: Any) -> httpx.Response:
    body = {"system": SYSTEM, "messages": [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}], **fields}
    return httpx.post(f"{server.anthropic_url}{MESSAGES}", json=body, timeout=20)


def test_a_text_is_answered_in_the_words_of_the_wire_and_counted(loopback: Loopback) -> None:
    loopback.script(["the database", "the database"])
    openai, anthropic = chat(loopback).json(), message(loopback, tools=[TOOL]).json()
    assert openai["choices"][0]["message"]["content"] == anthropic["content"][0]["text"] == "the database"
    count = counter("o200k_base").count
    texts = count(SYSTEM) + count(QUESTION)
    tool = count(json.dumps([TOOL], separators=(",", ":")))
    assert openai["usage"]["prompt_tokens"] == texts + 3 * 3
    assert anthropic["usage"]["input_tokens"] == texts + 3 * 2 + tool
    assert loopback.tokens_in == 2 * texts + 15 + tool
    assert loopback.tokens_out == 2 * count("the database")
    assert all(exchange.whole and exchange.usage_told for exchange in loopback.exchanges)


def test_a_function_may_look_at_every_part_of_a_request(loopback: Loopback) -> None:
    def line(request: Request) -> str:
        return json.dumps([request.wire, request.system_text, request.user_text, "input_schema" in request.all_text])

    loopback.script(line)
    assert json.loads(chat(loopback).json()["choices"][0]["message"]["content"]) == ["openai", SYSTEM, QUESTION, False]
    said = message(loopback, tools=[TOOL]).json()["content"][0]["text"]
    assert json.loads(said) == ["anthropic", SYSTEM, QUESTION, True]
    assert loopback.requests[1].json["system"] == SYSTEM


def test_a_refused_request_costs_nothing_and_a_lost_reply_does(loopback: Loopback) -> None:
    loopback.script([fails(503, retry_after="3"), answers("lost", then="reset", share=0.5), answers("ok", usage=None)])
    refused = chat(loopback)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "3")
    assert (loopback.tokens_in, loopback.tokens_out) == (0, 0)
    with pytest.raises(httpx.HTTPError):
        chat(loopback)
    assert "usage" not in chat(loopback).json()
    first, lost, untold = loopback.exchanges
    assert (first.status, first.tokens_in, first.whole) == (503, 0, True)
    assert (lost.whole, lost.usage_told, lost.tokens_in > 0, lost.tokens_out > 0) == (False, False, True, True)
    assert (untold.whole, untold.usage_told) == (True, False)


def test_a_usage_may_be_wrong(loopback: Loopback) -> None:
    loopback.script(answers(usage={"prompt_tokens": 0, "completion_tokens": "many"}))
    assert chat(loopback).json()["usage"] == {"prompt_tokens": 0, "completion_tokens": "many"}
    assert not loopback.exchanges[0].usage_told


@pytest.mark.parametrize("fault", [resets(), resets(b'{"cho', status=200)])
def test_a_connection_can_be_torn_down(loopback: Loopback, fault: Reply) -> None:
    loopback.script(fault)
    with pytest.raises(httpx.TransportError):
        chat(loopback)
    loopback.wait_for_no_connections()


def test_the_high_water_mark_is_how_many_were_answered_at_once(loopback: Loopback) -> None:
    def together(request: Request) -> str:
        loopback.wait_for_active(5)
        return "ok"

    loopback.script(together)
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        assert [done.status_code for done in pool.map(lambda _: chat(loopback), range(5))] == [200] * 5
    assert (loopback.high_water, loopback.active) == (5, 0)


def test_requests_one_after_the_other_are_never_two_at_once(loopback: Loopback) -> None:
    loopback.script(answers("one two three"))
    for number in range(40):
        chat(loopback, stream=number % 2 == 0)
    assert loopback.high_water == 1
    assert len(loopback.exchanges) == 40


@pytest.mark.anyio
@pytest.mark.parametrize("line", [stalls(), answers(delay=600), answers("x" * 99, pause=600)])
async def test_a_client_that_goes_ends_every_wait(loopback: Loopback, line: Any) -> None:
    loopback.script(line)
    async with httpx.AsyncClient(timeout=30) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: client.post(loopback.url + "/chat/completions", json={"stream": True}))
        (seen,) = await loopback.wait_for(1)
        assert seen.streamed
        assert (loopback.active, loopback.connections) == (1, 1)
        tasks.cancel_scope.cancel()
    await loopback.wait_until_quiet()
    assert loopback.active == 0
    assert not loopback.exchanges[0].whole


def test_what_no_script_answers_is_remembered(loopback: Loopback) -> None:
    loopback.script([])
    assert chat(loopback).status_code == 500
    assert len(loopback.unscripted) == 1
