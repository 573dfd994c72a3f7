"""An OpenAI-compatible endpoint over a real connection: bytes, keys, faults, limits."""

from __future__ import annotations

import gzip
import json
from typing import Any

import anyio
import anyio.to_thread
import pytest

from rlm.errors import ConfigurationError
from rlm.providers import OpenAIProvider
from tests.providers.sending import SECRET, a_request, everything, failure, provider, sent
from tests.support.loopback import CHAT, Loopback, Reply, drops, fails, raw, replies_json, resets, says, stalls

pytestmark = pytest.mark.anyio


async def test_the_bytes_on_the_wire_are_the_encoded_request(loopback: Loopback) -> None:
    to = provider(loopback)
    reply = await sent(to, a_request("ça va? 你好"))
    (seen,) = loopback.requests
    assert reply.text == "ok"
    assert (seen.method, seen.path) == ("POST", CHAT)
    assert seen.body == to.encode(a_request("ça va? 你好"))
    assert seen.headers["content-type"] == "application/json"
    assert seen.headers["authorization"] == f"Bearer {SECRET}"


async def test_the_request_id_of_the_header_is_kept(loopback: Loopback) -> None:
    loopback.script(replies_json(json.loads(says().body), x_request_id="req-7"))
    assert (await sent(provider(loopback))).request_id == "req-7"


# keys


async def test_a_key_is_read_anew_for_each_request_and_may_be_awaited(loopback: Loopback) -> None:
    keys = iter(["first", "second"])

    async def next_key() -> str:
        return next(keys)

    to = provider(loopback, api_key=next_key)
    await sent(to)
    await sent(to)
    assert [seen.headers["authorization"] for seen in loopback.requests] == ["Bearer first", "Bearer second"]


async def test_openai_keys_go_to_openai_and_to_no_other_endpoint(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    await sent(OpenAIProvider("m", loopback.url))
    monkeypatch.setenv("OPENAI_BASE_URL", loopback.url)
    await sent(OpenAIProvider("m"))
    first, second = loopback.requests
    assert "authorization" not in first.headers
    assert second.headers["authorization"] == f"Bearer {SECRET}"


async def test_a_missing_key_is_a_configuration_error_that_names_the_variable(loopback: Loopback) -> None:
    for to in (OpenAIProvider("m"), provider(loopback, api_key=None, api_key_variable="MY_KEY")):
        with pytest.raises(ConfigurationError, match=r"set (OPENAI_API_KEY|MY_KEY)") as caught:
            await sent(to)
        assert caught.value.kind == "credentials_missing"
    assert not loopback.requests


async def test_a_key_that_is_no_header_value_is_refused_without_showing_it(loopback: Loopback) -> None:
    with pytest.raises(ConfigurationError) as caught:
        await sent(provider(loopback, api_key=lambda: SECRET + "\nx: y"))
    assert caught.value.kind == "credentials_invalid"
    assert SECRET not in str(caught.value.to_dict())
    assert not loopback.requests


def test_a_key_in_the_code_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="callable"):
        OpenAIProvider("m", "http://localhost/v1", api_key=SECRET)  # type: ignore[arg-type]


def test_reprs_say_where_the_key_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    assert "$OPENAI_API_KEY" in repr(OpenAIProvider("m"))
    shown = repr(OpenAIProvider("m")) + repr(vars(OpenAIProvider("m", api_key=lambda: SECRET)))
    assert SECRET not in shown


@pytest.mark.parametrize(
    "answer",
    [
        fails(401, f"Incorrect API key provided: {SECRET}. Bearer {SECRET}", code=SECRET),
        raw(f"<html>{SECRET}</html>".encode(), 500),
        raw(f"no json, but {SECRET}".encode()),
        replies_json({"error": f"you sent {SECRET}"}),
        drops(),
        drops(b'{"choices": [', status=200),
    ],
    ids=["echoed", "html", "malformed", "inside-200", "dropped", "cut"],
)
async def test_no_error_ever_shows_the_key(loopback: Loopback, answer: Any) -> None:
    loopback.script(answer)
    error = await failure(provider(loopback))
    assert loopback.requests[0].headers["authorization"].endswith(SECRET)
    assert SECRET not in everything(error)
    assert error.__context__ is None
    assert error.__cause__ is None


# faults


