"""The compiler's calls of the rules: arguments and answers as plain values, and the host's own rules."""

from __future__ import annotations

import os
import weakref
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlm import files
from rlm.catalog.catalog import Catalog
from rlm.errors import CompileError, ConfigurationError, FileError, did_you_mean
from rlm.forks import ForkLock
from rlm.model.facts import said_of
from rlm.model.policy import Policy
from rlm.model.selection import Selection
from rlm.model.snapshot import Snapshot
from rlm.model.turn import CompileInput
from rlm.model.unit import Unit
from rlm.model.wire_limits import WireLimits, limits_of
from rlm.symbolic.engine import engine
from rlm.symbolic.values import JsonValue


@dataclass(frozen=True)
class Reach:
    """The place of full schemas, and the wire of a request.

    Attributes:
        native: whether full schemas stand in the provider's ``tools`` field.
        wire: ``openai``, ``anthropic``, or None if the view may go to either.
    """

    native: bool
    wire: str | None = None

    @property
    def limits(self) -> WireLimits | None:
        """The limits of the wire; None if no schema goes into a ``tools`` field."""
        return limits_of(self.wire) if self.native else None

    def args(self, snapshot: Snapshot) -> dict[str, Any]:
        """Return ``refused`` and ``most_tools``, as ``rlm_eligible:policy/2`` takes them."""
        limits = self.limits
        if limits is None:
            return {"refused": [], "most_tools": None}
        rows = [[id, limits.name, problem] for id, problem in snapshot.refused(limits)]
        return {"refused": rows, "most_tools": limits.most_tools}


TEXT = Reach(native=False)


def selection_args(turn: CompileInput, policy: Policy, rules: int | None) -> dict[str, Any]:
    """Return the arguments of ``rlm_select:select/2`` for one compile, without those of its wire."""
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
        "unused": turn.unused,
        "standing": [],
        "selected": sorted(policy.selected),
        "mode": policy.mode.value,
        "limit": policy.candidate_limit,
        "floor": round(1000 * policy.floor),
        "relative_floor": round(1000 * policy.relative_floor),
        "abstain": round(1000 * policy.abstain),
        "rules": rules,
        **policy_args(policy),
    }


def policy_args(policy: Policy) -> dict[str, JsonValue]:
    """Return the permissions of the host, as the rules of eligibility take them."""

    def patterns(value: frozenset[str] | None) -> list[JsonValue] | None:
        return None if value is None else [*sorted(value)]

    return {
        "capabilities": patterns(policy.capabilities),
        "withheld": patterns(policy.withheld),
        "scope": patterns(policy.scope),
        "denied": patterns(policy.denied),
        "disabled": patterns(policy.disabled),
    }


def select(
    catalog: Catalog,
    turn: CompileInput,
    policy: Policy,
    extra_pinned: tuple[Unit, ...] = (),
    host: HostRules | None = None,
    reach: Reach = TEXT,
) -> tuple[Snapshot, Selection]:
    """Return the selection of the rules, and the snapshot of the units that they chose from.

    Args:
        catalog, turn, policy, reach: the material of the compile.
        extra_pinned: further pinned units for this selection only.
        host: the host's own rules.

    Raises:
        ConfigurationError: ``unknown_unit`` for an unknown id in ``selected`` or ``admitted``.
        CompileError: ``pinned_conflict``, ``pinned_blocked``, ``selected_conflict``, naming the units.
    """
    args = selection_args(turn, policy, None if host is None else host.handle)
    if turn.sensors or turn.admitted or policy.selected:
        _known_ids(catalog.units, turn, policy)
    args["standing"] = [pinned_facts(unit) for unit in extra_pinned]
    args |= reach.args(catalog.snapshot().with_standing(extra_pinned) if extra_pinned else catalog.snapshot())
    snapshot, reply = catalog.ask("select", args, floor=args["floor"])
    if extra_pinned:
        snapshot = snapshot.with_standing(extra_pinned)
    if "error" in reply:
        raise _misconfigured(reply["error"])
    return snapshot, Selection.of(reply)


def pinned_facts(unit: Unit) -> dict[str, JsonValue]:
    """Return the facts of an extra pinned unit, without its words: a pinned unit requires no evidence."""
    known = _facts_by_digest.get(unit.digest)
    if known is None:
        if len(_facts_by_digest) >= _MOST_FACTS:
            _facts_by_digest.clear()
        known = _facts_by_digest[unit.digest] = {
            key: value for key, value in said_of(unit).items() if key not in _EVIDENCE
        }
    return known


