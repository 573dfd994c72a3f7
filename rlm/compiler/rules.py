"""The compiler's side of the door: what is asked of the rules, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlm.catalog.catalog import Catalog
from rlm.catalog.facts import said_of
from rlm.catalog.snapshot import Snapshot
from rlm.errors import CompileError, ConfigurationError, did_you_mean
from rlm.model.policy import Policy
from rlm.model.selection import Selection
from rlm.model.turn import Turn
from rlm.model.unit import Unit
from rlm.symbolic.engine import engine
from rlm.symbolic.values import JsonValue


def selection_args(turn: Turn, policy: Policy, rules: int | None) -> dict[str, Any]:
    """One compile's question to ``rlm_select:select/2``."""
    return {
        "text": turn.text,
        "history": turn.history,
        "needs": turn.needs,
        "signals": [[name, values] for name, values in turn.signals],
        "sensors": [
            [name, [unit for unit, _ in row], [round(1000 * score) for _, score in row]] for name, row in turn.sensors
        ],
        "words": None,
        "admitted": [[item.unit, item.klass.value, item.premises] for item in turn.admitted],
        "retained": turn.retained,
        "standing": [],
        "selected": sorted(policy.selected),
        "mode": policy.mode.value,
        "limit": policy.candidate_limit,
        "floor": round(1000 * policy.floor),
        "relative_floor": round(1000 * policy.relative_floor),
        "rules": rules,
        **policy_args(policy),
    }


def policy_args(policy: Policy) -> dict[str, JsonValue]:
    """What the host allows, as the rules of eligibility take it."""

    def patterns(value: frozenset[str] | None) -> list[JsonValue] | None:
        return None if value is None else [*sorted(value)]

    return {
        "capabilities": patterns(policy.capabilities),
        "withheld": patterns(policy.withheld),
        "scope": patterns(policy.scope),
        "denied": patterns(policy.denied),
        "disabled": patterns(policy.disabled),
    }


def select(catalog: Catalog, turn: Turn, policy: Policy, standing: tuple[Unit, ...] = ()) -> tuple[Snapshot, Selection]:
    """Ask the rules; ``standing`` are further pinned units for this question only.

    Raises:
        ConfigurationError: ``unknown_unit`` for an id in ``selected`` or ``admitted`` that is not there;
            ``host_rules`` for a policy file that cannot be.
        CompileError: ``pinned_conflict``, ``pinned_blocked``, ``selected_conflict``, naming the units.
    """
    rules = load_rules(policy.rules) if policy.rules is not None else None
    args = selection_args(turn, policy, rules)
    if turn.sensors or turn.admitted or policy.selected:
        _known_ids(catalog.units, turn, policy)
    args["standing"] = [standing_facts(unit) for unit in standing]
    snapshot, reply = catalog.ask("select", args, floors=(args["floor"], args["relative_floor"]))
    if standing:
        snapshot = snapshot.with_standing(standing)
    if "error" in reply:
        raise _misconfigured(reply["error"])
    return snapshot, Selection.of(reply)


def standing_facts(unit: Unit) -> dict[str, JsonValue]:
    """What the rules are told of a unit that stands for one compile: no words, since no evidence is wanted."""
    return {key: value for key, value in said_of(unit).items() if key not in _EVIDENCE}


_EVIDENCE = frozenset({"names", "groups", "triggers", "fields"})


def _known_ids(units: Mapping[str, Unit], turn: Turn, policy: Policy) -> None:
    wanted = [(id, "selected") for id in sorted(policy.selected)]
    for item in turn.admitted:
        wanted += [(id, "admitted") for id in (item.unit, *item.premises)]
    for id, where in wanted:
        if id not in units:
            raise ConfigurationError(
                "unknown_unit", f"{where} names {id!r}, which is not in the catalog{did_you_mean(id, units)}"
            )


def _misconfigured(error: Mapping[str, Any]) -> CompileError:
    kind, units = error["kind"], list(error["units"])
    if kind.endswith("_blocked"):
        why = ", ".join(reason["kind"] for reason in error["reasons"])
        message = f"{units[0]} is pinned, but the host itself keeps it out: {why}"
    else:
        first, second = error["between"]
        owners = " and ".join(units)
        message = f"{owners} cannot all be shown: {first} and {second} cannot stand together"
    return CompileError(kind, message, {"units": units, **{k: v for k, v in error.items() if k != "kind"}})


def seal_args(
    shown: list[Unit],
    snapshot: Snapshot,
    policy: Policy,
    extra: list[list[str]],
    obliged: list[str],
    total: int,
) -> dict[str, Any]:
    """What ``rlm_seal:seal/2`` needs to know of a finished projection."""
    return {
        "shown": [_seal_facts(unit, snapshot) for unit in shown],
        "pinned": [_seal_facts(unit, snapshot) for unit in snapshot.pinned],
        "extra": extra,
        "obliged": obliged,
        "total": total,
        "limit": policy.limit,
        **policy_args(policy),
    }


def _seal_facts(unit: Unit, snapshot: Snapshot) -> dict[str, Any]:
    return {
        "id": unit.id,
        "requires": unit.requires,
        "conflicts": unit.conflicts,
        "supersedes": superseded(unit, snapshot.units) if unit.supersedes else (),
        "capability": unit.capability,
        "trust": unit.trust.value,
        "visible": unit.visible,
        "available": unit.available,
    }


def superseded(unit: Unit, units: Mapping[str, Unit]) -> list[str]:
    """Everything that a unit supersedes, directly or through others that are there."""
    found: set[str] = set()
    queue = [*unit.supersedes]
    while queue:
        id = queue.pop()
        if id not in found:
            found.add(id)
            queue.extend(units[id].supersedes if id in units else ())
    return sorted(found)


def load_rules(path: Path) -> int:
    """The handle of a host's own rules, loaded once for each content of the file.

    Raises:
        ConfigurationError: ``host_rules`` with all findings (line, column, message, fix).
    """
    source = read_rules(path)
    known = _loaded.get(source)
    if known is None:
        reply = engine().call("rules_load", {"source": source, "name": str(path)})
        errors = [finding for finding in reply.get("findings", ()) if finding.get("level", "error") == "error"]
        if "rules" not in reply:
            first = errors[0]
            message = f"{path}, line {first['line']}: {first['message']}"
            raise ConfigurationError("host_rules", message, {"findings": errors})
        known = _loaded[source] = int(reply["rules"])
    return known


def read_rules(path: Path) -> str:
    """The text of a policy file.

    Raises:
        ConfigurationError: ``host_rules`` where it cannot be read as UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigurationError("host_rules", f"{path} cannot be read: {problem}") from None


_loaded: dict[str, int] = {}
