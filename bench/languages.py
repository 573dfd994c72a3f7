"""The part ``languages`` of the selection benchmark: English catalogs asked in six languages, a Chinese one in Chinese.

``languages.jsonl`` has questions about tools of the real catalogs whose meaning is plain, each in English (the
yardstick), German, French, Spanish, Chinese and Japanese, with the tools that would do (``groups``) and whose catalog
it is (``data``). ``chinese.jsonl`` is a catalog of everyday tools described in Chinese, each with a question. All of
these were written for this benchmark, and nothing was tuned to them.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import rankers

import rlm

QUESTIONS = Path(__file__).with_name("languages.jsonl")
CHINESE = Path(__file__).with_name("chinese.jsonl")
LANGUAGES = ("en", "de", "fr", "es", "zh", "ja")

Asked = tuple[rlm.Catalog, str, list[list[str]]]
"""A catalog, a question, and the groups of ids that would do."""


def languages(data: Path, quick: bool) -> list[dict[str, Any]]:
    """Share of the questions whose tool is among the first five (``first5``), and shown at all (``shown``).

    ``silent`` is the share for which nothing was shown, ``shown_mean`` how many tools were. ``rules+e5`` has a sensor
    that reads many languages, where there is one (not with ``quick``: it reads a tool in 0.1 s). Sensors are measured
    at the default policy, and with ``abstain`` 0: where no word of a text is known there is little for showing
    anything, and whoever serves other languages may want to hear the sensor alone.
    """
    found = []
    asked = {("en", language): list(_abroad(data, language)) for language in LANGUAGES}
    asked["zh", "zh"] = list(_at_home())
    for (catalog, language), questions in asked.items():
        for system, sensor in _systems(quick):
            for policy in POLICIES if sensor else POLICIES[:1]:
                row = {"part": "languages", "catalog": catalog, "asked": language, "system": system}
                found.append({**row, "abstain": policy.abstain, **_judged(questions, sensor, policy)})
    return found


POLICIES = (rlm.Policy(), rlm.Policy(abstain=0))


def _systems(quick: bool) -> list[tuple[str, rlm.Sensor | None]]:
    many = None if quick else rankers.multilingual_sensor()
    return rankers.sensors() + ([("rules+e5", many)] if many else [])


def _abroad(data: Path, language: str) -> Iterable[Asked]:
    by_catalog: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rankers.read_lines(QUESTIONS):
        by_catalog[row["data"]].append(row)
    for name, rows in by_catalog.items():
        catalog = _catalogs.setdefault(name, rankers.catalog_of(data / name))
        yield from ((catalog, row[language], row["groups"]) for row in rows)


_catalogs: dict[str, rlm.Catalog] = {}
"""Made once, so that a sensor's vectors are."""


def _at_home() -> Iterable[Asked]:
    rows = rankers.read_lines(CHINESE)
    catalog = rlm.Catalog(rlm.Unit(f"tool:{row['name']}", description=row["description"]) for row in rows)
    return ((catalog, row["query"], [[row["name"]]]) for row in rows)


def _judged(questions: Iterable[Asked], sensor: rlm.Sensor | None, policy: rlm.Policy) -> dict[str, Any]:
    first, shown, many = [], [], []
    for catalog, text, groups in questions:
        names = [
            id.partition(":")[2] for id in rlm.compile(catalog, text, sensor=sensor, policy=policy, pack=False).active
        ]
        first.append(rankers.share(groups, names[:5]))
        shown.append(rankers.share(groups, names))
        many.append(len(names))
    return {
        "questions": len(many),
        "first5": round(statistics.mean(first), 4),
        "shown": round(statistics.mean(shown), 4),
        "silent": round(statistics.mean(not count for count in many), 4),
        "shown_mean": round(statistics.mean(many), 2),
    }
