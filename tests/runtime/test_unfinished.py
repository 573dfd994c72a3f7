"""A reply that was cut, filtered, refused or empty is never a value, whoever wrote it and however it came."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

import rlm
from rlm.errors import ProviderError
from rlm.providers import AnthropicProvider, OpenAIProvider, ProviderReply, ProviderRequest, ScriptedProvider
from tests.support.loopback import Loopback
from tests.support.replies import replies_json, sse
from tests.support.wires import event

STEPS = {
    "steps": [{"op": "model", "prompt": "q", "bind": "a"}, {"op": "final", "value": {"var": "a"}}],
}
FINAL = '{"steps": [{"op": "final", "value": "ok"}]}'

KINDS = [
    ({"text": "The answer is fort", "finish_reason": "length"}, "reply_cut"),
    ({"text": "", "finish_reason": "length"}, "reply_cut"),
    ({"text": "The an", "finish_reason": "content_filter"}, "reply_filtered"),
    ({"text": "I cannot", "finish_reason": "refusal"}, "reply_refused"),
    ({"refusal": "I cannot", "finish_reason": "refusal"}, "reply_refused"),
    ({"text": "wait", "finish_reason": "pause"}, "reply_unfinished"),
    ({"text": "wait", "finish_reason": "unknown", "stop_word": "wat"}, "reply_unfinished"),
    ({"text": "", "finish_reason": "stop"}, "reply_empty"),
    ({"text": " \n", "finish_reason": "other"}, "reply_empty"),
    ({"text": "<think>hm", "finish_reason": "stop"}, "reply_empty"),
    ({"text": "<think>hm</think>", "finish_reason": "stop"}, "reply_empty"),
]


@pytest.mark.parametrize(("fields", "kind"), KINDS)
def test_a_leafs_incomplete_reply_fails_its_step_with_its_own_kind(fields: dict[str, Any], kind: str) -> None:
    result = rlm.run_plan(STEPS, model=ScriptedProvider([ProviderReply(**fields)]))
    assert (result.status, result.error["phase"], result.error["kind"]) == ("failed", "provider", kind)
    assert result.value is None


@pytest.mark.parametrize(("fields", "kind"), KINDS)
def test_a_planners_incomplete_reply_gets_a_repair_turn_that_says_so(fields: dict[str, Any], kind: str) -> None:
    text = (
        f"{FINAL} {fields['text']}"
        if fields.get("text", "").strip() not in ("", "<think>hm")
        else fields.get("text", "")
    )
    text = f"<think>{FINAL}</think>" if kind == "reply_empty" else text
    provider = ScriptedProvider([ProviderReply(**{**fields, "text": text}), FINAL])
    assert rlm.complete("q", model=provider).unwrap() == "ok"
    assert len(provider.bodies) == 2
    words = {"reply_cut": "was cut", "reply_empty": "holds no answer", "reply_filtered": "filter"}
    assert words.get(kind, "model") in provider.requests[1].parts["messages"][-1]["content"]


def test_a_reply_whose_end_a_provider_does_not_explain_is_whole() -> None:
    assert rlm.run_plan(STEPS, model=ScriptedProvider([ProviderReply(text="forty")])).unwrap() == "forty"


@pytest.mark.parametrize(("fields", "kind"), KINDS)
def test_chat_raises_for_a_reply_that_is_not_whole(fields: dict[str, Any], kind: str) -> None:
    with pytest.raises(ProviderError) as raised:
        rlm.chat([{"role": "user", "content": "q"}], model=ScriptedProvider([ProviderReply(**fields)]))
    assert raised.value.kind == kind


@pytest.mark.parametrize(("fields", "kind"), KINDS)
def test_an_answer_says_that_it_is_not_whole(fields: dict[str, Any], kind: str) -> None:
    with rlm.Catalog() as catalog:
        answer = rlm.ask("q", catalog, model=ScriptedProvider([ProviderReply(**fields)]), schema={"type": "object"})
    assert not answer.whole
    shown = kind in ("reply_cut", "reply_unfinished")
    assert answer.status == ("ok" if shown else "failed")
    assert (answer.error or {}).get("kind") == (None if shown else kind)
    assert answer.finish_reason == fields["finish_reason"]
    with pytest.raises(ValueError if shown else ProviderError):
        answer.json_value()


# -- on the wire ---------------------------------------------------------------------------------------


def chat(message: dict[str, Any], finish: str | None, **choice: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish, **choice}], "model": "m"}


def chunks(*deltas: dict[str, Any], finish: str | None = None, **choice: Any) -> Any:
    rows = [event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}) for delta in deltas]
    rows.append(event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish, **choice}]}))
    return sse(*rows, b"data: [DONE]\n\n")


def received(answer: Any, wire: str = "openai", delivery: Any = "whole") -> ProviderReply | Exception:
    kind = {"openai": OpenAIProvider, "anthropic": AnthropicProvider}[wire]
    parts = {"messages": [{"role": "user", "content": "q"}]}
    request = ProviderRequest(model="m", parts=parts, max_output_tokens=50, delivery=delivery)

    async def sent(url: str) -> ProviderReply:
        provider = kind("m", url)
        return await provider.send(request, provider.encode(request))

    with Loopback(answer) as server:
        try:
            return anyio.run(sent, server.anthropic_url if wire == "anthropic" else server.url)
        except ProviderError as problem:
            return problem


LOST = {"code": 502, "message": "Upstream idle timeout"}
FAILURES = [
    ("openai", "whole", replies_json(chat({"content": ""}, "error", error=LOST))),
    ("openai", "whole", replies_json(chat({"content": "par"}, None, error={"message": "lost"}))),
    ("openai", "whole", replies_json({"choices": [{"error": LOST, "finish_reason": "error"}]})),
    ("openai", "whole", replies_json(chat({"content": "par"}, "ERROR"))),
    ("openai", "streamed", chunks({"content": "par"}, finish="error")),
    ("openai", "streamed", chunks({"content": "par"}, finish="stop", error=LOST)),
    ("openai", "streamed", chunks({"content": "par"}, error=LOST)),
    ("anthropic", "whole", replies_json({"content": [{"type": "text", "text": "par"}], "stop_reason": "error"})),
]


@pytest.mark.parametrize(("wire", "delivery", "answer"), FAILURES)
def test_an_error_inside_a_reply_is_a_retryable_error(wire: str, delivery: str, answer: Any) -> None:
    problem = received(lambda _: answer, wire, delivery)
    assert isinstance(problem, ProviderError), problem
    assert (problem.kind, problem.retryable) == ("server_error", True)


def test_an_error_inside_a_reply_is_tried_again() -> None:
    answers = iter([FAILURES[0][2], replies_json(chat({"content": FINAL}, "stop"))])
    with Loopback(lambda _: next(answers)) as server:
        model = OpenAIProvider("m", server.url)
        assert rlm.complete("q", model=model, retry={"base": 0.001, "cap": 0.002}).unwrap() == "ok"


@pytest.mark.parametrize("delivery", ["whole", "streamed"])
def test_a_refusal_of_the_model_is_one_on_the_wire(delivery: str) -> None:
    whole = replies_json(chat({"content": None, "refusal": "I cannot help"}, "stop"))
    parts = chunks({"refusal": "I cannot "}, {"refusal": "help"}, finish="stop")
    reply = received(lambda _: parts if delivery == "streamed" else whole, delivery=delivery)
    assert isinstance(reply, ProviderReply)
    assert (reply.finish_reason, reply.refusal, reply.text) == ("refusal", "I cannot help", "")


def test_reasoning_parts_of_a_content_list_are_no_text() -> None:
    parts = [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "forty"}, {"type": "refusal", "refusal": ""}]
    reply = received(lambda _: replies_json(chat({"content": parts}, "stop")))
    assert isinstance(reply, ProviderReply)
    assert reply.text == "forty"
