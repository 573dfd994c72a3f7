"""A conversation with a tools block that only grows. Providers cache prefixes, so a changed block costs money.

Shown tools stay in their place, byte for byte, and new ones follow them. A compaction makes the block again from the
evidence of this turn and from the tools that calls used in the last five turns. The session reports each compaction
with its reason: a kept tool may not be shown any more, a unit supersedes it, its text changed, the budget is full, the
wire takes no more tools, or the host requests it.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

from rlm.boundary import boundary
from rlm.catalog.catalog import Catalog
from rlm.compiler.compile import ELSEWHERE, checked_policy
from rlm.compiler.compile import compile as compile_view
from rlm.compiler.render import native_tools
from rlm.compiler.view import CompiledContext
from rlm.errors import BudgetError
from rlm.model import html
from rlm.model.arguments import instance
from rlm.model.base import Noun
from rlm.model.message import called_names, conversation_of
from rlm.model.policy import Policy
from rlm.model.wire_limits import limits_of
from rlm.model.words import counted
from rlm.similarity.sensor import Sensor
from rlm.similarity.sensor_input import checked_sensor

REMEMBERED_TURNS = 3

USED_TURNS = 5
"""The newest turns whose used tools a compaction keeps."""


class CompactionReason(enum.StrEnum):
    """The reason for which the tools block was made again."""

    HOST = "host"
    NOT_SHOWABLE = "not_showable"
    SUPERSEDED = "superseded"
    CHANGED = "changed"
    BUDGET = "budget"
    TOOL_LIMIT = "tool_limit"


class Compaction(Noun):
    """One compaction: the turn (from 1), the reason, the units that caused it, and the units that the block lost."""

    turn: int
    reason: CompactionReason
    units: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


class Session:
    """Compiles the turns of one conversation. Do not use a session from several threads at once.

    Args:
        catalog: the units.
        policy: the decisions of the host; it may be changed between turns (``session.policy = ...``).
        sensor: scores the units of every turn (``rlm.Sensor()``). It may be changed between turns, and a turn's own
            ``sensor=`` takes precedence.
        tools: the place of schemas, as in ``rlm.compile``.
        wire: the format of native tools, as in ``rlm.compile``.
        shown: the names of the tools that earlier requests of the conversation showed, by id and in their order, if the
            conversation goes on from a saved state.
    """

    @boundary("Session", elsewhere=ELSEWHERE)
    def __init__(
        self,
        catalog: Catalog,
        *,
        policy: Policy | None = None,
        sensor: Sensor | None = None,
        tools: Literal["native", "text"] = "native",
        wire: Literal["openai", "anthropic"] | None = None,
        shown: Mapping[str, str] | None = None,
    ) -> None:
        self.catalog = instance("catalog", catalog, Catalog)
        self.policy = checked_policy(policy)
        self.sensor = None if sensor is None else checked_sensor(sensor)
        self.compactions: list[Compaction] = []
        self._tools: Literal["native", "text"] = tools
        self._wire: Literal["openai", "anthropic"] | None = wire
        self._turn = 0
        self._texts: list[str] = []
        self._view: CompiledContext | None = None
        self._compaction_requested = False
        self._calls: Counter[str] = Counter()
        self._used: dict[str, int] = {}
        self._names: dict[str, str] = dict(shown or {})
        self._first_kept = tuple(shown or ())

    def __repr__(self) -> str:
        return f"<Session: turn {self._turn}, {counted(len(self.kept), 'tool')} kept>"

    def _repr_html_(self) -> str:
        rows = [(c.turn, c.reason.value, ", ".join(c.lost)) for c in self.compactions]
        compactions = html.table(("compaction in turn", "reason", "lost"), rows)
        return html.card(f"Session: turn {self._turn}", html.items(self.kept), compactions)

    @property
    def view(self) -> CompiledContext | None:
        """The view of the last turn."""
        return self._view

    @property
    def kept(self) -> tuple[str, ...]:
        """Ids of the tools in the block, in order."""
        return self._view.callable if self._view is not None else self._first_kept

    @property
    def shown(self) -> dict[str, str]:
        """The names of the tools in the block, by id and in their order."""
        return {id: self._names[id] for id in self.kept if id in self._names}

    def compact(self) -> None:
        """Request a compaction at the next turn."""
        self._compaction_requested = True

    def use(self, *ids: str) -> None:
        """Record that calls used these tools. Calls in ``messages`` and ``tail`` are recorded without it."""
        for id in ids:
            self._used.pop(id, None)
            self._used[id] = self._turn

    @property
    def used(self) -> tuple[str, ...]:
        """Ids of the tools that calls used in the last five turns, the newest last."""
        return tuple(id for id, turn in self._used.items() if turn > self._turn - USED_TURNS)

    def _count_calls(self, evidence: Mapping[str, Any]) -> None:
        """Record the tools of the calls that the conversation has more often than in the turn before."""
        ids = {name: id for id, name in self._names.items()}
        names = called_names((*(evidence.get("messages") or ()), *evidence.get("tail", ())))
        calls = Counter(ids[name] for name in names if name in ids)
        self.use(
            *(id for id in dict.fromkeys(ids[name] for name in names if name in ids) if calls[id] > self._calls[id])
        )
        self._calls = calls

    def compile(self, text: str | None = None, **evidence: Any) -> CompiledContext:
        """Compile the next turn, and return its view.

        A compaction of this turn is the last of ``session.compactions``.

        Args:
            text: the user's text; without it the conversation in ``messages`` has it already.
            evidence: as in ``rlm.compile``, for example ``needs``, ``signals``, ``sensors`` or ``messages``.
        """
        self._turn += 1
        earlier = {} if text is None else {"history": tuple(reversed(self._texts))}
        evidence = {**earlier, "sensor": self.sensor, **evidence}
        evidence |= {name: conversation_of(name, evidence[name]) for name in ("messages", "tail") if evidence.get(name)}
        self._count_calls(evidence)
        kept = self.kept
        view: CompiledContext | None = None
        cause: tuple[CompactionReason, tuple[str, ...]] | None = None
        if self._compaction_requested and kept:
            cause = CompactionReason.HOST, ()
        else:
            try:
                view = self._compile(text, kept, evidence)
                cause = self._cause(view, kept) if kept else None
            except BudgetError:
                if not kept:
                    raise
                cause = CompactionReason.BUDGET, ()
        if cause is not None or view is None:
            view = self._compacted(text, kept, evidence)
        if cause is not None:
            reason, units = cause
            lost = tuple(id for id in kept if id not in view.callable)
            self.compactions.append(Compaction(turn=self._turn, reason=reason, units=units, lost=lost))
        self._compaction_requested = False
        self._texts = [*self._texts, *([] if text is None else [text])][-REMEMBERED_TURNS:]
        self._view = view
        self._names |= {item.unit.id: item.block.name for item in view.shown if item.callable}
        return view

    def _compacted(self, text: str | None, kept: tuple[str, ...], evidence: Mapping[str, Any]) -> CompiledContext:
        """Return the view of a compaction: with the used tools, unless these stand in the way of other units."""
        used = tuple(id for id in kept if id in self.used)
        if used:
            try:
                view = self._compile(text, used, evidence)
            except BudgetError:
                return self._compile(text, (), evidence)
            if not self._crowded(view):
                return view
        return self._compile(text, (), evidence)

    def _compile(self, text: str | None, kept: tuple[str, ...], evidence: Mapping[str, Any]) -> CompiledContext:
        names = {**self._names, **evidence.get("names", {})}
        retained = tuple(dict.fromkeys((*kept, *evidence.get("retained", ()))))
        place: dict[str, Any] = {"tools": self._tools, "wire": self._wire, "names": names, "retained": retained}
        return compile_view(self.catalog, text, policy=self.policy, **{**evidence, **place})

    def _cause(self, view: CompiledContext, kept: tuple[str, ...]) -> tuple[CompactionReason, tuple[str, ...]] | None:
        """Return the reason for a compaction and the units that cause it; None if there is no reason."""
        missing = tuple(id for id in kept if id not in view.active)
        crowded = self._crowded(view)
        if crowded:
            return CompactionReason.TOOL_LIMIT, crowded
        shortened = tuple(id for id in kept if id in view.active and id not in view.callable)
        if view.packed_out or shortened:
            return CompactionReason.BUDGET, (*view.packed_out, *shortened)
        superseders = self._superseders(view, missing)
        if superseders:
            return CompactionReason.SUPERSEDED, superseders
        if missing:
            return CompactionReason.NOT_SHOWABLE, missing
        moved = self._moved(view)
        return (CompactionReason.CHANGED, moved) if moved else None

    def _crowded(self, view: CompiledContext) -> tuple[str, ...]:
        """Return the units of this turn's evidence that exceed the tool limit of the wire."""
        return tuple(
            id
            for id, rows in view.selection.rejected.items()
            if id in view.selection.rank and any(row["kind"] == "over_tool_limit" for row in rows)
        )

    def _superseders(self, view: CompiledContext, missing: tuple[str, ...]) -> tuple[str, ...]:
        """Return the units that superseded kept tools; empty if another cause took one of the tools away."""
        rows = [next(iter(view.selection.rejected.get(id, ())), {}) for id in missing]
        if any(row.get("kind") != "superseded_by" for row in rows):
            return ()
        return tuple(dict.fromkeys(row["unit"] for row in rows))

    def _moved(self, view: CompiledContext) -> tuple[str, ...]:
        """Return the units that prevent the new block from beginning with the old one, byte for byte."""
        before = _block(self._view) if self._view is not None else []
        after = _block(view)
        if after[: len(before)] == before:
            return ()
        old = dict(before)
        changed = tuple(id for id, piece in after if id in old and old[id] != piece)
        return changed or tuple(id for id, _ in after[: len(before)] if id not in old)


def _block(view: CompiledContext) -> list[tuple[str, Any]]:
    """Return the ids of the callable tools, each with its text and place, or its entry in ``tools``."""
    shown = [item for item in view.shown if item.callable]
    native = native_tools(shown, "openai", limits_of(view.wire))
    return [
        (item.unit.id, (item.unit.trust, item.block.text) if item.block.text else tool)
        for item, tool in zip(shown, native, strict=True)
    ]
