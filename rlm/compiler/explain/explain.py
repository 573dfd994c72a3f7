"""Explanations of units and views as objects, as data and in English.

The rules decide every reason and write every sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from rlm.compiler import render, rules
from rlm.compiler.pack_selection import blocks_for
from rlm.compiler.projection import Projection
from rlm.compiler.representations import FULL, Block
from rlm.compiler.tokens.token_counter import counter
from rlm.model import html
from rlm.model.arguments import instance
from rlm.model.base import Noun, plain
from rlm.model.facts import facts_of
from rlm.model.selection import Chosen, Reason, State
from rlm.model.turn import PackingClass
from rlm.model.unit import Identified, id_among
from rlm.model.words import counted
from rlm.symbolic.engine import engine


class Explanation(Noun):
    """The state of one unit, and the reasons for it.

    ``reasons`` starts with the reason that decided. ``form``, ``klass`` and ``tier`` are set for active units.
    ``words`` are the words of the text that count for the unit, with their shares in thousandths. ``through`` has
    those that count as a synonym, with the synonym: for example ``("forecast", "weather")``.
    """

    unit: str
    state: State
    reasons: tuple[Reason, ...]
    form: str | None = None
    klass: PackingClass | None = None
    tier: str | None = None
    words: tuple[tuple[str, int], ...] = ()
    through: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        return f"<Explanation: {self.unit} is {self.state.value}>"

    def _repr_html_(self) -> str:
        form = f", {self.form}" if self.form else ""
        return html.card(f"{self.unit}: {self.state.value}{form}", html.items(self.sentences))

    def __str__(self) -> str:
        first = f"{self.unit} is {self.state.value.replace('_', ' ')}"
        if self.form:
            first += f", in its {self.form} form"
        return "\n".join([f"{first}:", *(f"  - {sentence}" for sentence in self.sentences)])

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The reasons in English, one sentence each."""
        rows = [reason.to_dict() for reason in self.reasons]
        for row in rows:
            if row["kind"] == "lexical":
                through = dict(self.through)
                row["words"] = [[word, share, through.get(word, word)] for word, share in self.words]
        return tuple(engine().call("say", {"reasons": rows})["sentences"])

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON data, with the English ``text``."""
        reasons = [reason.to_dict() for reason in self.reasons]
        return {**plain(self), "reasons": reasons, "text": list(self.sentences)}


class Overview(Noun):
    """A whole view, explained: the active units in order, then those that the rules or the budget turned away.

    ``hidden`` is the number of all other units. ``warnings`` are those of the view.
    """

    active: tuple[Explanation, ...]
    turned_away: tuple[Explanation, ...]
    hidden: int
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Overview: {len(self.active)} active, {len(self.turned_away)} turned away, {self.hidden} hidden>"

    def _repr_html_(self) -> str:
        shown = (*self.active, *self.turned_away)
        rows = [(each.unit, each.state.value, each.form, "; ".join(each.sentences)) for each in shown]
        rest = html.items([f"{counted(self.hidden, 'other unit')} hidden", *self.warnings])
        return html.card(repr(self)[1:-1], html.table(("unit", "state", "form", "reasons"), rows), rest)

    def __str__(self) -> str:
        lines = [str(item) for item in (*self.active, *self.turned_away)]
        others = f"{counted(self.hidden, 'other unit is', 'other units are')} hidden."
        if self.hidden == 0:
            others = "No other unit is hidden." if lines else "There is no unit."
        return "\n".join([*lines, others, *(f"Warning: {warning}" for warning in self.warnings)])

    def to_dict(self) -> dict[str, Any]:
        """Return the overview as JSON data."""
        rows = {"active": self.active, "turned_away": self.turned_away}
        lists = {name: [item.to_dict() for item in items] for name, items in rows.items()}
        return {**lists, "hidden": self.hidden, "warnings": list(self.warnings)}


class Change(Noun):
    """The changes after which a unit would be shown.

    ``changes`` are at most four changes of the host, each a mapping with one of ``grant``, ``undeny``,
    ``enable``, ``select`` and ``budget`` (further tokens): for example ``{"grant": "tool:mail"}``. All of them
    together are enough, and each of them is required. If there is no such set, ``blocker`` is the reason that
    prevents the unit.
    """

    unit: str
    changes: tuple[dict[str, Any], ...] = ()
    blocker: Reason | None = None

    def __repr__(self) -> str:
        return f"<Change: {self}>"

    def _repr_html_(self) -> str:
        return html.card(str(self))

    def __str__(self) -> str:
        if self.blocker is not None:
            return f"nothing that the host can change shows {self.unit}: {say(self.blocker)}"
        if not self.changes:
            return f"{self.unit} is shown already"
        return f"{self.unit} would be shown: " + ", and ".join(_change_text(change) for change in self.changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the change as JSON data."""
        blocker = self.blocker.to_dict() if self.blocker else None
        return {"unit": self.unit, "changes": list(self.changes), "blocker": blocker}


