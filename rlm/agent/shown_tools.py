"""The tools of one agent from turn to turn: those that were shown, those that were used, and what each need brought.

A need adds tools. A tool that a call used stays for the rest of the agent's turns, as long as the host permits it, no
text forbids it and no shown tool supersedes it. The rules decide all of this; here is only the record that they read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlm.fencing import json_text
from rlm.model.plan import ValidPlan
from rlm.model.unit import CALLABLE
from rlm.model.wire_names import WireNames

if TYPE_CHECKING:
    from rlm.compiler.view import CompiledContext

MOST_NEEDS = 16
"""The needs of an agent that count as evidence: its first ones and the newest."""

MOST_EXPLAINED = 5
"""The tools of one need whose reasons stand in the trace."""


@dataclass
class ShownTools:
    """The record of one agent. A child starts with an empty one.

    ``needs`` are all needs so far. ``fresh`` are the needs of the last plan, until a request reports what they brought.
    ``arrived`` holds the ids of all tools that a request showed, in the order of their arrival; ``visible`` those of
    the last request. ``used`` are the ids of the tools that a call used with success.
    """

    first: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()
    arrived: dict[str, None] = field(default_factory=dict)
    visible: tuple[str, ...] = ()
    used: set[str] = field(default_factory=set)

    @property
    def needs(self) -> tuple[str, ...]:
        """The needs that count as evidence, the oldest first."""
        newest = self.later[-max(1, MOST_NEEDS - len(self.first)) :]
        return tuple(dict.fromkeys((*self.first, *newest)))

    def add_needs(self, needs: Iterable[str]) -> None:
        """Add the needs of a plan. A need that was stated before becomes the newest."""
        self.fresh = tuple(dict.fromkeys(needs))
        self.later = (*(need for need in self.later if need not in self.fresh), *self.fresh)

    @property
    def retained(self) -> tuple[str, ...]:
        """The used tools, in the order of their arrival. This order is the same in every replay."""
        return tuple(id for id in self.arrived if id in self.used)

    @property
    def unused(self) -> tuple[str, ...]:
        """The tools that no call used, the oldest first."""
        return tuple(id for id in self.arrived if id not in self.used)

    def changed_by(self, view: CompiledContext) -> ToolChange:
        """Return what a request changes: the tools that came and went, and those that each fresh need brought."""
        old, new = set(self.visible), set(view.callable)
        came = tuple(id for id in view.callable if id not in old)
        went = tuple(id for id in self.visible if id not in new)
        chosen = {item.id: item for item in view.selection.chosen}

        def brings(need: str, id: str) -> bool:
            return any(row["kind"] == "need" and row["need"] == need for row in chosen[id].reasons)

        needs = tuple(
            NeedResult(
                need,
                brought=tuple(id for id in came if brings(need, id)),
                present=tuple(id for id in view.callable if id in old and brings(need, id)),
            )
            for need in self.fresh
        )
        return ToolChange(came, went, needs, view.wire_names)

    def show(self, view: CompiledContext) -> None:
        """Record the tools of a request that is about to be sent."""
        self.visible = view.callable
        self.arrived |= dict.fromkeys(view.callable)
        self.fresh = ()


@dataclass(frozen=True)
class NeedResult:
    """The tools for one need: ``brought`` are new, ``present`` were there before."""

    need: str
    brought: tuple[str, ...]
    present: tuple[str, ...]

    def text(self, names: WireNames) -> str:
        """Return one line, for example ``"send mail" -> brought: mail_send``."""
        need = json_text(self.need)
        if self.brought:
            return f"{need} -> brought: {_listed(self.brought, names)}"
        return (
            f"{need} -> here already: {_listed(self.present, names)}" if self.present else f"{need} -> none available"
        )


@dataclass(frozen=True)
class ToolChange:
    """The difference between the tools of two requests, by ids."""

    came: tuple[str, ...]
    went: tuple[str, ...]
    needs: tuple[NeedResult, ...]
    names: WireNames

    @property
    def text(self) -> str:
        """The lines for the model; empty if nothing changed. Names and needs only: reasons stand in the trace."""
        brought = {id for result in self.needs for id in result.brought}
        came = [id for id in self.came if id not in brought]
        rows = [result.text(self.names) for result in self.needs]
        rows += [f"came: {_listed(came, self.names)}"] if came else []
        rows += [f"went: {_listed(self.went, self.names)}"] if self.went else []
        return "".join(["# Tools\n", *(f"- {row}\n" for row in rows)]) if rows else ""

    def row(self, view: CompiledContext) -> dict[str, Any]:
        """Return the change for the trace. A need without a visible tool has the reasons of the tools that it found."""
        needs = []
        for result in self.needs:
            found: dict[str, Any] = {
                "need": result.need,
                "brought": list(result.brought),
                "present": list(result.present),
            }
            if not (result.brought or result.present):
                found["out"] = _reasons_out(view, result.need)
            needs.append(found)
        return {"came": list(self.came), "went": list(self.went), "needs": needs}


def needs_of(plan: ValidPlan) -> tuple[str, ...]:
    """Return the needs of a plan that ends with ``observe``, also where a step failed before it."""
    last = plan.data["steps"][-1]
    return tuple(last.get("needs", ())) if last["op"] == "observe" else ()


def _listed(ids: Iterable[str], names: WireNames) -> str:
    return ", ".join(names.of(id) for id in ids)


def _reasons_out(view: CompiledContext, need: str) -> list[dict[str, Any]]:
    """Return the tools that a need found and that are not visible, best first, with the reasons against each."""
    found: list[dict[str, Any]] = []
    for id in view.selection.ranked:
        if id in view.callable or view.units[id].kind not in CALLABLE:
            continue
        rows = [reason.to_dict() for reason in view.explain(id).reasons]
        if any(row["kind"] == "need" and row["need"] == need for row in rows):
            against = [row for row in rows if "score" not in row or row["kind"] == "below_floor"]
            found.append({"unit": id, "reasons": against})
        if len(found) == MOST_EXPLAINED:
            break
    return found
