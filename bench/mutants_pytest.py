"""Runs pytest again and again without the cost of its imports: one fork for each line of JSON on standard input.

    {"args": [...], "first": [test ids], "without": [test ids], "seconds": 60}

The answer is a line of JSON: ``noticed``, the first test that failed (empty if all passed), and ``tests``, a list of
``[test id, outcome, seconds]``. ``first`` names the tests to run before all others, ``without`` those to leave out.
``bench/mutation.py`` starts it in a copy of the checkout; Prolog starts in the fork, never here.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

WARM = ("hypothesis", "numpy", "pydantic", "httpx", "jsonschema", "rlm", "rlm.cli", "rlm.compiler", "rlm.testing")


class Order:
    """A pytest plugin: the order of the tests, and what became of them."""

    def __init__(self, first: list[str], without: list[str]) -> None:
        self.first, self.without = first, set(without)
        self.tests: list[tuple[str, str, float]] = []
        self.noticed = ""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        rank = {name: number for number, name in enumerate(self.first)}
        kept = [item for item in items if item.nodeid not in self.without]
        items[:] = sorted(kept, key=lambda item: rank.get(item.nodeid, len(rank)))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.noticed = self.noticed or f"{report.nodeid}: it does not load"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.tests.append((report.nodeid, report.outcome, report.duration))
        if report.failed:
            self.noticed = self.noticed or report.nodeid


def run(task: dict[str, Any], answer: Path) -> None:
    """In the fork: run pytest and write what became of it."""
    os.setpgid(0, 0)
    silence = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(silence, number)
    order = Order(task["first"], task["without"])
    code = pytest.main(task["args"], plugins=[order])
    noticed = order.noticed or ("" if code == 0 else f"pytest ended with {int(code)}")
    answer.write_text(json.dumps({"noticed": noticed, "tests": order.tests}), encoding="utf-8")
    os._exit(0)


def answers(lines: Iterator[str], answer: Path) -> Iterator[dict[str, Any]]:
    for line in lines:
        task = json.loads(line)
        answer.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            try:
                run(task, answer)
            finally:
                os._exit(1)
        end = time.monotonic() + task["seconds"]
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            if time.monotonic() > end:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                break
            time.sleep(0.02)
        late = time.monotonic() > end
        if answer.exists():
            yield json.loads(answer.read_text(encoding="utf-8"))
        else:
            yield {"noticed": "the tests did not end in time" if late else "the tests ended the process", "tests": []}


def main() -> None:
    for name in WARM:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    for row in answers(iter(sys.stdin.readline, ""), Path(sys.argv[1])):
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
