"""Find the changes of the host that would show a unit.

The rules find the changes that make them choose it. The budget is judged here, by packing, and a compile verifies the
whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from rlm.catalog.catalog import Catalog, ephemeral
from rlm.compiler import rules
from rlm.compiler.explain.explain import Change, explanation
from rlm.compiler.pack_selection import pack_selection
from rlm.compiler.projection import CompileMaterial, Projection
from rlm.compiler.tokens.token_counter import counter
from rlm.errors import BudgetError, CompileError
from rlm.model.facts import facts_of
from rlm.model.policy import Policy
from rlm.model.selection import Reason, State
from rlm.model.unit import Identified, Unit
from rlm.symbolic.engine import engine

MOST_CHANGES = 4

SMALL_RAISES = 12
"""Raises of the budget that are tried, each by what the unit lacked, before all units are given room."""


def what_if(view: Projection, about: str | Identified) -> Change:
    """Return the changes that would show a unit; see ``CompiledContext.what_if``."""
    before = explanation(view, about)
    unit = before.unit
    if before.state is State.ACTIVE:
        return Change(unit=unit)
    if before.state is State.PACKED_OUT:
        return _with_room(view, unit, [], view)
    with _material(view) as material:
        changes, blocker = _chosen_by(view, material, unit)
        if blocker is not None:
            return Change(unit=unit, blocker=blocker)
        return _with_room(view, unit, changes, _trial(view, material, changes))


@contextmanager
def _material(view: Projection) -> Iterator[CompileMaterial]:
    """Give the material of a view for further compiles, with a catalog of its units.

    That is the view's own catalog if it has not changed, else a copy of the view's units, the extra pinned ones
    included. The turn has the scores of the sensor, so the sensor is not asked again.
    """
    material = replace(view._material, sensor_input=None)
    if _is_unchanged(material.catalog, view):
        yield material
        return
    with ephemeral(view._snapshot) as catalog:
        yield replace(material, catalog=catalog, extra_pinned=())


def _is_unchanged(catalog: Catalog, view: Projection) -> bool:
    return not catalog.destroyed and catalog.revision == view._snapshot.revision


def _chosen_by(view: Projection, material: CompileMaterial, unit: str) -> tuple[list[dict[str, Any]], Reason | None]:
    """Return the changes that make the rules choose a unit, or the reason that no change removes."""
    units, host = view._snapshot.units, material.host_rules
    args = rules.selection_args(material.turn, material.policy, None if host is None else host.handle)
    args["standing"] = [rules.pinned_facts(pinned) for pinned in material.extra_pinned]
    args |= material.reach.args(view._snapshot)
    args |= {
        "about": unit,
        "stemmer": view._snapshot.stemmer,
        "facts": [facts_of(units[id]) for id in _near(units, unit)],
        "own_capabilities": sorted(_own_capabilities(units.values())),
    }
    _, reply = material.catalog.ask("what_if", args)
    if "blocker" in reply:
        return [], Reason.of(reply["blocker"])
    return list(reply["changes"]), None


def _own_capabilities(units: Iterable[Unit]) -> set[str]:
    """Return the capabilities that a policy without ``capabilities`` grants."""
    return {unit.capability for unit in units if unit.trust == "host" and unit.capability}


def _near(units: Mapping[str, Unit], unit: str) -> list[str]:
    """Return a unit, all that it may require, and all that may stand in for one of these."""
    stand_ins: dict[str, list[str]] = {}
    for id, other in units.items():
        for replaced in other.supersedes:
            stand_ins.setdefault(replaced, []).append(id)
    found, waiting = {unit}, [unit]
    while waiting:
        id = waiting.pop()
        near: Iterable[str] = (*units[id].requires, *stand_ins.get(id, ()))
        fresh = [other for other in near if other in units and other not in found]
        found.update(fresh)
        waiting += fresh
    return sorted(found)


def _with_room(view: Projection, unit: str, changes: list[dict[str, Any]], trial: Projection | CompileError) -> Change:
    """Return the changes, with a larger budget if the unit or what must stay has no room.

    Args:
        view: the view that was asked.
        unit: the unit, chosen by the rules under ``changes``.
        changes: the changes of the rules.
        trial: the view under the changes, or the error of their compile.
    """
    if isinstance(trial, Projection) and unit in trial.active:
        return Change(unit=unit, changes=tuple(changes))
    more = 0
    with _material(view) as material:
        if isinstance(trial, BudgetError):
            more = int(trial.detail["missing_tokens"])
            trial = _trial(view, material, [*changes, {"budget": more}])
        if isinstance(trial, Projection) and unit not in trial.active:
            more += _room_for(trial, unit)
            trial = _trial(view, material, [*changes, {"budget": more}])
    changes = [*changes, {"budget": more}]
    if not isinstance(trial, Projection) or unit not in trial.active or len(changes) > MOST_CHANGES:
        return Change(unit=unit, blocker=Reason.of({"kind": "no_evidence"}))
    return Change(unit=unit, changes=tuple(changes))


def _room_for(view: Projection, unit: str) -> int:
    """Return the further tokens with which a chosen unit is packed. It packs again; the rules are not asked."""
    more = 0
    dropped: Mapping[str, tuple[int, int]] = view._dropped
    everything = sum(tokens for tokens, _ in dropped.values())
    for _ in range(SMALL_RAISES):
        tokens, free = dropped[unit]
        more += max(1, tokens - free)
        policy = view.policy.model_copy(update={"budget": view.policy.limit + more})
        material = view._material
        count = counter(policy.tokenizer)
        _, dropped, _ = pack_selection(
            view._snapshot, view.selection, material.turn, policy, count, reach=material.reach
        )
        if unit not in dropped:
            return more
    return max(more, everything)


def _trial(view: Projection, material: CompileMaterial, changes: Sequence[dict[str, Any]]) -> Projection | CompileError:
    """Return the view under the changes, or the error of a compile that cannot be."""
    policy = changed(view.policy, changes, view)
    try:
        return view._compile(replace(material, policy=policy))
    except CompileError as problem:
        return problem


def changed(policy: Policy, changes: Sequence[dict[str, Any]], view: Projection) -> Policy:
    """Return the policy with the changes applied."""
    update: dict[str, Any] = {}
    for change in changes:
        (verb, value), *_ = change.items()
        if verb == "grant":
            granted = update.get("capabilities", policy.capabilities)
            if granted is None:
                granted = _own_capabilities(view._snapshot.units.values())
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
