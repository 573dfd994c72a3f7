"""How good selection is for a catalog and questions whose needed tools are known."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlm.catalog.catalog import Catalog
from rlm.compiler.compile import compile as compile_view
from rlm.compiler.sensor import Sensor
from rlm.compiler.view import CompiledContext
from rlm.errors import CatalogError, did_you_mean
from rlm.model.policy import Mode, Policy

FIRST = (1, 2, 3, 5, 8, 10, 15, 20)
"""After so many tools recall and tokens are looked at."""


@dataclass(frozen=True, slots=True)
class Question:
    """A text, and the tools that it needs: of each group one is enough. Ids of units."""

    text: str
    groups: tuple[tuple[str, ...], ...]
    history: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Miss:
    """A needed tool that was not shown, and why not."""

    text: str
    unit: str
    why: tuple[str, ...]
    change: str


@dataclass
class Figures:
    """What one system reached. Shares are between 0 and 1, tokens and tools are means, times are CPU medians.

    ``curve`` has (tools, recall, tokens) after so many of the first tools, ``shown`` of what is really shown.
    """

    system: str
    questions: int
    recall5: float
    completeness5: float
    recall_shown: float
    completeness_shown: float
    shown: float
    tokens: float
    query_ms: float
    curve: list[tuple[int, float, float]] = field(default_factory=list)
    misses: list[Miss] = field(default_factory=list)


def read_questions(path: Path, catalog: Catalog) -> list[Question]:
    """Questions from JSON Lines: ``query``, and ``groups`` (lists of alternatives) or ``tools`` (all needed).

    Tools are named by id, or by name where only one unit has it. ``history`` are earlier texts, last first.

    Raises:
        CatalogError: ``bad_questions`` with all findings (line, message).
    """
    names: dict[str, str] = {}
    for unit in catalog:
        for name in (unit.name, unit.path):
            names[name] = unit.id if names.get(name, unit.id) == unit.id else ""
    questions, findings = [], []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip():
            try:
                questions.append(_question(json.loads(line), catalog, names))
            except (ValueError, KeyError, TypeError, AttributeError) as problem:
                findings.append({"line": number, "level": "error", "message": str(problem)})
    if findings or not questions:
        first = findings[0] if findings else {"line": 1, "message": "no questions"}
        message = f"{path}, line {first['line']}: {first['message']}"
        raise CatalogError("bad_questions", message, {"findings": findings})
    return questions


def _question(row: Mapping[str, Any], catalog: Catalog, names: Mapping[str, str]) -> Question:
    groups = row["groups"] if "groups" in row else [[tool] for tool in row["tools"]]

    def unit(name: str) -> str:
        if name in catalog:
            return name
        if not names.get(name):
            what = "more than one unit is called" if name in names else "no unit is called"
            raise ValueError(f"{what} {name!r}{'' if name in names else did_you_mean(name, names)}")
        return names[name]

    history = row.get("history") or ()
    said = [history] if isinstance(history, str) else history
    return Question(
        str(row["query"]), tuple(tuple(unit(name) for name in group) for group in groups), tuple(str(t) for t in said)
    )


def evaluated(
    system: str,
    catalog: Catalog,
    questions: Sequence[Question],
    *,
    policy: Policy | None = None,
    sensor: Sensor | None = None,
    most_misses: int = 20,
) -> Figures:
    """What one system reaches: the rules, with a sensor or another policy."""
    asked, spent = [], []
    misses: list[Miss] = []
    for question in questions:
        before = time.process_time()
        view = compile_view(catalog, question.text, policy=policy, sensor=sensor, history=question.history)
        spent.append(1000 * (time.process_time() - before))
        asked.append(_Asked(view, question))
        if len(misses) < most_misses:
            misses += asked[-1].misses(view, question)
    mean = statistics.mean
    return Figures(
        system=system,
        questions=len(questions),
        recall5=mean(one.recall(5) for one in asked),
        completeness5=mean(one.recall(5) == 1 for one in asked),
        recall_shown=mean(one.recall(None) for one in asked),
        completeness_shown=mean(one.recall(None) == 1 for one in asked),
        shown=mean(len(one.ids) for one in asked),
        tokens=mean(one.total for one in asked),
        query_ms=statistics.median(spent),
        curve=[(n, mean(one.recall(n) for one in asked), mean(one.tokens(n) for one in asked)) for n in FIRST],
        misses=misses[:most_misses],
    )


class _Asked:
    """What a view showed of what was needed."""

    def __init__(self, view: CompiledContext, question: Question) -> None:
        cost = {item.unit.id: item.block.tokens for item in view.shown}
        self.ids = [id for id in view.active if id in cost]
        self.total = view.ledger.total
        self._costs = [cost[id] for id in self.ids]
        self._groups = question.groups

    def recall(self, first: int | None) -> float:
        seen = set(self.ids[:first])
        return statistics.mean(any(id in seen for id in group) for group in self._groups) if self._groups else 1.0

    def tokens(self, first: int) -> int:
        return sum(self._costs[:first])

    def misses(self, view: CompiledContext, question: Question) -> Iterable[Miss]:
        seen = set(self.ids)
        for group in question.groups:
            if not any(id in seen for id in group):
                found = view.explain(group[0])
                yield Miss(question.text, group[0], found.sentences, str(view.what_if(group[0])))


def all_tools(catalog: Catalog, text: str, policy: Policy | None = None) -> int:
    """Tokens of a request that shows every tool."""
    policy = (policy or Policy()).model_copy(update={"mode": Mode.ALL_TOOLS, "budget": 10**9})
    return compile_view(catalog, text, policy=policy).ledger.total
