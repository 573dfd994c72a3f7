"""Consent: asked in both protocol eras, valid once, for one call; nothing runs without it."""

from __future__ import annotations

import base64
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_types import ElicitResult

from rlm.gateway.consent import Consents, Deed
from tests.gateway.support import ERAS, client, error, gateway, read, upstream

DEED = Deed.of("mcp_tool:git/push", "v1", {"remote": "origin"}, "r1", "default")
PUSH = {"name": "push", "args": {"remote": "origin"}}


async def accepts(ctx: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={})


async def declines(ctx: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="decline")


def test_a_consent_is_valid_once() -> None:
    consents = Consents(60)
    state = consents.issue(DEED)
    assert [consents.redeem(state, DEED) for _ in range(2)] == ["", "used"]


@pytest.mark.parametrize("field", ["tool", "version", "arguments", "settings", "profile"])
def test_a_consent_is_for_one_call(field: str) -> None:
    consents = Consents(60)
    assert consents.redeem(consents.issue(DEED), replace(DEED, **{field: "other"})) == "other_call"


def test_a_consent_expires() -> None:
    now = [1000.0]
    consents = Consents(60, clock=lambda: now[0])
    state = consents.issue(DEED)
    now[0] += 61
    assert consents.redeem(state, DEED) == "expired"


def test_of_200_forged_replayed_changed_or_expired_consents_none_is_valid() -> None:
    now, chance = [1000.0], random.Random(18)
    consents = Consents(60, clock=lambda: now[0])
    problems = set()
    for number in range(200):
        state = consents.issue(DEED)
        body, _, seal = state.rpartition(".")
        row = json.loads(base64.urlsafe_b64decode(body))
        way = number % 5
        if way == 0:
            row["arguments"] = chance.randbytes(32).hex()
            state = f"{base64.urlsafe_b64encode(json.dumps(row).encode()).decode()}.{seal}"
        elif way == 1:
            state = Consents(60, clock=lambda: now[0]).issue(DEED)
        elif way == 2:
            assert consents.redeem(state, DEED) == ""
        elif way == 3:
            now[0] += 61
        deed = replace(DEED, arguments="other") if way == 4 else DEED
        problem = consents.redeem(state, deed)
        assert problem
        problems.add(problem)
    assert problems == {"forged", "used", "expired", "other_call"}
    for junk in (None, 5, "", ".", "a.b", "é.é", "x" * 10_000):
        assert consents.redeem(junk, DEED) == "forged"


@pytest.mark.parametrize("era", ERAS)
def test_a_call_that_needs_consent_runs_after_yes_only(era: str, tmp_path: Path) -> None:
    count = tmp_path / "count"
    count.touch()
    questions: list[str] = []

    async def notes(ctx: Any, params: Any) -> ElicitResult:
        questions.append(params.message)
        return ElicitResult(action="accept", content={})

    with gateway({"git": upstream("git", RLM_TEST_COUNT=str(count))}, settings={"ask": ["git/push"]}) as made:

        async def run() -> None:
            async with client(made, era) as one:
                assert error(await one.call_tool("call_write", PUSH)) == "consent_unavailable"
            async with client(made, era, elicitation_callback=declines) as one:
                assert error(await one.call_tool("call_write", PUSH)) == "consent_declined"
            assert count.read_text() == ""
            async with client(made, era, elicitation_callback=notes) as one:
                assert not (await one.call_tool("call_write", PUSH)).is_error
                assert not (await one.call_tool("call_write", {"name": "git/status"})).is_error  # asks nothing
            assert count.read_text() == "push\nstatus\n"

        anyio.run(run)
    assert len(questions) == 1
    assert "git/push" in questions[0]
    assert '{"remote": "origin"}' in questions[0]


def test_a_forged_replayed_or_moved_consent_runs_nothing(tmp_path: Path) -> None:
    count = tmp_path / "count"
    count.touch()
    with gateway({"git": upstream("git", RLM_TEST_COUNT=str(count))}, settings={"ask": ["git/push"]}) as made:

        async def run() -> None:
            answers = {"consent": ElicitResult(action="accept", content={})}
            async with client(made, elicitation_callback=accepts) as one:

                async def call(state: str, remote: str = "origin") -> Any:
                    arguments = {"name": "push", "args": {"remote": remote}}
                    return await one.session.call_tool(
                        "call_write", arguments, request_state=state, input_responses=answers, allow_input_required=True
                    )

                first = await one.session.call_tool("call_write", PUSH, allow_input_required=True)
                state = first.request_state
                kinds = [error(await call(text)) for text in (state + "0", "x.y", "0" + state)]
                assert set(kinds) == {"consent_forged"}
                assert error(await call(state, "elsewhere")) == "consent_other_call"
                assert count.read_text() == ""
                assert not (await call(state)).is_error
                assert error(await call(state)) == "consent_used"
                assert count.read_text() == "push\n"

        anyio.run(run)


def test_a_changed_tool_is_reported_and_needs_a_new_consent(tmp_path: Path) -> None:
    changed, count = tmp_path / "changed", tmp_path / "count"
    count.touch()
    environment = {"RLM_TEST_CHANGED": str(changed), "RLM_TEST_COUNT": str(count)}
    with gateway({"git": upstream("git", **environment)}) as made:

        async def run() -> None:
            async with client(made) as one:
                assert not (await one.call_tool("call_write", PUSH)).is_error
                changed.touch()
                await made.upstreams.clients["git"].arefresh()
                refused = await one.call_tool("call_write", PUSH)
                assert error(refused) == "consent_unavailable"
                assert "changed" in read(refused)["error"]["message"]
            async with client(made, elicitation_callback=accepts) as one:
                assert not (await one.call_tool("call_write", PUSH)).is_error
            async with client(made) as one:
                assert not (await one.call_tool("call_write", PUSH)).is_error
            assert count.read_text() == "push\n" * 3

        anyio.run(run)
