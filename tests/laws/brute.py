"""The semantics of selection once more, as naively as the architecture document writes it down.

*What* is a candidate, and in which order the evidence stands, is given; everything after it is worked out here:
viability by iterating to the greatest fixpoint, closures by walking, one pass in order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

from tests.laws.facts import NARROWABLE, Facts, reached


class ImpossibleError(Exception):
    """A configuration that no projection can honour: ``kind``, and the units that are to blame."""

    def __init__(self, kind: str, units: Iterable[str]) -> None:
        super().__init__(kind)
        self.kind = kind
        self.units = sorted(units)


@dataclass(frozen=True)
class Evidence:
    """What the text and the signals said: ids at or above the floor, best first; names do not count
    against the limit; ``negated`` are the ids that the user's own text rules out; ``weak`` are lone weak hits, and
    ``producers`` the units that come in directly behind another one, where that is shown."""

    ranked: Sequence[str] = ()
    names: Collection[str] = ()
    negated: Collection[str] = ()
    weak: Collection[str] = ()
    producers: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass
class Outcome:
    """Active ids in the order of admission, and why each rejected root was turned away."""

    active: list[str] = field(default_factory=list)
    rejected: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """Where the document leaves room, one way to fill it.

    "Drop members that are superseded within it": what only those needed goes as well (``late``), or stays
    (``never``); or what something nearer supersedes is not even looked at (``early``).
    Of several candidates that could stand in for a unit that is not viable, the host's own come first (for what the host
    wants, the others follow by priority and id: no text may decide that); then the one that is decided first, or the
    best-ranked one (``standing``). "Prose negation never reaches what a pinned or host-selected unit needs":
    one that is shown, or also one that is turned away (``spared``).
    """

    pruning: str = "late"
    standing: str = "order"
    spared: str = "shown"


READINGS = tuple(
    Reading(*three) for three in product(("late", "early", "never"), ("order", "rank"), ("shown", "wanted"))
)


def select(facts: Facts, evidence: Evidence, reading: Reading = READINGS[0]) -> Outcome:
    """The one selection that the document allows; ``ImpossibleError`` where there is none."""
    return _Selecting(facts, evidence, reading).outcome()


class _Selecting:
    def __init__(self, facts: Facts, evidence: Evidence, reading: Reading) -> None:
        self.facts = facts
        self.evidence = evidence
        self.reading = reading
        self.chosen = Outcome()
        self.host = facts.host
        self.open: set[str] = set()
        tools = facts.in_order(facts.every_tool & facts.eligible)
        self.retained = list(dict.fromkeys(facts.turn.retained))
        ranked = [id for id in evidence.ranked if id not in evidence.weak]
        self.spoken = [id for id in dict.fromkeys((*ranked, *tools)) if self.stands_alone(id)]
        self.came_for = {id: root for root, ids in evidence.producers.items() for id in ids}
        self.wanted = [*facts.pinned, *self.host]
        self.firm = viable(facts, facts.eligible, facts.units)

    def stands_alone(self, id: str) -> bool:
        """Whether a candidate comes after those of the host."""
        return id not in self.facts.pinned and id not in self.host

    def outcome(self) -> Outcome:
        self.together("pinned", [id for id in self.facts.pinned if self.may_be_pinned(id)])
        self.together("selected", [id for id in self.host if self.fits(id, self.firm)])
        self.open = self.unspoken_against()
        taken = 0
        kept = [id for id in self.retained if id not in self.evidence.negated]
        free = {*self.evidence.names, *self.facts.every_tool}
        spoken = [other for id in self.spoken for other in (id, *self.evidence.producers.get(id, ()))]
        for id in self.in_order(list(dict.fromkeys([*kept, *spoken]))):
            if id in kept or self.came_for.get(id) in self.chosen.active:
                self.admit(id)
                continue
            if id in self.came_for:
                continue
            if id not in self.facts.eligible or id in self.chosen.active or self.is_suppressed(id):
                continue
            counted = id in self.evidence.ranked and id not in free
            if counted and taken >= self.facts.policy.candidate_limit:
                self.chosen.rejected[id] = "over_candidate_limit"
            else:
                taken += self.admit(id) and counted
        for id in self.in_order(self.suggested()):
            self.admit(id)
        return self.chosen

    def is_suppressed(self, id: str) -> bool:
        """Whether the text rules a candidate out: being named there is no evidence for it."""
        return id in self.evidence.negated and id not in self.facts.every_tool

    def admit(self, id: str) -> bool:
        """Admit a root whole, or reject it; whether something came in."""
        if id in self.chosen.active or not self.fits(id, self.open):
            return False
        self.chosen.active += self.closure([id], self.open) or ()
        return True

    def unspoken_against(self) -> set[str]:
        """What is viable without the units that the text rules out, but for those that the host got in."""
        needed = [*self.chosen.active]
        if self.reading.spared == "wanted":
            needed += reached(self.wanted, lambda at: self.facts.needs.get(at, ()))
        spared = {*self.facts.every_tool, *needed}
        allowed = self.facts.eligible - (set(self.evidence.negated) - spared)
        return viable(self.facts, allowed, [*self.wanted, *self.chosen.active, *self.retained, *self.spoken])

    def suggested(self) -> list[str]:
        """What the active units suggest, one level deep."""
        found = (other for id in self.chosen.active for other in self.facts.units[id].suggests)
        return [id for id in dict.fromkeys(found) if id in self.facts.units and id not in self.chosen.active]

    # -- order --------------------------------------------------------------------------------------

    def in_order(self, candidates: list[str]) -> Iterator[str]:
        """The candidates, each superseder before the first whose closure has what it supersedes. One that cannot be
        shown has no closure."""
        told: set[str] = set()

        def tell(id: str) -> Iterator[str]:
            if id in told:
                return
            told.add(id)
            inside = closure_of(id, self.facts, self.open)
            for other in candidates:
                if any(self.facts.supersedes(other, member) for member in inside):
                    yield from tell(other)
            yield id

        for id in candidates:
            yield from tell(id)

    # -- admission ----------------------------------------------------------------------------------

    def may_be_pinned(self, id: str) -> bool:
        """Whether a pinned unit can be shown; an error where anything but a grant or scope is missing."""
        if id in self.firm:
            return True
        if self.causes(id) <= NARROWABLE:
            self.chosen.rejected[id] = "narrowed"
            return False
        raise ImpossibleError("pinned_blocked", [id])

    def causes(self, id: str) -> set[str]:
        """Everything that keeps a unit out, at the bottom of its requirements."""
        facts = self.facts

        def step(at: str) -> list[str]:
            needs = self.open_needs(at) if at in facts.units else []
            return [need for need in needs if not self.standing_for(need, self.firm)]

        out = reached([id], step)
        return {kind for at in out for kind in (facts.blockers(at) if at in facts.units else ("missing",))}

    def together(self, tier: str, roots: list[str]) -> None:
        """All closures of the host's own wishes at once."""
        roots = [id for id in roots if self.facts.superseders[id].isdisjoint(roots)]
        members = self.closure(roots, self.firm)
        if members is None:
            raise ImpossibleError(f"{tier}_blocked", roots)
        if not set(roots) <= {*members, *self.chosen.active}:
            raise ImpossibleError(f"{tier}_conflict", set(roots) - set(members))
        for one, other in combinations(members, 2):
            if self.facts.clash(one, other):
                raise ImpossibleError(f"{tier}_conflict", (one, other))
        self.chosen.active += members

    def fits(self, id: str, allowed: Collection[str]) -> bool:
        """Whether a root can be admitted whole; if not, it is rejected."""
        members = self.closure([id], allowed) if id in allowed else None
        if members is None:
            self.chosen.rejected[id] = "dependency_out"
        elif id not in members:
            self.chosen.rejected[id] = "contradicts_itself"
        elif any(self.facts.clash(member, active) for member in members for active in self.chosen.active):
            self.chosen.rejected[id] = "lost"
        elif any(self.facts.clash(one, other) for one, other in combinations(members, 2)):
            self.chosen.rejected[id] = "contradicts_itself"
        else:
            return True
        return False

    def closure(self, roots: Iterable[str], allowed: Collection[str]) -> list[str] | None:
        """What admitting the roots adds to what is active, without the roots where their own closure supersedes
        them; None where a requirement cannot be met."""
        facts, active = self.facts, self.chosen.active
        roots = [id for id in roots if id not in active]
        asked = self.walk(roots, allowed)
        kept = [id for id in asked if facts.superseders[id].isdisjoint(asked)]
        if not set(roots) <= {*kept}:
            return kept

        def step(id: str) -> list[str]:
            return [other for need in self.open_needs(id) for other in self.one_of(kept, need)]

        members = [id for id in (kept if self.reading.pruning == "never" else reached(roots, step)) if id not in active]
        unmet = any(not facts.met(need, [*members, *active]) for id in members for need in facts.needs[id])
        return None if unmet else members

    def open_needs(self, id: str) -> list[str]:
        """What a unit requires, without what it supersedes itself, or something active does."""
        facts, active = self.facts, self.chosen.active
        needs = [need for need in facts.needs[id] if not facts.supersedes(id, need)]
        return [need for need in needs if need in active or not facts.met(need, active)]

    def one_of(self, kept: list[str], need: str) -> list[str]:
        """What is required if it is kept, else the nearest that supersedes it."""
        return [need] if need in kept else [id for id in kept if self.facts.supersedes(id, need)][:1]

    def walk(self, roots: Iterable[str], allowed: Collection[str]) -> dict[str, None]:
        """The roots and what they require, as far as it is allowed and not met already."""
        found = {id: None for id in roots if id in allowed}
        queue = list(found)
        for id in queue:
            needs = self.open_needs(id)
            if self.reading.pruning == "early":
                needs = [need for need in needs if not any(self.facts.supersedes(other, need) for other in found)]
            fresh = [other for need in needs for other in self.standing_for(need, allowed) if other not in found]
            queue += dict.fromkeys(fresh)
            found |= dict.fromkeys(fresh)
        return found

    def standing_for(self, need: str, allowed: Collection[str]) -> list[str]:
        """The unit that is required; where it is not viable, the best candidate that supersedes it."""
        if need in allowed:
            return [need]
        if allowed is self.firm:  # the host's own wishes: no text may decide who stands in
            candidates = [*self.wanted, *self.facts.in_order(self.facts.units)]
        else:
            ranked = self.in_order(self.spoken) if self.reading.standing == "order" else self.spoken
            candidates = [*self.wanted, *self.retained, *ranked]
        return [id for id in candidates if id in allowed and self.facts.supersedes(id, need)][:1]


def closure_of(id: str, facts: Facts, showable: Collection[str]) -> Collection[str]:
    """A unit and all that it requires, as far as that is reached through units that can be shown; empty where it
    cannot be shown itself."""
    return reached([id], lambda at: facts.needs[at] if at in showable else ()) if id in showable else ()


def viable(facts: Facts, among: Collection[str], candidates: Collection[str]) -> set[str]:
    """The greatest set in which every requirement is met by a member, or by a candidate that supersedes it.

    A unit that supersedes what it requires needs nobody else to stand in.
    """
    kept = set(among)
    while True:
        standing = kept & set(candidates)
        met = {need for id in kept for need in facts.needs[id] if need in kept or facts.met(need, standing)}
        out = {id for id in kept if not all(n in met or facts.supersedes(id, n) for n in facts.needs[id])}
        if not out:
            return kept
        kept -= out
