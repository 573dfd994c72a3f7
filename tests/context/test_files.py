"""Large files and files that change: little memory, an end in time, and no harm to the process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from rlm.context.context import Context
from rlm.context.limits import ActionLimits
from rlm.context.store import Store
from rlm.errors import ContextError

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).resolve().parents[2]
GIGABYTE = 1 << 30
MOST_GROWTH_MB = 8
LIMIT, SLACK = 0.2, 0.2
"""Seconds for an action, and how many more it may take."""


@pytest.fixture
def sparse(tmp_path: Path) -> Path:
    """1 GB of NUL bytes that take no room, with a line near the end."""
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(GIGABYTE)
        file.seek(GIGABYTE - 100)
        file.write(b"\nneedle here\n")
    return path


def python(code: str, *args: object) -> Any:
    """What a fresh process prints, as JSON; it must end by itself with 0."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    return json.loads(done.stdout)


MEMORY = """
import anyio, json, sys
from rlm.errors import ContextError
from rlm.context.context import Context
from rlm.context.limits import ActionLimits
from rlm.context.store import Store

def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) / 1024

async def main():
    store = Store(limits=ActionLimits(seconds=float(sys.argv[2])))
    small = store.put("some text é", "small")
    questions = [
        ("info", {}), ("peek", {}), ("peek", {"by": "lines", "size": 5}), ("slice", {"by": "bytes", "start": -90}),
        ("slice", {"start": 500_000_000, "stop": 500_000_100}), ("search", {"literal": "needle"}),
        ("search", {"pattern": "n[e]+dle"}), ("search", {"pattern": "(a+)+$"}), ("count", {"by": "lines"}),
        ("partition", {"by": "characters", "size": 2_000_000}),
    ]
    for question in questions:  # what the first use of each loads is no part of the context
        await store.act(small, *question)
    before = peak()
    file = store.put(Context.files(sys.argv[1]))
    for question in questions:
        try:
            await store.act(file, *question)
        except ContextError as problem:
            assert problem.kind == "timeout", problem
    print(json.dumps(peak() - before))

anyio.run(main)
"""


def test_a_gigabyte_of_file_takes_a_few_megabytes_of_memory(sparse: Path) -> None:
    growth = python(MEMORY, sparse, 2.0)
    assert growth <= MOST_GROWTH_MB


def test_to_name_a_gigabyte_costs_nothing(sparse: Path) -> None:
    started = time.perf_counter()
    context = Context.files(*[sparse] * 50)
    Store().put(context)
    assert time.perf_counter() - started < 0.1
    assert context.size == GIGABYTE


@pytest.mark.parametrize(
    ("action", "arguments"),
    [
        ("search", {"literal": "nothing of this"}),
        ("search", {"pattern": "(a+)+$"}),
        ("search", {"pattern": r"\x00{200}a"}),
        ("search", {"literal": "NOTHING", "case": "fold"}),
        ("count", {"literal": "\x00"}),
        ("count", {"pattern": "\x00"}),
        ("count", {"by": "lines"}),
        ("slice", {"start": -5}),
        ("slice", {"by": "lines", "start": 1}),
        ("partition", {"by": "lines"}),
        ("partition", {"by": "headings"}),
        ("partition", {"by": "tokens", "size": 100_000}),
        ("info", {}),
    ],
)
async def test_every_action_on_a_gigabyte_ends_in_time(sparse: Path, action: str, arguments: dict[str, Any]) -> None:
    seconds, found = await quickest(Context.files(sparse), action, arguments)
    assert seconds <= LIMIT + SLACK
    if action == "slice":
        assert isinstance(found, ContextError)
        assert found.kind == "timeout"
    elif action == "info":
        assert found["estimated"] == ["characters", "lines", "tokens"]
    else:
        assert found["stopped_by"] in ("time", "bytes")
        assert found["truncated"] is True


@pytest.mark.parametrize("pattern", ["(x{1,30}){1,30}y", r"(?:\w\W?){1,300}z", r"(?:\pL){1,12}\d"])
async def test_a_slow_pattern_ends_in_time_too(pattern: str) -> None:
    seconds, found = await quickest(Context.text("x" * 20_000_000), "search", {"pattern": pattern})
    assert seconds <= LIMIT + SLACK
    assert found["matches"] == []


async def quickest(context: Context, action: str, arguments: dict[str, Any]) -> tuple[float, Any]:
    """The least seconds of three attempts, each with a fresh store, and what came last: others use this machine too."""
    seconds, found = [], None
    for _ in range(3):
        store = Store(limits=ActionLimits(seconds=LIMIT))
        await store.act(store.put("warm up", "small"), action, arguments)
        store.put(context)
        started = time.perf_counter()
        try:
            found = await store.act("context", action, arguments)
        except ContextError as problem:
            found = problem
        seconds.append(time.perf_counter() - started)
    return min(seconds), found


