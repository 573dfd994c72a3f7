"""Mutation test of the rules: how many small changes of ``prolog/`` a test notices.

    python bench/mutation.py                       at least 400 changes, by seed, at least 10 a file
    python bench/mutation.py --files rlm_seal.pl --each 40
    python bench/mutation.py --known results.jsonl go on where an earlier run stopped

``bench/mutants.pl`` lists the changes. Each one is made in a copy of the checkout. Three stages look at it; the first
that fails names the test that noticed:

1. the rules load without a warning (a change that does not is ``invalid`` and counts for nothing);
2. plunit, every ``.plt`` file in one bare ``swipl``;
3. the tests of Python that look at the rules (``STAGE``), without those that only compare a golden file.

A change that nothing notices is a survivor. ``bench/equivalent_mutants.txt`` lists survivors that somebody has read
and found to mean the same as the original, one JSON object a line with ``file``, ``before``, ``after`` and ``why``.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.common import emit, parser, progress
from rlm.symbolic import locate

ROOT = Path(__file__).resolve().parents[1]
EQUIVALENT = ROOT / "bench" / "equivalent_mutants.txt"
COPIED = ("rlm", "prolog", "skills", "tests", "bench", "docs", "pyproject.toml", "README.md", "mkdocs.yml")
LINKED = (".venv", ".swipl")
STAGE = ("tests/engine/test_rules.py", "tests/compiler", "tests/laws", "tests/acceptance", "tests/tools/test_solver.py")
SECONDS = 900

Mutant = dict[str, Any]


def mutants(files: Iterable[str]) -> list[Mutant]:
    """Every change of these files of ``prolog/``, in the order of the text."""
    paths = [str(ROOT / "prolog" / name) for name in files]
    done = _swipl(ROOT, str(ROOT / "bench" / "mutants.pl"), "--", *paths)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def sample(found: Iterable[Mutant], seed: int, total: int, each: int) -> list[Mutant]:
    """``each`` changes of every file, or all where there are fewer, and then others until there are ``total``."""
    chooser = random.Random(seed)
    by_file: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in found:
        by_file[mutant["file"]].append(mutant)
    chosen: list[Mutant] = []
    others: list[Mutant] = []
    for name in sorted(by_file):
        rows = by_file[name]
        chooser.shuffle(rows)
        chosen += rows[:each]
        others += rows[each:]
    chooser.shuffle(others)
    return chosen + others[: max(0, total - len(chosen))]


class Copy:
    """A copy of the checkout in which one change at a time is made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            elif source.exists():
                shutil.copy2(source, folder / name)
        for name in LINKED:
            if (ROOT / name).exists():
                (folder / name).symlink_to(ROOT / name)

    def judged(self, mutant: Mutant) -> tuple[str, str]:
        """``invalid``, ``killed`` or ``survived``, and what noticed it."""
        path = self.folder / "prolog" / mutant["file"]
        original = path.read_text(encoding="utf-8")
        try:
            path.write_text(changed(original, mutant["edits"]), encoding="utf-8")
            return self._judged()
        finally:
            path.write_text(original, encoding="utf-8")

    def _judged(self) -> tuple[str, str]:
        loaded = _swipl(self.folder, "-g", "halt", str(self.folder / "prolog" / "rlm.pl"))
        if loaded.returncode != 0 or "Warning" in loaded.stderr or "ERROR" in loaded.stderr:
            return "invalid", loaded.stderr.strip()[:200]
        noticed = self._plunit() or self._pytest()
        return ("killed", noticed) if noticed else ("survived", "")

    def _plunit(self) -> str:
        driver = self.folder / "tests" / "prolog" / "run.pl"
        for file in sorted((self.folder / "tests" / "prolog").glob("*.plt")):
            done = _swipl(self.folder, str(driver), "--", "run", str(file))
            rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
            for row in rows:
                if row.get("result", "passed") != "passed":
                    return f"{file.name}::{row['unit']}:{row['name']}"
                if "trouble" in row:
                    return f"{file.name}: {row['trouble'][:200]}"
            if done.returncode != 0:
                return f"{file.name}: swipl ended with {done.returncode}"
        return ""

    def _pytest(self) -> str:
        command = [str(ROOT / ".venv" / "bin" / "python"), "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        command += ["-k", "not golden", *STAGE]
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                command,
                cwd=self.folder,
                env=environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "the tests did not end in time"
        if done.returncode == 0:
            return ""
        lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return lines[0].split(" - ")[0] if lines else f"pytest ended with {done.returncode}"


def changed(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """The text with these pieces replaced."""
    for start, end, piece in sorted(edits, reverse=True):
        text = text[:start] + piece + text[end:]
    return text


def key_of(mutant: Mapping[str, Any]) -> tuple[Any, ...]:
    """What names a change, wherever its file has grown since."""
    return mutant["file"], mutant["kind"], mutant["before"], mutant["after"]


def equivalents() -> set[tuple[Any, ...]]:
    """The changes that are known to mean the same as the original."""
    if not EQUIVALENT.exists():
        return set()
    rows = [json.loads(line) for line in EQUIVALENT.read_text(encoding="utf-8").splitlines() if line.startswith("{")]
    return {(row["file"], row["before"], row["after"]) for row in rows}


def _swipl(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [str(locate.find().swipl), "-q", "-f", "none", *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(arguments, 124, "", "swipl did not end in time")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--total", type=int, default=400)
    options.add_argument("--each", type=int, default=10, help="changes of every file, at least")
    options.add_argument("--files", nargs="*", default=None, help="only these files of prolog/")
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--known", type=Path, default=None, help="a file of results; read first, then added to")
    said = options.parse_args()
    names = said.files or sorted(path.name for path in (ROOT / "prolog").glob("*.pl"))
    chosen = sample(mutants(names), said.seed, 20 if said.quick else said.total, 1 if said.quick else said.each)
    rows = judge(chosen, said.jobs, said.known)
    report(rows)


def judge(chosen: list[Mutant], jobs: int, known: Path | None) -> list[Mutant]:
    """Each change with its ``result`` and ``noticed``."""
    rows: dict[tuple[Any, ...], Mutant] = {}
    if known is not None and known.exists():
        old = [json.loads(line) for line in known.read_text(encoding="utf-8").splitlines()]
        rows = {key_of(row): row for row in old}
    todo = [mutant for mutant in chosen if key_of(mutant) not in rows]
    progress(f"{len(chosen)} changes, {len(todo)} to be judged")
    with tempfile.TemporaryDirectory(prefix="rlm-mutation-") as folder, ThreadPoolExecutor(jobs) as pool:
        free = [Copy(Path(folder, str(number))) for number in range(jobs)]

        def judged(mutant: Mutant) -> Mutant:
            copy = free.pop()
            try:
                result, noticed = copy.judged(mutant)
            finally:
                free.append(copy)
            return {**mutant, "result": result, "noticed": noticed}

        for row in pool.map(judged, todo):
            rows[key_of(row)] = row
            if known is not None:
                with known.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
            progress(f"{row['result']:8} {row['file']}:{row['line']} {row['kind']} {row['noticed']}")
    return [rows[key_of(mutant)] for mutant in chosen]


def report(rows: list[Mutant]) -> None:
    """The kill rate by file, and every survivor."""
    same = equivalents()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    survivors = []
    for row in rows:
        result = row["result"]
        if result == "survived" and (row["file"], row["before"], row["after"]) in same:
            result = "equivalent"
        counts[row["file"]][result] += 1
        counts["all"][result] += 1
        if result == "survived":
            survivors.append(row)
    for name, count in sorted(counts.items()):
        counted = count["killed"] + count["survived"]
        share = f"{count['killed'] / counted:.1%}" if counted else "-"
        more = f"{count['equivalent']} equivalent, {count['invalid']} invalid"
        print(f"{name:28} {count['killed']:4} of {counted:4} {share:>7}   {more}", file=sys.stderr)
    for row in survivors:
        print(f"\n{row['file']}:{row['line']} {row['kind']}\n  {row['before']}\n  {row['after']}", file=sys.stderr)
    emit("mutation", [{"file": name, **count} for name, count in sorted(counts.items())], survivors=survivors)


if __name__ == "__main__":
    main()
