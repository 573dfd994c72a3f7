"""Parts of the selection benchmark: sessions, nothing, relations, examples, names.

Each part is a function ``(data, quick) -> rows``; a row has ``part`` and what was measured. The policy is the default
one, but where a docstring says what is different.
"""

from __future__ import annotations

import random
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import rankers
import selection
from rankers import more_sensors, sensors

import rlm
from rlm.mining.relations import propose

CHAT = Path(__file__).with_name("no_tool_needed.txt")
QUIET = rlm.Policy(floor=0, abstain=0)


def _hits(groups: Sequence[Sequence[str]], ids: Iterable[str]) -> float:
    """How much of what is needed is among the units."""
    return rankers.share(groups, (id.partition(":")[2] for id in ids))


# -- turn to turn ------------------------------------------------------------------------------------


def sessions(data: Path, quick: bool) -> list[dict[str, Any]]:
    """A ``Session`` beside fresh selection on the conversations of BFCL multi-turn, with all earlier turns as history.

    ``identical_prefix``: turns whose tools block begins with the whole one of the turn before; ``uncached_tokens`` are
    those of the tools behind the identical part, ``completeness`` and ``recall`` are of what is shown, a turn each.
    """
    rows = selection.queries(data / "bfcl_multiturn", None)
    talks: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        talks[row["id"].rpartition("-")[0]].append(row)
    names = sorted(talks)[: 40 if quick else None]
    catalog = rankers.catalog_of(data / "bfcl_multiturn")
    found = []
    for system, sensor in sensors():
        for way in ("session", "fresh"):
            same, uncached, complete, recall, turns, shown = 0, 0, 0, 0.0, 0, 0
            for name in names:
                session, before, said = rlm.Session(catalog), [], []
                for row in talks[name]:
                    if way == "session":
                        view = session.compile(row["query"], sensor=sensor)
                    else:
                        view = rlm.compile(catalog, row["query"], sensor=sensor, history=tuple(reversed(said)))
                    said.append(row["query"])
                    block = [item for item in view.shown if item.callable]
                    ids = [item.unit.id for item in block]
                    kept = 0
                    while kept < min(len(ids), len(before)) and ids[kept] == before[kept]:
                        kept += 1
                    if before:
                        turns += 1
                        same += kept == len(before)
                    uncached += sum(item.block.tokens for item in block[kept:])
                    share = _hits(row["groups"], view.active)
                    recall += share
                    complete += share == 1
                    shown += len(ids)
                    before = ids
            count = sum(len(talks[name]) for name in names)
            found.append(
                {
                    "part": "sessions",
                    "system": system,
                    "way": way,
                    "turns": count,
                    "identical_prefix": round(same / turns, 4),
                    "uncached_tokens": round(uncached / count, 1),
                    "completeness": round(complete / count, 4),
                    "recall": round(recall / count, 4),
                    "shown_mean": round(shown / count, 2),
                }
            )
    return found


# -- nothing to show ---------------------------------------------------------------------------------


