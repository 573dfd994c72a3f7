"""The laws of selection and of packing, checked from the outside.

``violations(view, units)`` looks at a finished view and at the facts, and lists everything that breaks a law of the
architecture document, one sentence each, beginning with the law: an empty list is what every view must give.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, combinations
from typing import Any

from rlm import CompiledContext, PackingClass, State, Unit
from rlm.compiler.tokens.token_counter import counter
from rlm.model.unit import CALLABLE
from tests.laws.brute import closure_of, viable
from tests.laws.facts import INELIGIBLE, NARROWABLE, Facts, reached
from tests.laws.reasons import BESIDE, IN, OUT, Explain, Truth

TIERS = ("pinned", "selected", "retained", "evidence", "producer", "all_tools", "suggested")


def violations(view: CompiledContext, units: Iterable[Unit], explain: Explain | None = None) -> list[str]:
    """Every breach of a law in ``view``, which was compiled from ``units``; ``explain`` is the view's own."""
    facts = Facts.of(view, units)
    truth = Truth(view, facts, explain or view.explain)
    laws = [*selection_laws(view, facts), *explained(truth)]
    return laws if view._shown is None else [*laws, *packing_laws(view, facts)]


def selection_laws(view: CompiledContext, facts: Facts) -> Iterator[str]:
    """L1 to L5, of what the rules chose and of what is left of it after packing; L6 of what they turned away."""
    for active in ([chosen.id for chosen in view.selection.chosen], view.active):
        yield from closed(active, facts)
        yield from consistent(active, facts)
        yield from eligible(active, view, facts)
        yield from pinned(active, view, facts)
    yield from stable(view, facts)


def closed(active: Iterable[str], facts: Facts) -> Iterator[str]:
    """L1: every unit that an active unit requires is active, or an active unit that supersedes it is."""
    active = set(active)
    for id in active:
        for need in facts.needs[id]:
            if not facts.met(need, active):
                yield f"L1: {id} is active without {need}"


def consistent(active: Iterable[str], facts: Facts) -> Iterator[str]:
    """L2: no two active units conflict. L3: no active unit is superseded by another active one."""
    for one, other in combinations(active, 2):
        if facts.conflict(one, other):
            yield f"L2: {one} and {other} conflict"
        if facts.supersedes(one, other) or facts.supersedes(other, one):
            yield f"L3: {one} and {other} are both active, and one supersedes the other"


def eligible(active: Iterable[str], view: CompiledContext, facts: Facts) -> Iterator[str]:
    """L4: every active unit may be shown; what the user ruled out is there only for the host's sake."""
    spared = {*facts.every_tool, *reached([*facts.pinned, *facts.host], facts.reach)}
    for id in active:
        for blocker in facts.blockers(id):
            yield f"L4: {id} is active and {blocker}"
        if id in view.selection.negated and id not in spared:
            yield f"L4: {id} is active although the text rules it out"


def pinned(active: Iterable[str], view: CompiledContext, facts: Facts) -> Iterator[str]:
    """L5: every pinned unit that is eligible, requirements included, is active."""
    active = set(active)
    for id in facts.pinned:
        if id in active or not facts.superseders[id].isdisjoint(active):
            continue
        causes = facts.causes(id)
        if not causes & NARROWABLE:
            yield f"L5: {id} is pinned and not active, though nothing but {causes or 'nothing'} is against it"


def stable(view: CompiledContext, facts: Facts) -> Iterator[str]:
    """L6: a candidate loses only to something earlier in the order, and the reason names it."""
    places = places_of(view, facts)
    chosen = {item.id: item for item in view.selection.chosen}
    over_limit = set(view.selection.ranked[facts.policy.candidate_limit :])
    later = over_limit & {other for id in chosen for other in facts.units[id].suggests}
    for id, rows in view.selection.rejected.items():
        for row in rows:
            if row["kind"] in ("conflict_with", "superseded_by") and row["unit"] in chosen:
                winner = brought_by(row["unit"], chosen)
                again = (TIERS.index("suggested"), 0) if id in later else (0, 0)
                if places.get(winner, (99, 0)) > max(again, places.get(id, (99, 0))):
                    yield f"L6: {id} lost to {row['unit']}, which {winner} brought in later"