@pytest.mark.parametrize(
    ("answer", "kind", "status", "retryable"),
    [
        (fails(400), "bad_request", 400, False),
        (fails(400, "too long", code="context_length_exceeded"), "context_length", 400, False),
        (fails(400, "This model's maximum context length is 8192 tokens"), "context_length", 400, False),
        (fails(401), "unauthorized", 401, False),
        (fails(402), "quota_exhausted", 402, False),
        (fails(403), "forbidden", 403, False),
        (fails(404, "no such model"), "not_found", 404, False),
        (fails(408), "timeout", 408, True),
        (fails(413), "request_too_large", 413, False),
        (fails(418), "bad_request", 418, False),
        (fails(422), "bad_request", 422, False),
        (fails(429), "rate_limited", 429, True),
        (fails(429, "pay", code="insufficient_quota"), "quota_exhausted", 429, False),
        (fails(500), "server_error", 500, True),
        (fails(503), "server_error", 503, True),
        (fails(504), "timeout", 504, True),
        (fails(529), "server_error", 529, True),
        (raw(b"upstream", 502), "server_error", 502, True),
        (raw(b"", 503), "server_error", 503, True),
        (replies_json({"error": {"message": "slow down", "code": 429}}), "rate_limited", 429, True),
        (replies_json({"error": {"message": "moderated"}}), "provider_refused", 200, False),
        (raw(b""), "malformed_reply", 200, True),
        (raw(b"<html>"), "malformed_reply", 200, True),
        (raw(b"[" * 100_000), "malformed_reply", 200, True),
        (raw(b"\xff\xfe"), "malformed_reply", 200, True),
        (raw(b'{"choices": []}'), "malformed_reply", None, True),
        (drops(), "connection", None, True),
        (drops(b'{"cho', status=200), "connection", None, True),
    ],
)
async def test_every_fault_has_its_kind(
    loopback: Loopback, answer: Any, kind: str, status: int | None, retryable: bool
) -> None:
    loopback.script(answer)
    error = await failure(provider(loopback))
    assert (error.kind, error.status, error.retryable) == (kind, status, retryable)
    assert error.detail["provider"] == "openai"
    assert len(loopback.requests) == 1  # nothing is retried here
    loopback.wait_for_no_connections()


async def test_an_error_says_what_the_provider_said(loopback: Loopback) -> None:
    loopback.script(fails(429, "slow\ndown", code="rate_limit", retry_after="2.5", x_request_id="req-9"))
    error = await failure(provider(loopback))
    assert error.message == "openai: HTTP 429: slow\ndown"
    assert error.detail["code"] == "rate_limit"
    assert error.detail["retry_after_seconds"] == 2.5
    assert error.detail["request_id"] == "req-9"


