"""plunit inside pytest: each test of a ``.plt`` file is one pytest item.

A file runs once per session, in a bare ``swipl`` without Python. A test that left a choice point, or whose
condition was not true, fails; so does a file of which not every test ran.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm.symbolic import locate

DRIVER = Path(__file__).parent / "prolog" / "run.pl"
SECONDS = 150

Row = dict[str, Any]


def swipl(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """A bare SWI-Prolog: no init file, no input, text as UTF-8."""
    return subprocess.run(
        [str(locate.find().swipl), "-q", "-f", "none", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=SECONDS,
        check=False,
        **options,
    )


def drive(command: str, file: Path) -> list[Row]:
    """The driver's rows for one file; what it could not load is a row ``{"trouble": text}``."""
    done = swipl(DRIVER, "--", command, file)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0:
        rows.append({"trouble": done.stderr.strip() or f"swipl ended with {done.returncode}"})
    return rows


class PlunitFile(pytest.File):
    """One ``.plt`` file; knows the outcome of each of its tests once the first has been asked for."""

    _outcomes: dict[tuple[str, str, int], Row] | None = None
    trouble = ""
    collected = 0

    def collect(self) -> Iterator[pytest.Item]:
        rows = drive("list", self.path)
        tests = [row for row in rows if "unit" in row]
        self.collected = len(tests)
        names = [f"{row['unit']}:{row['name']}" for row in tests]
        for name, row in zip(names, tests, strict=True):
            unique = name if names.count(name) == 1 else f"{name}@{row['line']}"
            yield PlunitItem.from_parent(self, name=unique, row=row)
        yield WholeFile.from_parent(self, name="every_test_ran", rows=rows)

    def outcomes(self) -> dict[tuple[str, str, int], Row]:
        if self._outcomes is None:
            rows = drive("run", self.path)
            self._outcomes = {(row["unit"], row["name"], row["line"]): row for row in rows if "unit" in row}
            self.trouble = "\n".join(row["trouble"] for row in rows if "trouble" in row)
        return self._outcomes


class PlunitItem(pytest.Item):
    """One plunit test."""

    def __init__(self, *, row: Row, **rest: Any) -> None:
        super().__init__(**rest)
        self.row = row

    def runtest(self) -> None:
        assert isinstance(self.parent, PlunitFile)
        outcome = self.parent.outcomes().get((self.row["unit"], self.row["name"], self.row["line"]))
        if outcome is None:
            raise PlunitFailure(f"it did not run\n{self.parent.trouble}")
        if outcome["result"] != "passed":
            raise PlunitFailure(f"{outcome['result']}\n{outcome['message']}")

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        if isinstance(excinfo.value, PlunitFailure):
            return f"{self.path.name}:{self.row['line']}: {self.name}: {excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.row["line"] - 1, self.name


class WholeFile(pytest.Item):
    """That the file loads without a warning, has tests, and that as many ran as were collected."""

    def __init__(self, *, rows: list[Row], **rest: Any) -> None:
        super().__init__(**rest)
        self.rows = rows

    def runtest(self) -> None:
        trouble = [row["trouble"] for row in self.rows if "trouble" in row]
        if trouble:
            raise PlunitFailure("it does not load:\n" + "\n".join(trouble))
        assert isinstance(self.parent, PlunitFile)
        ran = [row for row in self.parent.outcomes().values() if row["result"] not in ("vanished", "blocked")]
        if not 0 < len(ran) == self.parent.collected:
            raise PlunitFailure(f"{self.parent.collected} tests were collected, {len(ran)} ran\n{self.parent.trouble}")

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        if isinstance(excinfo.value, PlunitFailure):
            return f"{self.path.name}: {excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name


class PlunitFailure(AssertionError):
    """A plunit test's own words; no Python traceback would add to them."""
