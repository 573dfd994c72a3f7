"""A real local model writes plans under the schema: llama.cpp takes it for a grammar, and what comes out follows it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import anyio
import jsonschema
import pytest

from rlm.plan import Frame, grammar_text, plan_schema, read
from rlm.providers import LocalProvider, ProviderRequest
from rlm.sending import gate
from tests.plan.test_reply import LEAF, MODEL_FRAME
from tests.plan.world import refusal

pytest.importorskip("xllamacpp")
pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def small() -> Iterator[LocalProvider]:
    """The small model, warm for the whole module."""
    provider = LocalProvider(window=4096)
    yield provider
    anyio.run(provider.aclose)


async def reply(provider: LocalProvider, question: str, frame: Frame) -> str:
    request = ProviderRequest(
        model=provider.model,
        parts={
            "messages": [
                {"role": "system", "content": grammar_text(frame)},
                {"role": "user", "content": question},
            ]
        },
        max_output_tokens=768,
        temperature=0,
        response_format=plan_schema(frame),
    )
    return (await gate.send(provider, request, deadline=anyio.current_time() + 150)).text


@pytest.mark.parametrize("question", ["How many errors are in the log?", "Add 2 and 3."])
async def test_p18_the_whole_language_is_a_grammar_that_llama_cpp_takes(small: LocalProvider, question: str) -> None:
    text = await reply(small, question, MODEL_FRAME)
    plan = json.loads(text)
    jsonschema.validate(plan, plan_schema(MODEL_FRAME))
    assert plan["steps"][-1]["op"] in ("final", "observe")
    error = refusal(read, text, MODEL_FRAME)  # which names are bound is more than a grammar can say
    found = {problem.kind for problem in error.problems} if error is not None else set()
    assert found <= {"unbound", "bound_twice", "invalid_argument"}


async def test_a_small_model_writes_a_valid_plan_in_a_small_language(small: LocalProvider) -> None:
    assert read(await reply(small, "Say hello.", LEAF), LEAF).data["steps"]