def brought_by(id: str, chosen: dict[str, Any]) -> str:
    """The root that an active unit came in with."""
    seen = {id}
    while True:
        parents = [row["unit"] for row in chosen[id].reasons if row["kind"] == "dependency_of"]
        if chosen[id].reasons[0]["kind"] != "dependency_of" or parents[0] in seen or parents[0] not in chosen:
            return id
        id = parents[0]
        seen.add(id)


def places_of(view: CompiledContext, facts: Facts) -> dict[str, tuple[int, int]]:
    """Each candidate's place: its tier, and its rank there, moved before what needs something it supersedes."""
    tools = [id for id in facts.in_order(facts.every_tool & facts.eligible) if id not in view.selection.rank]
    kept = [id for id in view.turn.retained if id in facts.units and id not in view.selection.negated]
    left_out = {id for id, rows in view.selection.rejected.items() if rows[0]["kind"] == "lone_weak_hit"}
    order = dict.fromkeys(with_producers([*kept, *view.selection.ranked, *tools], producers_of(view)))
    order = {id: None for id in order if id not in left_out}
    ranks = {id: 2 * place for place, id in enumerate(order)}
    showable = showable_of(view, facts)
    closures = {id: set(closure_of(id, facts, showable)) for id in ranks}
    moved = True
    while moved:
        moved = False
        for id in ranks:
            before = [ranks[c] for c in ranks if any(facts.supersedes(id, member) for member in closures[c])]
            if before and min(before) < ranks[id]:
                ranks[id], moved = (min(before) - 1) // 2 * 2 + 1, True
    places = {id: (TIERS.index("evidence"), rank) for id, rank in ranks.items()}
    for item in view.selection.chosen:
        if item.tier == "suggested":
            places.setdefault(item.id, (TIERS.index("suggested"), 0))
    for id in facts.host:
        places[id] = (TIERS.index("selected"), 0)
    for id in facts.pinned:
        places[id] = (TIERS.index("pinned"), 0)
    return places


def producers_of(view: CompiledContext) -> dict[str, list[str]]:
    """The units that came in for what another one takes, by that one, in order."""
    found: dict[str, list[str]] = {}
    for item in view.selection.chosen:
        if item.reasons[0]["kind"] == "produces":
            found.setdefault(item.reasons[0]["unit"], []).append(item.id)
    return found


def with_producers(ids: Iterable[str], producers: dict[str, list[str]]) -> Iterator[str]:
    for id in ids:
        yield id
        yield from producers.get(id, ())


def showable_of(view: CompiledContext, facts: Facts) -> set[str]:
    """What can be shown: eligible, not ruled out by the text, and with all that it needs."""
    wanted = [*facts.pinned, *facts.host]
    for_the_host = {item.id for item in view.selection.chosen if item.tier in ("pinned", "selected")}
    spared = {*facts.every_tool, *for_the_host, *reached(wanted, lambda at: facts.needs.get(at, ()))}
    allowed = facts.eligible - (view.selection.negated - spared)
    return viable(
        facts, allowed, [*wanted, *for_the_host, *view.turn.retained, *view.selection.ranked, *facts.every_tool]
    )


# -- explanations -----------------------------------------------------------------------------------


def explained(truth: Truth) -> Iterator[str]:
    """L9: every unit has exactly one state and at least one reason, and every reason is true."""
    view, facts = truth.view, truth.facts
    active, dropped = set(view.active), set(view.packed_out)
    if twice := active & dropped:
        yield f"L9: {twice} are both active and packed out"
    for id in facts.units:
        found = truth.explained(id)
        kinds = [reason.kind.value for reason in found.reasons]
        if not kinds:
            yield f"L9: {id} is {found.state} without a reason"
            continue
        first = {State.ACTIVE: IN, State.PACKED_OUT: {"packed_out"}}.get(found.state, OUT - {"packed_out"})
        if kinds[0] not in first:
            yield f"L9: {id} is {found.state} because of {kinds[0]}"
        if found.state is State.ACTIVE and not (IN | BESIDE).issuperset(kinds):
            yield f"L9: {id} is active and says {kinds}"
        if (found.state is State.ACTIVE) != (id in active) or (found.state is State.PACKED_OUT) != (id in dropped):
            yield f"L9: {id} is explained as {found.state}"
        if found.state is State.HIDDEN and truth.was_candidate(id):
            yield f"L9: {id} was a candidate and is explained as hidden"
        if set(kinds) & INELIGIBLE != facts.blockers(id):
            yield f"L9: {id} says {kinds} where {facts.blockers(id)} holds"
        for reason in found.reasons:
            if what := truth.objection(id, reason.to_dict()):
                yield f"L9: {id} says {reason.to_dict()}, but {what}"


