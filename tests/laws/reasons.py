"""Whether a reason is true: what each word of the closed vocabulary claims, checked against the facts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from rlm import CompiledContext, Unit
from rlm.model.facts import origin_of
from rlm.model.wire_schema import refusal
from tests.laws.brute import viable
from tests.laws.facts import Facts, reached

EVIDENCE = frozenset({"name", "trigger", "lexical", "example", "history", "intent", "need", "sensor", "spared"})
IN = EVIDENCE | {"pinned", "selected_by_host", "retained", "dependency_of", "suggested_by", "all_tools", "produces"}
BESIDE = frozenset({"shortened"})
"""What an active unit may say besides."""

OUT = frozenset(
    {
        *("denied", "disabled", "unavailable", "out_of_scope", "capability_missing", "negated", "below_floor"),
        *("no_evidence", "over_candidate_limit", "missing_dependency", "dependency_out", "superseded_by"),
        *("conflict_with", "contradicts_itself", "vetoed", "packed_out", "refused_by_wire", "over_tool_limit"),
        "lone_weak_hit",
    }
)

Row = Mapping[str, Any]
Explain = Callable[[str], Any]


class Truth:
    """Objections to the reasons of one view."""

    def __init__(self, view: CompiledContext, facts: Facts, explain: Explain) -> None:
        self.view = view
        self.facts = facts
        self.chosen = {item.id: item for item in view.selection.chosen}
        self.explained = cache(explain)
        self.wanted = {*facts.pinned, *facts.host}
        self.firm = viable(facts, facts.eligible, facts.units)
        for_the_host = {id for id, item in self.chosen.items() if item.tier in ("pinned", "selected")}
        self.standing = for_the_host | {id for id in self.chosen if self.was_candidate(id) or id in facts.every_tool}

    def objection(self, id: str, row: Row) -> str:
        """What is wrong with a reason of ``id``; an empty string where it is true."""
        check = CHECKS.get(row["kind"])
        if check is None:
            return "that is no word of the vocabulary"
        return "" if check(self, id, row) else "that is not so"

    def was_candidate(self, id: str) -> bool:
        """Whether a unit stood for admission: of the host's own will, or by evidence at or above the floor."""
        return id in {*self.facts.pinned, *self.facts.host, *self.view.turn.retained, *self.view.selection.ranked}

    # -- in -----------------------------------------------------------------------------------------

    def _pinned(self, id: str, row: Row) -> bool:
        return id in self.facts.pinned

    def _selected_by_host(self, id: str, row: Row) -> bool:
        return id in self.facts.host

    def _retained(self, id: str, row: Row) -> bool:
        return id in self.view.turn.retained

    def _all_tools(self, id: str, row: Row) -> bool:
        return id in self.facts.every_tool

    def _dependency_of(self, id: str, row: Row) -> bool:
        """It is required by an active unit, or it stands in for what is required."""
        needs = self.facts.needs.get(row["unit"], ())
        return row["unit"] in self.chosen and any(self.facts.met(need, [id]) for need in needs)

    def _suggested_by(self, id: str, row: Row) -> bool:
        return row["unit"] in self.chosen and id in self.facts.units[row["unit"]].suggests

    def _produces(self, id: str, row: Row) -> bool:
        """A tool of the same server, whose name looks up the noun of a parameter, which it does not require."""
        unit, other, parameter = self.facts.units[id], self.facts.units[row["unit"]], row["parameter"]
        noun, word = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", parameter).lower().rpartition("_")[::2]
        known = parameter in ((other.schema or {}).get("properties") or {})
        required = parameter in ((other.schema or {}).get("required") or ())
        identifies = word in ("id", "key", "slug", "uuid") or (word == "name" and required)
        looks_up = any(verb in words(unit.name).split() for verb in ("list", "search", "find", "query"))
        named = noun.rpartition("_")[2].rstrip("s") in words(unit.name)
        free = parameter not in ((unit.schema or {}).get("required") or ())
        same = unit.server == other.server != ""
        return known and identifies and looks_up and named and free and same and row["unit"] in self.chosen

    def _lone_weak_hit(self, id: str, row: Row) -> bool:
        return (
            is_lone_weak_hit(self.facts.units[id], self.view, self.facts)
            and row["server"] == self.facts.units[id].server
        )

    def _name(self, id: str, row: Row) -> bool:
        """The text says it, and it is a name of the unit: in another spelling, of no other unit that is shown."""
        names = {other: _names(self.facts.units[other]) for other in {id, *self.chosen}}
        named = words(row["name"])
        if f" {named} " not in f" {words(self.view.turn.text)} ":
            return False
        if named in names[id]:
            return True
        owners = {id for id, own in names.items() if named.replace(" ", "") in {name.replace(" ", "") for name in own}}
        return id in owners and not (owners & self.chosen.keys()) - {id} - self.view.selection.negated

    def _trigger(self, id: str, row: Row) -> bool:
        turn, value = self.view.turn, words(row["value"])
        told = {"need": " ".join(turn.needs)}.get(row["signal"], turn.text)
        signals = dict(turn.signals)
        present = row["value"] in signals.get(row["signal"], ()) or f" {value} " in f" {words(told)} "
        own = [(t.signal, t.value, round(1000 * t.weight)) for t in self.facts.units[id].triggers]
        return present and (row["signal"], row["value"], row["score"]) in own

    def _lexical(self, id: str, row: Row) -> bool:
        """Every matched word is reported with its share, stands in the text, and the shares are the score."""
        found = self.explained(id).words
        text = words(self.view.turn.text).split()
        real = all(any(word.startswith(stem[:-1]) for word in text) for stem, _ in found)
        return bool(found) and real and sum(share for _, share in found) == row["score"]

    def _example(self, id: str, row: Row) -> bool:
        return bool(self.facts.units[id].examples)

    def _history(self, id: str, row: Row) -> bool:
        return 1 <= row["turn"] <= len(self.view.turn.history) and row["score"] > 0

    def _intent(self, id: str, row: Row) -> bool:
        """The part stands in the text, and raises the unit to no more than the share that keeps it from starving."""
        best = max(self.view.selection.scores, default=0)
        own = self.view.selection.scores[self.view.selection.ranked.index(id)]
        return words(row["part"]) in words(self.view.turn.text) and 0 < row["score"] <= own <= best

    def _need(self, id: str, row: Row) -> bool:
        return row["need"] in self.view.turn.needs and row["score"] > 0

    def _sensor(self, id: str, row: Row) -> bool:
        score = dict(dict(self.view.turn.sensors).get(row["sensor"], ())).get(id)
        return score is not None and 3500 * round(1000 * score) // 1000 == row["score"]

    def _spared(self, id: str, row: Row) -> bool:
        """It was no candidate beside a stranger's units, and whose they are is told: never its own."""
        strange = {origin_of(unit) for unit in self.facts.units.values()} - {""}
        own, told = origin_of(self.facts.units[id]), row["origin"]
        return id in self.view.selection.ranked and row["score"] > 0 and (told in strange - {own} if own else not told)

    # -- out: not eligible (the checker compares these with the facts as a whole) ---------------------

    def _eligibility(self, id: str, row: Row) -> bool:
        return row["kind"] in self.facts.blockers(id)

    def _capability_missing(self, id: str, row: Row) -> bool:
        return self._eligibility(id, row) and row["capability"] == self.facts.units[id].capability

    # -- out: no candidate --------------------------------------------------------------------------

    def _negated(self, id: str, row: Row) -> bool:
        return id in self.view.selection.negated

    def _below_floor(self, id: str, row: Row) -> bool:
        return id not in self.view.selection.ranked and 0 < row["score"] < row["floor"]

    def _no_evidence(self, id: str, row: Row) -> bool:
        """Nothing speaks for it, and nothing else is why it might be shown."""
        kinds = {reason.kind.value for reason in self.explained(id).reasons}
        return not (kinds & EVIDENCE or self.was_candidate(id) or id in self.facts.every_tool)

    def _over_candidate_limit(self, id: str, row: Row) -> bool:
        taken = [other for other in self.view.selection.ranked if other in self.chosen]
        limit = self.facts.policy.candidate_limit
        return row["rank"] == self.view.selection.rank.get(id) and len(taken) >= limit and id not in self.facts.host

    # -- out: turned away ---------------------------------------------------------------------------

    def _missing_dependency(self, id: str, row: Row) -> bool:
        return row["unit"] not in self.facts.units and self._lacks(id, row["unit"], id in self.wanted)

    def _dependency_out(self, id: str, row: Row) -> bool:
        return self._out(id, row, id in self.wanted)

    def _out(self, id: str, row: Row, by_host: bool) -> bool:
        """A requirement that is there is out, for the reason that is given."""
        need, why = row["unit"], row.get("reason")
        if need not in self.facts.units or not self._lacks(id, need, by_host):
            return False
        if why is not None and why["kind"] == "dependency_out":
            return self._out(need, why, by_host)
        return why is None or not self.objection(need, why)

    def _lacks(self, id: str, need: str, by_host: bool) -> bool:
        """Whether a unit requires what is not there, and no candidate stands in for it: for what the host wants,
        any unit that can be shown; and what came in without being a candidate stands in for nothing."""
        standing = self.firm if by_host else self.standing
        return need in self.facts.needs[id] and need not in self.chosen and not self.facts.met(need, standing)

    def _superseded_by(self, id: str, row: Row) -> bool:
        through = row.get("through", id)
        above = self.facts.superseders[through]
        return row["unit"] in self.chosen and row["unit"] in above and through in self.facts.reach(id)

    def _conflict_with(self, id: str, row: Row) -> bool:
        """Something that it would bring in conflicts with an active unit, or would supersede it."""
        winner, through = row["unit"], row.get("through", id)
        if winner not in self.chosen or through not in self.facts.reach(id):
            return False
        return self.facts.conflict(winner, through) or through in self.facts.declared[winner]

    def _contradicts_itself(self, id: str, row: Row) -> bool:
        one, other = row["units"]
        reach = self.facts.reach(id)
        return one in reach and other in reach and self.facts.clash(one, other)

    def _refused_by_wire(self, id: str, row: Row) -> bool:
        limits = self.view._reach.limits
        return limits is not None and row["what"] == refusal(self.view.units[id], limits) != ""

    def _over_tool_limit(self, id: str, row: Row) -> bool:
        """As many tools as the wire takes are there, or would be with all that it needs."""
        return row["limit"] > 0 and id not in self.chosen

    def _packed_out(self, id: str, row: Row) -> bool:
        return id in self.view.packed_out and row["tokens"] > row["free"] == self.view.ledger.free

    def _shortened(self, id: str, row: Row) -> bool:
        """It is shown in another form than the full one, and the full one would not fit in its place."""
        (block,) = [item.block for item in self.view.shown if item.unit.id == id]
        return block.form != "full" and row["tokens"] > row["free"] == self.view.ledger.free + block.tokens


