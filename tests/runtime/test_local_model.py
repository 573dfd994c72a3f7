"""A real model plays all parts: `rlm.complete` over HTTP against llama.cpp, planner, leaf and child.

The model is the small one. It cannot plan, and nothing here asks it to: what is looked at is whether everything holds
together when the words come from a real model under a real grammar.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anyio
import jsonschema
import pytest

import rlm
from rlm.providers import LocalProvider, ProviderReply, ProviderRequest
from rlm.trace.writer import Record

pytest.importorskip("xllamacpp")

WORD = {"type": "string", "minLength": 1, "maxLength": 40}


def step(op: str, **fields: Any) -> dict[str, Any]:
    fields = {"op": {"const": op}, **fields}
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def plan_of(*steps: dict[str, Any]) -> dict[str, Any]:
    size = len(steps)
    rows = {"type": "array", "prefixItems": list(steps), "minItems": size, "maxItems": size}
    return {"type": "object", "properties": {"steps": rows}, "required": ["steps"], "additionalProperties": False}


VAR = {"type": "object", "required": ["var"], "additionalProperties": False}
BOTH = {
    "type": "array",
    "prefixItems": [{**VAR, "properties": {"var": {"const": name}}} for name in ("found", "said")],
    "minItems": 2,
    "maxItems": 2,
}
SHAPES = {
    "You are a child of a larger run": plan_of(step("final", value=WORD)),
    "You plan for": plan_of(
        step("rlm", query=WORD, bind={"const": "found"}),
        step("model", prompt=WORD, bind={"const": "said"}),
        step("final", value=BOTH),
    ),
}


class Shaped(LocalProvider):
    """Leaves a planner the words and not the steps: a model of this size would not divide anything by itself.

    ``asked`` holds what the runtime wanted of each reply, by the reply.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.asked: dict[str, dict[str, Any] | None] = {}

    def encode(self, request: ProviderRequest) -> bytes:
        system = request.parts["messages"][0]["content"]
        shape = next((shape for begins, shape in SHAPES.items() if begins in system), request.response_format)
        return super().encode(request.model_copy(update={"response_format": shape}))

    async def send(self, request: ProviderRequest, body: bytes, on_text: Any = None) -> ProviderReply:
        reply = await super().send(request, body, on_text)
        self.asked[reply.text] = request.response_format
        return reply


@pytest.fixture(scope="module")
def small() -> Iterator[Shaped]:
    """The small model, warm for the whole module."""
    provider = Shaped(window=4096)
    yield provider
    anyio.run(provider.aclose)


OPTIONS: dict[str, Any] = {
    "policy": rlm.Policy(reserve_output=192),
    "skills": "off",
    "temperature": 0,
    "seed": 1,
    "max_repairs": 0,
    "budget": {"time_limit": 150},
}


def test_p18_a_real_model_is_planner_leaf_and_child_in_one_run(small: Shaped, tmp_path: Any) -> None:
    trace = tmp_path / "run.jsonl"
    result = rlm.complete("Say hello.", model=small, trace=trace, **OPTIONS)
    assert result.status == "ok", result.error
    found, said = result.value
    record = Record(trace)
    requests = record.of("request")
    assert [row["role"] for row in requests] == ["planner", "child", "leaf"]
    replies = [record.value(row["body"])["text"] for row in record.of("reply")]
    assert (json.loads(replies[1])["steps"][0]["value"], replies[2]) == (found, said)

    # each plan follows the runtime's own schema, not only the shape that it was poured into
    for text in replies[:2]:
        jsonschema.validate(json.loads(text), small.asked[text])
    assert [record.value(row["plan"])["steps"][-1]["op"] for row in record.of("plan")] == ["final", "final"]
    assert small.asked[replies[2]] is None

    # the child was told its task, by the model's own words
    steps = json.loads(replies[0])["steps"]
    messages = json.loads(record.body(requests[1]["body"]))["messages"]
    assert {"role": "user", "content": steps[0]["query"]}.items() <= messages[1].items()

    # what llama.cpp counted is what is reported
    usages = [row["usage"] for row in record.of("reply")]
    assert result.usage.input_tokens == sum(usage["input_tokens"] for usage in usages)
    assert result.usage.output_tokens == sum(usage["output_tokens"] for usage in usages)
    assert (result.usage.model_calls, result.usage.children, result.usage.estimated_tokens) == (3, 1, 0)
    assert all(row["reserved"][0] >= usage["input_tokens"] for row, usage in zip(requests, usages, strict=True))
    assert rlm.replay(trace).value == result.value


def test_a_real_model_under_the_runtimes_own_schema(small: Shaped, tmp_path: Any) -> None:
    """Whatever it makes of it: a plan that is run, or one that is refused for what no grammar can say."""
    trace = tmp_path / "run.jsonl"
    own = LocalProvider(window=4096)
    assert own.options == small.options  # the same server, and no shape
    result = rlm.complete("Say hello.", model=own, trace=trace, **OPTIONS)
    record = Record(trace)
    reply = record.value(record.of("reply")[0]["body"])
    sent = json.loads(record.body(record.of("request")[0]["body"]))["response_format"]["json_schema"]["schema"]
    refused = {problem["kind"] for row in record.of("refused") for problem in row["error"]["detail"]["problems"]}
    if reply["finish_reason"] == "length":  # a model of this size does not always find its end
        assert refused == {"reply_cut"}
    else:
        jsonschema.validate(json.loads(reply["text"]), sent)
        assert refused <= {"unbound", "bound_twice", "invalid_argument"}
    if result.status == "partial":  # a valid plan, sent again and again
        assert result.error is not None
        assert result.error["kind"] == "no_progress"
    else:
        assert result.status == ("failed" if refused else "ok")
