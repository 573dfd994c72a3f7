"""How good selection is: the needed tools among the first five, by the rules, with a sensor, and by others.

    python bench/selection.py [--quick] [--data DIR] [--part sets] [--part sessions] ...

Systems: ``rules``; ``rules+sensor`` (static word vectors, extra ``semantic``); ``bm25s-stem``; ``vectors`` (the
same word vectors alone); ``fusion`` (reciprocal ranks of the last two). MiniLM is not measured: nothing here loads it.

DIR holds folders with ``catalog.jsonl`` and ``queries.jsonl`` (``query``, and ``groups``: one entry for each needed
tool; any member satisfies it). Rows: ``dataset``, ``system``, ``recall5``, ``completeness5`` (all needed tools among
the first five), ``shown_mean``, ``tokens_mean`` and ``recall_shown`` (really shown), ``all_tokens`` (a request
with all tools), ``query_ms`` (median CPU). The other parts are in ``selection_parts.py``.
"""

from __future__ import annotations

import importlib.util
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import common

FIRST = 5
SAMPLE = 400


def main() -> None:
    arguments = common.parser(__doc__)
    arguments.add_argument("--data", type=Path, default=Path(__file__).parents[1] / "../shared/data")
    arguments.add_argument("--part", choices=PARTS, action="append", help="only these parts; all if not given")
    options = arguments.parse_args()
    rows = []
    for part in options.part or PARTS:
        rows += PARTS[part](options)
    common.emit("selection", rows)


def sets(options: Any) -> list[dict[str, Any]]:
    """The data sets, each by every system."""
    rows = []
    for folder in sorted(path.parent for path in options.data.glob("*/queries.jsonl")):
        asked = queries(folder, SAMPLE if options.quick else None)
        tools = [json.loads(line) for line in (folder / "catalog.jsonl").read_text().splitlines()]
        for system, made in SYSTEMS.items():
            if system in NEED_VECTORS and not vectors_are_there():
                continue
            common.progress(f"{folder.name}: {system}, {len(asked)} queries over {len(tools)} tools")
            rows.append({"dataset": folder.name, "system": system, **judged(asked, made(folder, tools))})
            common.progress(json.dumps(rows[-1]))
    return rows


def part(name: str) -> Callable[[Any], list[dict[str, Any]]]:
    """A part of ``selection_parts.py``, loaded when it is wanted."""

    def measured(options: Any) -> list[dict[str, Any]]:
        import selection_parts

        common.progress(name)
        found: list[dict[str, Any]] = getattr(selection_parts, name)(options.data, options.quick)
        for row in found:
            common.progress(json.dumps(row))
        return found

    return measured


def vectors_are_there() -> bool:
    """Whether the extra ``semantic`` is installed."""
    return importlib.util.find_spec("wordllama") is not None


Ranked = Callable[[str], tuple[list[str], int | None, int | None]]
"""From a text to names, best first; how many of them are shown, and the tokens of the request."""


def queries(folder: Path, most: int | None) -> list[dict[str, Any]]:
    """The queries of a data set; where it has a test split, those of split ``rest`` are for tuning."""
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    rows = [row for row in rows if row.get("split") != "rest"] or rows
    if most is not None and len(rows) > most:
        rows = random.Random(3).sample(rows, most)
    return rows


def judged(asked: list[dict[str, Any]], ranked: Ranked) -> dict[str, float]:
    """The figures of one system on one data set."""
    recall, complete, recall_shown, shown, tokens, spent = [], [], [], [], [], []
    for row in asked:
        before = time.process_time()
        names, how_many, cost = ranked(row["query"])
        spent.append(1000 * (time.process_time() - before))
        first, seen = set(names[:FIRST]), set(names[:how_many])
        hits = [any(name in first for name in group) for group in row["groups"]]
        recall.append(sum(hits) / len(hits))
        complete.append(all(hits))
        recall_shown.append(sum(any(name in seen for name in group) for group in row["groups"]) / len(hits))
        if how_many is not None:
            shown.append(how_many)
        if cost is not None:
            tokens.append(cost)
    return {
        "recall5": round(statistics.mean(recall), 4),
        "completeness5": round(statistics.mean(complete), 4),
        "recall_shown": round(statistics.mean(recall_shown), 4),
        "shown_mean": round(statistics.mean(shown), 2) if shown else FIRST,
        "tokens_mean": round(statistics.mean(tokens), 1) if tokens else 0,
        "query_ms": round(statistics.median(spent), 3),
    }


def rules(folder: Path, tools: list[dict[str, Any]]) -> Ranked:
    """This library: what a request really shows, in the order in which the rules admitted it."""
    return compiled(folder, tools, None)


