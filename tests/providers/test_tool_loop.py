"""A conversation with calls and results in it, through ``rlm.ask``: the bytes that a server gets hold it as it is."""

from __future__ import annotations

from typing import Any

import pytest

import rlm
from rlm.errors import ConfigurationError
from rlm.providers import AnthropicProvider
from tests.compiler.test_messages import ANTHROPIC, CATALOG, OPENAI
from tests.support.loopback import Loopback
from tests.support.wires import answers


@pytest.mark.parametrize("tools", ["native", "text"])
@pytest.mark.parametrize("loop", [OPENAI, ANTHROPIC], ids=["openai", "anthropic"])
def test_calls_and_results_are_sent_as_they_are(loopback: Loopback, loop: list[dict[str, Any]], tools: Any) -> None:
    model = _model(loopback, loop is ANTHROPIC)
    loopback.script(answers("fine"))
    answer = rlm.ask("and tomorrow?", CATALOG, model=model, messages=loop, tools=tools)
    assert answer.status == "ok", answer.error
    (seen,) = loopback.requests
    sent = seen.json["messages"]
    assert sent[-1 - len(loop) :] == [*loop, {"role": "user", "content": "and tomorrow?"}]


@pytest.mark.parametrize("tools", ["native", "text"])
def test_a_conversation_of_another_wire_is_refused_before_anything_is_sent(loopback: Loopback, tools: Any) -> None:
    with pytest.raises(ConfigurationError) as refused:
        rlm.ask("x", CATALOG, model=_model(loopback, False), messages=ANTHROPIC, tools=tools)
    assert refused.value.kind == "other_wire"
    assert loopback.requests == []


def test_chat_takes_text_only(loopback: Loopback) -> None:
    with pytest.raises(ConfigurationError) as refused:
        rlm.chat(OPENAI, model=_model(loopback, False))
    assert refused.value.kind == "invalid_message"
    assert loopback.requests == []


def _model(loopback: Loopback, anthropic: bool) -> Any:
    if not anthropic:
        return f"{loopback.url}#m"
    return AnthropicProvider("m", loopback.anthropic_url, api_key=lambda: "key")
