"""Event loops and Ctrl-C: whoever stops waiting stops the goal, and the next call is served."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from rlm import imports
from tests.engine.conftest import SECONDS, Run
from tests.support.signals import sigint_heeded


def test_awaited_calls_leave_the_loop_free(python: Run) -> None:
    done = python(
        """
        import asyncio
        prolog = start()
        async def main():
            ticks = 0
            async def tick():
                nonlocal ticks
                while True:
                    await asyncio.sleep(0.01); ticks += 1
            ticker = asyncio.create_task(tick())
            assert await asyncio.gather(*(prolog.acall("ping", n) for n in range(50))) == list(range(50))
            try:
                await prolog.acall("loop", timeout=0.5)
            except EngineError as error:
                print(error.kind)
            ticker.cancel()
            print(ticks > 10)
            try:
                await prolog.acall("wrong", "type")
            except EngineError as error:
                print(error.kind)
        asyncio.run(main())
        """
    )
    assert done.stdout.splitlines() == ["timeout", "True", "type_error"]


def test_cancelling_the_await_cancels_the_goal(python: Run) -> None:
    done = python(
        """
        import asyncio
        prolog = start()
        async def main():
            running = asyncio.create_task(prolog.acall("loop"))
            waiting = asyncio.create_task(prolog.acall("loop"))
            await asyncio.sleep(0.2)
            began = time.monotonic()
            for task in (waiting, running):
                task.cancel()
                try:
                    await task
                except asyncio.CancelledError:
                    print("cancelled")
            print(await prolog.acall("ping", "next"), time.monotonic() - began < 5)
        asyncio.run(main())
        """
    )
    assert done.stdout.splitlines() == ["cancelled", "cancelled", "next True"]


def test_anyio_scopes_end_the_goal(python: Run) -> None:
    done = python(
        """
        import anyio
        prolog = start()
        async def main():
            with anyio.move_on_after(0.2) as scope:
                await prolog.acall("loop")
            print(scope.cancelled_caught, await prolog.acall("ping", "next"))
        anyio.run(main)
        """
    )
    assert done.stdout == "True next\n"


def test_a_loop_that_is_gone_when_the_reply_comes(python: Run) -> None:
    done = python(
        """
        import asyncio
        prolog = start()
        async def leave():
            asyncio.ensure_future(prolog.acall("spin", 3_000_000))
            await asyncio.sleep(0)
        loop = asyncio.new_event_loop()
        loop.run_until_complete(leave())
        for task in asyncio.all_tasks(loop): task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        print(prolog.call("ping", "next"))
        """
    )
    assert done.stdout == "next\n"


def test_ctrl_c_stops_the_goal_and_the_engine_goes_on(python: Run) -> None:
    done = python(
        """
        prolog = start()
        for operation in ("loop", "grow", "stubborn", "loop"):
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                for _ in range(1000):
                    kind(prolog.call, operation)
            except KeyboardInterrupt:
                print(operation, prolog.call("ping", "next"))
        """
    )
    assert done.stdout.splitlines() == [f"{name} next" for name in ("loop", "grow", "stubborn", "loop")]


def test_a_storm_of_ctrl_c_between_and_during_calls(python: Run) -> None:
    done = python(
        """
        prolog = start()
        storm = threading.Thread(
            target=lambda: [(time.sleep(0.005), os.kill(os.getpid(), signal.SIGINT)) for _ in range(100)]
        )
        storm.start()
        caught = 0
        while storm.is_alive():
            try:
                while True:
                    kind(prolog.call, "ping", [1] * 100)
                    kind(prolog.call, "spin", 20_000)
                    kind(prolog.call, "wrong", "type")
            except KeyboardInterrupt:
                caught += 1
        for _ in range(20):
            try:
                assert prolog.call("ping", "calm") == "calm"
            except KeyboardInterrupt:
                caught += 1
        print(caught > 10)
        """
    )
    assert done.stdout == "True\n"


def test_ctrl_c_while_prolog_starts(python: Run) -> None:
    done = python(
        """
        for delay in (0.005, 0.02, 0.05, 0.1):
            pid = os.fork()
            if pid == 0:
                threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
                for _ in range(3):
                    try:
                        prolog = engine()
                        time.sleep(0.2)
                        assert prolog.call("ping", "up") == "up"
                        os._exit(0)
                    except KeyboardInterrupt:
                        pass
                os._exit(9)
            assert os.waitpid(pid, 0)[1] == 0
        """
    )
    assert done.stdout == ""


STARTS = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
print("ready", flush=True)
import rlm
from rlm.providers import ScriptedProvider
catalog = rlm.Catalog([rlm.Unit("tool:a", description="alpha")])
plan, number, until = '{"steps": [{"op": "final", "value": "ok"}]}', 0, time.monotonic() + 60
while time.monotonic() < until:
    number += 1
    if sys.argv[1] == "compile":
        rlm.compile(catalog, f"alpha {number}")
    else:
        rlm.complete("x", model=ScriptedProvider([plan])).unwrap()
"""


@pytest.mark.parametrize("what", ["compile", "complete"])
def test_ctrl_c_ends_a_process_at_any_moment_from_the_first_import_on(what: str) -> None:
    """``RLM_STORM`` says how many processes are interrupted, each at a moment of its own in the first 3 seconds."""
    chance = random.Random(7)
    for _ in range(int(os.environ.get("RLM_STORM", "6"))):
        moment = chance.uniform(0, 3)
        process = subprocess.Popen(
            [sys.executable, "-c", STARTS, what], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(moment)  # the moment is what is tested
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)
        assert process.returncode in (-signal.SIGINT, 1), (moment, process.returncode, err)
        assert err.rstrip().endswith("KeyboardInterrupt"), (moment, err)
        assert "Exception ignored" not in err, (moment, err)


def test_ctrl_c_where_python_would_lose_it_or_an_extension_would_panic_comes_a_moment_later() -> None:
    def cb() -> None:  # the name of the import system's own callback
        signal.raise_signal(signal.SIGINT)
        arrived.append("after the callback")

    def lost() -> None:
        with imports.whole():
            cb()
            arrived.append("at the end")

    def kept() -> None:
        with imports.whole():
            signal.raise_signal(signal.SIGINT)
            arrived.append("never")

    arrived: list[str] = []
    for interrupted in (lost, kept):
        with sigint_heeded(), pytest.raises(KeyboardInterrupt):
            interrupted()
        assert arrived == ["after the callback", "at the end"]


def test_a_process_that_ignores_ctrl_c_goes_on_ignoring_it(python: Run) -> None:
    done = python(
        """
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=lambda: [(time.sleep(0.01), os.kill(os.getpid(), signal.SIGINT)) for _ in range(100)]).start()
        import rlm
        prolog = start()
        print(prolog.call("ping", "up"), signal.getsignal(signal.SIGINT) == signal.SIG_IGN)
        """
    )
    assert done.stdout == "up True\n"
