"""T14 and the rest of futures: waiting, working and ending are three things."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading

import anyio
import pytest

import rlm
from rlm.errors import AwaitTimeout, ConfigurationError, RunError
from rlm.providers.scripted import ScriptedProvider
from tests.runtime.actors import final, model, plan, provider
from tests.support.loopback import Loopback, stalls

OK = plan(final("ok"))


class Door:
    """What any thread opens, once, and any event loop waits for."""

    def __init__(self) -> None:
        self._opened: concurrent.futures.Future[None] = concurrent.futures.Future()

    def set(self) -> None:
        self._opened.set_result(None)

    async def wait(self) -> None:
        await asyncio.shield(asyncio.wrap_future(self._opened))


class Gate:
    """A provider that answers when it is told to, and counts."""

    def __init__(self) -> None:
        self.open = Door()
        self.asked = 0
        self.inside = 0
        self.most = 0
        self.provider = ScriptedProvider(self._answer)

    async def _answer(self, request):
        self.asked += 1
        self.inside += 1
        self.most = max(self.most, self.inside)
        await self.open.wait()
        self.inside -= 1
        return OK


def test_t14_a_wait_that_times_out_ends_only_the_waiting():
    gate = Gate()
    run = rlm.submit("x", model=gate.provider)
    with pytest.raises(AwaitTimeout) as raised:
        run.result(0.05)
    assert (raised.value.phase, raised.value.kind) == ("await", "await_timeout")
    assert isinstance(raised.value, TimeoutError)
    assert run.status in ("waiting", "running")
    gate.open.set()
    first = run.result(10)
    assert first.unwrap() == "ok"
    assert run.result(0) is first
    assert (gate.asked, run.status) == (1, "done")


def test_t14_awaiting_in_an_event_loop_too_and_again_gives_the_same_outcome():
    gate = Gate()

    async def main():
        run = rlm.submit("x", model=gate.provider)
        with pytest.raises(AwaitTimeout):
            await run.wait(0.05)
        with anyio.move_on_after(0.05):
            await run
        gate.open.set()
        first = await run
        return first, await run.wait(1), await run

    first, second, third = anyio.run(main)
    assert first is second is third
    assert gate.asked == 1


def test_t14_the_execution_deadline_is_another_thing():
    with Loopback(stalls()) as server:
        run = rlm.submit("x", model=provider(server, "openai"), budget={"time_limit": 0.3})
        outcome = run.result(10)
    assert (outcome.status, outcome.error["kind"], outcome.error["phase"]) == ("partial", "timeout", "runtime")


def test_cancel_ends_the_work_with_what_there_is():
    lines = iter([plan(model("a", "first"), model("b", "second"), final(1)), "found"])

    async def answer(request):
        line = next(lines, None)
        if line is None:
            await anyio.sleep_forever()
        return line

    script = ScriptedProvider(answer)
    run = rlm.submit("x", model=script)
    while len(script.requests) < 3:
        with pytest.raises(AwaitTimeout):
            run.result(0.01)
    run.cancel()
    outcome = run.result(10)
    assert (outcome.status, outcome.error["kind"], outcome.bound) == ("partial", "cancelled", {"first": "found"})


def test_one_that_waits_for_a_place_can_be_cancelled():
    gate = Gate()
    pool = rlm.Pool(running=1)
    first, second = (pool.submit(word, model=gate.provider) for word in ("a", "b"))
    assert second.status == "waiting"
    second.cancel()
    assert second.result(10).error["kind"] == "cancelled"
    assert (first.status, pool.running, pool.waiting) == ("running", 1, 0)
    gate.open.set()
    assert first.result(10).status == "ok"
    assert gate.asked == 1


def test_back_pressure_is_explicit():
    gate = Gate()
    pool = rlm.Pool(running=2, waiting=3)
    runs = [pool.submit(str(n), model=gate.provider) for n in range(5)]
    with pytest.raises(RunError) as raised:
        pool.submit("one too many", model=gate.provider)
    assert raised.value.kind == "pool_full"
    assert (pool.running, pool.waiting) == (2, 3)
    gate.open.set()
    assert [run.result(10).unwrap() for run in runs] == ["ok"] * 5
    assert gate.most <= 2
    assert pool.submit("there is room again", model=gate.provider).result(10).status == "ok"


def test_a_thousand_futures_cost_no_thread_each():
    gate = Gate()
    rlm.submit("warm", model=ScriptedProvider([OK])).result(10)
    before = threading.active_count()
    runs = [rlm.submit(str(n), model=gate.provider, skills="off") for n in range(1000)]
    assert threading.active_count() - before < 20
    gate.open.set()
    assert {run.result(120).value for run in runs} == {"ok"}
    assert gate.asked == 1000


def test_gather_and_as_completed():
    async def main():
        runs = [rlm.submit(f"number {n}", model=ScriptedProvider([plan(final(n))])) for n in range(8)]
        values = [outcome.value for outcome in await rlm.gather(*runs)]
        seen = {run.result(0).value async for run in rlm.as_completed(runs)}
        return values, seen

    values, seen = anyio.run(main)
    assert values == list(range(8))
    assert seen == set(range(8))


def test_gather_with_a_timeout_ends_nobody():
    gate = Gate()

    async def main():
        runs = [rlm.submit("x", model=gate.provider) for _ in range(3)]
        with pytest.raises(AwaitTimeout):
            await rlm.gather(*runs, timeout=0.05)
        gate.open.set()
        return await rlm.gather(*runs, timeout=30)

    assert [outcome.value for outcome in anyio.run(main)] == ["ok"] * 3


def test_a_misspelt_option_is_raised_at_once_and_a_wrong_word_of_the_host_at_the_result():
    with pytest.raises(ConfigurationError, match="did you mean"):
        rlm.submit("x", modle="openai:x")
    run = rlm.submit("x", model="no such model")
    for _ in range(2):
        with pytest.raises(ConfigurationError):
            run.result(10)
