"""Plain functions over the async core."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import subprocess
import sys
import textwrap
import threading

import anyio
import pytest

from rlm.sync import run_sync
from tests.support.signals import sigint_heeded


async def thread_name() -> str:
    await anyio.lowlevel.checkpoint()
    return threading.current_thread().name


async def thread_id() -> int:
    return threading.get_ident()


def test_values_and_arguments_go_through() -> None:
    async def add(first: int, *, second: int) -> int:
        return first + second

    assert run_sync(add, 1, second=2) == 3


def test_errors_go_through() -> None:
    async def fail() -> None:
        raise LookupError("x")

    with pytest.raises(LookupError, match="x"):
        run_sync(fail)


def test_a_handler_that_exits_does_not_end_the_loop() -> None:
    async def leave() -> None:
        raise SystemExit(3)

    before = run_sync(thread_id)
    with pytest.raises(SystemExit):
        run_sync(leave)
    assert run_sync(thread_id) == before


def test_one_thread_serves_every_call() -> None:
    assert run_sync(thread_id) == run_sync(thread_id) != threading.get_ident()


def test_it_works_inside_a_running_event_loop() -> None:
    async def notebook() -> str:
        return run_sync(thread_name)

    assert asyncio.run(notebook()) == "rlm"


def test_it_works_inside_itself() -> None:
    async def handler() -> str:
        return run_sync(nested)

    async def nested() -> str:
        return run_sync(thread_name) + "/" + threading.current_thread().name

    assert run_sync(handler) == "rlm-nested/rlm-nested"


def test_it_works_from_many_threads_at_once() -> None:
    barrier = threading.Barrier(8)
    seen: list[int] = []

    async def give(number: int) -> int:
        await anyio.lowlevel.checkpoint()
        return number

    def work(number: int) -> None:
        barrier.wait()
        seen.append(run_sync(give, number))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(range(8))


def test_context_variables_are_the_callers() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")

    async def read() -> str:
        return variable.get()

    variable.set("mine")
    assert run_sync(read) == "mine"


def test_an_interruption_cancels_the_work_and_waits_for_its_end() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            await anyio.sleep_forever()
        finally:
            ended.append("cleaned up")

    with sigint_heeded(), pytest.raises(KeyboardInterrupt):
        run_sync(work)
    assert ended == ["cleaned up"]


def run(code: str) -> str:
    result = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore:This process:DeprecationWarning", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.stderr == ""
    assert result.returncode == 0
    return result.stdout


def test_an_interpreter_that_used_it_ends_in_silence() -> None:
    out = run("""
        import anyio, anyio.to_thread
        from rlm.sync import run_sync
        print(run_sync(anyio.to_thread.run_sync, str, 5))
    """)
    assert out == "5\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_starts_its_own() -> None:
    out = run("""
        import os, sys
        from rlm.sync import run_sync
        async def pid(): return os.getpid()
        assert run_sync(pid) == os.getpid()
        child = os.fork()
        if child == 0:
            os._exit(0 if run_sync(pid) == os.getpid() else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    assert out == "0\n"


def test_a_loop_that_ended_is_replaced_by_the_next_call() -> None:
    from rlm import sync

    async def here() -> str:
        return threading.current_thread().name

    assert sync.run_sync(here) == "rlm"
    sync._shared().stop()
    assert sync.run_sync(here) == "rlm"


def test_what_a_started_task_raises_ends_no_loop() -> None:
    from rlm import sync

    ended = threading.Event()

    async def leaves() -> None:
        ended.set()
        raise SystemExit(3)

    sync.spawn(leaves)
    assert ended.wait(10)
    assert sync.run_sync(leaves_nothing) == 1


async def leaves_nothing() -> int:
    return 1
