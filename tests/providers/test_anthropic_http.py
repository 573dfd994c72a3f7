"""An endpoint of the Messages API over a real connection: bytes, keys, faults, places."""

from __future__ import annotations

import json
from typing import Any

import pytest

import rlm
from rlm.errors import ConfigurationError
from rlm.providers import AnthropicProvider, Usage, resolve
from tests.providers.sending import SECRET, a_request, everything, failure, provider, sent
from tests.support.loopback import MESSAGES, Loopback, answers, anthropic_fails, drops, raw, replies_json, resets

pytestmark = pytest.mark.anyio


async def test_k20_outside_of_a_run_the_callers_messages_are_sent_and_nothing_else(loopback: Loopback) -> None:
    loopback.script(answers("fine"))
    for wire in ("openai", "anthropic"):
        to = provider(loopback, wire)
        reply = await sent(to, a_request("ça va? 你好"))
        seen = loopback.requests[-1]
        assert reply.text == "fine"
        assert seen.body == to.encode(a_request("ça va? 你好"))
        assert seen.json["messages"] == [{"role": "user", "content": "ça va? 你好"}]
        assert set(seen.json) == {"model", "messages", "max_tokens"}


async def test_the_headers_are_anthropics(loopback: Loopback) -> None:
    loopback.script(answers())
    await sent(provider(loopback, "anthropic"))
    (seen,) = loopback.requests
    assert (seen.method, seen.path) == ("POST", MESSAGES)
    assert (seen.headers["x-api-key"], seen.headers["anthropic-version"]) == (SECRET, "2023-06-01")
    assert "authorization" not in seen.headers


async def test_the_usage_is_the_servers_count_with_what_was_cached(loopback: Loopback) -> None:
    loopback.script(answers("one two three", cached=4))
    for wire, written in (("openai", None), ("anthropic", 0)):
        reply = await sent(provider(loopback, wire), a_request("how many tokens are these?"))
        counted = loopback.exchanges[-1]
        assert counted.usage_told
        assert reply.usage == Usage(
            input_tokens=counted.tokens_in,
            output_tokens=counted.tokens_out,
            cached_input_tokens=4,
            written_input_tokens=written,
        )
    assert loopback.tokens_out == 2 * loopback.exchanges[0].tokens_out > 0


# places

HOUSE = rlm.Unit("instruction:house", content="Answer in one short sentence.", activation="always")
DIFF = rlm.Unit("tool:git_diff", description="Show the changes in the git working tree", schema={"type": "object"})
QUERY = "review the changes of my git working tree"


@pytest.mark.parametrize("tools", ["native", "text"])
@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_k19_instructions_sit_in_the_durable_place_of_each_wire(loopback: Loopback, wire: str, tools: Any) -> None:
    loopback.script(answers())
    answer = rlm.ask(QUERY, rlm.Catalog([HOUSE, DIFF]), model=provider(loopback, wire), tools=tools)
    (seen,) = loopback.requests
    assert answer.status == "ok"
    assert seen.system_text.count(HOUSE.content) == 1
    assert seen.all_text.count(HOUSE.content) == 1
    assert HOUSE.content not in seen.user_text
    assert seen.user_text == QUERY
    assert seen.all_text.count("git_diff") == 1
    if wire == "anthropic":
        assert [message["role"] for message in seen.messages] == ["user"]
        assert seen.json["system"] == seen.system_text


def test_an_answer_maps_a_call_back_to_its_unit(loopback: Loopback) -> None:
    loopback.script(answers("", tool_calls=[("git_diff", {"base": "main"})]))
    answer = rlm.ask(QUERY, rlm.Catalog([DIFF]), model=provider(loopback, "anthropic"))
    (call,) = answer.tool_calls
    assert (call.unit, call.arguments, answer.finish_reason) == ("tool:git_diff", {"base": "main"}, "tool_calls")


# keys


