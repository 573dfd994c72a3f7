"""What a completion costs beside what the model costs: ours, alexzhang13's ``rlms``, ``dspy.RLM``, and a bare request.

All talk to one server on loopback that answers at once, and take turns, so that a busy machine slows all alike. Each
lives in a process (and the peers in an interpreter) of its own.

``completion_ms`` is the median over one question, one context and one request whose reply ends the run; ``floor_ms``
the same of a bare POST by a kept ``httpx`` client. Where the machine tells, the time in which a process was ready and
waited for a processor that others had is taken off, but never below the processor time that it took itself
(``cpu_ms``); ``wall_ms`` is what a clock on the wall said. ``fanout_s`` is the least wall time of a completion with
32 sub-calls of 200 ms, 16 at a time (``dspy.RLM`` has no more than 8), of which 0.4 s are the server's. ``first_s`` is
from the import to the first answer, ``import_s`` the import alone in a fresh process, ``rss_mb`` the most memory that
the process held.

Peers are installed on the first run without ``--quick`` (``bench/peers.py`` says where). A row of one that is not there
says why.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.common import emit, parser, progress
from bench.peers import PINNED, MissingPeer, environment, interpreter
from bench.systems import MODULES, replies

HERE = Path(__file__).parent
OWN = ("httpx", "rlm", "rlm-estimate")
BATCH = {"httpx": 20, "rlm": 5, "rlm-estimate": 5}
"""Completions of one turn; a peer makes one."""

_IMPORT = """
import time
def queued():
    try:
        return int(open("/proc/self/schedstat").read().split()[1]) / 1e9
    except OSError:
        return 0.0
began = time.perf_counter(), queued()
import {module}
print(time.perf_counter() - began[0] - (queued() - began[1]))
"""


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, help="turns that each takes; 10 with --quick, else 40")
    options.add_argument("--alone", action="store_true", help="without peers")
    said = options.parse_args()
    rounds = said.rounds or (10 if said.quick else 40)
    with answering() as url:
        systems, rows = started(url, peers=() if said.alone else tuple(PINNED), install=not said.quick)
        try:
            measure(systems, rounds, fanouts=max(1, min(rounds, 3 if said.quick else 7)))
        finally:
            for system in systems:
                system.stop()
    imports = imported(systems, 1 if rounds < 3 else 5 if said.quick else 15)
    floor = systems[0]
    emit("overhead", [*(row(system, floor, imports) for system in systems), *rows])


# -- processes ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def answering() -> Iterator[str]:
    """The base URL of a server that answers at once."""
    command = [sys.executable, str(HERE / "answering.py"), json.dumps(replies())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        finally:
            server.kill()


@dataclass
class System:
    """A process that completes when it is told to, and what it said."""

    name: str
    python: Path
    url: str
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    undisturbed: list[float] = field(default_factory=list)
    fanouts: list[float] = field(default_factory=list)
    first: float = 0.0
    rss_mb: float | None = None

    def __post_init__(self) -> None:
        command = [str(self.python), str(HERE / "systems.py"), self.name, self.url]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=self.env
        )
        try:
            self.first = self._told("first")["undisturbed"][0]
        except BaseException:
            self.stop()
            raise

    @property
    def env(self) -> dict[str, str]:
        """Ours is found beside this folder; a peer must not see it."""
        return environment() if self.name in PINNED else {**os.environ, "PYTHONPATH": str(HERE.parent)}

    def complete(self, times: int) -> None:
        told = self._told(str(times))
        self.wall += told["wall"]
        self.cpu += told["cpu"]
        self.undisturbed += told["undisturbed"]
        self.rss_mb = told["rss_mb"]

    def fan_out(self) -> None:
        told = self._told("fanout")
        self.fanouts += told.get("wall", [])
        self.rss_mb = told.get("rss_mb", self.rss_mb)

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _told(self, command: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(command, file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} gave up: run {' '.join(self._process.args[:3])} ...")  # type: ignore[index]
        told: dict[str, Any] = json.loads(line)
        return told


def started(url: str, *, peers: tuple[str, ...], install: bool) -> tuple[list[System], list[dict[str, Any]]]:
    """The systems that are here, and rows of those that are not."""
    systems = [System(name, Path(sys.executable), url) for name in OWN]
    rows: list[dict[str, Any]] = []
    for name in peers:
        progress(f"{name}: starting")
        try:
            systems.append(System(name, interpreter(name, install=install), url))
        except (MissingPeer, RuntimeError) as problem:
            progress(f"{name}: {problem}")
            rows.append({"system": name, "missing": str(problem)})
    return systems, rows


# -- measuring ----------------------------------------------------------------------------------------


def measure(systems: list[System], rounds: int, *, fanouts: int) -> None:
    """Turns: all systems complete in each, and in some of them fan out."""
    for number in range(rounds):
        for system in systems:
            system.complete(BATCH.get(system.name, 1))
        if number < fanouts:
            for system in systems:
                system.fan_out()
        if number % 5 == 0:
            progress(f"round {number + 1} of {rounds}")


def imported(systems: list[System], times: int) -> dict[str, float]:
    """Seconds of an import in a fresh process, by system, and of ``pydantic``, which ours needs: medians."""
    what = {system.name: (system.python, MODULES[system.name], system.env) for system in systems}
    what["pydantic"] = (Path(sys.executable), "pydantic", systems[0].env)
    seconds: dict[str, list[float]] = {name: [] for name in what}
    for number in range(times + 1):  # the first one warms the disk cache and does not count
        for name, (python, module, env) in what.items():
            if name in PINNED and number > 3:
                continue  # seconds each
            command = [str(python), "-c", _IMPORT.format(module=module)]
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=env, cwd="/")
            if number or times == 1:
                seconds[name].append(float(done.stdout.split()[-1]))
    progress("imports done")
    return {name: statistics.median(each) for name, each in seconds.items()}


def row(system: System, floor: System, imports: dict[str, float]) -> dict[str, Any]:
    """The figures of one system."""

    def ms(values: list[float]) -> float:
        return round(1000 * statistics.median(values), 2)

    made: dict[str, Any] = {
        "system": system.name,
        "completion_ms": ms(system.undisturbed),
        "floor_ms": ms(floor.undisturbed),
        "fanout_s": round(min(system.fanouts), 3) if system.fanouts else None,
        "import_s": round(imports[system.name], 3),
        "rss_mb": None if system.rss_mb is None else round(system.rss_mb, 1),
        "first_s": round(system.first, 2),
        "cpu_ms": ms(system.cpu),
        "wall_ms": ms(system.wall),
        "runs": len(system.wall),
    }
    if system.name in PINNED:
        made["version"] = PINNED[system.name]
    elif system.name == "rlm":
        made["import_to_pydantic"] = round(imports["rlm"] / imports["pydantic"], 2)
    return made


if __name__ == "__main__":
    main()
