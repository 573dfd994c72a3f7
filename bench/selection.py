"""How good selection is: are the needed tools shown, and what does a request cost, by the rules and by others.

    python bench/selection.py [--quick] [--data DIR] [--part sessions] [--part all] ...

DIR holds folders with ``catalog.jsonl`` and ``queries.jsonl`` (``query``, and ``groups``: one entry for each needed
tool; any member satisfies it). ``results`` has a row for each data set and system (``rankers.py``), ``parts`` the rows
of the other parts by name; each part says in its docstring what it measures. Everything of ours runs at the default
policy, unless the part says otherwise.

Rows of ``results``, means over the questions: ``recall5`` and ``recall10`` (share of the needed tools among the first
five and ten), ``completeness5`` (all of them among the first five), ``tokens5``, ``tokens10`` and ``all_tokens`` (of a
request with these first tools, and with every tool), ``query_ms`` (CPU, median).

Only a system that decides how many are shown has ``shown``, ``recall_shown``, ``completeness_shown``, ``tokens`` (what
its requests really have) and ``saved`` (tokens, against all tools). Only the others have ``same_tools`` and
``same_tokens``, by name of such a system: how many of the first tools one would always have to show to reach the recall
of what it shows (null: not even with ``DEPTH``), and the tokens of that.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import common
import rankers
from rankers import DEPTH, read_lines, share

if TYPE_CHECKING:
    from rankers import Ranked

SAMPLE = 200
"""With ``--quick`` so many questions of a set are asked."""

REACHED = ("rules", "rules+sensor")
"""What others are held against that show a fixed number."""

PARTS = {
    "sessions": "selection_parts",
    "nothing": "selection_parts",
    "relations": "selection_parts",
    "attacks": "attacks",
    "languages": "languages",
    "examples": "selection_parts",
    "names": "selection_parts",
    "speed": "speed",
}
"""The parts beside ``sets``, and the module in which a function of that name measures it: ``(data, quick) -> rows``."""


def main() -> None:
    arguments = common.parser(__doc__)
    arguments.add_argument("--data", type=Path, default=Path(__file__).parents[1] / "../shared/data")
    arguments.add_argument("--part", choices=["sets", *PARTS, "all"], action="append", help="sets if not given")
    options = arguments.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # two threads of BLAS spin, and cost ten times as much here
    wanted = options.part or ["sets"]
    wanted = ["sets", *PARTS] if "all" in wanted else wanted
    common.progress(rankers.left_out(options.quick))
    results = sets(options.data, options.quick) if "sets" in wanted else []
    common.emit("selection", results, parts={name: part(name, options) for name in PARTS if name in wanted})


def part(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows of one part."""
    common.progress(name)
    rows: list[dict[str, Any]] = getattr(importlib.import_module(PARTS[name]), name)(options.data, options.quick)
    for row in rows:
        common.progress(json.dumps(row, ensure_ascii=False))
    return rows


def sets(data: Path, quick: bool) -> list[dict[str, Any]]:
    """The data sets, each by every system."""
    rows = []
    for folder in sorted(path.parent for path in data.glob("*/queries.jsonl")):
        asked = queries(folder, SAMPLE if quick else None)
        tools = read_lines(folder / "catalog.jsonl")
        costs = Costs(folder)
        reached: dict[str, float] = {}
        for system, made in rankers.systems(quick).items():
            common.progress(f"{folder.name}: {system}, {len(asked)} queries over {len(tools)} tools")
            row = {"dataset": folder.name, "system": system, **judged(asked, made(folder, tools), costs, reached)}
            if system in REACHED:
                reached[system] = row["recall_shown"]
            rows.append(row)
            common.progress(json.dumps(row))
    return rows


def queries(folder: Path, most: int | None) -> list[dict[str, Any]]:
    """The queries of a data set; where it has a test split, those of split ``rest`` are for tuning."""
    rows = read_lines(folder / "queries.jsonl")
    rows = [row for row in rows if row.get("split") != "rest"] or rows
    if most is not None and len(rows) > most:
        rows = random.Random(3).sample(rows, most)
    return rows


class Costs:
    """What tools cost in a request: tokens of each in full, by name, and of a request without tools."""

    def __init__(self, folder: Path) -> None:
        import rlm

        self._none = rlm.Catalog()
        everything = rlm.Policy(mode="all_tools", budget=10**9)
        shown = rlm.compile(rankers.catalog_of(folder), "everything", policy=everything).shown
        self._bare: dict[str, int] = {}
        self._tools = {item.unit.id.partition(":")[2]: item.block.tokens for item in shown}

    def of(self, text: str, names: list[str]) -> int:
        """Of a request with these tools."""
        return self.bare(text) + sum(self._tools[name] for name in names)

    def all(self, text: str) -> int:
        """Of a request with all tools."""
        return self.bare(text) + sum(self._tools.values())

    def bare(self, text: str) -> int:
        """Of a request without any."""
        import rlm

        if text not in self._bare:
            self._bare[text] = rlm.compile(self._none, text).ledger.total
        return self._bare[text]


def judged(asked: list[dict[str, Any]], ranked: Ranked, costs: Costs, reached: Mapping[str, float]) -> dict[str, Any]:
    """The figures of one system on one data set; ``reached`` is the recall of what others show."""
    answers, spent = [], []
    for row in asked:
        before = time.process_time()
        names, tokens = ranked(row["query"])
        spent.append(1000 * (time.process_time() - before))
        answers.append((row, names, tokens))

    def mean(values: Any) -> float:
        return round(statistics.mean(values), 4)

    def recall(first: int | None) -> list[float]:
        return [share(row["groups"], names[:first]) for row, names, _ in answers]

    def cost(first: int) -> float:
        return round(statistics.mean(costs.of(row["query"], names[:first]) for row, names, _ in answers), 1)

    all_tokens = statistics.mean(costs.all(row["query"]) for row in asked)
    found: dict[str, Any] = {
        "recall5": mean(recall(5)),
        "completeness5": mean(value == 1 for value in recall(5)),
        "recall10": mean(recall(10)),
        "tokens5": cost(5),
        "tokens10": cost(10),
        "all_tokens": round(all_tokens, 1),
        "query_ms": round(statistics.median(spent), 3),
    }
    totals = [tokens for _, _, tokens in answers if tokens is not None]
    if totals:
        tokens = statistics.mean(totals)
        found |= {
            "shown": round(statistics.mean(len(names) for _, names, _ in answers), 2),
            "recall_shown": mean(recall(None)),
            "completeness_shown": mean(value == 1 for value in recall(None)),
            "tokens": round(tokens, 1),
            "saved": round(1 - tokens / all_tokens, 4),
        }
    else:
        enough = {
            other: next((first for first in range(1, DEPTH + 1) if mean(recall(first)) >= wanted), None)
            for other, wanted in reached.items()
        }
        found["same_tools"] = enough
        found["same_tokens"] = {other: cost(first) if first else None for other, first in enough.items()}
    return found


if __name__ == "__main__":
    main()
