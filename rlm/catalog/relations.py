"""The check of a batch before it is registered. It finds every problem, and one problem refuses the whole batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rlm.errors import CatalogError, did_you_mean
from rlm.model.snapshot import with_changes
from rlm.model.unit import Unit
from rlm.tools.schema_problem import schema_problem

HINTS = 3
"""The most unknown ids of a batch whose error suggests the closest known id."""


def check_batch(
    known: Mapping[str, Unit], batch: Iterable[object], *, replace: bool, allow_missing: bool
) -> list[Unit]:
    """Return the units of ``batch`` that change the catalog.

    Raises:
        CatalogError: with the kind of the first problem; ``detail["findings"]`` lists all of them.
    """
    findings: list[dict[str, Any]] = []
    changed: dict[str, Unit] = {}
    for unit in batch:
        if not isinstance(unit, Unit):
            what = f"{type(unit).__name__} is no Unit; use add_tools for functions and add_tool_list for JSON"
            if isinstance(unit, list | tuple | set | frozenset):
                what = f"{type(unit).__name__} is no Unit; write add(*units)"
            findings.append(_finding("not_a_unit", str(getattr(unit, "id", None) or repr(unit)[:80]), "", what))
            continue
        twin = changed.get(unit.id) or known.get(unit.id)
        if twin is None or (replace and unit.id not in changed):
            if twin is None or twin.digest != unit.digest:
                changed[unit.id] = unit
        elif twin.digest != unit.digest:
            hint = "stands twice in one batch" if unit.id in changed else "exists; replace=True replaces it"
            findings.append(_finding("duplicate_unit", unit.id, "id", hint))
    findings.extend(found for unit in changed.values() for found in _bad_schema(unit))
    together = with_changes(known, changed, ())
    if not allow_missing:
        findings.extend(_unknown_dependencies(changed.values(), together))
    if any(unit.supersedes for unit in changed.values()):
        findings.extend(_supersession_cycles(together))
    if findings:
        first = findings[0]
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        subject = f"unit {first['unit']!r}, field {first['field']!r}" if first["field"] else first["unit"]
        raise CatalogError(
            first["kind"],
            f"{subject}: {first['message']}{more}",
            {"unit": first["unit"], "field": first["field"], "findings": findings},
        )
    return list(changed.values())


def _bad_schema(unit: Unit) -> Iterable[dict[str, Any]]:
    """Yield a finding for a schema that no call could ever fit: requests and executors refuse it."""
    problem = schema_problem(unit)
    if problem is not None:
        path, what = problem
        yield _finding("invalid_schema", unit.id, f"schema.{path}" if path else "schema", what)


def _finding(kind: str, unit: str, field: str, message: str) -> dict[str, Any]:
    return {"kind": kind, "unit": unit, "field": field, "message": message}


def _unknown_dependencies(units: Iterable[Unit], known: Mapping[str, Unit]) -> Iterable[dict[str, Any]]:
    hints = HINTS  # each compares with every id that there is
    for unit in units:
        for id in unit.requires:
            if id not in known:
                hint = did_you_mean(id, known) if hints > 0 else ""
                hints -= 1
                yield _finding("unknown_dependency", unit.id, "requires", f"requires unknown unit {id!r}{hint}")


def _supersession_cycles(units: Mapping[str, Unit]) -> Iterable[dict[str, Any]]:
    """Yield one finding for each cycle; it begins with the first unit in order of ids."""
    above = {id: unit.supersedes for id, unit in units.items() if unit.supersedes}
    done: set[str] = set()
    for start in sorted(above):
        path: list[str] = []
        trail = [(start, iter(above.get(start, ())))]
        while trail and start not in done:
            id, rest = trail[-1]
            if len(path) < len(trail):
                path.append(id)
            following = next((other for other in rest if other in above and other not in done), None)
            if following is None:
                done.add(id)
                trail.pop()
                path.pop()
            elif following in path:
                cycle = " -> ".join([*path[path.index(following) :], following])
                yield _finding("supersession_cycle", following, "supersedes", f"supersedes itself: {cycle}")
                done.update(path)
                break
            else:
                trail.append((following, iter(above.get(following, ()))))
