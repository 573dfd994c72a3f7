"""Measure the quality of selection for a catalog, with questions and the tools that each needs. For example:

questions = read_questions(Path("questions.jsonl"), catalog)
figures = evaluated("rules", catalog, questions)
print(figures.recall5, figures.tokens, *figures.misses, sep="\\n")
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from rlm import files
from rlm.batches.workers import mapped
from rlm.catalog.catalog import Catalog
from rlm.compiler.compile import compile as compile_view
from rlm.compiler.view import CompiledContext
from rlm.errors import CatalogError, EngineError, FileError, did_you_mean
from rlm.model.policy import Mode, Policy
from rlm.model.unit import Unit
from rlm.similarity.sensor import Sensor

MOST_BYTES = 256 * 1024 * 1024
"""The greatest size of a file of questions, in bytes."""

FIRST = (1, 2, 3, 5, 8, 10, 15, 20, 30, 50)
"""The numbers of first tools at which recall and tokens are measured."""

Groups: TypeAlias = tuple[tuple[str, ...], ...]
"""Groups of unit ids: one unit of each group is enough."""


@dataclass(frozen=True, slots=True)
class Question:
    """A text, and the tools that it needs. ``groups`` is empty if it needs no tool."""

    text: str
    groups: Groups
    history: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Miss:
    """A needed tool that was not shown, with the reasons and a change of the host that would show it.

    Of several alternatives it is the one that the evidence ranks first. ``shown`` has the first tools that were shown.
    """

    text: str
    unit: str
    why: tuple[str, ...]
    change: str
    shown: tuple[str, ...]


@dataclass
class Figures:
    """The results of one system. Shares are between 0 and 1, tokens and tools are means, times are CPU medians.

    Recall is the share of the needed tools, completeness the share of questions with all of them. Both count the
    questions that need a tool, and are None if there are none. For example ``recall5`` is the recall of the first five
    tools. ``quiet`` is the share of the other questions for which nothing was shown. ``shown``, ``recall_shown``,
    ``completeness_shown`` and ``tokens`` (of the whole request) measure the tools that are really shown. ``curve`` has
    (tools, recall, tokens) for requests with the first tools only. ``missed`` counts all misses, ``misses`` explains
    the first of them.
    """

    system: str
    questions: int
    recall5: float | None
    completeness5: float | None
    recall10: float | None
    recall_shown: float | None
    completeness_shown: float | None
    quiet: float | None
    shown: float
    tokens: float
    query_ms: float | None
    missed: int
    curve: list[tuple[int, float, float]] = field(default_factory=list)
    misses: list[Miss] = field(default_factory=list)


def read_questions(path: Path, catalog: Catalog) -> list[Question]:
    """Return the questions of a file of JSON Lines: ``query``, and ``groups`` (alternatives) or ``tools`` (all needed).

    Tools are named by id, or by a name that only one unit has. ``"tools": []`` is a question that needs none.
    ``history`` has earlier texts, last first.

    Raises:
        CatalogError: ``bad_questions`` with all findings (line, message), or for a file that cannot be read.
    """
    names: dict[str, str] = {}
    for unit in catalog:
        for name in (unit.name, unit.path):
            names[name] = unit.id if names.get(name, unit.id) == unit.id else ""
    questions, findings = [], []
    try:
        lines = files.read_text(path, MOST_BYTES).split("\n")
    except FileError as problem:
        detail = {**problem.detail, "findings": []}
        raise CatalogError("bad_questions", f"{path} cannot be read: {problem.why}", detail) from None
    for number, line in enumerate(lines, 1):
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


_FIELDS = ("query", "tools", "groups", "history")


def _question(row: Mapping[str, Any], catalog: Catalog, names: Mapping[str, str]) -> Question:
    def unit(name: str) -> str:
        if name in catalog:
            return name
        if not names.get(name):
            problem = "more than one unit is called" if name in names else "no unit is called"
            raise ValueError(f"{problem} {name!r}{'' if name in names else did_you_mean(name, names)}")
        return names[name]

    def listed(value: Any, subject: str) -> list[Any]:
        if not isinstance(value, list):
            raise ValueError(f"{subject} must be a list")
        return value

    if not isinstance(row, dict) or not isinstance(row.get("query"), str) or ("groups" in row) == ("tools" in row):
        fields = row if isinstance(row, dict) else {}
        odd = next((name for name in fields if name not in _FIELDS), None)
        hint = "" if odd is None else f"; no such field {odd!r}{did_you_mean(odd, _FIELDS)}"
        raise ValueError(f"an object is wanted with query, a text, and with tools or groups{hint}")
    tools = [[tool] for tool in listed(row.get("tools", []), "tools")]
    groups = [listed(group, "a group") for group in listed(row.get("groups", tools), "groups")]
    if not all(groups):
        raise ValueError("a group without a tool can never be shown")
    history = row.get("history") or ()
    texts = [history] if isinstance(history, str) else history
    ids = tuple(tuple(unit(name) for name in group) for group in groups)
    return Question(row["query"], ids, tuple(str(text) for text in texts))


def evaluated(
    system: str,
    catalog: Catalog,
    questions: Sequence[Question],
    *,
    policy: Policy | None = None,
    sensor: Sensor | None = None,
    most_misses: int = 20,
    jobs: int = 1,
) -> Figures:
    """Return the figures of one system: of the rules, with a sensor or a policy.

    Args:
        system: its name in the figures.
        catalog: the units to choose from.
        questions: at least one.
        policy, sensor: as for ``rlm.compile``.
        most_misses: the number of misses to explain; each takes a few compiles.
        jobs: the number of worker processes; see ``rlm.batch``.

    Raises:
        RlmError: as ``rlm.compile``.
    """
    job = _Job(tuple(catalog.snapshot().units.values()), catalog.snapshot().stemmer, policy, sensor)
    compute = partial(job.result, catalog)
    rows = [compute(question) for question in questions] if jobs == 1 else mapped(job, questions, jobs=jobs)
    misses: list[Miss] = []
    for question, (result, _) in zip(questions, rows, strict=True):
        if len(misses) < most_misses and result.missed():
            view = job.view(catalog, question)
            misses += islice(_misses(view, question, result), most_misses - len(misses))
    spent = statistics.median(milliseconds for _, milliseconds in rows)
    return _figures(system, [result for result, _ in rows], query_ms=spent, misses=misses)


@dataclass(frozen=True)
class _Job:
    """One system, for worker processes."""

    units: tuple[Unit, ...]
    stemmer: str
    policy: Policy | None
    sensor: Sensor | None

    def begun(self) -> Callable[[Question], tuple[_Result, float]]:
        catalog = Catalog(stemmer=self.stemmer)
        catalog.add(*self.units, allow_missing=True)
        return partial(self.result, catalog)

    def view(self, catalog: Catalog, question: Question) -> CompiledContext:
        return compile_view(catalog, question.text, policy=self.policy, sensor=self.sensor, history=question.history)

    def result(self, catalog: Catalog, question: Question) -> tuple[_Result, float]:
        """Return the result of one question, and its processor time in milliseconds."""
        before = time.process_time()
        view = self.view(catalog, question)
        return _Result.of(view, question), 1000 * (time.process_time() - before)

    def lost(self, row: Question) -> tuple[_Result, float]:
        raise EngineError("worker_lost", f"the worker process ended each time that this question was asked: {row.text}")


def everything(catalog: Catalog, questions: Sequence[Question], policy: Policy | None = None) -> Figures:
    """Return the figures of a request that shows every tool; its tokens are those of the first question."""
    policy = (policy or Policy()).model_copy(update={"mode": Mode.ALL_TOOLS, "budget": 10**9})
    view = compile_view(catalog, questions[0].text, policy=policy)
    results = [_Result.of(view, question) for question in questions]
    return _figures("all_tools", results, query_ms=None, misses=[])


class _Result:
    """The needed tools of one question, and those that its view showed."""

    def __init__(self, ids: Sequence[str], costs: Sequence[int], total: int, groups: Groups) -> None:
        self.ids = ids
        self.total = total
        self.groups = groups
        self._sums = [total - sum(costs), *costs]

    @classmethod
    def of(cls, view: CompiledContext, question: Question) -> _Result:
        cost = {item.unit.id: item.block.tokens for item in view.shown}
        ids = [id for id in view.active if id in cost]
        return cls(ids, [cost[id] for id in ids], view.ledger.total, question.groups)

    def recall(self, first: int | None) -> float:
        shown = set(self.ids[:first])
        return statistics.fmean(not shown.isdisjoint(group) for group in self.groups)

    def tokens(self, first: int) -> int:
        """Return the tokens of a request with the first tools only."""
        return sum(self._sums[: first + 1])

    def missed(self) -> list[tuple[str, ...]]:
        return [group for group in self.groups if set(self.ids).isdisjoint(group)]


def _figures(system: str, results: Sequence[_Result], *, query_ms: float | None, misses: list[Miss]) -> Figures:
    needing = [one for one in results if one.groups]
    mean = statistics.fmean

    def recall(first: int | None) -> float | None:
        return mean(one.recall(first) for one in needing) if needing else None

    def complete(first: int | None) -> float | None:
        return mean(one.recall(first) == 1 for one in needing) if needing else None

    return Figures(
        system=system,
        questions=len(results),
        recall5=recall(5),
        completeness5=complete(5),
        recall10=recall(10),
        recall_shown=recall(None),
        completeness_shown=complete(None),
        quiet=mean(not one.ids for one in results if not one.groups) if len(needing) < len(results) else None,
        shown=mean(len(one.ids) for one in results),
        tokens=mean(one.total for one in results),
        query_ms=query_ms,
        missed=sum(len(one.missed()) for one in results),
        curve=[
            (first, mean(one.recall(first) for one in needing), mean(one.tokens(first) for one in results))
            for first in (FIRST if needing else ())
        ],
        misses=misses,
    )


def _misses(view: CompiledContext, question: Question, result: _Result) -> Iterator[Miss]:
    """Yield a ``Miss`` for each needed tool that is not shown."""
    places = {id: place for place, id in enumerate(view.selection.ranked)}
    for group in result.missed():
        unit = min(group, key=lambda one: places.get(one, len(places)))
        why = view.explain(unit).sentences
        yield Miss(question.text, unit, why, str(view.what_if(unit)), tuple(result.ids[:5]))