@pytest.mark.parametrize(
    ("said", "seconds"), [("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("soon", None), ("-1", None), ("", None)]
)
async def test_retry_after_in_other_spellings(loopback: Loopback, said: str, seconds: float | None) -> None:
    loopback.script(fails(503, retry_after=said))
    assert (await failure(provider(loopback))).detail.get("retry_after_seconds") == seconds


async def test_a_body_in_an_error_is_bounded_and_printable(loopback: Loopback) -> None:
    loopback.script(raw(b"\x1b[31m" + b"x" * 100_000, 500))
    error = await failure(provider(loopback))
    assert len(error.detail["body"]) < 600
    assert "\x1b" not in error.message


async def test_nobody_listens() -> None:
    with Loopback() as gone:
        to = provider(gone)
    error = await failure(to)
    assert (error.kind, error.retryable, error.detail["unsent"]) == ("connection", True, True)


@pytest.mark.parametrize("fault", [drops(), resets(), drops(b"{", status=200)])
async def test_what_broke_off_later_may_have_its_cost(loopback: Loopback, fault: Any) -> None:
    loopback.script(fault)
    error = await failure(provider(loopback))
    assert (error.kind, error.status) == ("connection", None)
    assert "unsent" not in error.detail


async def test_a_redirect_is_not_followed_and_the_key_stays_here(loopback: Loopback) -> None:
    with Loopback() as elsewhere:
        loopback.script(replies_json({}, 307, location=elsewhere.url + "/chat/completions"))
        error = await failure(provider(loopback))
        assert not elsewhere.requests
    assert error.kind == "redirected"


@pytest.mark.parametrize("sized", [True, False])
async def test_a_giant_reply_is_refused_before_it_is_read_whole(loopback: Loopback, sized: bool) -> None:
    loopback.script([raw(b"x" * 100_000, sized=sized), raw(b"x" * 50_000_000, sized=sized)])
    to = provider(loopback, max_reply_bytes=100_000)
    assert (await failure(to)).kind == "malformed_reply"  # just within the limit
    error = await failure(to)
    assert (error.kind, error.retryable) == ("reply_too_large", False)
    loopback.wait_for_no_connections()


async def test_a_packed_reply_is_read(loopback: Loopback) -> None:
    whole = says("packed")
    loopback.script(Reply(200, gzip.compress(whole.body), {**whole.headers, "Content-Encoding": "gzip"}))
    assert (await sent(provider(loopback))).text == "packed"


@pytest.mark.parametrize("encoding", ["gzip, gzip", "br"])
async def test_another_encoding_is_refused_and_not_asked_for_again(loopback: Loopback, encoding: str) -> None:
    loopback.script(Reply(200, gzip.compress(says().body), {"Content-Encoding": encoding}))
    error = await failure(provider(loopback))
    assert (error.kind, error.retryable) == ("unsupported_encoding", False)
    loopback.script(Reply(503, b"\x00", {"Content-Encoding": encoding}))
    assert (await failure(provider(loopback))).kind == "server_error"


@pytest.mark.parametrize(
    "answer",
    [
        Reply(429, b'{"error": {"message": "slow', then="drop"),
        Reply(429, b'{"error": {"message": "slow', then="reset"),
        Reply(429, b'{"error": {"message": "slow', then="stall"),
        raw(b"x" * 5_000_000, 429),
        raw(b"x" * 5_000_000, 429, sized=False),
    ],
    ids=["dropped", "reset", "stalled", "giant", "giant without a size"],
)
async def test_a_refusal_counts_whatever_becomes_of_its_words(
    loopback: Loopback, answer: Reply, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm.providers.exchange.REFUSAL_SECONDS", 0.2)
    loopback.script(answer)
    error = await failure(provider(loopback))
    assert (error.kind, error.status) == ("rate_limited", 429)


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Length": "9" * 4000},
        {"X-Long": "x" * 200_000},
        {f"X-{number}": "x" * 1000 for number in range(300)},
    ],
    ids=["length", "long", "many"],
)
async def test_absurd_headers_are_a_failure_of_the_reply(loopback: Loopback, headers: dict[str, str]) -> None:
    loopback.script(Reply(200, says().body, headers))
    assert (await failure(provider(loopback))).kind in ("connection", "reply_too_large")
    loopback.wait_for_no_connections()


@pytest.mark.parametrize(
    "url",
    ["", "localhost:80", "ftp://x/v1", "http://", "http://u:p@h/v1", "http://h/v1?k=v", "http://h:0", "http://h:x"],
)
def test_a_base_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        OpenAIProvider("m", url)
    assert caught.value.kind == "invalid_base_url"
    assert "u:p" not in caught.value.message


# connections


async def test_outside_of_a_with_block_nothing_stays_open(loopback: Loopback) -> None:
    await sent(provider(loopback))
    loopback.wait_for_no_connections()


async def test_a_with_block_keeps_the_connection(loopback: Loopback) -> None:
    async with provider(loopback) as to:
        await sent(to)
        async with to:
            await sent(to)
        await sent(to)
        assert loopback.connections == 1
    loopback.wait_for_no_connections()
    assert len(loopback.requests) == 3
    await sent(to)


def test_one_provider_serves_several_event_loops(loopback: Loopback) -> None:
    to = provider(loopback)

    async def twice() -> None:
        async with to:
            await sent(to)
            await sent(to)

    anyio.run(twice)
    anyio.run(twice)
    assert len(loopback.requests) == 4
    loopback.wait_for_no_connections()


@pytest.mark.parametrize("beginning", [stalls(), stalls(b'{"choices": [', status=200)], ids=["silence", "half"])
@pytest.mark.parametrize("kept", [True, False])
async def test_cancellation_leaves_no_open_connection(loopback: Loopback, beginning: Any, kept: bool) -> None:
    loopback.script(beginning)
    to = provider(loopback)
    async with anyio.create_task_group() as tasks:
        if kept:
            await to.__aenter__()
        tasks.start_soon(sent, to)
        await anyio.to_thread.run_sync(loopback.wait_for_requests)
        tasks.cancel_scope.cancel()
    await anyio.to_thread.run_sync(loopback.wait_for_no_connections)
    if kept:
        loopback.script(says("again"))
        assert (await sent(to)).text == "again"
        await to.aclose()


async def test_requests_side_by_side_do_not_mix(loopback: Loopback) -> None:
    loopback.script(lambda request: says(request.text))
    replies: dict[str, str] = {}

    async def one(text: str) -> None:
        replies[text] = (await sent(to, a_request(text))).text

    async with provider(loopback) as to, anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(one, f"question {number}")
    assert len(replies) == 20
    assert all(question == answer for question, answer in replies.items())


async def test_a_server_that_stays_silent_is_a_timeout(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm.providers.connections.SILENCE_SECONDS", 0.05)
    loopback.script(stalls())
    error = await failure(provider(loopback))
    assert (error.kind, error.retryable, error.detail["source"]) == ("timeout", True, "connection")
    await anyio.to_thread.run_sync(loopback.wait_for_no_connections)


async def test_our_own_loopback_is_not_asked_of_a_proxy(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await sent(provider(loopback))).text == "ok"
