"""What the laws speak of, read off the units, the policy and the turn: eligibility, supersession, clashes.

Written from the architecture document alone; nothing of the rules is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from rlm import CompiledContext, Mode, PackingClass, Policy, Unit
from rlm.model.turn import CompileInput
from rlm.model.unit import CALLABLE, Trust

NARROWABLE = frozenset({"capability_missing", "out_of_scope"})
INELIGIBLE = frozenset({"denied", "disabled", "unavailable"}) | NARROWABLE


class Facts:
    """The facts of one compile; ids everywhere."""

    def __init__(self, units: Mapping[str, Unit], policy: Policy, turn: CompileInput) -> None:
        self.units = units
        self.policy = policy
        self.turn = turn

    @classmethod
    def of(cls, view: CompiledContext, units: Iterable[Unit]) -> Facts:
        return cls({unit.id: unit for unit in units}, view.policy, view.turn)

    # -- may it be shown at all? --------------------------------------------------------------------

    def blockers(self, id: str) -> set[str]:
        """Why a unit is not eligible; empty where it is."""
        unit, policy = self.units[id], self.policy
        found = {
            "denied": matches(policy.denied, id),
            "disabled": matches(policy.disabled, id) or not (unit.visible or unit.pinned),
            "unavailable": not unit.available,
            "out_of_scope": policy.scope is not None and not matches(policy.scope, id),
            "capability_missing": not self.granted(unit),
        }
        return {kind for kind, holds in found.items() if holds}

    def granted(self, unit: Unit) -> bool:
        if unit.capability is None:
            return True
        if matches(self.policy.withheld, unit.capability):
            return False
        if self.policy.capabilities is None:
            return unit.trust is Trust.HOST
        return matches(self.policy.capabilities, unit.capability)

    @cached_property
    def eligible(self) -> frozenset[str]:
        return frozenset(id for id in self.units if not self.blockers(id))

    # -- relations ----------------------------------------------------------------------------------

    @cached_property
    def declared(self) -> dict[str, frozenset[str]]:
        """By unit, everything that says it supersedes it, directly or through others."""
        over: dict[str, set[str]] = {id: set() for id in self.units}
        for id in self.units:
            queue = [*self.units[id].supersedes]
            for below in queue:
                if below in self.units and id not in over[below]:
                    over[below].add(id)
                    queue.extend(self.units[below].supersedes)
        return {id: frozenset(ids) for id, ids in over.items()}

    @cached_property
    def superseders(self) -> dict[str, frozenset[str]]:
        """By unit, everything that does supersede it: only a pinned unit supersedes a pinned one."""
        pinned = {id for id, unit in self.units.items() if unit.pinned}
        return {id: ids & pinned if id in pinned else ids for id, ids in self.declared.items()}

    def supersedes(self, above: str, below: str) -> bool:
        return above in self.superseders.get(below, ())

    def conflict(self, one: str, other: str) -> bool:
        return other in self.units[one].conflicts or one in self.units[other].conflicts

    def clash(self, one: str, other: str) -> bool:
        """Whether two units cannot both be active. One that says it supersedes a pinned one does not
        supersede it, but cannot stand beside it either."""
        return self.conflict(one, other) or one in self.declared[other] or other in self.declared[one]

    @cached_property
    def needs(self) -> dict[str, tuple[str, ...]]:
        """What each unit requires: its own requirements, and the premises that were admitted with it."""
        wanted = {id: set(unit.requires) for id, unit in self.units.items()}
        for item in self.turn.admitted:
            wanted[item.unit].update(item.premises)
        return {id: tuple(sorted(ids)) for id, ids in wanted.items()}

    def met(self, need: str, by: Iterable[str]) -> bool:
        """Whether a requirement is met: by the unit itself, or by one that supersedes it."""
        present = set(by)
        return need in present or not present.isdisjoint(self.superseders.get(need, ()))

    def causes(self, id: str) -> set[str]:
        """Everything that is against a unit or something that it requires, and ``missing``."""
        needed = reached([id], lambda at: self.needs.get(at, ()))
        return {kind for at in needed for kind in (self.blockers(at) if at in self.units else ("missing",))}

    def reach(self, id: str) -> dict[str, None]:
        """Everything that may stand in a unit's closure: requirements, and whatever supersedes them."""
        return reached([id], lambda at: (s for n in self.needs.get(at, ()) for s in self._stand_ins(n)))

    def _stand_ins(self, need: str) -> Iterator[str]:
        yield need
        yield from self.superseders.get(need, ())

    # -- candidates ---------------------------------------------------------------------------------

    @cached_property
    def pinned(self) -> list[str]:
        """What must be active: pinned by the host, or admitted as such by something upstream."""
        admitted = {item.unit for item in self.turn.admitted if item.klass is PackingClass.PINNED}
        return self.in_order(admitted.union(id for id, unit in self.units.items() if unit.pinned))

    @cached_property
    def host(self) -> list[str]:
        """What the host itself asked for this time, beside its pins."""
        admitted = (item.unit for item in self.turn.admitted)
        return self.in_order({*self.policy.selected, *admitted} - set(self.pinned))

    @cached_property
    def every_tool(self) -> frozenset[str]:
        """What the mode ``all_tools`` asks for."""
        if self.policy.mode is not Mode.ALL_TOOLS:
            return frozenset()
        return frozenset(id for id, unit in self.units.items() if unit.kind in CALLABLE)

    def in_order(self, ids: Iterable[str]) -> list[str]:
        """Ids without a score: by priority, then by id."""
        return sorted(ids, key=lambda at: (-self.units[at].priority, at))


def matches(patterns: Iterable[str], id: str) -> bool:
    """Whether one of the patterns matches; ``*`` stands for any characters, everything else for itself."""
    return any(re.fullmatch(".*".join(map(re.escape, p.split("*"))), id, re.DOTALL) for p in patterns)


def reached(start: Iterable[str], step: Callable[[str], Iterable[str]]) -> dict[str, None]:
    """Everything that is reached from ``start``, as an ordered set: the nearest first."""
    queue = list(dict.fromkeys(start))
    found = dict.fromkeys(queue)
    for at in queue:
        for following in step(at):
            if following not in found:
                found[following] = None
                queue.append(following)
    return found
