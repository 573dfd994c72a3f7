"""What ``import rlm`` costs, beside ``import pydantic``, which it needs: medians of fresh processes.

The two take turns, so that a busy machine slows both alike. Times are of the import alone, without
the start of Python. The goal is a ratio of at most 1.5.
"""

from __future__ import annotations

import statistics
import subprocess
import sys

from bench.common import emit, parser, progress

MODULES = ("pydantic", "rlm")
_CODE = """
import time
wall, cpu = time.perf_counter(), time.process_time()
import {module}
print(time.perf_counter() - wall, time.process_time() - cpu)
"""


def main() -> None:
    options = parser(__doc__).parse_args()
    runs = 15 if options.quick else 61
    measured: dict[str, list[tuple[float, float]]] = {module: [] for module in MODULES}
    for run in range(-1, runs):  # the first one warms the disk cache and does not count
        for module in MODULES:
            times = seconds_to_import(module)
            if run >= 0:
                measured[module].append(times)
        if run % 10 == 0:
            progress(f"run {run} of {runs}")
    rows = [row(module, times) for module, times in measured.items()]
    for this in rows:
        this["ratio"] = round(this["wall_ms"] / rows[0]["wall_ms"], 3)
        this["cpu_ratio"] = round(this["cpu_ms"] / rows[0]["cpu_ms"], 3)
    emit("import_time", rows)


def seconds_to_import(module: str) -> tuple[float, float]:
    """Wall and CPU seconds of one import in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", _CODE.format(module=module)], check=True, capture_output=True, text=True
    )
    wall, cpu = done.stdout.split()
    return float(wall), float(cpu)


def row(module: str, times: list[tuple[float, float]]) -> dict[str, object]:
    """Medians in milliseconds."""
    wall, cpu = zip(*times, strict=True)
    return {
        "module": module,
        "runs": len(times),
        "wall_ms": round(1000 * statistics.median(wall), 2),
        "cpu_ms": round(1000 * statistics.median(cpu), 2),
    }


if __name__ == "__main__":
    main()
