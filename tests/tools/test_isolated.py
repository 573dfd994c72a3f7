"""A call in a process of its own: what it gets, what it gives, and that nothing of it is left."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

import rlm
from rlm.tools.outcome import Status
from tests.tools import handlers
from tests.tools.calls import call, kind
from tests.tools.handlers import tool

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).resolve().parents[2]


class Fifo:
    """A pipe by name: it ends when every process that holds it is dead."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = str(path)
        self._end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def lines(self, count: int) -> list[str]:
        """The next lines."""
        data = b""
        while data.count(b"\n") < count:
            data += self._chunk()
        return data.decode().split()

    def rest(self) -> bytes:
        """Everything up to the end, which must come soon."""
        data = b""
        while chunk := self._chunk():
            data += chunk
        return data

    def close(self) -> None:
        os.close(self._end)

    def _chunk(self) -> bytes:
        ready, _, _ = select.select([self._end], [], [], 20)
        assert ready, "somebody still holds the pipe"
        return os.read(self._end, 4096)


@pytest.fixture
def fifo(tmp_path: Path) -> Iterator[Fifo]:
    made = Fifo(tmp_path / "fifo")
    yield made
    made.close()


def children() -> set[str]:
    """The processes that this one started and did not wait for, zombies included."""
    return {child for task in Path("/proc/self/task").iterdir() for child in (task / "children").read_text().split()}


# -- what it gets and gives --------------------------------------------------------------------------


async def test_the_handler_runs_in_a_process_and_group_of_its_own_with_a_scrubbed_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "secret-1234")
    monkeypatch.setenv("LD_PRELOAD", "")
    monkeypatch.setenv("TICKETS", "77")
    outcome = await call(tool(handlers.whoami, environment=["TICKETS"]))
    value = outcome.value
    assert value["pid"] != os.getpid()
    assert value["group"] == value["session"] == value["pid"]
    assert value["environment"]["TICKETS"] == "77"
    assert value["environment"]["PATH"] == os.environ["PATH"]
    assert set(value["environment"]) <= {
        "PATH",
        "HOME",
        "LANG",
        "LANGUAGE",
        "LC_ALL",
        "LC_CTYPE",
        "TZ",
        "TMPDIR",
        "TICKETS",
    }
    assert "secret-1234" not in str(value)


async def test_arguments_and_result_are_what_they_are_in_a_thread() -> None:
    box = {"width": 2, "due": "2024-01-01"}
    assert (await call(tool(handlers.doubled), {"box": box})).value == {"width": 4, "due": "2024-01-01"}
    assert (await call(tool(handlers.awaited), {"text": "é"})).value == "É"
    text = "line\nline\u2028\x00é👍" * 3
    raw = tool(handlers.awaited, schema={"type": "object"})
    assert (await call(raw, {"text": text})).value == text.upper()
    assert (await call(tool(handlers.text_of, max_result_bytes=10**7), {"size": 3_000_000})).bytes == 3_000_002


async def test_a_decorated_handler_is_found_behind_its_tool() -> None:
    outcome = await call(handlers.note, {"text": "hello"})
    pid, _, said = outcome.value.partition(": ")
    assert (said, pid != str(os.getpid())) == ("hello", True)


async def test_a_handler_that_can_be_imported_keeps_its_state_and_environment() -> None:
    handlers.shelf.clear()
    for count in (1, 2):
        assert (await call(handlers.put, {"text": "a"})).value == count
    assert handlers.shelf == ["a", "a"]


async def test_what_the_handler_prints_is_no_answer_and_it_reads_nothing() -> None:
    assert (await call(tool(handlers.talkative))).value == ""


async def test_its_failures_are_told_as_those_of_a_thread() -> None:
    raised = await call(tool(handlers.raising))
    assert raised.error == {
        "phase": "tool",
        "kind": "handler_failed",
        "message": "tool:raising: KeyError: 'no such thing'",
        "detail": {"tool": "tool:raising", "exception": "KeyError"},
    }
    structured = await call(tool(handlers.structured))
    assert structured.error is not None
    assert (structured.error["kind"], structured.error["detail"]["page"]) == ("not_found", 7)
    left = await call(tool(handlers.leaving))
    assert left.error is not None
    assert left.error["detail"]["exception"] == "SystemExit"
    assert kind(await call(tool(handlers.object_of))) == "invalid_result"