async def test_anthropic_keys_go_to_anthropic_and_to_no_other_endpoint(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    loopback.script(answers())
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    await sent(AnthropicProvider("m", loopback.anthropic_url))
    monkeypatch.setenv("ANTHROPIC_BASE_URL", loopback.anthropic_url)
    to = resolve("anthropic:m")
    assert isinstance(to, AnthropicProvider)
    await sent(to)
    first, second = loopback.requests
    assert "x-api-key" not in first.headers
    assert second.headers["x-api-key"] == SECRET


async def test_a_missing_key_names_its_variable(loopback: Loopback) -> None:
    with pytest.raises(ConfigurationError, match="set ANTHROPIC_API_KEY") as caught:
        await sent(AnthropicProvider("m"))
    assert caught.value.kind == "credentials_missing"
    with pytest.raises(ConfigurationError, match="callable"):
        AnthropicProvider("m", loopback.anthropic_url, api_key=SECRET)  # type: ignore[arg-type]
    assert not loopback.requests


def test_reprs_say_where_the_key_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    assert "$ANTHROPIC_API_KEY" in repr(AnthropicProvider("m"))
    assert SECRET not in repr(AnthropicProvider("m")) + repr(vars(AnthropicProvider("m", api_key=lambda: SECRET)))


@pytest.mark.parametrize("delivery", ["whole", "streamed"])
@pytest.mark.parametrize(
    "answer",
    [
        anthropic_fails(401, "authentication_error", f"invalid x-api-key: {SECRET}"),
        raw(f"<html>{SECRET}</html>".encode(), 500),
        raw(f"no json, but {SECRET}".encode()),
        replies_json({"error": f"you sent {SECRET}"}),
        drops(),
        resets(b'{"content": [', status=200),
    ],
    ids=["echoed", "html", "malformed", "inside-200", "dropped", "reset"],
)
async def test_no_error_ever_shows_the_key(loopback: Loopback, answer: Any, delivery: Any) -> None:
    loopback.script(answer)
    error = await failure(provider(loopback, "anthropic"), a_request(delivery=delivery))
    assert loopback.requests[0].headers["x-api-key"] == SECRET
    assert SECRET not in everything(error)
    assert error.__context__ is None
    assert error.__cause__ is None


# faults


@pytest.mark.parametrize(
    ("answer", "kind", "status", "retryable"),
    [
        (anthropic_fails(400, "invalid_request_error"), "bad_request", 400, False),
        (anthropic_fails(400, "invalid_request_error", "prompt is too long: 9 > 8"), "context_length", 400, False),
        (
            anthropic_fails(400, "invalid_request_error", "Your credit balance is too low"),
            "quota_exhausted",
            400,
            False,
        ),
        (anthropic_fails(401, "authentication_error"), "unauthorized", 401, False),
        (anthropic_fails(402, "billing_error"), "quota_exhausted", 402, False),
        (anthropic_fails(403, "permission_error"), "forbidden", 403, False),
        (anthropic_fails(404, "not_found_error"), "not_found", 404, False),
        (anthropic_fails(413, "request_too_large"), "request_too_large", 413, False),
        (anthropic_fails(429, "rate_limit_error"), "rate_limited", 429, True),
        (anthropic_fails(500, "api_error"), "server_error", 500, True),
        (anthropic_fails(504, "timeout_error"), "timeout", 504, True),
        (anthropic_fails(529, "overloaded_error"), "server_error", 529, True),
        (anthropic_fails(200, "overloaded_error"), "server_error", 200, True),
        (raw(b'{"content": 5}'), "malformed_reply", None, True),
        (raw(b"<html>"), "malformed_reply", 200, True),
        (drops(b'{"con', status=200), "connection", None, True),
        (resets(), "connection", None, True),
        (resets(b'{"con', status=200), "connection", None, True),
    ],
)
@pytest.mark.parametrize("delivery", ["whole", "streamed"])
async def test_every_fault_has_its_kind(
    loopback: Loopback, delivery: Any, answer: Any, kind: str, status: int | None, retryable: bool
) -> None:
    loopback.script(answer)
    error = await failure(provider(loopback, "anthropic"), a_request(delivery=delivery))
    assert (error.kind, error.status, error.retryable) == (kind, status, retryable)
    assert error.detail["provider"] == "anthropic"
    assert len(loopback.requests) == 1
    await loopback.wait_until_quiet()
    assert (loopback.tokens_in, loopback.tokens_out) == (0, 0)


async def test_an_error_says_what_the_provider_said(loopback: Loopback) -> None:
    loopback.script(anthropic_fails(429, "rate_limit_error", "slow down", retry_after="7", request_id="req-9"))
    error = await failure(provider(loopback, "anthropic"))
    assert error.message == "anthropic: HTTP 429: slow down"
    assert (error.detail["code"], error.detail["request_id"]) == ("rate_limit_error", "req-9")
    assert error.detail["retry_after_seconds"] == 7.0


async def test_a_wait_may_be_told_in_milliseconds(loopback: Loopback) -> None:
    loopback.script(anthropic_fails(429, "rate_limit_error", retry_after_ms="250", retry_after="1"))
    assert (await failure(provider(loopback, "anthropic"))).detail["retry_after_seconds"] == 0.25


async def test_a_schema_goes_where_the_host_says_that_it_is_enforced(loopback: Loopback) -> None:
    loopback.script(answers("{}"))
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    for wire in ("openai", "anthropic"):
        for enforces in (True, False):
            to = provider(loopback, wire, enforces_schema=enforces)
            assert to.enforces_schema is enforces
            await sent(to, a_request(response_format=schema))
            assert (json.dumps(schema, separators=(",", ":")).encode() in loopback.requests[-1].body) is enforces
    assert not AnthropicProvider("m").enforces_schema
