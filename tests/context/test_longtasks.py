"""The tasks of the benchmark: the same from the same seed, of the size that was asked for, and solved by their plans."""

from __future__ import annotations

import json
from typing import Any

import pytest

import rlm
from bench.longtasks import KINDS, Task, answer, make
from rlm.compiler.tokens.token_counter import counter
from rlm.providers.base import ProviderRequest
from rlm.providers.scripted import ScriptedProvider


def text_of(task: Task) -> str:
    return "".join(member.body.read(0, member.body.size).decode() for member in task.context.members)


@pytest.mark.parametrize("kind", KINDS)
def test_a_task_is_made_by_its_seed_alone(kind: str) -> None:
    one, same, other = make(kind, 4_000, 1), make(kind, 4_000, 1), make(kind, 4_000, 2)
    assert (one.context.digest(), one.answer, one.plan) == (same.context.digest(), same.answer, same.plan)
    assert (one.context.digest(), one.answer) != (other.context.digest(), other.answer)


def test_a_task_is_the_same_on_every_machine() -> None:
    digests = {kind: make(kind, 4_000).context.digest()[:8] for kind in KINDS}
    assert digests == {
        "needle": "0e922dd5",
        "needles": "f32a82dc",
        "count": "af600e2a",
        "join": "2c6dc8e7",
        "groups": "9142e034",
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tokens", [4_000, 64_000])
def test_a_task_has_about_the_size_that_was_asked_for(kind: str, tokens: int) -> None:
    assert 0.8 * tokens < counter().count(text_of(make(kind, tokens))) < 1.3 * tokens


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("tokens", "seed"), [(4_000, 0), (4_000, 1), (32_000, 2)])
def test_the_plan_finds_the_answer(kind: str, tokens: int, seed: int) -> None:
    task = make(kind, tokens, seed)
    result = rlm.run_plan(task.plan, task.context, model=ScriptedProvider(replied(task)), budget=task.budget)
    assert (result.status, result.value) == ("ok", task.answer), result.error


@pytest.mark.parametrize("kind", KINDS)
def test_so_does_a_planner_who_writes_the_plan(kind: str) -> None:
    task = make(kind, 8_000)
    provider = ScriptedProvider(replied(task))
    result = rlm.complete(task.question, task.context, model=provider, budget=task.budget)
    assert (result.status, result.value) == ("ok", task.answer), result.error
    longest = max(len(body) for body in provider.bodies)
    assert kind == "groups" or longest < 24_000


def replied(task: Task) -> Any:
    def reply(request: ProviderRequest) -> str:
        return task.reply("\n".join(texts(request.parts)))

    return reply


def texts(value: Any) -> list[str]:
    """Every string in a request."""
    if isinstance(value, str):
        return [value]
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else []
    return [text for item in values for text in texts(item)]


def test_the_leaf_knows_its_own_requests_only() -> None:
    assert answer("What is the access code of Bafiden?") is None
    assert json.loads(
        answer('Add up these objects, key by key. Answer with one JSON object.\n\n[0]\n{"a": 1}\n\n[1]\n{"a": 2}') or ""
    ) == {"a": 3}
