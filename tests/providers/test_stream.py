"""A reply that comes as a stream is the reply that would have come whole; and what can happen on the way."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlm.errors import ProviderError
from rlm.providers import ProviderReply, Usage
from rlm.providers.faults import EXCERPT
from tests.providers.sending import SECRET, WIRES, a_request, everything, failure, provider, sent
from tests.support.loopback import Answer, Loopback, Reply, answers, fails, raw, replies_json, says, sse
from tests.support.wires import event

pytestmark = pytest.mark.anyio
STREAMED = a_request(delivery="streamed")


@pytest.fixture(scope="module")
def shared() -> Iterator[Loopback]:
    with Loopback() as server:
        yield server


# the same reply

anything = st.text(st.characters(exclude_categories=()), max_size=30)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
an_answer = st.builds(
    Answer,
    text=anything,
    tool_calls=st.lists(
        st.tuples(
            st.from_regex(r"[A-Za-z0-9_-]{1,12}", fullmatch=True),
            st.dictionaries(st.text(max_size=5), json_values, max_size=3),
        ),
        max_size=3,
    ).map(tuple),
    usage=st.just("counted") | st.none(),
    finish=st.sampled_from([None, "stop", "length", "content_filter"]),
    cached=st.integers(0, 3),
    piece=st.integers(1, 9),
)


@pytest.mark.parametrize("wire", WIRES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(answer=an_answer, cuts=st.lists(st.integers(0, 2000), max_size=12))
def test_a_stream_gives_the_same_reply(shared: Loopback, wire: str, answer: Answer, cuts: list[int]) -> None:
    heard: dict[str, list[str]] = {"whole": [], "streamed": []}
    replies: list[ProviderReply] = []

    async def both() -> None:
        async with provider(shared, wire) as to:
            for delivery in ("whole", "streamed"):
                request = a_request(delivery=delivery)
                replies.append(await sent(to, request, heard[delivery].append))

    shared.script(recut(answer, cuts))
    anyio.run(both)
    whole, streamed = replies
    assert streamed == whole
    assert "".join(heard["whole"]) == "".join(heard["streamed"]) == whole.text
    counted = shared.exchanges[-1]
    told = Usage(input_tokens=counted.tokens_in, output_tokens=counted.tokens_out, cached_input_tokens=answer.cached)
    if wire == "anthropic":
        told = told.model_copy(update={"written_input_tokens": 0})
    assert whole.usage == (told if answer.usage else Usage())


def recut(answer: Answer, cuts: list[int]) -> Any:
    """The answer; where it is a stream, in pieces that end anywhere but between events."""
    from tests.support.wires import Request, written

    def line(request: Request) -> Reply:
        reply = written(answer, request)
        if reply.chunks is None:
            return reply
        body = b"".join(reply.chunks)
        places = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
        pieces = tuple(body[start:end] for start, end in itertools.pairwise(places))
        return Reply(200, headers=reply.headers, chunks=pieces, tokens_out=reply.tokens_out)

    return line


@pytest.mark.parametrize("wire", WIRES)
async def test_text_is_told_while_the_model_still_speaks(loopback: Loopback, wire: str) -> None:
    loopback.script(answers("one two three four five", share=0.7, then="stall"))
    heard: list[str] = []
    with anyio.CancelScope() as scope:

        def hear(piece: str) -> None:
            heard.append(piece)
            if "three" in "".join(heard):
                scope.cancel()

        await sent(provider(loopback, wire), STREAMED, hear)
    assert scope.cancelled_caught
    assert len(heard) > 1
    await loopback.wait_until_quiet()
    assert loopback.exchanges[0].tokens_out > 0


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("kept", [True, False])
async def test_cancellation_closes_the_connection(loopback: Loopback, wire: str, kept: bool) -> None:
    loopback.script([answers("x" * 50, share=0.5, then="stall"), answers("again")])
    to = provider(loopback, wire)
    begun = anyio.Event()
    if kept:
        await to.__aenter__()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sent, to, STREAMED, lambda _: begun.set())
        await begun.wait()
        assert loopback.active == 1
        tasks.cancel_scope.cancel()
    await loopback.wait_until_quiet()
    assert (await sent(to, STREAMED)).text == "again"
    await to.aclose()
    assert loopback.active == 0


@pytest.mark.parametrize("wire", WIRES)
async def test_a_with_block_keeps_the_connection_from_stream_to_stream(loopback: Loopback, wire: str) -> None:
    loopback.script(answers("hello"))
    opened: set[Any] = set()
    async with provider(loopback, wire) as to:
        for _ in range(3):
            await sent(to, STREAMED)
            assert loopback.connections == 1
            opened |= set(loopback._connections)
    assert len(opened) == 1
    await loopback.wait_until_quiet()


async def test_a_listener_that_raises_ends_the_request(loopback: Loopback) -> None:
    loopback.script(answers("hello you", then="stall", share=0.8))

    def deaf(piece: str) -> None:
        raise LookupError(piece)

    with pytest.raises(LookupError, match="hello"):
        await sent(provider(loopback), STREAMED, deaf)
    await loopback.wait_until_quiet()


async def test_a_server_that_does_not_stream_is_understood(loopback: Loopback) -> None:
    loopback.script(says("all at once"))
    heard: list[str] = []
    assert (await sent(provider(loopback), STREAMED, heard.append)).text == "all at once"
    assert heard == ["all at once"]


async def test_the_stream_is_asked_for_in_the_bytes(loopback: Loopback) -> None:
    loopback.script(answers())
    for wire in WIRES:
        await sent(provider(loopback, wire), STREAMED)
    openai, anthropic = loopback.requests
    assert openai.json["stream"] is anthropic.json["stream"] is True
    assert openai.json["stream_options"] == {"include_usage": True}
    assert openai.headers["accept"] == "text/event-stream"


# faults on the way


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("then", ["drop", "reset", "finish", "close"])
async def test_a_stream_that_breaks_off_is_a_retryable_fault_with_its_beginning(
    loopback: Loopback, wire: str, then: Any
) -> None:
    loopback.script(answers("word " * 400, share=0.9, then=then))
    heard: list[str] = []
    with pytest.raises(ProviderError) as caught:
        await sent(provider(loopback, wire), STREAMED, heard.append)
    error = caught.value
    assert (error.kind, error.retryable) == ("connection", True)
    partial = error.detail.get("partial_text", "")
    assert "".join(heard).startswith(partial.rstrip("…"))
    assert len(partial) <= EXCERPT + 1
    if then != "reset":  # which takes away what was sent but not yet read
        assert len(partial) == EXCERPT + 1 < len("".join(heard))
    assert error.__context__ is None
    await loopback.wait_until_quiet()
    assert loopback.exchanges[0].tokens_out > 400
    assert not loopback.exchanges[0].usage_told


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("share", [0.0, 0.1])
async def test_a_stream_that_ends_before_it_says_anything(loopback: Loopback, wire: str, share: float) -> None:
    loopback.script(answers("word " * 400, share=share / 40))
    error = await failure(provider(loopback, wire), STREAMED)
    assert (error.kind, error.retryable) == ("connection", True)
    assert "partial_text" not in error.detail


async def test_an_end_without_done_is_an_end_where_the_model_said_why(loopback: Loopback) -> None:
    end = event({"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]})
    loopback.script([sse(end), sse(end, then="close")])
    for _ in range(2):
        reply = await sent(provider(loopback), STREAMED)
        assert (reply.text, reply.finish_reason, reply.usage) == ("hi", "stop", Usage())


async def test_a_server_that_stays_open_after_done_is_not_waited_for(loopback: Loopback) -> None:
    hello = event({"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]})
    loopback.script(sse(hello, b"data: [DONE]\n\n", then="stall"))
    with anyio.fail_after(5):
        assert (await sent(provider(loopback), STREAMED)).text == "hi"
    await loopback.wait_until_quiet()


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
async def test_a_stream_without_a_blank_line_at_its_end_counts(loopback: Loopback, wire: str, mark: bytes) -> None:
    end = event({"choices": [{"index": 0, "delta": {"content": "half"}, "finish_reason": "stop"}]})
    if wire == "anthropic":
        end = BEGUN + BLOCK + TEXT + event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    loopback.script(sse(mark + end.rstrip(b"\n")))
    assert (await sent(provider(loopback, wire), STREAMED)).text == "half"


async def test_a_last_event_that_was_cut_off_is_no_event(loopback: Loopback) -> None:
    loopback.script(sse(HALF + HALF.rstrip(b"\n")[:-3]))
    error = await failure(provider(loopback), STREAMED)
    assert (error.kind, error.detail["partial_text"]) == ("connection", "half")


async def test_a_stream_that_says_it_is_something_else_is_read_as_a_stream(loopback: Loopback) -> None:
    end = event({"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]})
    loopback.script(Reply(200, end + b"data: [DONE]\n\n", {"Content-Type": "application/json"}))
    assert (await sent(provider(loopback), STREAMED)).text == "hi"


async def test_the_beginning_of_a_key_at_the_break_of_a_stream_is_not_shown(loopback: Loopback) -> None:
    begun = event({"choices": [{"index": 0, "delta": {"content": f"the key is {SECRET[:-2]}"}}]})
    loopback.script(sse(begun, then="drop"))
    heard: list[str] = []
    with pytest.raises(ProviderError) as caught:
        await sent(provider(loopback), STREAMED, heard.append)
    assert caught.value.detail["partial_text"] == "".join(heard).strip() == "the key is"


HALF = event({"choices": [{"index": 0, "delta": {"content": "half"}}]})
BEGUN = event({"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}})
BLOCK = event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
TEXT = event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "half"}})
OVERLOADED = event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})


@pytest.mark.parametrize(
    ("wire", "answer", "kind", "retryable"),
    [
        ("openai", sse(HALF, event({"error": {"message": "upstream", "code": 502}})), "server_error", True),
        ("openai", sse(HALF, event({"error": {"message": "slow", "code": 429}})), "rate_limited", True),
        ("openai", sse(HALF, event({"error": {"message": "no"}, "choices": []})), "provider_refused", False),
        ("openai", sse(HALF, b"data: {no json\n\n"), "malformed_reply", True),
        ("openai", sse(b"data: [1]\n\n"), "malformed_reply", True),
        ("openai", sse(b"data: [DONE]\n\n"), "malformed_reply", True),
        ("openai", sse(event({"choices": [{"delta": {"content": 5}}]})), "malformed_reply", True),
        ("openai", sse(event({"choices": [{"delta": {"tool_calls": [5]}}]})), "malformed_reply", True),
        ("openai", fails(503), "server_error", True),
        ("openai", raw(b"{no json"), "malformed_reply", True),
        ("anthropic", sse(BEGUN, BLOCK, TEXT, OVERLOADED), "server_error", True),
        ("anthropic", sse(TEXT), "malformed_reply", True),
        (
            "anthropic",
            sse(BEGUN, event({"type": "content_block_start", "index": [], "content_block": {}})),
            "malformed_reply",
            True,
        ),
        ("anthropic", sse(event({"type": "message_start"})), "malformed_reply", True),
        ("anthropic", sse(event({"type": "message_stop"})), "malformed_reply", True),
        ("anthropic", sse(BEGUN, BLOCK, event({"type": "content_block_delta", "index": 0})), "malformed_reply", True),
        ("anthropic", replies_json({"content": 7}), "malformed_reply", True),
    ],
)
async def test_what_goes_wrong_in_a_stream_has_its_kind(
    loopback: Loopback, wire: str, answer: Any, kind: str, retryable: bool
) -> None:
    loopback.script(answer)
    error = await failure(provider(loopback, wire), STREAMED)
    assert (error.kind, error.retryable) == (kind, retryable)
    assert error.detail.get("partial_text", "half") == "half"
    if error.detail.get("partial_text"):  # tokens were made: no status that says that nothing was
        assert error.status in (200, None)
    await loopback.wait_until_quiet()


async def test_a_beginning_of_a_count_is_no_count(loopback: Loopback) -> None:
    """Anthropic tells one output token at the start; where the end tells nothing, nobody knows how many."""
    end = event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    loopback.script(sse(BEGUN, BLOCK, TEXT, end, event({"type": "message_stop"})))
    reply = await sent(provider(loopback, "anthropic"), STREAMED)
    assert (reply.text, reply.usage) == ("half", Usage(input_tokens=5))


async def test_a_call_that_was_cut_off_keeps_its_text(loopback: Loopback) -> None:
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    loopback.script(
        sse(
            BEGUN,
            event({"type": "content_block_start", "index": 0, "content_block": call}),
            event(
                {
                    "type": "content_block_delta",
                    "index": 0,
                    "delta": {"type": "input_json_delta", "partial_json": '{"a": '},
                }
            ),
            event({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 3}}),
            event({"type": "message_stop"}),
        )
    )
    reply = await sent(provider(loopback, "anthropic"), STREAMED)
    assert (reply.tool_calls[0].arguments, reply.finish_reason) == ('{"a": ', "length")


@pytest.mark.parametrize("indexed", [True, False])
async def test_calls_of_servers_that_number_them_badly(loopback: Loopback, indexed: bool) -> None:
    """Some give every call the same index, some none; each has an id of its own."""
    where = {"index": 0} if indexed else {}

    def delta(**call: Any) -> bytes:
        return event({"choices": [{"delta": {"tool_calls": [{**where, **call}]}}]})

    loopback.script(
        sse(
            delta(id="a", function={"name": "f", "arguments": '{"x":'}),
            delta(function={"arguments": "1}"}),
            delta(id="b", function={"name": "g", "arguments": {"y": 2}}),
            event({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
            b"data: [DONE]\n\n",
        )
    )
    reply = await sent(provider(loopback), STREAMED)
    assert [(call.id, call.name, json.loads(call.arguments)) for call in reply.tool_calls] == [
        ("a", "f", {"x": 1}),
        ("b", "g", {"y": 2}),
    ]


@pytest.mark.parametrize("wire", WIRES)
async def test_an_endless_stream_is_refused(loopback: Loopback, wire: str) -> None:
    loopback.script(answers("word " * 20_000))
    error = await failure(provider(loopback, wire, max_reply_bytes=100_000), STREAMED)
    assert (error.kind, error.retryable) == ("reply_too_large", False)
    loopback.script(sse(*[b": nothing but comments\n\n" * 1000] * 10))
    error = await failure(provider(loopback, wire, max_reply_bytes=100_000), STREAMED)
    assert error.kind == "reply_too_large"
    await loopback.wait_until_quiet()


async def test_silence_within_a_stream_is_a_timeout(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm.providers.connections.SILENCE_SECONDS", 0.05)
    loopback.script(answers("hello", share=0.6, then="stall"))
    error = await failure(provider(loopback), STREAMED)
    assert (error.kind, error.retryable, error.detail["source"]) == ("timeout", True, "connection")
    await loopback.wait_until_quiet()


async def test_a_slow_stream_arrives(loopback: Loopback) -> None:
    loopback.script(answers("one two three", pause=0.01, piece=2))
    heard: list[str] = []
    assert (await sent(provider(loopback), STREAMED, heard.append)).text == "one two three"
    assert len(heard) == 7


@pytest.mark.parametrize("wire", WIRES)
async def test_a_key_that_is_echoed_in_a_stream_stays_out(loopback: Loopback, wire: str) -> None:
    loopback.script([answers(f"your key is {SECRET}", piece=9), answers(SECRET * 3, share=0.95, then="drop", piece=60)])
    to = provider(loopback, wire)
    reply = await sent(to, STREAMED)
    assert SECRET not in repr(reply)
    assert SECRET not in everything(await failure(to, STREAMED))
