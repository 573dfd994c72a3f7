"""Compiles of many queries: one process, two, four, and Ray where it is installed.

    python bench/batch.py [--quick] [--data DIR]

Rows: ``engine``, ``jobs``, ``queries``, ``seconds`` (wall, with the start of the workers), ``a_second``, ``speedup``
against one process in the same run, ``same`` (whether all fingerprints are those of one process).
"""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from typing import Any

import common
import compile as compiles


def main() -> None:
    import rlm

    arguments = common.parser(__doc__)
    arguments.add_argument("--data", type=Path, default=Path(__file__).parents[1] / "../shared/data")
    options = arguments.parse_args()
    count = 1_000 if options.quick else 10_000
    tools = list(compiles.replicated(2_487, options.data))
    catalog = rlm.Catalog([compiles.unit_of(tool) for tool in tools])
    known = compiles.texts(options.data, 2_000)
    queries = [f"{known[number % len(known)]} {number}" for number in range(count)]
    rows: list[dict[str, Any]] = []
    expected: list[str] = []
    engines = [("processes", 1), ("processes", 2), ("processes", 4)]
    if importlib.util.find_spec("ray") is not None:
        engines.append(("ray", 2))
    for engine, jobs in engines:
        common.progress(f"{engine}, {jobs} jobs")
        began = time.perf_counter()
        found = [row.fingerprint for row in rlm.batch(queries, catalog, jobs=jobs, engine=engine)]
        seconds = time.perf_counter() - began
        expected = expected or found
        first = rows[0]["seconds"] if rows else seconds
        rows.append(
            {
                "engine": engine,
                "jobs": jobs,
                "queries": count,
                "seconds": round(seconds, 2),
                "a_second": round(count / seconds),
                "speedup": round(first / seconds, 2),
                "same": found == expected,
            }
        )
    common.emit("batch", rows)


if __name__ == "__main__":
    main()