CHECKS: Mapping[str, Callable[[Truth, str, Row], bool]] = {
    **dict.fromkeys(("denied", "disabled", "unavailable", "out_of_scope"), Truth._eligibility),
    "pinned": Truth._pinned,
    "selected_by_host": Truth._selected_by_host,
    "retained": Truth._retained,
    "all_tools": Truth._all_tools,
    "dependency_of": Truth._dependency_of,
    "suggested_by": Truth._suggested_by,
    "produces": Truth._produces,
    "lone_weak_hit": Truth._lone_weak_hit,
    "name": Truth._name,
    "trigger": Truth._trigger,
    "lexical": Truth._lexical,
    "example": Truth._example,
    "history": Truth._history,
    "intent": Truth._intent,
    "spared": Truth._spared,
    "need": Truth._need,
    "sensor": Truth._sensor,
    "capability_missing": Truth._capability_missing,
    "negated": Truth._negated,
    "below_floor": Truth._below_floor,
    "no_evidence": Truth._no_evidence,
    "over_candidate_limit": Truth._over_candidate_limit,
    "refused_by_wire": Truth._refused_by_wire,
    "over_tool_limit": Truth._over_tool_limit,
    "missing_dependency": Truth._missing_dependency,
    "dependency_out": Truth._dependency_out,
    "superseded_by": Truth._superseded_by,
    "conflict_with": Truth._conflict_with,
    "contradicts_itself": Truth._contradicts_itself,
    "packed_out": Truth._packed_out,
    "shortened": Truth._shortened,
}
"""How each word of the vocabulary is checked."""