async def test_an_earlier_deadline_gives_what_was_found_until_then(sparse: Path) -> None:
    with sparse.open("r+b") as file:
        file.write(b"needle\n")
    store = Store()
    store.put(Context.files(sparse))
    with anyio.fail_after(0.6):
        found = await store.act("context", "search", {"literal": "needle"})
    assert [match["text"] for match in found["matches"]] == ["needle"]
    assert found["stopped_by"] == "time"


async def test_a_cancelled_action_leaves_no_thread_at_work(sparse: Path) -> None:
    store = Store(limits=ActionLimits(seconds=60))
    store.put(Context.files(sparse))
    with anyio.move_on_after(None) as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.act, "context", "count", {"pattern": "\x00"})
            while not working():
                await anyio.lowlevel.checkpoint()
            scope.cancel()
    with anyio.fail_after(1):
        while working():
            await anyio.lowlevel.checkpoint()


def working() -> bool:
    """Whether a thread is inside of an action."""
    for frame in sys._current_frames().values():
        here = frame
        while here is not None:
            if here.f_code.co_name == "_run_checked" and "rlm/context" in here.f_code.co_filename:
                return True
            here = here.f_back  # type: ignore[assignment]
    return False


async def test_the_event_loop_goes_on_while_an_action_works(sparse: Path) -> None:
    store = Store(limits=ActionLimits(seconds=0.5))
    store.put(Context.files(sparse))
    gaps = []

    async def tick() -> None:
        last = time.perf_counter()
        while True:
            await anyio.sleep(0.001)
            gaps.append(time.perf_counter() - last)
            last = time.perf_counter()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tick)
        await store.act("context", "search", {"pattern": "(a|b)+c"})
        tasks.cancel_scope.cancel()
    assert len(gaps) > 10
    assert max(gaps) < SLACK


# -- files that change ----------------------------------------------------------------------------------


async def test_a_file_that_became_shorter_is_an_error(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"line\n" * 200_000)
    store.put(Context.files(path))
    assert (await store.act("context", "count", {"literal": "line"}))["count"] == 200_000
    os.truncate(path, 100)
    for action, arguments in (("count", {"literal": "x"}), ("info", {}), ("slice", {"start": 500_000})):
        with pytest.raises(ContextError, match="has become shorter") as raised:
            await store.act("context", action, arguments)
        assert raised.value.kind == "unreadable"
    with pytest.raises(ContextError, match="has become shorter"):
        Context.digest(store.get("context").context)


async def test_what_is_appended_later_does_not_belong_to_it(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    store.put(Context.files(path))
    with path.open("ab") as file:
        file.write(b"two\n")
    assert await store.text("context", 100) == "one\n"


@pytest.mark.parametrize("how", ["replaced", "removed", "folder"])
async def test_another_file_under_the_name_is_an_error(store: Store, tmp_path: Path, how: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    store.put(Context.files(path))
    path.rename(tmp_path / "old")
    if how == "replaced":
        path.write_bytes(b"two\n")
    elif how == "folder":
        path.mkdir()
    with pytest.raises(ContextError) as raised:
        await store.text("context", 100)
    assert raised.value.kind == "unreadable"
    assert raised.value.detail["file"] == str(path)


SHRINKING = """
import anyio, json, os, sys, threading
from rlm.errors import ContextError
from rlm.context.context import Context
from rlm.context.limits import ActionLimits
from rlm.context.store import Store

path, size = sys.argv[1], 8 << 20
over = threading.Event()

def shrink():
    while not over.is_set():
        os.truncate(path, 1000)
        os.truncate(path, size)

async def main():
    thread = threading.Thread(target=shrink)
    kinds = []
    try:
        store = Store(limits=ActionLimits(seconds=1))
        store.put(Context.files(path))
        thread.start()
        while kinds.count("unreadable") < 5 and len(kinds) < 2000:
            try:
                await store.act("context", "search", {"pattern": "a+b"})
                kinds.append("ok")
            except ContextError as problem:
                kinds.append(problem.kind)
    finally:
        over.set()
        thread.join()
    print(json.dumps(sorted(set(kinds))))

anyio.run(main)
"""


def test_a_file_that_shrinks_while_it_is_read_does_not_end_the_process(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * (8 << 20))
    kinds = python(SHRINKING, path)
    assert "unreadable" in kinds
    assert set(kinds) <= {"ok", "unreadable"}


def test_a_mapped_file_that_shrinks_would_end_it(tmp_path: Path) -> None:
    """Why files are read and not mapped."""
    path = tmp_path / "log"
    path.write_bytes(b"x" * 100_000)
    code = "import mmap, os, sys; f = open(sys.argv[1], 'rb'); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)\n"
    done = subprocess.run(
        [sys.executable, "-c", code + "os.truncate(sys.argv[1], 0); m[50_000:]", str(path)], timeout=60, check=False
    )
    assert done.returncode < 0