_facts_by_digest: dict[str, dict[str, JsonValue]] = {}
"""Facts by the unit's digest: the same few extra units are pinned in every request of every run."""

_MOST_FACTS = 1024
_EVIDENCE = frozenset({"names", "groups", "triggers", "fields"})


def _known_ids(units: Mapping[str, Unit], turn: CompileInput, policy: Policy) -> None:
    named = [(id, "selected") for id in sorted(policy.selected)]
    for item in turn.admitted:
        named += [(id, "admitted") for id in (item.unit, *item.premises)]
    for id, where in named:
        if id not in units:
            raise ConfigurationError(
                "unknown_unit", f"{where} names {id!r}, which is not in the catalog{did_you_mean(id, units)}"
            )


def _misconfigured(error: Mapping[str, Any]) -> CompileError:
    kind, units = error["kind"], list(error["units"])
    if kind.endswith("_blocked"):
        why = ", ".join(" ".join([r["kind"], *([f"({r['what']})"] if "what" in r else [])]) for r in error["reasons"])
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
    reach: Reach = TEXT,
) -> dict[str, Any]:
    """Return the arguments of ``rlm_seal:seal/2`` for a finished projection."""
    return {
        "shown": [_seal_facts(unit, snapshot) for unit in shown],
        "pinned": [_seal_facts(unit, snapshot) for unit in snapshot.pinned],
        "extra": extra,
        "obliged": obliged,
        "total": total,
        "token_limit": policy.limit,
        **policy_args(policy),
        **reach.args(snapshot),
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
    """Return the ids that a unit supersedes, directly or through registered units."""
    ids: set[str] = set()
    queue = [*unit.supersedes]
    while queue:
        id = queue.pop()
        if id not in ids:
            ids.add(id)
            queue.extend(units[id].supersedes if id in units else ())
    return sorted(ids)


@dataclass(frozen=True)
class HostRules:
    """A host's own rules, loaded into the engine. The engine unloads them when this object is deleted.

    Attributes:
        path, source: the file and its text.
        handle: the engine's number for the rules.
        warnings: the findings that are not errors, a sentence each.
    """

    path: str
    source: str
    handle: int = field(compare=False)
    warnings: tuple[str, ...] = field(compare=False)


def load_rules(path: Path) -> HostRules:
    """Return the rules of a file in its present state; each content is loaded once.

    Raises:
        ConfigurationError: ``host_rules`` with all findings (line, column, message, fix), or with none if the file
            cannot be read.
    """
    key = (str(path), read_rules(path))
    with _loading:
        known = _loaded.get(key) or _load(*key)
        _loaded[key] = known
        _loaded.move_to_end(key)
        while len(_loaded) > _MOST_LOADED:
            _loaded.popitem(last=False)
        return known


def _load(path: str, source: str) -> HostRules:
    reply = engine().call("rules_load", {"source": source, "name": path})
    findings = reply.get("findings", ())
    if "rules" not in reply:
        errors = [finding for finding in findings if finding.get("level", "error") == "error"]
        raise ConfigurationError("host_rules", _finding_text(path, errors[0]), {"findings": errors})
    loaded = HostRules(path, source, int(reply["rules"]), tuple(_finding_text(path, finding) for finding in findings))
    weakref.finalize(loaded, _forget, os.getpid(), loaded.handle).atexit = False
    return loaded


def _finding_text(path: str, finding: Mapping[str, Any]) -> str:
    return f"{path}, line {finding['line']}, column {finding['column']}: {finding['message']}"


def _forget(process: int, handle: int) -> None:
    if os.getpid() == process:
        engine().post("rules_forget", {"rules": handle})


_loaded: OrderedDict[tuple[str, str], HostRules] = OrderedDict()
"""Rules by path and content, the latest last. Removed ones live on in the views that were compiled with them."""

_MOST_LOADED = 32
_loading = ForkLock()


def read_rules(path: Path) -> str:
    """Return the text of a policy file.

    Raises:
        ConfigurationError: ``host_rules`` if it is not a regular file of at most ``MOST_BYTES`` in UTF-8.
    """
    try:
        return files.read_text(path, MOST_BYTES).replace("\r\n", "\n").replace("\r", "\n")
    except FileError as problem:
        what = f"{str(path)!r} cannot be read: {problem.why}"
        raise ConfigurationError("host_rules", what, {"path": str(path)}) from None


MOST_BYTES = 262_144
"""As ``rlm_host_read:most_bytes/1``; a test compares the two."""