def is_lone_weak_hit(unit: Unit, view: CompiledContext, facts: Facts) -> bool:
    """Whether the rules page leaves a candidate out as a lone weak hit."""
    selection, server = view.selection, unit.server
    if unit.id not in selection.ranked or not origin_of(unit) or not server:
        return False
    wanted = [*facts.pinned, *facts.host]
    spared = {*facts.every_tool, *reached(wanted, lambda at: facts.needs.get(at, ()))}
    can_be_shown = viable(facts, facts.eligible - (selection.negated - spared), facts.units)
    retained = {id for id in facts.turn.retained if id in facts.units}
    firm = {*wanted, *(retained - selection.negated)}
    servers = [facts.units[id].server for id in firm | (set(selection.ranked) & can_be_shown)]
    scores = dict(zip(selection.ranked, selection.scores, strict=True))
    found = view.explain(unit.id)
    kinds = {reason.kind.value for reason in found.reasons} & EVIDENCE
    return (
        unit.id in can_be_shown - firm
        and servers.count(server) == 1
        and not any(facts.units[id].server == server for id in retained)
        and any(other and other != server and servers.count(other) >= 2 for other in servers)
        and "lexical" in kinds <= {"lexical", "sensor", "history"}
        and len(found.words) == 1
        and 2 * scores[unit.id] < max(score for id, score in scores.items() if id in can_be_shown)
    )


def _names(unit: Unit) -> list[str]:
    return [words(name) for name in (unit.name, unit.path, *unit.aliases)]


def words(text: str) -> str:
    """The words of a text, lower case, one space between."""
    return " ".join(re.findall(r"[a-z]+", text.lower()))
