"""The part ``speed`` of the selection benchmark: what scoring costs, by the rules and by others, and what sensors add.

Medians of CPU ms for one question, at 1,000, 10,000 and 100,000 units (real tools, repeated with words changed: as
``compile.py`` makes them), asked with texts of real users. Each size runs in a process of its own:

    python bench/speed.py SIZE QUESTIONS DIR

prints its row. All score every unit that has a word of the text, from the text on; none chooses or packs.
"""

from __future__ import annotations

import heapq
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

SIZES = (1_000, 10_000, 100_000)
QUICK = 10_000
"""With ``--quick`` no more units."""

WARM = 10
TOP = 10


def speed(data: Path, quick: bool) -> list[dict[str, Any]]:
    """Medians of CPU ms.

    ``rules_ms``: word scores as a compile counts them: in Prolog, or from ``SCORED_HERE`` units on with numpy where it
    is there. ``prolog_ms``: in Prolog at any size. ``python_ms``: BM25 over a plain inverted index in Python, exact,
    the same terms for catalog and text. ``bm25s_ms``: the same with numpy. Both take the ten best.
    ``select_ms`` and ``sensor_select_ms`` are the whole selection without packing, and the same with the sensor;
    ``sensor_ms`` is the sensor alone, ``sensor_more_ms`` the median difference.
    """
    rows = []
    for size in SIZES:
        if quick and size > QUICK:
            continue
        command = [sys.executable, __file__, str(size), "40" if quick else "200", str(data)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        rows.append({"part": "speed", **json.loads(done.stdout)})
    return rows


def measured(size: int, questions: int, data: Path) -> dict[str, Any]:
    """The row of one size."""
    import compile as compile_bench
    import rankers

    import rlm

    tools = list(compile_bench.replicated(size, data))
    asked = compile_bench.texts(data, questions + WARM)
    terms = rankers.stemmed_terms()
    texts = [terms(" ".join(rankers.described(tool))) or ["_"] for tool in tools]
    row: dict[str, Any] = {
        "units": size,
        "python_ms": _median(_inverted(texts, terms), asked),
        "bm25s_ms": _median(_bm25s(texts, terms), asked),
    }
    del texts
    catalog = rlm.Catalog(map(compile_bench.unit_of, tools))
    rlm.compile(catalog, "warm up", pack=False)
    row |= {"prolog_ms": _median(_in_prolog(catalog), asked), "rules_ms": _median(_as_compiled(catalog), asked)}
    return row | _with_sensor(catalog, asked)


def _median(call: Callable[[str], Any], asked: Sequence[str]) -> float:
    """Of all but the first questions, which warm it up."""
    return round(statistics.median([_spent(call, text) for text in asked][WARM:]), 3)


def _spent(call: Callable[[str], Any], text: str) -> float:
    before = time.process_time()
    call(text)
    return 1000 * (time.process_time() - before)


# -- others -------------------------------------------------------------------------------------------


def _inverted(texts: Sequence[Sequence[str]], terms: Callable[[str], list[str]]) -> Callable[[str], Any]:
    """BM25 as one would write it in plain Python."""
    postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for place, text in enumerate(texts):
        for term, times in Counter(text).items():
            postings[term].append((place, times))
    size = len(texts)
    mean = sum(map(len, texts)) / size
    norms = [1.5 * (0.25 + 0.75 * len(text) / mean) for text in texts]

    def scored(text: str) -> Any:
        sums: dict[int, float] = {}
        for term in set(terms(text)):
            found = postings.get(term, ())
            rarity = math.log(1 + (size - len(found) + 0.5) / (len(found) + 0.5))
            for place, times in found:
                sums[place] = sums.get(place, 0.0) + rarity * times * 2.5 / (times + norms[place])
        return heapq.nlargest(TOP, sums.items(), key=lambda item: item[1])

    return scored


def _bm25s(texts: Sequence[Sequence[str]], terms: Callable[[str], list[str]]) -> Callable[[str], Any]:
    import bm25s
    import numpy as np

    index = bm25s.BM25(k1=1.5, b=0.75)
    index.index(texts, show_progress=False)

    def scored(text: str) -> Any:
        known = [term for term in terms(text) if term in index.vocab_dict]
        if not known:
            return []
        scores = index.get_scores(known)
        return np.argpartition(-scores, TOP)[:TOP]

    return scored


# -- this library -------------------------------------------------------------------------------------


def _in_prolog(catalog: Any) -> Callable[[str], Any]:
    from rlm.symbolic.engine import engine

    engine().load(Path(__file__).with_name("scoring.pl"))
    handle = catalog._facts.handle
    return lambda text: engine().call("bench_scored", {"catalog": handle, "text": text})


def _as_compiled(catalog: Any) -> Callable[[str], Any]:
    """As ``Catalog.ask`` does it, without the question to the rules that follows."""
    from rlm.catalog.prolog_facts import SCORED_HERE
    from rlm.model.policy import Policy
    from rlm.scoring.postings import SENT
    from rlm.symbolic.engine import engine

    if len(catalog) < SCORED_HERE or catalog._facts.postings is None:
        return _in_prolog(catalog)
    postings, policy = catalog._facts.postings, Policy()
    floor = round(1000 * policy.floor)
    args = {"catalog": catalog._facts.handle, "needs": [], "history": [], "signals": [], "sensors": [], "words": None}

    def scored(text: str) -> Any:
        analysis = engine().call("analyse", {**args, "text": text})
        return postings.scored(analysis).to_args(floor, SENT[0])

    return scored


def _with_sensor(catalog: Any, asked: Sequence[str]) -> dict[str, float]:
    """The whole selection with and without, by turns, and the sensor alone."""
    import rankers

    import rlm

    if not rankers.vectors_are_there():
        return {"select_ms": _median(lambda text: rlm.compile(catalog, text, pack=False), asked)}
    sensor = rankers.static_sensor()
    alone = _median(lambda text: sensor.scores(catalog, f"{text} "), asked)
    plain, heard = [], []
    for place, text in enumerate(asked):
        for which in (0, 1) if place % 2 else (1, 0):
            spent = _spent(lambda said, s=(None, sensor)[which]: rlm.compile(catalog, said, sensor=s, pack=False), text)
            (plain, heard)[which].append(spent)
    return {
        "select_ms": round(statistics.median(plain[WARM:]), 3),
        "sensor_select_ms": round(statistics.median(heard[WARM:]), 3),
        "sensor_ms": alone,
        "sensor_more_ms": round(statistics.median(h - p for h, p in zip(heard[WARM:], plain[WARM:], strict=True)), 3),
    }


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    print(json.dumps(measured(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))))
