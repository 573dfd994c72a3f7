"""Mutation test of the rules: how many small changes of ``prolog/`` a test notices.

    python bench/mutation.py                       at least 400 changes, by seed, at least 10 a file
    python bench/mutation.py --files rlm_seal.pl --each 40
    python bench/mutation.py --known results.jsonl go on where an earlier run stopped

``bench/mutants.pl`` lists the changes. Each one is made in a copy of the checkout. Three stages look at it; the first
that fails names the test that noticed:

1. the file loads without a warning (a change that does not is ``invalid`` and counts for nothing);
2. plunit, in a fork of a bare ``swipl`` that has loaded everything, up to the first failure: the files of tests that
   are named like the changed one first;
3. the tests of Python that name a law, a row or a rule of the module (``STAGES``), with ``LAWS`` catalogs, in a fork
   of a process that has imported pytest (``bench/mutants_pytest.py``). No test that compares a golden file is among
   them. The tests that noticed the last changes of the same file run first. Tests that fail without a change (they
   count catalogs) or take longer than ``DEAR`` seconds are left out.

A change under which a stage does not end in time counts as killed, "did not end in time". A change that nothing
notices is a survivor. ``bench/equivalent_mutants.txt`` lists survivors that somebody has read and found to mean the
same as the original, one JSON object a line: what names the change (``key_of``), and ``why``.
"""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.common import emit, parser, progress
from rlm.symbolic import locate

ROOT = Path(__file__).resolve().parents[1]
EQUIVALENT = ROOT / "bench" / "equivalent_mutants.txt"
COPIED = ("rlm", "prolog", "skills", "tests", "bench", "docs", "pyproject.toml", "README.md", "mkdocs.yml")
LINKED = (".venv", ".swipl")
LAW_TESTS = ("tests/laws/test_laws.py", "tests/laws/test_order.py")
STAGES: dict[tuple[str, ...], tuple[str, ...]] = {
    ("rlm_select", "rlm_admit", "rlm_closure", "rlm_conflict", "rlm_eligible"): LAW_TESTS,
    ("rlm_seal", "rlm_explain", "rlm_reply"): (*LAW_TESTS, "tests/compiler/test_explain.py"),
    ("rlm_hidden", "rlm_origin", "rlm_fairness"): (
        "tests/compiler/test_hidden.py",
        "tests/compiler/test_third_parties.py",
    ),
    ("rlm_session", "rlm_session_read"): (
        "tests/compiler/test_session_file.py",
        "tests/compiler/test_session_damage.py",
    ),
    ("rlm_tokens", "rlm_token_number", "rlm_token_text"): ("tests/engine/test_tokens.py",),
    ("rlm", "rlm_repl"): ("tests/cli/test_repl.py",),
    ("rlm_bridge", "rlm_plain"): ("tests/engine/test_values.py",),
    ("rlm_load",): ("tests/engine/test_load.py", "tests/engine/test_rules.py"),
    ("rlm_catalog",): ("tests/compiler/test_catalog.py", "tests/compiler/test_mistakes.py"),
    ("rlm_host", "rlm_host_check", "rlm_host_goals", "rlm_host_read", "rlm_host_rule", "rlm_host_words"): (
        "tests/compiler/test_host_rules.py",
    ),
    ("rlm_solve", "rlm_fd", "rlm_problem"): ("tests/tools/test_solver.py",),
    ("rlm_rank", "rlm_evidence", "rlm_examples", "rlm_meant", "rlm_named"): (
        *("tests/compiler/test_evidence_kinds.py", "tests/compiler/test_raised.py", "tests/compiler/test_sensor.py"),
        "tests/laws/test_laws.py",
    ),
    ("rlm_index", "rlm_words", "rlm_letters", "rlm_stopwords", "rlm_thesaurus"): (
        *("tests/compiler/test_postings.py", "tests/compiler/test_evidence_kinds.py"),
    ),
}
"""The tests of Python that look at a change of these modules; of any other, ``tests/laws/test_laws.py`` does."""

OWN = {
    "rlm_bridge.plt": ("rlm_bridge", "rlm_plain"),
    "rlm_solve.plt": ("rlm_solve", "rlm_fd", "rlm_problem"),
    "rlm_host.plt": (
        "rlm_host",
        "rlm_host_check",
        "rlm_host_goals",
        "rlm_host_read",
        "rlm_host_rule",
        "rlm_host_words",
    ),
}
"""Files of plunit that are dear: they look at changes of their own modules only."""

LAWS = 40
DEAR = 4.0
PLUNIT_SECONDS = 40
SECONDS = 150

Mutant = dict[str, Any]


def mutants(files: Iterable[str]) -> list[Mutant]:
    """Every change of these files of ``prolog/``, in the order of the text."""
    paths = [str(ROOT / "prolog" / name) for name in files]
    done = _swipl(ROOT, str(ROOT / "bench" / "mutants.pl"), "--", *paths)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    texts = {Path(path).name: Path(path).read_text(encoding="utf-8") for path in paths}
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return [placed(mutant, texts[mutant["file"]]) for mutant in found]


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
        random.Random(f"{seed} {name}").shuffle(rows)  # whatever other files are asked for
        chosen += rows[:each]
        others += rows[each:]
    chooser.shuffle(others)
    return chosen + others[: max(0, total - len(chosen))]


