"""The programs of ``docs/your-own-loop.md``, with the real SDKs, against a server on loopback."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from tests.docs.pages import ROOT, blocks
from tests.support.loopback import Loopback, answers

anthropic = pytest.importorskip("anthropic", reason="the package anthropic is not installed")
openai = pytest.importorskip("openai", reason="the package openai is not installed")

PAGE = ROOT / "docs" / "your-own-loop.md"


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """The names that the programs of the page define."""
    names: dict[str, Any] = {}
    for block in blocks(PAGE):
        if block.language == "python" and "def " in block.text:
            exec(compile(block.text, str(PAGE), "exec"), names)
    return names


WEATHER = ("weather", {"city": "Ulm"})


def script(count: int) -> list[Any]:
    """A model that calls the tool ``count`` times, and then answers."""
    return [*(answers("", tool_calls=[WEATHER]) for _ in range(count)), answers("It is 21 degrees.")]


def test_the_program_with_the_openai_sdk(page: dict[str, Any]) -> None:
    with Loopback(script(1)) as server:
        client = openai.OpenAI(base_url=server.url, api_key="key", max_retries=0)
        assert page["answer"](client, "How warm is it in the city of Ulm?") == "It is 21 degrees."
        first, second = (request.json for request in server.requests)
    assert [tool["function"]["name"] for tool in first["tools"]] == ["weather"]
    assert second["messages"][-1]["role"] == "tool"
    assert second["messages"][-1]["content"] == "21 degrees in Ulm"
    assert second["messages"][-2]["tool_calls"][0]["id"] == second["messages"][-1]["tool_call_id"]
    assert second["tools"] == first["tools"]
    assert second["messages"][: len(first["messages"])] == first["messages"]


def test_the_program_with_the_anthropic_sdk(page: dict[str, Any]) -> None:
    with Loopback(script(1)) as server:
        base = server.url.removesuffix("/v1")
        client = anthropic.Anthropic(base_url=base, api_key="key", max_retries=0)
        assert page["answer_with_claude"](client, "How warm is it in the city of Ulm?") == "It is 21 degrees."
        first, second = (request.json for request in server.requests)
    assert [tool["name"] for tool in first["tools"]] == ["weather"]
    (result,) = second["messages"][-1]["content"]
    assert (result["type"], result["content"]) == ("tool_result", "21 degrees in Ulm")
    assert second["messages"][-2]["content"][-1]["id"] == result["tool_use_id"]
    assert second["tools"] == first["tools"]


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_ten_turns_keep_the_tools_and_what_was_sent(page: dict[str, Any], wire: str) -> None:
    with Loopback(script(9)) as server:
        if wire == "openai":
            client: Any = openai.OpenAI(base_url=server.url, api_key="key", max_retries=0)
            said = page["answer"](client, "How warm is it in the city of Ulm?")
        else:
            client = anthropic.Anthropic(base_url=server.url.removesuffix("/v1"), api_key="key", max_retries=0)
            said = page["answer_with_claude"](client, "How warm is it in the city of Ulm?")
        requests = [request.json for request in server.requests]
    assert said == "It is 21 degrees."
    assert len(requests) == 10
    for before, after in pairwise(requests):
        assert json.dumps(after["tools"]) == json.dumps(before["tools"])
        assert after["messages"][: len(before["messages"])] == before["messages"] or wire == "anthropic"


def test_the_call_of_a_hidden_tool_is_refused_and_the_model_reads_why(page: dict[str, Any]) -> None:
    replies = [answers("", tool_calls=[("git_status", {})]), answers("I cannot look.")]
    with Loopback(replies) as server:
        client = openai.OpenAI(base_url=server.url, api_key="key", max_retries=0)
        assert page["answer"](client, "How warm is it in the city of Ulm?") == "I cannot look."
        told = json.loads(server.requests[1].json["messages"][-1]["content"])
    assert told["error"]["kind"] == "tool_not_visible"
    assert "weather" in told["error"]["message"]