# -- packing ----------------------------------------------------------------------------------------


def packing_laws(view: CompiledContext, facts: Facts) -> Iterator[str]:
    """Within budget, mandatory kept, and the ledger is the count of the text that is sent. (Closed is L1.)"""
    laws: tuple[Callable[[CompiledContext, Facts], Iterator[str]], ...] = (kept, charged, visible)
    return chain.from_iterable(law(view, facts) for law in laws)


def kept(view: CompiledContext, facts: Facts) -> Iterator[str]:
    """What must stay stays, with all that it needs."""
    chosen = {item.id: item for item in view.selection.chosen}
    obliged = [id for id, item in chosen.items() if item.klass in (PackingClass.PINNED, PackingClass.MANDATORY)]
    for id, item in chosen.items():
        if facts.units[id].pinned and item.klass is not PackingClass.PINNED:
            yield f"packing: {id} is pinned and stands in class {item.klass}"
        if facts.units[id].mandatory and item.klass not in (PackingClass.PINNED, PackingClass.MANDATORY):
            yield f"packing: {id} is mandatory and stands in class {item.klass}"
    present = [id for id in chosen if id not in view.packed_out]
    needed = reached(obliged, lambda at: [n for n in facts.needs[at] if n in chosen])
    for id in set(needed) & set(view.packed_out):
        yield f"packing: {id} must stay and was packed out"
    if list(view.active) != present:
        yield f"packing: {view.active} are active, {present} were chosen and not dropped"


def charged(view: CompiledContext, facts: Facts) -> Iterator[str]:
    """The stages add up; the total is at most the limit, and the tokenizer's count of the very text."""
    ledger = view.ledger
    by_class = {klass: getattr(ledger, klass.value) for klass in PackingClass}
    if sum(by_class.values()) + ledger.task + ledger.headings + ledger.framing != ledger.total:
        yield f"packing: the stages of {ledger!r} do not add up"
    if ledger.total > ledger.limit or ledger.limit != view.policy.limit:
        yield f"packing: {ledger.total} tokens where {view.policy.limit} are allowed"
    for klass, tokens in by_class.items():
        if tokens != sum(item.block.tokens for item in view.shown if item.packing_class is klass):
            yield f"packing: {tokens} tokens are charged to {klass}"
    count = counter(view.policy.tokenizer).count
    request = view.messages("openai" if view._native else "text")
    text = sum(count(message["content"]) for message in request["messages"])
    tools = sum(item.block.tokens for item in view.shown if item.callable and view._native)
    if text + tools + ledger.framing != ledger.total:
        yield f"packing: {ledger.total} tokens are charged, {text} are text, {tools} tools, {ledger.framing} framing"
    native = request.get("tools", [])
    if tools < count(json.dumps(native, ensure_ascii=False, separators=(",", ":"))) and native:
        yield f"packing: only {tools} tokens are charged for {len(native)} native tools"


def visible(view: CompiledContext, facts: Facts) -> Iterator[str]:
    """P14: the visible schemas are those of the callable tools among the active units, each of them once."""
    forms = {item.unit.id: item.block.form for item in view.shown}
    if sorted(forms) != sorted(view.active) or len(view.shown) != len(forms):
        yield f"P14: {sorted(forms)} are shown, {sorted(view.active)} are active"
    whole = {id for id, form in forms.items() if form == "full" and facts.units[id].kind in CALLABLE}
    names = [tool["function"]["name"] for tool in view.tools("openai")]
    if whole != set(view.callable) or sorted(map(view.resolve, names)) != sorted(whole):
        yield f"P14: the tools {names} are visible, {whole} are shown whole"
    for id in whole:
        schema = json.dumps(facts.units[id].schema or {}, ensure_ascii=False, separators=(",", ":"))
        if view._native and schema != "{}" and schema in view.system + view.data:
            yield f"P14: the schema of {id} stands in the text as well"