async def test_a_process_that_dies_is_told_with_its_end() -> None:
    gone = await call(tool(handlers.gone), {"code": 3})
    assert gone.error is not None
    assert (gone.status, gone.error["kind"], gone.error["detail"]["exit"]) == (Status.FAILED, "handler_failed", 3)
    crashed = await call(tool(handlers.crashed))
    assert crashed.error is not None
    assert "SIGSEGV" in crashed.error["message"]


async def test_results_are_bounded_while_they_are_read() -> None:
    too_large = await call(tool(handlers.text_of, max_result_bytes=1000), {"size": 10_000_000})
    assert too_large.error is not None
    assert too_large.error["detail"] == {"tool": "tool:text_of", "bytes": 10_000_002, "limit": 1000}
    flood = await call(tool(handlers.flood, max_result_bytes=1000))
    assert flood.error is not None
    assert (flood.error["kind"], flood.error["detail"]["bytes"]) == ("result_too_large", None)
    head = await call(tool(handlers.list_of, max_result_bytes=1000, projection="head"), {"size": 10_000})
    assert head.value["head"][:3] == [0, 1, 2]
    schema = await call(tool(handlers.list_of, result_schema={"maxItems": 3}), {"size": 10})
    assert kind(schema) == "invalid_result"


# -- the end -----------------------------------------------------------------------------------------


async def test_a_handler_that_ignores_every_signal_and_its_grandchild_are_killed_at_the_limit(fifo: Fifo) -> None:
    before = children()
    outcome = await call(tool(handlers.stubborn, time_limit=4), {"fifo": fifo.path})
    assert (kind(outcome), outcome.abandoned) == ("timeout", False)
    assert outcome.seconds < 4.5
    assert len(set(fifo.rest().split())) == 2, "both had begun"
    assert children() == before


async def test_what_a_handler_leaves_behind_is_killed_when_it_has_answered(fifo: Fifo) -> None:
    before = children()
    outcome = await call(tool(handlers.leaves_one_behind), {"fifo": fifo.path})
    assert outcome.value == "done"
    fifo.rest()
    assert children() == before


async def test_an_end_without_an_answer_is_seen_though_a_grandchild_holds_the_pipe() -> None:
    outcome = await call(tool(handlers.orphaned), {"fifo": ""})
    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["detail"]["exit"]) == ("handler_failed", 7)


async def test_a_call_that_is_cancelled_from_outside_kills_its_process(fifo: Fifo) -> None:
    before = children()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, tool(handlers.stubborn), {"fifo": fifo.path})
        await anyio.to_thread.run_sync(fifo.lines, 2)
        tasks.cancel_scope.cancel()
    fifo.rest()
    assert children() == before


def test_a_call_dies_with_its_host(fifo: Fifo) -> None:
    code = """
import sys, anyio, rlm
from tests.tools import handlers
from tests.tools.calls import call
anyio.run(call, handlers.tool(handlers.stubborn), {"fifo": sys.argv[1]})
"""
    host = subprocess.Popen([sys.executable, "-c", code, fifo.path], cwd=ROOT)
    try:
        assert len(fifo.lines(2)) == 2
    finally:
        host.send_signal(signal.SIGKILL)
        host.wait()
    fifo.rest()


async def test_a_module_that_does_not_load_there_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "once.py").write_text(
        "import os\nif os.environ.get('HERE') is None: raise OSError('not here')\ndef f(): ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("HERE", "1")
    import once  # type: ignore[import-not-found]

    outcome = await call(tool(once.f))
    assert outcome.error is not None
    assert outcome.error["kind"] == "handler_failed"
    assert outcome.error["message"] == "tool:f: once:f cannot be imported: OSError: not here"
    assert (await call(tool(once.f, environment=["HERE"]))).ok


def test_isolation_is_of_the_tool_and_not_of_the_call() -> None:
    made: Any = tool(handlers.whoami)
    assert (made.isolated, made.place) == (True, "process")
    assert rlm.tool(effect="read")(handlers.whoami).place == "thread"