class Copy:
    """A copy of the checkout in which one change at a time is made."""

    def __init__(self, folder: Path, prolog_only: bool = False) -> None:
        self.folder = folder
        self.prolog_only = prolog_only
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            elif source.exists():
                shutil.copy2(source, folder / name)
        for name in LINKED:
            if (ROOT / name).exists():
                (folder / name).symlink_to(ROOT / name)
        self.killers: dict[str, list[str]] = defaultdict(list)
        self.without: dict[tuple[str, ...], list[str]] = {}
        self.server: subprocess.Popen[str] | None = None
        self.prolog: subprocess.Popen[bytes] | None = None

    def judged(self, mutant: Mutant) -> tuple[str, str]:
        """``invalid``, ``killed`` or ``survived``, and what noticed it."""
        if self.prolog is None:  # before the change is made: what this process loads is what every fork begins with
            self.prolog = self._started_prolog()
        if not self.prolog_only:
            self.measure(Path(mutant["file"]).stem)
        path = self.folder / "prolog" / mutant["file"]
        original = path.read_text(encoding="utf-8")
        try:
            path.write_text(changed(original, mutant["edits"]), encoding="utf-8")
            return self._judged(mutant["file"])
        finally:
            path.write_text(original, encoding="utf-8")

    def _judged(self, file: str) -> tuple[str, str]:
        row = self._plunit(file)
        if "unit" in row:
            return "killed", f"{Path(row['file']).name}::{row['unit']}:{row['name']}"
        if "trouble" in row:
            return "invalid", row["trouble"][:200]
        if "died" in row:
            return "killed", row["died"]
        noticed = "" if self.prolog_only else self._pytest(file)
        return ("killed", noticed) if noticed else ("survived", "")

    def _plunit(self, file: str) -> dict[str, Any]:
        """What plunit makes of the copy as it is: the answer of ``tests/prolog/run.pl``, or ``died``."""
        folder = self.folder / "tests" / "prolog"
        module = Path(file).stem
        own = [name for name, modules in OWN.items() if module in modules]
        rest = [path.name for path in folder.glob("*.plt") if path.name not in OWN]
        rest.sort(key=lambda name: (-shared_start(module, Path(name).stem), name))
        assert self.prolog is not None
        assert self.prolog.stdin is not None
        assert self.prolog.stdout is not None
        names = ",".join(f"'tests/prolog/{name}'" for name in [*own, *rest])
        self.prolog.stdin.write(f"judge('prolog/{file}',[{names}]).\n".encode())
        row: dict[str, Any] | None = None
        end = time.monotonic() + PLUNIT_SECONDS
        while row is None and select.select([self.prolog.stdout], [], [], max(0.0, end - time.monotonic()))[0]:
            line = self.prolog.stdout.readline()
            if line.startswith(b"{"):
                row = json.loads(line)
            elif not line:
                break
        if row is None:
            os.killpg(self.prolog.pid, signal.SIGKILL)
            self.prolog.wait()
            self.prolog = None
        return {"died": "plunit did not end in time"} if row is None else row

    def _started_prolog(self) -> subprocess.Popen[bytes]:
        files = sorted(path.name for path in (self.folder / "tests" / "prolog").glob("*.plt"))
        process = subprocess.Popen(
            [str(locate.find().swipl), "-q", "-f", "none", "tests/prolog/run.pl", "--", "serve"]
            + [f"tests/prolog/{name}" for name in files],
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,  # what select() waits for must not stand in a buffer of Python already
            start_new_session=True,
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        while line and not line.startswith(b"{"):
            line = process.stdout.readline()
        if line.strip() != b"{}":
            raise SystemExit(f"plunit does not start: {line.decode()}")
        return process

    def _pytest(self, file: str) -> str:
        stage = stage_of(Path(file).stem)
        noticed = str(self._python_tests(stage, self.killers[file])["noticed"])
        if noticed:
            first = [name for name in self.killers[file] if name != noticed]
            self.killers[file] = [noticed, *first][:8]
        return noticed

    def _python_tests(self, stage: tuple[str, ...], first: list[str], measure: bool = False) -> dict[str, Any]:
        if self.server is None:
            self.server = self._started()
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", "not golden", "-o", "addopts="]
        options += ["--import-mode=importlib", *([] if measure else ["-x"]), *stage]
        task = {"args": options, "first": first, "without": self.without.get(stage, []), "seconds": SECONDS}
        self.server.stdin.write(json.dumps(task) + "\n")
        self.server.stdin.flush()
        answer: dict[str, Any] = json.loads(self.server.stdout.readline())
        return answer

    def measure(self, module: str) -> None:
        """Find the tests of a module's stage that fail without a change, and the dear ones: they are left out."""
        stage = stage_of(module)
        if stage in self.without:
            return
        sums: Counter[str] = Counter()
        bad = set()
        answer = self._python_tests(stage, [], measure=True)
        for name, outcome, seconds in answer["tests"]:
            if not name.startswith("tests/laws/test_laws.py::test_l1"):  # it pays for the survey that others share
                sums[name] += seconds
            if outcome == "failed":
                bad.add(name)
        dear = {name for name, seconds in sums.items() if seconds > DEAR}
        self.without[stage] = sorted(bad | dear)
        kept = sum(seconds for name, seconds in sums.items() if name not in dear)
        progress(f"{stage}: {len(sums)} tests, {kept:.0f} s; without {self.without[stage]} {answer['noticed'][:80]}")

    def _started(self) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "RLM_LAWS": str(LAWS)}
        return subprocess.Popen(
            [str(ROOT / ".venv" / "bin" / "python"), "bench/mutants_pytest.py", str(self.folder / "answer.json")],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        if self.prolog is not None:
            os.killpg(self.prolog.pid, signal.SIGKILL)
            self.prolog.wait()
        if self.server is not None and self.server.stdin is not None:
            self.server.stdin.close()
            self.server.wait()


def shared_start(first: str, second: str) -> int:
    """How many characters two names have in common from their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def stage_of(module: str) -> tuple[str, ...]:
    """The files of tests of Python for a module of ``prolog/``."""
    found = [stage for modules, stage in STAGES.items() if module in modules]
    return found[0] if found else ("tests/laws/test_laws.py",)


def changed(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """The text with these pieces replaced."""
    for start, end, piece in sorted(edits, reverse=True):
        text = text[:start] + piece + text[end:]
    return text


def key_of(mutant: Mapping[str, Any]) -> tuple[Any, ...]:
    """The name of a change, wherever its file has grown since: its line and the place in it tell it from others."""
    return mutant["file"], mutant["context"], mutant["column"], mutant["before"], mutant["after"]


def placed(mutant: Mutant, text: str) -> Mutant:
    """The change with the line of the text in which it begins, and the column there."""
    start = mutant["edits"][0][0]
    begin, end = text.rfind("\n", 0, start) + 1, text.find("\n", start)
    line = text[begin : end if end >= 0 else len(text)]
    return {**mutant, "context": line.strip(), "column": start - begin - (len(line) - len(line.lstrip()))}


def equivalents() -> set[tuple[Any, ...]]:
    """The changes that are known to mean the same as the original."""
    if not EQUIVALENT.exists():
        return set()
    rows = [json.loads(line) for line in EQUIVALENT.read_text(encoding="utf-8").splitlines() if line.startswith("{")]
    return {key_of(row) for row in rows}


def _swipl(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [str(locate.find().swipl), "-q", "-f", "none", *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=PLUNIT_SECONDS,
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
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument(
        "--prolog-only", action="store_true", help="plunit alone: what it does not kill is not recorded"
    )
    options.add_argument("--known", type=Path, default=None, help="a file of results; read first, then added to")
    said = options.parse_args()
    names = said.files or sorted(path.name for path in (ROOT / "prolog").glob("*.pl"))
    chosen = sample(mutants(names), said.seed, 20 if said.quick else said.total, 1 if said.quick else said.each)
    rows = judge(chosen, said.jobs, said.known, said.prolog_only)
    report(rows)


def judge(chosen: list[Mutant], jobs: int, known: Path | None, prolog_only: bool = False) -> list[Mutant]:
    """Each change with its ``result`` and ``noticed``."""
    rows: dict[tuple[Any, ...], Mutant] = {}
    if known is not None and known.exists():
        old = [json.loads(line) for line in known.read_text(encoding="utf-8").splitlines()]
        rows = {key_of(row): row for row in old}
    same = equivalents()
    for mutant in chosen:
        if key_of(mutant) in same:
            rows.setdefault(key_of(mutant), {**mutant, "result": "survived", "noticed": ""})
    todo = [mutant for mutant in chosen if key_of(mutant) not in rows]
    progress(f"{len(chosen)} changes, {len(todo)} to be judged")
    with tempfile.TemporaryDirectory(prefix="rlm-mutation-") as folder, ThreadPoolExecutor(jobs) as pool:
        free = [Copy(Path(folder, str(number)), prolog_only) for number in range(jobs)]
        copies = list(free)

        def judged(mutant: Mutant) -> Mutant:
            copy = free.pop()
            try:
                result, noticed = copy.judged(mutant)
            finally:
                free.append(copy)
            return {**mutant, "result": result, "noticed": noticed}

        for row in pool.map(judged, todo):
            rows[key_of(row)] = row
            if known is not None and not (prolog_only and row["result"] == "survived"):
                with known.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
            progress(f"{row['result']:8} {row['file']}:{row['line']} {row['kind']} {row['noticed']}")
        for copy in copies:
            copy.close()
    return [rows[key_of(mutant)] for mutant in chosen]


def report(rows: list[Mutant]) -> None:
    """The kill rate by file, and every survivor."""
    same = equivalents()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    survivors = []
    for row in rows:
        result = row["result"]
        if result == "survived" and key_of(row) in same:
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
