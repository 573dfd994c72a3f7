"""How long a whole compile takes, beside bm25s retrieval alone on the same texts.

    python bench/compile.py [--quick] [--data DIR]

CPU time of one process (all threads), median over queries; catalogs are real tools, replicated with changed names
and perturbed descriptions. Rows: ``units``, ``select_pack_render_ms``, ``p99_ms``, ``repeat_ms``, ``bm25s_ms``,
``register_s``, ``rss_mb``, and the stages' wall time in ``stages_ms``. Every size runs in a process of its own.
"""

from __future__ import annotations

import json
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import common

SIZES = (100, 1_000, 10_000, 100_000)
CATALOGS = ("docker_registry", "github_mcp", "bfcl", "bfcl_multiturn")
WARM = 20


def main() -> None:
    arguments = common.parser(__doc__)
    arguments.add_argument("--data", type=Path, default=Path(__file__).parents[1] / "../shared/data")
    arguments.add_argument("--size", type=int, help="only this size, in this process")
    options = arguments.parse_args()
    queries = 60 if options.quick else 200
    if options.size:
        print(json.dumps(measured(options.size, queries, options.data)))
        return
    rows = []
    for size in SIZES:
        common.progress(f"{size} units")
        command = [sys.executable, __file__, "--size", str(size), "--data", str(options.data)]
        done = subprocess.run(command + ["--quick"] * options.quick, stdout=subprocess.PIPE, check=True, text=True)
        rows.append(json.loads(done.stdout))
        common.progress(json.dumps(rows[-1]))
    common.emit("compile", rows)


def measured(size: int, queries: int, data: Path) -> dict[str, Any]:
    """One row."""
    import rlm

    tools = list(replicated(size, data))
    asked = texts(data, queries + WARM)
    started = time.process_time()
    catalog = rlm.Catalog()
    catalog.add(*map(unit_of, tools))
    rlm.compile(catalog, asked[0])
    register = time.process_time() - started
    for text in asked[:WARM]:
        rlm.compile(catalog, text)
    spent: list[float] = []
    stages: dict[str, list[float]] = {}
    for text in asked[WARM:]:
        before = time.process_time()
        view = rlm.compile(catalog, text)
        spent.append(1000 * (time.process_time() - before))
        for stage, value in view.timings_ms.items():
            stages.setdefault(stage, []).append(value)
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    text = asked[-1]
    before = time.process_time()
    for _ in range(1000):
        rlm.compile(catalog, text)
    repeat = time.process_time() - before
    spent.sort()
    return {
        "units": size,
        "select_pack_render_ms": round(statistics.median(spent), 3),
        "p99_ms": round(spent[int(0.99 * (len(spent) - 1))], 3),
        "repeat_ms": round(repeat, 4),
        "bm25s_ms": round(bm25s_alone(tools, asked[WARM:]), 3),
        "register_s": round(register, 2),
        "rss_mb": round(rss),
        "stages_ms": {stage: round(statistics.median(values), 3) for stage, values in stages.items()},
    }


def replicated(size: int, data: Path) -> Iterator[dict[str, Any]]:
    """So many tools: real ones, then copies with another name and a tenth of their words changed."""
    rows: dict[str, dict[str, Any]] = {}
    for name in CATALOGS:
        for line in (data / name / "catalog.jsonl").read_text().splitlines():
            tool = json.loads(line)
            rows.setdefault(tool["name"], {**tool, "description": tool["description"] or ""})
    real = list(rows.values())
    chance = random.Random(1)
    chance.shuffle(real)
    words = [word for tool in real for word in tool["description"].split()]
    for place in range(size):
        tool = real[place % len(real)]
        copy = place // len(real)
        if copy:
            said = tool["description"].split()
            for _ in range(max(1, len(said) // 10) if said else 0):
                said[chance.randrange(len(said))] = chance.choice(words)
            tool = {**tool, "name": f"{tool['name']}_{chance.choice(words)[:20]}{copy}", "description": " ".join(said)}
        yield tool


def unit_of(tool: dict[str, Any]) -> Any:
    """A tool as a unit."""
    import rlm

    return rlm.Unit(
        f"tool:{tool['name']}",
        description=tool["description"],
        schema=tool["parameters"],
        namespace=tool["namespace"] or "",
    )


def texts(data: Path, count: int) -> list[str]:
    """So many user texts, from the data sets that have them."""
    found = []
    for name in ("bfcl", "bfcl_multiturn"):
        lines = (data / name / "queries.jsonl").read_text().splitlines()
        found += [json.loads(line)["query"] for line in lines]
    random.Random(2).shuffle(found)
    return found[:count]


def bm25s_alone(tools: list[dict[str, Any]], asked: list[str]) -> float:
    """Milliseconds of CPU for one retrieval with bm25s, stemmed: the same texts, nothing else."""
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    said = [f"{tool['name']} {tool['description']} {json.dumps(tool['parameters'] or {})}" for tool in tools]
    index = bm25s.BM25()
    index.index(bm25s.tokenize(said, stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False)
    spent = []
    for text in asked:
        before = time.process_time()
        tokens = bm25s.tokenize(text, stopwords="en", stemmer=stemmer, show_progress=False)
        index.retrieve(tokens, k=min(10, len(tools)), show_progress=False)
        spent.append(1000 * (time.process_time() - before))
    return statistics.median(spent)


if __name__ == "__main__":
    main()
