"""Two hundred calls that end in every way leave no thread, process, task or file behind."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest

import rlm
from rlm.tools.work import Workers
from tests.tools import handlers
from tests.tools.calls import ALLOW, call
from tests.tools.handlers import tool
from tests.tools.test_isolated import children

pytestmark = pytest.mark.anyio


def counts() -> tuple[int, set[str], set[threading.Thread]]:
    """Open files, children and threads."""
    return len(os.listdir("/proc/self/fd")), children(), set(threading.enumerate())


@rlm.tool(effect="read", time_limit=0.05)
def sleepy(stop: rlm.Cancellation) -> None:
    stop.wait(30)


@rlm.tool(effect="read", time_limit=0.05)
async def forever() -> None:
    await anyio.sleep_forever()


@rlm.tool(effect="read")
def broken() -> None:
    raise OSError("no")


@rlm.tool(effect="read")
def quick(path: str) -> str:
    return Path(path).name


async def test_two_hundred_calls_leave_nothing_behind() -> None:
    hanging = tool(handlers.waiting, time_limit=0.2)
    ways: list[tuple[rlm.Tool, Any, rlm.Grant, int, str]] = [
        (quick, {"path": "a/b"}, ALLOW, 60, "ok"),
        (quick, {"path": 3}, ALLOW, 30, "invalid_arguments"),
        (broken, {}, ALLOW, 30, "handler_failed"),
        (sleepy, {}, ALLOW, 25, "timeout"),
        (forever, {}, ALLOW, 25, "timeout"),
        (handlers.note, {"text": "a"}, rlm.Grant(approve=lambda request: True), 12, "ok"),
        (handlers.note, {"text": "a"}, rlm.Grant(approve=lambda request: False), 6, "approval_denied"),
        (tool(handlers.gone), {"code": 1}, ALLOW, 4, "handler_failed"),
        (hanging, {}, ALLOW, 4, "timeout"),
        (tool(handlers.text_of, max_result_bytes=512), {"size": 10**6}, ALLOW, 4, "result_too_large"),
    ]
    for made, arguments, grant, _, _ in ways:  # what is loaded once is no leak
        await call(made, arguments, grant)
    workers = Workers(4)
    files, processes, threads = counts()
    tasks = asyncio.all_tasks()
    ended: Counter[tuple[str, str]] = Counter()

    async def one(made: rlm.Tool, arguments: Any, grant: rlm.Grant, wanted: str) -> None:
        outcome = await call(made, arguments, grant, workers=workers, seconds=100)
        ended[made.id, wanted] += (outcome.error or {"kind": "ok"})["kind"] == wanted

    async with anyio.create_task_group() as group:
        for made, arguments, grant, number, wanted in ways:
            for _ in range(number):
                group.start_soon(one, made, arguments, grant, wanted)

    assert sum(number for *_, number, _ in ways) == ended.total() == 200
    for thread in set(threading.enumerate()) - threads:
        thread.join(10)
    now = counts()
    assert now[:2] == (files, processes)
    assert now[2] <= threads  # idle ones of tests before may have gone meanwhile
    assert asyncio.all_tasks() == tasks
    assert (workers.abandoned, workers.free) == ((), 4)