class Comparison(Noun):
    """The differences between two views. The second view explains the units that ``appeared`` and ``vanished``."""

    appeared: tuple[Explanation, ...]
    vanished: tuple[Explanation, ...]
    changed_form: tuple[tuple[str, str, str], ...]
    tokens: int

    def __repr__(self) -> str:
        counts = f"{len(self.appeared)} appeared, {len(self.vanished)} vanished"
        return f"<Comparison: {counts}, {self.tokens:+d} tokens>"

    def _repr_html_(self) -> str:
        rows = [(f"+ {each.unit}", "; ".join(each.sentences)) for each in self.appeared]
        rows += [(f"- {each.unit}", "; ".join(each.sentences)) for each in self.vanished]
        rows += [(f"~ {unit}", f"{before} -> {after}") for unit, before, after in self.changed_form]
        return html.card(repr(self)[1:-1], html.table(("unit", "why"), rows))

    def __str__(self) -> str:
        lines = [f"+ {item}" for item in self.appeared] + [f"- {item}" for item in self.vanished]
        lines += [f"~ {unit}: {before} -> {after}" for unit, before, after in self.changed_form]
        return "\n".join([*lines, f"{self.tokens:+d} {'token' if abs(self.tokens) == 1 else 'tokens'}"])

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON data."""
        return {
            "appeared": [item.to_dict() for item in self.appeared],
            "vanished": [item.to_dict() for item in self.vanished],
            "changed_form": [list(row) for row in self.changed_form],
            "tokens": self.tokens,
        }


def say(reason: Reason) -> str:
    """Return one reason as an English sentence."""
    return str(engine().call("say", {"reasons": [reason.to_dict()]})["sentences"][0])


def _change_text(change: Mapping[str, Any]) -> str:
    (verb, value), *_ = change.items()
    return f"raise the budget by {counted(value, 'token')}" if verb == "budget" else f"{verb} {value}"


def explanation(view: Projection, unit: str | Identified) -> Explanation:
    """Return the explanation of one unit of a view.

    Raises:
        CatalogError: ``unknown_unit``, ``ambiguous_name``; ConfigurationError: ``not_an_id``.
    """
    return explanations(view, [id_among(unit, view._snapshot.units)])[0]


def explanations(view: Projection, ids: Sequence[str]) -> list[Explanation]:
    """Return the explanations of these units of a view, by one call of the rules."""
    if not ids:
        return []
    asked = {**_shared_args(view, ids), "units": [_row(view, id) for id in ids]}
    answers = engine().call("explanations", asked)["explanations"]
    chosen = {item.id: item for item in view.selection.chosen}
    return [_explanation(view, id, answer, chosen.get(id)) for id, answer in zip(ids, answers, strict=True)]


def _explanation(view: Projection, unit: str, answer: Mapping[str, Any], chosen: Chosen | None) -> Explanation:
    words = answer["words"]
    explained = Explanation(
        unit=unit,
        state=State(answer["state"]),
        reasons=tuple(Reason.of(row) for row in answer["reasons"]),
        form=None if chosen is None else _form(view, unit),
        klass=None if chosen is None else chosen.klass,
        tier=None if chosen is None else chosen.tier,
        words=tuple((word, share) for word, share, _ in words),
        through=tuple((word, term) for word, _, term in words if term != word),
    )
    vars(explained)["sentences"] = tuple(answer["sentences"])  # the cached property, already known
    return explained


def _row(view: Projection, unit: str) -> dict[str, Any]:
    """Return the facts of a unit and the decisions about it, as ``explained_unit`` expects them."""
    selection = view.selection
    decided, reasons = _decided(view, unit)
    return {
        "unit": facts_of(view._snapshot.units[unit]),
        "rank": selection.rank.get(unit),
        "raised": selection.raised.get(unit, []),
        "negated": unit in selection.negated,
        "vetoed": [selection.vetoed[unit]] if unit in selection.vetoed else [],
        "decided": decided,
        "reasons": reasons,
    }


def _decided(view: Projection, unit: str) -> tuple[str, list[Mapping[str, Any]]]:
    """Return what the rules and the budget decided about a unit, with the reasons."""
    selection = view.selection
    chosen = next((item for item in selection.chosen if item.id == unit), None)
    if chosen is None:
        if unit in selection.rejected:
            return "rejected", list(selection.rejected[unit])
        if unit in selection.nonviable:
            return "nonviable", list(selection.nonviable[unit])
        return "none", []
    reasons: list[Mapping[str, Any]] = list(chosen.reasons)
    if unit in view._dropped:
        tokens, free = view._dropped[unit]
        return "packed_out", [{"kind": "packed_out", "tokens": tokens, "free": free}, *reasons]
    short = shortened(view, unit)
    return "active", reasons if short is None else [*reasons, short]


def _form(view: Projection, unit: str) -> str | None:
    block = _block(view, unit)
    return None if block is None else block.form


def _block(view: Projection, unit: str) -> Block | None:
    return next((item.block for item in view._shown or () if item.unit.id == unit), None)


def shortened(view: Projection, unit: str) -> dict[str, Any] | None:
    """Return the reason for which an active unit is not shown in full; None if it is.

    ``tokens`` is the price of the full form and of the headings that it requires. ``free`` is always less.
    """
    block, shown = _block(view, unit), view._shown or ()
    if block is None or block.form == FULL:
        return None
    count = counter(view.policy.tokenizer)
    full = blocks_for(count, view._reach).full(
        view._snapshot.units[unit], block.name or view.bodies.get(unit, ""), dict(view.turn.notes).get(unit, "")
    )
    whole = [replace(item, block=full) if item.unit.id == unit else item for item in shown]
    headings = sum(count.count(heading) for _, heading in render.texts(whole).headings) - view.ledger.headings
    free = view.ledger.free + block.tokens
    return {"kind": "shortened", "tokens": max(full.tokens + headings, free + 1), "free": free}


def _shared_args(view: Projection, ids: Sequence[str]) -> dict[str, Any]:
    """Return what the explanations of these units have in common."""
    selection, among = view.selection, frozenset(ids)
    sensors = tuple((name, tuple((id, score) for id, score in row if id in among)) for name, row in view.turn.sensors)
    turn = view.turn.model_copy(update={"sensors": sensors, "admitted": (), "retained": (), "unused": ()})
    return {
        **rules.selection_args(turn, view.policy, None),
        **view._reach.args(view._snapshot),
        "stemmer": view._snapshot.stemmer,
        "sources": selection.sources,
        "held_floor": selection.relative_floor,
    }


def overview(view: Projection) -> Overview:
    """Return the explanation of the whole view."""
    selection = view.selection
    turned_away = [*view.packed_out, *(id for id in selection.rejected if id not in view.active)]
    away = list(dict.fromkeys(turned_away))
    explained = explanations(view, [*view.active, *away])
    active, others = explained[: len(view.active)], explained[len(view.active) :]
    hidden = len(view._snapshot.units) - len(explained)
    return Overview(active=tuple(active), turned_away=tuple(others), hidden=hidden, warnings=view.warnings)


def compare(before: Projection, after: Projection) -> Comparison:
    """Return the differences of ``after`` from ``before``."""
    instance("other", after, type(before))
    old, new = set(before.active), set(after.active)
    known = after._snapshot.units
    forms = [
        (id, _form(before, id) or "", _form(after, id) or "")
        for id in after.active
        if id in old and _form(before, id) != _form(after, id)
    ]
    return Comparison(
        appeared=tuple(explanations(after, [id for id in after.active if id not in old])),
        vanished=tuple(explanations(after, [id for id in before.active if id not in new and id in known])),
        changed_form=tuple(forms),
        tokens=after.ledger.total - before.ledger.total,
    )
