"""A provider whose replies are written down."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

import rlm
from rlm.errors import ConfigurationError, ProviderError
from rlm.providers import ProviderReply, ProviderRequest, ScriptedProvider, ToolCall, Usage, resolve
from tests.providers.sending import WIRES, a_request, provider
from tests.support.loopback import Loopback

pytestmark = pytest.mark.anyio


async def ask(to: ScriptedProvider, text: str = "hello", **fields: Any) -> ProviderReply:
    request = a_request(text, **fields)
    return await to.send(request, to.encode(request))


async def test_lines_are_used_in_order_and_requests_are_remembered() -> None:
    whole = ProviderReply(text="two", tool_calls=(ToolCall(id="c", name="f", arguments="{}"),), finish_reason="length")
    to = ScriptedProvider(["one", whole, ProviderError("rate_limited", "slow", retryable=True)])
    first = await ask(to, "a")
    assert (first.text, first.finish_reason, first.usage, first.model) == (
        "one",
        "stop",
        Usage(output_tokens=1),
        "scripted",
    )
    assert await ask(to, "b") is whole
    with pytest.raises(ProviderError, match="slow"):
        await ask(to, "c")
    with pytest.raises(ProviderError, match="no reply for request 4") as caught:
        await ask(to, "d")
    assert (caught.value.kind, caught.value.retryable) == ("script_ended", False)
    assert caught.value.detail["unsent"] is True
    assert [request.parts["messages"][0]["content"] for request in to.requests] == ["a", "b", "c", "d"]
    assert to.bodies == [to.encode(request) for request in to.requests]


async def test_a_function_sees_the_request() -> None:
    def line(request: ProviderRequest) -> str | Exception:
        said = request.parts["messages"][-1]["content"]
        return said.upper() if said != "fail" else LookupError(said)

    async def later(request: ProviderRequest) -> str:
        await anyio.lowlevel.checkpoint()
        return line(request)  # type: ignore[return-value]

    for script in (line, later):
        to = ScriptedProvider(script)
        assert (await ask(to, "abc")).text == "ABC"
        with pytest.raises(LookupError):
            await ask(to, "fail")


async def test_a_line_that_never_comes_can_be_cancelled() -> None:
    async def never(request: ProviderRequest) -> str:
        await anyio.sleep_forever()
        return ""

    with anyio.move_on_after(0.05) as scope:
        await ask(ScriptedProvider(never))
    assert scope.cancelled_caught


async def test_usage_is_given_or_made_or_unknown() -> None:
    known = Usage(input_tokens=5, output_tokens=6)
    assert (await ask(ScriptedProvider(["x"], usage=known))).usage == known
    made = ScriptedProvider(["four"], usage=lambda request, text: Usage(output_tokens=len(text)))
    assert (await ask(made)).usage == Usage(output_tokens=4)
    own = ProviderReply(text="x", usage=Usage(input_tokens=1))
    assert (await ask(ScriptedProvider([own], usage=known))).usage == own.usage


async def test_the_text_is_told() -> None:
    heard: list[str] = []
    to = ScriptedProvider(["one", ""])
    for _ in range(2):
        request = a_request(delivery="streamed")
        await to.send(request, to.encode(request), heard.append)
    assert heard == ["one"]


@pytest.mark.parametrize("wire", WIRES)
def test_its_bytes_are_those_of_a_real_provider_with_the_same_wire(loopback: Loopback, wire: Any) -> None:
    to = ScriptedProvider([], wire=wire)
    for request in (a_request("é"), a_request(delivery="streamed"), a_request(response_format={"type": "object"})):
        assert to.encode(request) == provider(loopback, wire, enforces_schema=True).encode(request)


@pytest.mark.parametrize("wire", WIRES)
def test_it_answers_where_any_provider_does(wire: Any) -> None:
    house = rlm.Unit("instruction:house", content="Be brief.", activation="always")
    to = ScriptedProvider(["four"], wire=wire, window=20_000)
    assert resolve(to) is to
    answer = rlm.ask("two and two?", rlm.Catalog([house]), model=to)
    assert (answer.status, answer.text) == ("ok", "four")
    assert b"Be brief." in to.bodies[0]
    failed = rlm.ask("and again?", rlm.Catalog([house]), model=to)
    assert (failed.status, (failed.error or {})["kind"]) == ("failed", "script_ended")


def test_one_text_is_no_script() -> None:
    with pytest.raises(ConfigurationError, match=r"write \[text\]"):
        ScriptedProvider("four")
