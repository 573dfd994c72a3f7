"""A fork while others compile is an error in the child, and never a hang."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
import os, select, sys, threading, time
import rlm
from rlm.errors import EngineError
from rlm.providers import ScriptedProvider

catalog = rlm.Catalog([rlm.Unit(f"tool:a{number}", description=f"alpha beta {number}") for number in range(50)])
plan = '{"steps": [{"op": "final", "value": "ok"}]}'
if sys.argv[1] == "warm":
    rlm.compile(catalog, "alpha")
    rlm.complete("x", model=ScriptedProvider([plan])).unwrap()
over = threading.Event()

def compiles(thread):
    number = 0
    while not over.is_set():
        number += 1
        rlm.compile(catalog, f"alpha {thread} {number} beta {number % 50}")

threads = [threading.Thread(target=compiles, args=(number,), daemon=True) for number in range(4)]
for thread in threads:
    thread.start()
if sys.argv[1] == "cold":
    from rlm.symbolic import engine
    while not engine._process:  # until the first of them asks for Prolog
        time.sleep(0.001)

def told():
    try:
        rlm.compile(catalog, "alpha again")
    except EngineError as error:
        first = f"{error.kind} {'spawn' in error.message}"
    began = time.monotonic()
    catalog.add(rlm.Unit("tool:mine", description="of the child"))  # a lock that a thread of the parent may hold
    len(catalog.snapshot().units)
    catalog.destroy()
    words = [first]
    if sys.argv[1] == "warm":
        words.append(rlm.complete("x", model=ScriptedProvider([plan])).error["kind"])
    return " ".join(words)

for number in range(15):
    time.sleep(0.003 * number)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, told().encode())
        finally:
            os._exit(0)
    os.close(writer)
    ready, _, _ = select.select([reader], [], [], float(sys.argv[2]))
    print(os.read(reader, 999).decode() if ready else "hangs", flush=True)
    if not ready:
        os.kill(child, 9)
    os.waitpid(child, 0)
    os.close(reader)
over.set()
for thread in threads:
    thread.join()
"""

PATIENCE = "20"
"""Seconds for a child; on a quiet machine it needs some milliseconds."""


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="no fork")
@pytest.mark.parametrize(("state", "said"), [("warm", "forked True forked"), ("cold", "forked True")])
def test_fifteen_forks_while_four_threads_compile(state: str, said: str) -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(PROGRAM), state, PATIENCE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=170)
    assert done.stdout.splitlines() == [said] * 15, done.stderr
    assert done.returncode == 0


def test_a_child_of_a_process_that_only_imported_may_compile() -> None:
    code = """
    import os, rlm
    catalog = rlm.Catalog([rlm.Unit("tool:a", description="alpha")])
    child = os.fork()
    if child == 0:
        os._exit(0 if rlm.compile(catalog, "alpha").active == ("tool:a",) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert rlm.compile(catalog, "alpha").active == ("tool:a",)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=120)


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[1])))
import rlm
try:
    rlm.compile(rlm.Catalog([rlm.Unit("tool:a", description="alpha")]), "alpha")
except rlm.errors.EngineError as error:
    print(error.kind, error.message)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit")
@pytest.mark.parametrize("limit", [5, 8, 12])
def test_a_start_without_file_descriptors_says_so(limit: int) -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED, str(limit)], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("no_descriptors no file descriptors are left"), done.stderr
    assert "ulimit -n" in done.stdout
    assert "not found" not in done.stdout