def nothing(data: Path, quick: bool) -> list[dict[str, Any]]:
    """Texts whose tool is denied (``removed``), or that need none (``no_tool``), against texts whose tool is there.

    ``auc_*``: how well the best score tells them apart, and ``shown_at_95_*`` how many of the former have a best score
    at which 95 % of the latter are kept; both without floor and abstention. ``default_*``: for how many the default
    policy shows anything; of those whose tool is there it is ``default_kept``.
    """
    chat = [line.strip() for line in CHAT.read_text(encoding="utf-8").splitlines() if line.strip()]
    found = []
    for name in ("metatool_single", "bfcl_multiturn"):
        catalog = rankers.catalog_of(data / name)
        rows = selection.queries(data / name, 100 if quick else 400)
        asked = [(row["query"], frozenset[str]()) for row in rows]
        without = [(row["query"], frozenset(f"tool:{n}" for group in row["groups"] for n in group)) for row in rows]
        idle = [(text, frozenset[str]()) for text in chat]
        for system, sensor in more_sensors(quick):
            there, gone, none = ([_best(catalog, *one, sensor) for one in texts] for texts in (asked, without, idle))
            least = sorted(there)[len(there) // 20]
            kept, removed, no_tool = (_shown(catalog, texts, sensor) for texts in (asked, without, idle))
            found.append(
                {
                    "part": "nothing",
                    "dataset": name,
                    "system": system,
                    "auc_removed": round(_auc(there, gone), 4),
                    "auc_no_tool": round(_auc(there, none), 4),
                    "auc": round(_auc(there, gone + none * (len(gone) // len(none) or 1)), 4),
                    "shown_at_95_removed": round(statistics.mean(score >= least for score in gone), 4),
                    "shown_at_95_no_tool": round(statistics.mean(score >= least for score in none), 4),
                    "default_kept": kept,
                    "default_removed": removed,
                    "default_no_tool": no_tool,
                }
            )
    return found


def _best(catalog: rlm.Catalog, text: str, denied: frozenset[str], sensor: rlm.Sensor | None) -> int:
    """The score of the best unit that is not denied, in thousandths."""
    view = rlm.compile(catalog, text, sensor=sensor, pack=False, policy=QUIET.model_copy(update={"denied": denied}))
    ranked = zip(view.selection.ranked, view.selection.scores, strict=True)
    return next((score for id, score in ranked if id not in denied), 0)


def _shown(catalog: rlm.Catalog, texts: Sequence[tuple[str, frozenset[str]]], sensor: rlm.Sensor | None) -> float:
    """For how many texts anything is shown."""
    views = [rlm.compile(catalog, t, sensor=sensor, pack=False, policy=rlm.Policy(denied=d)) for t, d in texts]
    return round(statistics.mean(bool(view.active) for view in views), 4)


def _auc(positive: Sequence[int], negative: Sequence[int]) -> float:
    """How often a text whose tool is there has the higher score; equals count half."""
    counted = Counter(negative)
    values = sorted(counted)
    total = 0.0
    for score in positive:
        total += sum(counted[value] for value in values if value < score) + counted[score] / 2
    return total / (len(positive) * len(negative))


# -- relations ---------------------------------------------------------------------------------------


def relations(data: Path, quick: bool) -> list[dict[str, Any]]:
    """``suggests`` from what was called together in one half of the tasks, judged on the other half, and the reverse.

    Six tools: the candidate limit is 6, or 5 where relations may bring in the sixth.
    """
    rows = selection.queries(data / "bfcl_multiturn", None)
    halves = [[row for row in rows if int(row["id"].split("-")[0].rpartition("_")[2]) % 2 == half] for half in (0, 1)]
    plain = list(rankers.catalog_of(data / "bfcl_multiturn"))
    found = []
    for system, sensor in sensors():
        for way in ("without", "with"):
            recall, complete, shown = [], [], []
            for learnt, judged in (halves, halves[::-1]):
                runs = [[f"tool:{group[0]}" for group in row["groups"]] for row in learnt]
                accepted = propose(plain, runs) if way == "with" else []
                catalog = rlm.Catalog(plain)
                targets: dict[str, list[str]] = defaultdict(list)
                for proposal in accepted:
                    if proposal.support is not None:
                        targets[proposal.unit].append(proposal.target)
                catalog.add(
                    *(catalog[id].model_copy(update={"suggests": tuple(ids)}) for id, ids in targets.items()),
                    replace=True,
                )
                policy = rlm.Policy(candidate_limit=5 if way == "with" else 6)
                for row in judged[: 100 if quick else None]:
                    view = rlm.compile(catalog, row["query"], policy=policy, sensor=sensor, pack=False)
                    first = view.active[:6]
                    recall.append(_hits(row["groups"], first))
                    complete.append(recall[-1] == 1)
                    shown.append(len(first))
            found.append(
                {
                    "part": "relations",
                    "system": system,
                    "way": way,
                    "recall6": round(statistics.mean(recall), 4),
                    "completeness6": round(statistics.mean(complete), 4),
                    "shown_mean": round(statistics.mean(shown), 2),
                }
            )
    return found


# -- examples, names ----------------------------------------------------------------------------------


def examples(data: Path, quick: bool) -> list[dict[str, Any]]:
    """``recall5`` with and without five ``examples`` for each tool: questions of MetaTool single that are not asked."""
    folder = data / "metatool_single"
    rows = selection.queries(folder, None)
    random.Random(5).shuffle(rows)
    told: dict[str, list[str]] = defaultdict(list)
    asked = []
    for row in rows:
        name = row["groups"][0][0]
        if len(told[name]) < 5:
            told[name].append(row["query"])
        else:
            asked.append(row)
    asked = asked[: 200 if quick else 1000]
    plain = rankers.catalog_of(folder)
    rich = rlm.Catalog(unit.model_copy(update={"examples": tuple(told[unit.name])}) for unit in plain)
    found = []
    for system, sensor in more_sensors(quick):
        for way, catalog in (("without", plain), ("with", rich)):
            hits = [
                _hits(row["groups"], rlm.compile(catalog, row["query"], sensor=sensor, pack=False).active[:5])
                for row in asked
            ]
            found.append({"part": "examples", "system": system, "way": way, "recall5": round(statistics.mean(hits), 4)})
    return found


def names(data: Path, quick: bool) -> list[dict[str, Any]]:
    """Share of tools that are shown where a text about something else names them, in backticks."""
    found = []
    for name in ("bfcl", "docker_registry", "bfcl_multiturn"):
        catalog = rankers.catalog_of(data / name)
        units = sorted(catalog, key=lambda unit: unit.id)
        asked = random.Random(1).sample(units, min(len(units), 60 if quick else 300))
        shown = [
            unit.id in rlm.compile(catalog, f"Please use `{unit.name}` and then make a cup of tea.", pack=False).active
            for unit in asked
        ]
        found.append({"part": "names", "dataset": name, "asked": len(asked), "shown": round(statistics.mean(shown), 4)})
    return found
