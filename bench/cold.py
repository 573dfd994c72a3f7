"""What the first compile of a process costs, from ``import rlm`` to the view, with a frozen catalog.

    python bench/cold.py [--quick] [--data DIR]

CPU time of new processes (all threads), the median of several. The library is copied as a wheel installs it, with
compiled rules where ``engine/dist`` has the bundled engine. Rows: ``part``, ``cpu_ms``. Parts alone (pydantic, numpy,
the tokenizer, the engine with the rules) are measured in the same run. The last rows have the memory of four processes
with the large catalog: the sum of their proportional set sizes, and the resident set of one.
"""

from __future__ import annotations

import compileall
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import common

ROOT = Path(__file__).parents[1]
SMALL, LARGE, QUICK = 755, 100_000, 10_000
TEXT = "find the greatest common divisor of 36 and 48"

FREEZE = """
import sys
sys.path.append(sys.argv[4])
import rlm
from compile import replicated, unit_of
from pathlib import Path
catalog = rlm.Catalog()
catalog.add(*map(unit_of, replicated(int(sys.argv[1]), Path(sys.argv[2]))))
catalog.freeze(sys.argv[3])
"""

FIRST = """
import json, sys, time
clock = time.process_time
began = clock()
import rlm
catalog = rlm.Catalog.open(sys.argv[1])
opened = clock()
view = rlm.compile(catalog, sys.argv[2], policy=rlm.Policy(budget=int(sys.argv[3])))
done = clock()
print(json.dumps({"whole": done - began, "open": opened - began, "first": done - opened,
                  "bounded": view.ledger.bounded, "total": view.ledger.total, "fingerprint": view.fingerprint}))
if len(sys.argv) > 4:
    sys.stdout.flush()
    sys.stdin.read()
"""

PARTS = {
    "pydantic alone": "import pydantic; pydantic.create_model('M', a=(int, 1))",
    "numpy alone": "import numpy",
    "tokenizer alone": "from rlm.compiler.tokens import counter; counter().count('x')",
    "engine and rules alone": "from rlm.symbolic.engine import engine; engine().call('ping')",
    "imports of a compile alone": "import rlm; rlm.compile; rlm.Catalog",
}


def main() -> None:
    arguments = common.parser(__doc__)
    arguments.add_argument("--data", type=Path, default=ROOT / "../shared/data")
    options = arguments.parse_args()
    runs = 5 if options.quick else 15
    large = QUICK if options.quick else LARGE
    with installed() as (folder, is_compiled):
        rows = [{"part": "rules", "compiled": is_compiled}]
        for name, code in PARTS.items():
            rows.append({"part": name, "cpu_ms": alone(folder, code, runs)})
            common.progress(json.dumps(rows[-1]))
        small = frozen(folder, SMALL, options.data)
        for name, budget in (("first compile, nothing near the budget", 0), ("first compile, exact counts", 1)):
            rows.append({"part": name, "units": SMALL, **first(folder, small, budget, runs)})
            common.progress(json.dumps(rows[-1]))
        big = frozen(folder, large, options.data)
        rows.append({"part": "large catalog", "units": large, **first(folder, big, 0, 3)})
        rows.append({"part": "four processes", "units": large, **memory(folder, big)})
        for row in rows[-2:]:
            common.progress(json.dumps(row))
        common.emit("cold", rows)


@contextmanager
def installed() -> Iterator[tuple[Path, bool]]:
    """A folder with the library as a wheel installs it, and whether its rules are compiled."""
    sys.path.insert(0, str(ROOT))
    import hatch_build

    with tempfile.TemporaryDirectory(prefix="rlm-cold-") as name:
        folder = Path(name)
        shutil.copytree(ROOT / "rlm", folder / "rlm", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(ROOT / "prolog", folder / "rlm" / "_prolog")
        shutil.copytree(ROOT / "skills", folder / "rlm" / "_skills")
        compileall.compile_dir(folder, quiet=1)
        engine = hatch_build.newest_engine(ROOT / "engine" / "dist")
        if engine is not None:
            with tempfile.TemporaryDirectory(prefix="rules-") as work:
                for path in hatch_build.compile_rules(ROOT, engine, Path(work)):
                    shutil.copy(path, folder / "rlm" / "_prolog")
        yield folder, engine is not None


def run(folder: Path, code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment(folder), stdout=subprocess.PIPE, check=True, text=True)
    return done.stdout


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(folder), "PYTHONSAFEPATH": "1"}


def frozen(folder: Path, units: int, data: Path) -> Path:
    """A frozen catalog of so many units."""
    path = folder / f"{units}.rlmz"
    run(folder, FREEZE, str(units), str(data.resolve()), str(path), str(ROOT / "bench"))
    common.progress(f"{units} units: {path.stat().st_size:,} bytes")
    return path


def alone(folder: Path, code: str, runs: int) -> float:
    timed = f"import time; began = time.process_time()\n{code}\nprint(time.process_time() - began)"
    return round(1000 * statistics.median(float(run(folder, timed)) for _ in range(runs)), 1)


def first(folder: Path, path: Path, near: int, runs: int) -> dict[str, Any]:
    """The first compile in new processes; ``near``: with a budget that the bytes of the text do not prove."""
    budget = 200_000
    if near:
        budget = json.loads(run(folder, FIRST, str(path), TEXT, str(budget)))["total"] - 1
    found = [json.loads(run(folder, FIRST, str(path), TEXT, str(budget))) for _ in range(runs)]
    times = {f"{key}_ms": round(1000 * statistics.median(each[key] for each in found), 1) for key in ("open", "first")}
    return {
        "cpu_ms": round(1000 * statistics.median(each["whole"] for each in found), 1),
        **times,
        "bounded": found[0]["bounded"],
        "views": len({each["fingerprint"] for each in found}),
    }


def memory(folder: Path, path: Path) -> dict[str, Any]:
    """The memory of one process and of four, after their first compile, in megabytes."""
    command = [sys.executable, "-c", FIRST, str(path), TEXT, "200000", "stay"]
    held: list[subprocess.Popen[str]] = []
    try:
        for _ in range(4):
            held.append(
                subprocess.Popen(
                    command,
                    cwd=folder,
                    env=environment(folder),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            assert held[-1].stdout is not None
            held[-1].stdout.readline()
            if len(held) == 1:
                one = rollup(held[0].pid)["Rss"]
        pss = sum(rollup(process.pid)["Pss"] for process in held)
    finally:
        for process in held:
            process.communicate()
    return {"rss_of_one_mb": round(one), "pss_of_four_mb": round(pss), "ratio": round(pss / one, 2)}


def rollup(process: int) -> dict[str, float]:
    """The memory of a process in megabytes, by the names of ``/proc/PID/smaps_rollup``."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
    return {line.partition(":")[0]: int(line.split()[1]) / 1024 for line in lines}


if __name__ == "__main__":
    main()