def rules_and_sensor(folder: Path, tools: list[dict[str, Any]]) -> Ranked:
    """The same, with the sensor."""
    import rlm

    return compiled(folder, tools, rlm.Sensor())


def compiled(folder: Path, tools: list[dict[str, Any]], sensor: Any) -> Ranked:
    """What a request really shows."""
    import rlm

    catalog = rlm.Catalog()
    catalog.add_file(folder / "catalog.jsonl", trust="host")
    assert len(catalog) == len(tools)
    rlm.compile(catalog, "warm up", sensor=sensor)

    def ranked(text: str) -> tuple[list[str], int | None, int | None]:
        view = rlm.compile(catalog, text, sensor=sensor)
        names = [id.partition(":")[2] for id in view.active]
        return names, len(names), view.ledger.total

    return ranked


def bm25s_stemmed(folder: Path, tools: list[dict[str, Any]], most: int = FIRST) -> Ranked:  # noqa: ARG001
    """bm25s over name, namespace, description and parameters, identifiers split, English stems."""
    import re

    import bm25s
    import Stemmer

    camel = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
    word = re.compile(r"[^\W_]+")
    stemmer = Stemmer.Stemmer("english")
    stop = set(bm25s.stopwords.STOPWORDS_EN_PLUS)

    def terms(text: str) -> list[str]:
        found = (piece.lower() for piece in word.findall(camel.sub(" ", text)))
        return stemmer.stemWords([piece for piece in found if piece not in stop])

    index = bm25s.BM25(k1=1.5, b=0.75)
    texts = [" ".join(described(tool)) for tool in tools]
    index.index([terms(text) or ["_"] for text in texts], show_progress=False)

    def ranked(text: str) -> tuple[list[str], int | None, int | None]:
        known = [term for term in terms(text) if term in index.vocab_dict]
        if not known:
            return [], None, None
        scores = index.get_scores(known)
        order = sorted(range(len(tools)), key=lambda place: (-scores[place], place))[:most]
        return [tools[place]["name"] for place in order if scores[place] > 0], None, None

    return ranked


def vectors(folder: Path, tools: list[dict[str, Any]]) -> Ranked:  # noqa: ARG001
    """The sensor's word vectors alone, nearest first."""
    import rlm

    catalog = rlm.Catalog()
    catalog.add_file(folder / "catalog.jsonl", trust="host")
    sensor = rlm.Sensor()

    def ranked(text: str) -> tuple[list[str], int | None, int | None]:
        scores = sensor.scores(catalog, text).get(sensor.name, {})
        return [id.partition(":")[2] for id in sorted(scores, key=lambda unit: (-scores[unit], unit))[:50]], None, None

    return ranked


def fusion(folder: Path, tools: list[dict[str, Any]]) -> Ranked:
    """Reciprocal ranks of bm25s and the vectors, added."""
    one, other = bm25s_stemmed(folder, tools, 50), vectors(folder, tools)

    def ranked(text: str) -> tuple[list[str], int | None, int | None]:
        sums: dict[str, float] = {}
        for names in (one(text)[0], other(text)[0]):
            for place, name in enumerate(names):
                sums[name] = sums.get(name, 0) + 1 / (60 + place)
        return sorted(sums, key=lambda name: (-sums[name], name))[:FIRST], None, None

    return ranked


def described(tool: dict[str, Any]) -> Iterator[str]:
    """The texts of a tool, as bm25s gets them."""
    yield re_variant(tool["name"])
    yield tool.get("namespace") or ""
    yield tool["description"] or ""
    yield from parameters(tool.get("parameters"), 0)


def re_variant(name: str) -> str:
    """A name without the number of its variant."""
    return name.partition("@")[0].partition("#")[0]


def parameters(schema: Any, depth: int) -> Iterator[str]:
    """Names and descriptions of parameters, four levels deep."""
    if not isinstance(schema, dict) or depth > 3:
        return
    for name, inner in (schema.get("properties") or {}).items():
        yield name
        if isinstance(inner, dict):
            yield str(inner.get("description") or "")
            yield from parameters(inner, depth + 1)
            yield from parameters(inner.get("items"), depth + 1)


SYSTEMS: dict[str, Callable[..., Ranked]] = {
    "rules": rules,
    "rules+sensor": rules_and_sensor,
    "bm25s-stem": bm25s_stemmed,
    "vectors": vectors,
    "fusion": fusion,
}
NEED_VECTORS = {"rules+sensor", "vectors", "fusion"}
PARTS: dict[str, Callable[[Any], list[dict[str, Any]]]] = {
    "sets": sets,
    **{name: part(name) for name in ("sessions", "nothing", "relations", "attacks", "languages", "examples", "names")},
}


if __name__ == "__main__":
    main()
