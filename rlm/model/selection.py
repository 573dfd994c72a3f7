"""The decisions of the rules for one compile, with their reasons."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rlm.model.base import Noun
from rlm.model.turn import PackingClass


class State(enum.StrEnum):
    """The state of a unit in one compile. Every unit is in exactly one state."""

    ACTIVE = "active"
    PACKED_OUT = "packed_out"
    REJECTED = "rejected"
    HIDDEN = "hidden"


class ReasonKind(enum.StrEnum):
    """The closed vocabulary of reasons."""

    PINNED = "pinned"
    SELECTED_BY_HOST = "selected_by_host"
    NAME = "name"
    TRIGGER = "trigger"
    LEXICAL = "lexical"
    EXAMPLE = "example"
    HISTORY = "history"
    INTENT = "intent"
    SPARED = "spared"
    RETAINED = "retained"
    NEED = "need"
    SENSOR = "sensor"
    BOOSTED = "boosted"
    DEPENDENCY_OF = "dependency_of"
    SUGGESTED_BY = "suggested_by"
    PRODUCES = "produces"
    ALL_TOOLS = "all_tools"
    DENIED = "denied"
    DISABLED = "disabled"
    UNAVAILABLE = "unavailable"
    OUT_OF_SCOPE = "out_of_scope"
    CAPABILITY_MISSING = "capability_missing"
    NEGATED = "negated"
    BELOW_FLOOR = "below_floor"
    NO_EVIDENCE = "no_evidence"
    LONE_WEAK_HIT = "lone_weak_hit"
    OVER_CANDIDATE_LIMIT = "over_candidate_limit"
    OVER_TOOL_LIMIT = "over_tool_limit"
    REFUSED_BY_WIRE = "refused_by_wire"
    MISSING_DEPENDENCY = "missing_dependency"
    DEPENDENCY_OUT = "dependency_out"
    SUPERSEDED_BY = "superseded_by"
    CONFLICT_WITH = "conflict_with"
    CONTRADICTS_ITSELF = "contradicts_itself"
    VETOED = "vetoed"
    PACKED_OUT = "packed_out"
    SHORTENED = "shortened"


class Reason(Noun):
    """One reason: a word of the vocabulary and the data that makes it checkable."""

    kind: ReasonKind
    data: dict[str, Any] = {}

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Reason:
        """From the rules' own spelling: one flat mapping with ``kind``."""
        return cls(kind=row["kind"], data={key: value for key, value in row.items() if key != "kind"})

    def to_dict(self) -> dict[str, Any]:
        """One flat mapping: ``kind`` and the data."""
        return {"kind": self.kind.value, **self.data}


@dataclass(frozen=True, slots=True)
class Chosen:
    """One unit that the rules made active: its tier, class, score (thousandths) and why."""

    id: str
    tier: str
    klass: PackingClass
    score: int
    reasons: tuple[dict[str, Any], ...]
    needs: tuple[str, ...]


@dataclass(frozen=True)
class Selection:
    """The rules' answer to one compile.

    ``chosen`` is in the order of admission. ``rejected`` has the roots that did not get in, ``nonviable``
    units whose requirements cannot be met, ``ranked`` the evidence candidates with their scores in
    thousandths, best first; ``raised`` has what moved some of them that are not active, beyond their own evidence.
    ``yielding`` are active units that give way first where room is lacking, in this order. ``bodies`` has the body that
    the request holds of each active unit with several, for example ``leaf`` or ``line``. A unit in none of them is
    explained on request.
    """

    chosen: tuple[Chosen, ...]
    rejected: dict[str, list[dict[str, Any]]]
    nonviable: dict[str, list[dict[str, Any]]]
    ranked: list[str]
    scores: list[int]
    ranks: list[int]
    raised: dict[str, list[dict[str, Any]]]
    negated: frozenset[str]
    vetoed: dict[str, str]
    sources: dict[str, Any] = field(repr=False)
    floor: int
    relative_floor: int
    yielding: tuple[str, ...] = ()
    bodies: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, reply: Mapping[str, Any]) -> Selection:
        """From the reply of ``rlm_select``."""
        return cls(
            chosen=tuple(
                Chosen(id, tier, PackingClass(klass), score, tuple(reasons), tuple(dict.fromkeys(needs)))
                for id, tier, klass, score, reasons, needs in reply["active"]
            ),
            rejected=dict(reply["rejected"]),
            nonviable=dict(reply["nonviable"]),
            ranked=reply["ranked"],
            scores=reply["scores"],
            ranks=reply["ranks"],
            raised=dict(reply["raised"]),
            negated=frozenset(reply["negated"]),
            vetoed=dict(reply["vetoed"]),
            sources=reply["sources"],
            floor=reply["floor"],
            relative_floor=reply["relative_floor"],
            yielding=tuple(reply["yielding"]),
            bodies=dict(reply["bodies"]),
        )

    @cached_property
    def rank(self) -> dict[str, int]:
        """Each evidence candidate's place, from 1. Units that cannot be shown take none."""
        return dict(zip(self.ranked, self.ranks, strict=True))
