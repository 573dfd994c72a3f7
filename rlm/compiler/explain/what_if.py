"""Find the changes of the host that would show a unit: the rules propose them, and a compile verifies them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from rlm.catalog.catalog import Catalog, ephemeral
from rlm.compiler.explain.explain import Change, Explanation, explanation
from rlm.compiler.projection import Projection
from rlm.errors import BudgetError, CompileError
from rlm.model.policy import Policy
from rlm.model.selection import Reason, State
from rlm.model.unit import Identified
from rlm.symbolic.engine import engine

MOST_CHANGES = 4


def what_if(view: Projection, about: str | Identified) -> Change:
    """Return the changes that would show a unit; see ``CompiledContext.what_if``."""
    before = explanation(view, about)
    unit = before.unit
    if before.state is State.ACTIVE:
        return Change(unit=unit)
    with ephemeral(view._snapshot) as catalog:
        return _search(_Trial(view, catalog), unit)


class _Trial:
    """Repeats the compile of a view under a changed policy.

    The catalog is a copy of the view's units, the extra pinned ones included. The turn has the scores of the sensor,
    so the sensor is not asked again.
    """

    def __init__(self, view: Projection, catalog: Catalog) -> None:
        self._view = view
        self._material = replace(view._material, catalog=catalog, extra_pinned=(), sensor_input=None)

    def view(self, changes: Sequence[dict[str, Any]]) -> Projection:
        """Return the view under the changes; see ``compile`` for the errors."""
        policy = changed(self._view.policy, changes, self._view)
        return self._view._compile(replace(self._material, policy=policy))

    def shows(self, changes: Sequence[dict[str, Any]], unit: str) -> bool:
        """Whether the changes are enough to show the unit."""
        try:
            return unit in self.view(changes).active
        except CompileError:
            return False


def _search(trial: _Trial, unit: str) -> Change:
    change = _steps(trial, unit, [])
    if change.blocker is None:
        return change
    selecting = _steps(trial, unit, [{"select": unit}])  # more units may stand in for those that the host selects
    return change if selecting.blocker is not None else selecting


def _steps(trial: _Trial, unit: str, changes: list[dict[str, Any]]) -> Change:
    """Add one change after the other until the unit is shown or no further change helps."""
    for _ in range(MOST_CHANGES * 2):
        step, blocker = _next_step(trial, changes, unit)
        if blocker is not None:
            return Change(unit=unit, blocker=blocker)
        if step is None:
            return Change(unit=unit, changes=tuple(_irreducible(trial, changes, unit)))
        changes = _with(changes, step)
        if len(changes) > MOST_CHANGES:
            break
    return Change(unit=unit, blocker=Reason.of({"kind": "no_evidence"}))


def _next_step(trial: _Trial, changes: list[dict[str, Any]], unit: str) -> tuple[dict[str, Any] | None, Reason | None]:
    """Return the next change, or the reason that no change removes; neither if the changes so far are enough."""
    try:
        view = trial.view(changes)
    except BudgetError as problem:
        return {"budget": int(problem.detail["missing_tokens"])}, None
    except CompileError as problem:
        units = problem.detail.get("units", [])
        return None, Reason.of({"kind": "contradicts_itself", "units": [unit, *units][:2]})
    current = explanation(view, unit)
    if current.state is State.ACTIVE:
        return None, None
    first: Reason | None = None
    for change, blocker in _remedies(view, current, {unit}):
        if change is not None and (change not in changes or "budget" in change):
            return change, None
        first = first or blocker
    return None, first or current.reasons[0]


def _remedies(
    view: Projection, about: Explanation, visited: set[str]
) -> Iterator[tuple[dict[str, Any] | None, Reason | None]]:
    """Yield a pair for each reason against a unit: the change that removes it, or the reason that no change removes."""
    for reason in about.reasons:
        reply = engine().call("remedies", {"unit": about.unit, "reasons": [reason.to_dict()]})
        if "blocker" in reply:
            if reply["blocker"]["kind"] != "none":
                yield None, Reason.of(reply["blocker"])
                return
        elif "look_at" not in reply["change"]:
            yield reply["change"], None
        elif reply["change"]["look_at"] not in visited:
            other = explanation(view, reply["change"]["look_at"])
            beneath = reason.data.get("reason", {}).get("unit")
            if other.state is State.ACTIVE and beneath is not None and beneath not in visited:
                other = explanation(view, beneath)  # it came in with a stand-in that does not count for the host
            if other.state is not State.ACTIVE:
                yield from _remedies(view, other, visited | {other.unit})


def _with(changes: list[dict[str, Any]], step: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the changes with a further one; budgets add up."""
    if "budget" not in step:
        return [*changes, step]
    more = step["budget"] + sum(change.get("budget", 0) for change in changes)
    return [*(change for change in changes if "budget" not in change), {"budget": more}]


def _irreducible(trial: _Trial, changes: list[dict[str, Any]], unit: str) -> list[dict[str, Any]]:
    """Return the changes without the superfluous ones."""
    for change in list(changes):
        fewer = [other for other in changes if other is not change]
        if trial.shows(fewer, unit):
            changes = fewer
    return changes


def changed(policy: Policy, changes: Sequence[dict[str, Any]], view: Projection) -> Policy:
    """Return the policy with the changes applied."""
    update: dict[str, Any] = {}
    for change in changes:
        (verb, value), *_ = change.items()
        if verb == "grant":
            granted = update.get("capabilities", policy.capabilities)
            if granted is None:
                units = view._snapshot.units.values()
                granted = {unit.capability for unit in units if unit.trust == "host" and unit.capability}
            update["capabilities"] = frozenset(granted) | {value}
            update["withheld"] = _without(value, update.get("withheld", policy.withheld))
        elif verb == "select":
            update["selected"] = update.get("selected", policy.selected) | {value}
        elif verb == "budget":
            update["budget"] = policy.limit + value
        else:
            field = {"undeny": "denied", "enable": "disabled"}[verb]
            update[field] = _without(value, update.get(field, getattr(policy, field)))
    return policy.model_copy(update=update)


def _without(id: str, patterns: frozenset[str]) -> frozenset[str]:
    hits = engine().call("matching", {"id": id, "patterns": sorted(patterns)})["patterns"]
    return patterns - frozenset(hits)
