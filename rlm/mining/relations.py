"""Relations that a catalog could have, proposed with their evidence. Only the host accepts them.

There are two kinds of evidence. Tools that were called together in earlier runs are likely to be needed together. And
a required parameter of one tool may be a result of another: for example ``get_issue(project_key)`` and
``list_projects``. Nothing is learned silently: a proposal is a line of a file that a person reads, and that
``Catalog.add_relations`` takes.
"""

from __future__ import annotations

import json
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rlm import files
from rlm.errors import CatalogError, FileError, did_you_mean
from rlm.model.base import Noun
from rlm.model.unit import Unit

MAX_RELATIONS_BYTES = 64 * 1024 * 1024
MAX_TRACE_BYTES = 1024 * 1024 * 1024
MAX_LINE_BYTES = 64 * 1024 * 1024

RELATIONS = ("requires", "suggests")
LEAST_SUPPORT = 3
"""So often at least two tools must have been called together."""

LEAST_SHARE = 0.4
"""In so many of the calls of one the other must have been there too."""

_log = logging.getLogger("rlm.catalog")
_FINDS = frozenset({"get", "find", "lookup", "search", "list", "resolve", "fetch", "query", "convert", "read"})
_GENERIC = frozenset(
    "a an and by data for from id in info information input key list name number of on or set string text the to type"
    " url value with".split()
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


FORMAT = "rlm-relations/1"
FIRST_LINE = json.dumps({"format": FORMAT})
"""The first line of a relations file. A file of version 0.1 has none; its other lines are the same."""


class Proposal(Noun):
    """One relation that could be: ``unit`` ``relation`` ``target``, and why.

    ``support`` is how often both were called in one run, ``share`` of how many runs that had ``unit`` (None
    where no trace speaks for it).
    """

    unit: str
    relation: str
    target: str
    because: str
    support: int | None = None
    share: float | None = None

    def line(self) -> str:
        """One line of a relations file."""
        row = {"unit": self.unit, self.relation: [self.target], "because": self.because}
        return json.dumps(row, ensure_ascii=False)


def propose(
    units: Iterable[Unit],
    runs: Iterable[Iterable[str]] = (),
    *,
    least_support: int = LEAST_SUPPORT,
    least_share: float = LEAST_SHARE,
) -> list[Proposal]:
    """Relations that the units do not have yet, strongest first.

    Args:
        units: the catalog.
        runs: for each run the ids of the tools that were called in it.
        least_support: so many runs must have both.
        least_share: of the runs with the unit.
    """
    known = {unit.id: unit for unit in units}
    found = [*_called_together(known, runs, least_support, least_share), *_produced(known)]
    seen: set[tuple[str, str]] = set()
    kept = []
    for proposal in found:
        pair = (proposal.unit, proposal.target)
        unit = known[proposal.unit]
        if pair not in seen and proposal.target not in (*unit.requires, *unit.suggests):
            seen.add(pair)
            kept.append(proposal)
    return kept


def _called_together(
    known: Mapping[str, Unit], runs: Iterable[Iterable[str]], least_support: int, least_share: float
) -> list[Proposal]:
    called: Counter[str] = Counter()
    together: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for run in runs:
        ids = sorted({id for id in run if id in known})
        for id in ids:
            called[id] += 1
            together[id].update(other for other in ids if other != id)
    found = []
    for id, others in together.items():
        for target, support in others.items():
            share = support / called[id]
            if support >= least_support and share >= least_share:
                because = f"called together in {support} of the {called[id]} runs that called it"
                found.append(
                    Proposal(
                        unit=id,
                        relation="suggests",
                        target=target,
                        because=because,
                        support=support,
                        share=round(share, 3),
                    )
                )
    return sorted(found, key=lambda p: (-(p.share or 0), -(p.support or 0), p.unit, p.target))


def _produced(known: Mapping[str, Unit]) -> Iterator[Proposal]:
    """Yield the required parameters of a tool that another tool of the same origin finds, by its name."""
    finders: defaultdict[str, list[tuple[frozenset[str], str]]] = defaultdict(list)
    for id in sorted(known):
        words = _words(known[id].name)
        if words & _FINDS:
            finders[_origin(known[id])].append((words - _FINDS, id))
    for id in sorted(known):
        for name in _required(known[id]):
            expected = _words(name) - _GENERIC
            for words, target in finders[_origin(known[id])]:
                if target != id and expected and expected <= words and name not in _required(known[target]):
                    because = f"{target} finds its parameter {name!r}"
                    yield Proposal(unit=id, relation="suggests", target=target, because=because)


def _origin(unit: Unit) -> str:
    return unit.server or unit.namespace or ""


def _required(unit: Unit) -> list[str]:
    schema = unit.schema
    names = schema.get("required", ()) if isinstance(schema, Mapping) else ()
    return [name for name in names if isinstance(name, str)] if isinstance(names, list | tuple) else []


def _words(name: str) -> frozenset[str]:
    last = name.rpartition(".")[2]
    return frozenset(word.lower() for word in _WORDS.findall(last))


def calls_of_traces(folder: Path) -> Iterator[list[str]]:
    """For each trace (``*.jsonl``) in a folder, the ids of the tools that were called; other files say nothing.

    What cannot be read (a FIFO, a device, a file over 1 GiB) is left out, and logged.
    """
    for path in sorted(folder.rglob("*.jsonl")):
        try:
            ids = [*_calls(path)]
        except FileError as problem:
            _log.warning("%s is left out: %s", path, problem.why)
            continue
        if ids:
            yield ids


def _calls(path: Path) -> Iterator[str]:
    """The ids of the tools that a trace called. Raises: FileError."""
    for line in files.lines(path, MAX_TRACE_BYTES, MAX_LINE_BYTES):
        try:
            row = json.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and row.get("event") == "tool" and isinstance(row.get("tool"), str):
            yield row["tool"]


def related(units: Mapping[str, Unit], path: Path) -> list[Unit]:
    """The units with the relations of a file added: JSON Lines with ``unit`` and ``requires`` or ``suggests``.

    Raises:
        CatalogError: ``bad_relations`` with all findings (line, message).
    """
    added: dict[str, dict[str, list[str]]] = {}
    findings = []
    try:
        lines = files.read_text(path, MAX_RELATIONS_BYTES).split("\n")
    except FileError as problem:
        detail = {**problem.detail, "findings": []}
        raise CatalogError("bad_relations", f"{path} cannot be read: {problem.why}", detail) from None
    for number, line in enumerate(lines, 1):
        if not line.strip() or (number == 1 and line.strip() == FIRST_LINE):
            continue
        try:
            unit, relations = _row(line, units)
        except ValueError as problem:
            findings.append({"line": number, "level": "error", "message": str(problem)})
            continue
        for relation, targets in relations.items():
            added.setdefault(unit, {}).setdefault(relation, []).extend(targets)
    if findings:
        first = findings[0]
        raise CatalogError("bad_relations", f"{path}, line {first['line']}: {first['message']}", {"findings": findings})
    changed = []
    for id, relations in added.items():
        have = units[id]
        update = {
            relation: tuple(dict.fromkeys((*getattr(have, relation), *targets)))
            for relation, targets in relations.items()
        }
        changed.append(have.model_copy(update=update))
    return changed


def _row(line: str, units: Mapping[str, Unit]) -> tuple[str, dict[str, list[str]]]:
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise ValueError(f"no JSON: {problem}") from None
    if isinstance(row, dict) and row.keys() == {"format"}:
        raise ValueError(f"the format {row['format']!r} is not {FORMAT!r}, or does not stand in line 1")
    if not isinstance(row, dict) or not isinstance(row.get("unit"), str):
        raise ValueError("an object with 'unit' is wanted")
    unknown = sorted(row.keys() - {"unit", "because", *RELATIONS})
    if unknown:
        raise ValueError(f"no such field: {unknown[0]!r}{did_you_mean(unknown[0], RELATIONS)}")
    relations = {name: row[name] for name in RELATIONS if name in row}
    for id in (row["unit"], *(id for ids in relations.values() for id in (ids if isinstance(ids, list) else [ids]))):
        if id not in units:
            raise ValueError(f"no unit {id!r}{did_you_mean(str(id), units)}")
    return row["unit"], relations
