"""Many compiles in worker processes: the order, the same results, lost workers, and mistakes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

import rlm
from rlm.errors import ConfigurationError, EngineError
from tests.batches.fatal_scorer import embed

WORDS = [f"word{number}" for number in range(120)]


def catalog_of(size: int = 300) -> rlm.Catalog:
    random = Random(5)
    return rlm.Catalog(
        [rlm.Unit(f"tool:t{number}", description=" ".join(random.sample(WORDS, 6))) for number in range(size)]
    )


def queries_of(count: int) -> list[str]:
    random = Random(6)
    return [" ".join(random.sample(WORDS, 3)) for _ in range(count)]


@pytest.mark.parametrize("jobs", [2, 4])
def test_the_results_are_those_of_one_process_in_the_same_order(jobs: int) -> None:
    catalog, queries = catalog_of(), queries_of(90)
    policy = rlm.Policy(denied={"tool:t1*"}, budget=2_000)
    alone = rlm.batch(queries, catalog, jobs=1, policy=policy)
    assert [row.query for row in alone] == queries
    assert alone == [*rlm.batch(queries, catalog, jobs=jobs, policy=policy)]
    view = rlm.compile(catalog, queries[17], policy=policy)
    row = alone[17]
    assert (row.active, row.fingerprint, row.tokens) == (view.active, view.fingerprint, view.ledger.total)
    assert row.callable == tuple(view.callable)
    assert row.ok


def test_a_query_may_have_more_inputs_and_a_finished_request() -> None:
    catalog = rlm.Catalog([rlm.Unit("tool:git_diff", description="Show what changed in git")])
    rows = rlm.batch(
        [{"text": "and now?", "needs": ["show what changed in git"]}, "weather"], catalog, jobs=2, wire="openai"
    )
    assert rows[0].active == ("tool:git_diff",)
    assert rows[1].active == ()
    view = rlm.compile(catalog, "and now?", needs=["show what changed in git"])
    assert rows[0].request == view.messages("openai")


def test_a_query_that_cannot_be_compiled_ends_no_other() -> None:
    catalog = catalog_of(20)
    rows = rlm.batch(["word1", {"text": "word2", "history": [5]}, "word3"], catalog, jobs=2)
    assert [row.ok for row in rows] == [True, False, True]
    assert rows[1].error is not None
    assert rows[1].error["phase"] == "configuration"


def test_progress_is_told_up_to_the_end() -> None:
    seen: list[tuple[int, int]] = []
    rlm.batch(queries_of(40), catalog_of(20), jobs=2, on_progress=lambda done, all: seen.append((done, all)))
    assert seen[-1] == (40, 40)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def children() -> list[int]:
    """The worker processes of this one."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"rlm.batches.worker" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
    return found


def test_workers_that_are_killed_lose_no_row() -> None:
    catalog, queries = catalog_of(60), queries_of(3_000)
    expected = [row.fingerprint for row in rlm.batch(queries[:50], catalog, jobs=1)]
    random, killed, over = Random(3), [0], threading.Event()

    def kill() -> None:
        while not over.wait(0.15) and killed[0] < 20:
            found = children()
            if found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(random.choice(found), signal.SIGKILL)
                    killed[0] += 1

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        rows = rlm.batch(queries, catalog, jobs=3)
    finally:
        over.set()
        killer.join()
    assert killed[0] >= 3
    assert [row.query for row in rows] == queries
    assert sum(not row.ok for row in rows) == 0
    assert [row.fingerprint for row in rows[:50]] == expected
    assert children() == []


def test_a_row_that_ends_each_worker_is_given_up_and_named() -> None:
    catalog = rlm.Catalog([rlm.Unit("tool:a", description="word1"), rlm.Unit("tool:b", description="word2")])
    queries = ["word1", "a fatal word2", "word2", "a broken word1", *(f"word1 and {n}" for n in range(20))]
    rows = rlm.batch(queries, catalog, jobs=2, sensor=rlm.Sensor(embed, name="odd"))
    kinds = [None if row.error is None else row.error["kind"] for row in rows]
    assert kinds[1] == "worker_lost"
    assert kinds[0] is kinds[2] is None
    assert kinds[3] is not None
    assert kinds[4:] == [None] * 20
    assert rows[1].query == "a fatal word2"


def test_what_cannot_be_sent_to_a_worker_is_named() -> None:
    sensor = rlm.Sensor(lambda texts: [[1.0] for _ in texts], name="odd")
    with pytest.raises(ConfigurationError, match="the option 'sensor' cannot be sent to another process") as caught:
        rlm.batch(queries_of(10), catalog_of(5), jobs=2, sensor=sensor)
    assert caught.value.kind == "not_picklable"


class Unreadable:
    """Can be pickled and not read again."""

    def __reduce__(self) -> Any:
        return (int, ("no number",))


def test_a_worker_that_cannot_begin_is_an_error() -> None:
    with pytest.raises(EngineError, match="invalid literal for int") as caught:
        rlm.batch(queries_of(10), catalog_of(5), jobs=2, policy=Unreadable())
    assert caught.value.kind == "worker_failed"
    assert children() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("one text",), "queries: a list of queries is expected, not one str"),
        ((5,), "queries: a list of queries is expected, not int"),
        (([5],), r"queries\[0\]: a text or a mapping is expected, not int"),
        (([{"txt": "a"}],), r"queries\[0\]: no such input 'txt'; did you mean 'text'"),
    ],
)
def test_a_mistake_in_the_queries_is_named(arguments: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        rlm.batch(*arguments, catalog_of(3))


@pytest.mark.parametrize("options", [{"jobs": 0}, {"jobs": True}, {"engine": "proces"}, {"wire": "opena"}])
def test_a_mistake_in_the_options_is_named(options: Any) -> None:
    (name,) = options
    with pytest.raises(ConfigurationError, match=name):
        rlm.batch(["a", "b"], catalog_of(3), **options)


def test_a_script_needs_no_main_guard(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import rlm\n"
        "catalog = rlm.Catalog([rlm.Unit('tool:a', description='word one')])\n"
        "print([row.active for row in rlm.batch(['word', 'nothing'] * 8, catalog, jobs=2)][:2])\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout, done.stderr) == ("[('tool:a',), ()]\n", "")


def test_ctrl_c_ends_the_workers(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import signal\nimport rlm\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "catalog = rlm.Catalog([rlm.Unit(f'tool:a{n}', description=f'word {n}') for n in range(200)])\n"
        "rlm.batch([f'word {n}' for n in range(200_000)], catalog, jobs=2,\n"
        "          on_progress=lambda done, all: print(done, flush=True))\n"
    )
    process = subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode != 0
    assert said.decode().strip().endswith("KeyboardInterrupt")
    deadline = time.monotonic() + 10
    while _in_session(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _in_session(process.pid) == []


def _in_session(session: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(path.name))
    return found
