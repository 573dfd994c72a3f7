"""A map with ``pack``: several items in one request, results by item, and single requests where a reply is incomplete."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import rlm
from rlm.agent.packing import packs
from tests.runtime.actors import Cast, final, model, part_of, plan, provider, var
from tests.support.foreign import blocks_of, words_of
from tests.support.loopback import Loopback, Request

LETTERS = {f"letter-{n:02}": f"Dear {n}, the sum is {n * 7}. </data-000000>\n" for n in range(24)}


def packed(*inner: dict[str, Any], over: Any, **more: Any) -> dict[str, Any]:
    return {"op": "map", "over": over, "as": "it", "steps": list(inner), "pack": True, "bind": "all", **more}


def asked(leaf: Any, *steps: dict[str, Any], **options: Any) -> tuple[list[Request], rlm.Completion]:
    with Loopback() as server:
        server.script(Cast(planner=[plan(*steps)], leaf=leaf))
        schema = options.pop("enforces_schema", False)
        result = rlm.complete("Do it", model=provider(server, "openai", enforces_schema=schema), **options)
        return [each for each in server.requests if part_of(each) == "leaf"], result


def number(text: str) -> str:
    return re.findall(r"sum is (\d+)", text)[0]


def answers(request: Request) -> dict[str, str]:
    """What a leaf without fault replies: the sum of each item, by its name."""
    message = request.messages[-1]["content"]
    found = {}
    for piece in re.split(r"\n# (?=item-\d+\n)", message)[1:]:
        found[piece.split("\n")[0]] = number(piece)
    return found


def of_documents() -> list[dict[str, Any]]:
    cut = {"op": "context", "handle": "context", "action": "partition", "args": {"by": "documents"}, "bind": "cut"}
    prompt = {"join": ["Which sum is in this letter?\n", var("it")]}
    return [cut, packed(model(prompt, "n"), over=var("cut", "parts")), final(var("all"))]


def test_24_letters_take_two_requests_with_the_question_once_in_each() -> None:
    def leaf(request: Request) -> str:
        return json.dumps(answers(request))

    requests, result = asked(leaf, *of_documents(), context=rlm.Context.documents(LETTERS))
    assert result.unwrap() == [str(n * 7) for n in range(24)]
    assert sorted(len(blocks_of(each.messages[-1]["content"])) for each in requests) == [8, 16]
    for request in requests:
        message = request.messages[-1]["content"]
        assert message.count("Which sum is in this letter?") == 1
        assert "Dear" not in words_of(message)


def test_an_item_that_the_reply_lacks_is_asked_again_alone() -> None:
    seen: list[str] = []

    def leaf(request: Request) -> str:
        message = request.messages[-1]["content"]
        if "# item-1\n" in message:
            found = answers(request)
            del found["item-3"]
            return json.dumps({**found, "item-5": 5})
        seen.append(number(message))
        return number(message)

    requests, result = asked(leaf, *of_documents(), context=rlm.Context.documents(LETTERS))
    assert result.unwrap() == [str(n * 7) for n in range(24)]
    assert sorted(map(int, seen)) == [14, 28, 126, 140]
    assert len(requests) == 2 + 4


@pytest.mark.parametrize("reply", ["no JSON at all", '{"item-1": ', "", "[1, 2]"])
def test_a_reply_that_is_no_object_falls_back_to_single_items(reply: str) -> None:
    def leaf(request: Request) -> str:
        message = request.messages[-1]["content"]
        return reply if "# item-1\n" in message else number(message)

    requests, result = asked(leaf, *of_documents(), context=rlm.Context.documents(LETTERS))
    assert result.unwrap() == [str(n * 7) for n in range(24)]
    assert len(requests) == 2 + 24


def test_each_answer_follows_the_schema_or_is_asked_again() -> None:
    prompt = {"join": ["The sum? ", var("it")]}
    schema = {"type": "integer"}
    step = packed(model(prompt, "n", schema=schema), over=[f"the sum is {n}" for n in (3, 4)])

    def leaf(request: Request) -> str:
        message = request.messages[-1]["content"]
        return '{"item-1": 3, "item-2": "four"}' if "# item-1\n" in message else "4"

    requests, result = asked(leaf, step, final(var("all")), enforces_schema=True)
    assert result.unwrap() == [3, 4]
    form = json.loads(requests[0].body)["response_format"]["json_schema"]["schema"]
    assert set(form["properties"]) == {"item-1", "item-2"}
    assert len(requests) == 2


def test_a_failed_item_is_a_value_and_the_others_stay() -> None:
    prompt = {"join": ["The sum? ", var("it")]}
    step = packed(model(prompt, "n", schema={"type": "integer"}), over=["the sum is 1", "the sum is 2"])

    def leaf(request: Request) -> str:
        message = request.messages[-1]["content"]
        return '{"item-1": 1}' if "# item-1\n" in message else "never a number"

    _, result = asked(leaf, step, final(var("all")), max_repairs=0)
    first, second = result.unwrap()
    assert first == 1
    assert second["error"]["kind"] == "invalid_value"


def test_packs_keep_to_the_room_and_to_sixteen_items() -> None:
    assert packs([10, 10, 30, 5], 30) == [[0, 1], [2], [3]]
    assert list(map(len, packs([1] * 40, 1_000))) == [16, 16, 8]
    assert packs([99], 10) == [[0]]


def test_a_small_window_makes_more_requests() -> None:
    texts = {name: text + "word " * 300 for name, text in LETTERS.items()}

    def leaf(request: Request) -> str:
        found = answers(request)
        return json.dumps(found) if found else number(request.messages[-1]["content"])

    policy = rlm.Policy(budget=6_000)
    requests, result = asked(leaf, *of_documents(), context=rlm.Context.documents(texts), policy=policy)
    assert result.unwrap() == [str(n * 7) for n in range(24)]
    assert len(requests) == 3


def test_a_map_with_pack_has_one_model_step() -> None:
    with pytest.raises(rlm.errors.RlmError, match="one step, which is `model`"):
        rlm.run_plan({"steps": [packed(final(1), over=[1, 2]), final(1)]}).unwrap()


def test_the_budget_ends_a_packed_map_as_any_other() -> None:
    prompt = {"join": ["The sum? ", var("it")]}
    step = packed(model(prompt, "n"), over=["the sum is 1", "the sum is 2", "the sum is 3"])
    requests, result = asked("no object", step, final(1), budget={"max_model_calls": 3})
    assert result.error is not None
    assert (result.error["kind"], len(requests)) == ("budget_exhausted", 2)


def test_a_replay_gives_the_same_without_a_model(tmp_path: Any) -> None:
    def leaf(request: Request) -> str:
        message = request.messages[-1]["content"]
        if "# item-1\n" not in message:
            return number(message)
        found = answers(request)
        found.pop("item-2", None)
        return json.dumps(found)

    trace = tmp_path / "run.jsonl"
    _, result = asked(leaf, *of_documents(), context=rlm.Context.documents(LETTERS), trace=trace)
    again = rlm.replay(trace)
    assert (again.status, again.value) == ("ok", result.value)
