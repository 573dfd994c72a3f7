"""What the host would have to change for a unit to be shown: found by the rules, verified by compiling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rlm.catalog.catalog import ephemeral
from rlm.compiler.explain.explain import Change, Explanation, explanation
from rlm.errors import BudgetError, CompileError
from rlm.model.policy import Policy
from rlm.model.selection import Reason, State
from rlm.model.unit import Identified
from rlm.symbolic.engine import engine

if TYPE_CHECKING:
    from rlm.catalog.catalog import Catalog
    from rlm.compiler.view import CompiledContext

MOST_CHANGES = 4


def what_if(view: CompiledContext, about: str | Identified) -> Change:
    """See ``CompiledContext.what_if``."""
    found = explanation(view, about)
    unit = found.unit
    if found.state is State.ACTIVE:
        return Change(unit=unit)
    with ephemeral(view._snapshot) as catalog:
        return _search(_Trial(view, catalog), unit)


class _Trial:
    """The same compile again under a changed policy; the catalog is a copy of what the view saw."""

    def __init__(self, view: CompiledContext, catalog: Catalog) -> None:
        self._view = view
        self._catalog = catalog

    def view(self, changes: Sequence[dict[str, Any]]) -> CompiledContext:
        """The view under the changes; see ``compile`` for what it raises."""
        from rlm.compiler.compile import _compiled

        view = self._view
        policy = changed(view.policy, changes, view)
        return _compiled(self._catalog, view.turn, policy, view._reach, view._shown is not None, (), view._rules)

    def shows(self, changes: Sequence[dict[str, Any]], unit: str) -> bool:
        """Whether the changes are enough."""
        try:
            return unit in self.view(changes).active
        except CompileError:
            return False


def _search(trial: _Trial, unit: str) -> Change:
    found = _steps(trial, unit, [])
    if found.blocker is None:
        return found
    wanted = _steps(trial, unit, [{"select": unit}])  # for what the host wants, more may stand in
    return found if wanted.blocker is not None else wanted


def _steps(trial: _Trial, unit: str, changes: list[dict[str, Any]]) -> Change:
    """One change after the other, from these on, until the unit is shown or nothing more can be changed."""
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
    """The next change, or what stands in the way; neither where the changes so far are enough."""
    try:
        view = trial.view(changes)
    except BudgetError as problem:
        return {"budget": int(problem.detail["missing_tokens"])}, None
    except CompileError as problem:
        units = problem.detail.get("units", [])
        return None, Reason.of({"kind": "contradicts_itself", "units": [unit, *units][:2]})
    found = view.explain(unit)
    if found.state is State.ACTIVE:
        return None, None
    first: Reason | None = None
    for change, blocker in _remedies(view, found, {unit}):
        if change is not None and (change not in changes or "budget" in change):
            return change, None
        first = first or blocker
    return None, first or found.reasons[0]


def _remedies(
    view: CompiledContext, about: Explanation, seen: set[str]
) -> Iterator[tuple[dict[str, Any] | None, Reason | None]]:
    """For each reason that keeps a unit out, the change that removes it or the reason that no change removes."""
    for reason in about.reasons:
        reply = engine().call("remedies", {"unit": about.unit, "reasons": [reason.to_dict()]})
        if "blocker" in reply:
            if reply["blocker"]["kind"] != "none":
                yield None, Reason.of(reply["blocker"])
                return
        elif "look_at" not in reply["change"]:
            yield reply["change"], None
        elif reply["change"]["look_at"] not in seen:
            other = view.explain(reply["change"]["look_at"])
            beneath = reason.data.get("reason", {}).get("unit")
            if other.state is State.ACTIVE and beneath is not None and beneath not in seen:
                other = view.explain(beneath)  # it came in with a stand-in that does not count for the host
            if other.state is not State.ACTIVE:
                yield from _remedies(view, other, seen | {other.unit})


def _with(changes: list[dict[str, Any]], step: dict[str, Any]) -> list[dict[str, Any]]:
    """The changes with one more; budgets add up."""
    if "budget" not in step:
        return [*changes, step]
    more = step["budget"] + sum(change.get("budget", 0) for change in changes)
    return [*(change for change in changes if "budget" not in change), {"budget": more}]


def _irreducible(trial: _Trial, changes: list[dict[str, Any]], unit: str) -> list[dict[str, Any]]:
    for change in list(changes):
        fewer = [other for other in changes if other is not change]
        if trial.shows(fewer, unit):
            changes = fewer
    return changes


def changed(policy: Policy, changes: Sequence[dict[str, Any]], view: CompiledContext) -> Policy:
    """The policy with the changes made."""
    update: dict[str, Any] = {}
    for change in changes:
        (what, value), *_ = change.items()
        if what == "grant":
            granted = update.get("capabilities", policy.capabilities)
            if granted is None:
                units = view._snapshot.units.values()
                granted = {unit.capability for unit in units if unit.trust == "host" and unit.capability}
            update["capabilities"] = frozenset(granted) | {value}
            update["withheld"] = _without(value, update.get("withheld", policy.withheld))
        elif what == "select":
            update["selected"] = update.get("selected", policy.selected) | {value}
        elif what == "budget":
            update["budget"] = policy.limit + value
        else:
            field = {"undeny": "denied", "enable": "disabled"}[what]
            update[field] = _without(value, update.get(field, getattr(policy, field)))
    return policy.model_copy(update=update)


def _without(id: str, patterns: frozenset[str]) -> frozenset[str]:
    hits = engine().call("matching", {"id": id, "patterns": sorted(patterns)})["patterns"]
    return patterns - frozenset(hits)
