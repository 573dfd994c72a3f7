"""Authority: whether this very call may be made. The host says allow, deny, or ask; what a model says counts nothing.

A capability lets a tool be invoked at all; authority is asked for each call, with its arguments. Asking has tiers:

    approve_diff < allow_once < allow_session < dangerous

An authority that asks names the tier that it wants; whoever approves must give at least that. ``allow_session`` is
remembered for that very tool and effect until the run ends; ``dangerous`` is never remembered. A read never asks.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import pydantic

from rlm.errors import ConfigurationError, ToolError, did_you_mean
from rlm.model.base import Noun
from rlm.tools.tool import Effect


class Verdict(enum.StrEnum):
    """What an authority says of a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Tier(enum.StrEnum):
    """How much an approval gives, from this very change to anything."""

    APPROVE_DIFF = "approve_diff"
    ALLOW_ONCE = "allow_once"
    ALLOW_SESSION = "allow_session"
    DANGEROUS = "dangerous"

    @property
    def rank(self) -> int:
        """The place in the order, from 0."""
        return list(Tier).index(self)


class Decision(Noun):
    """What an authority says, with its reason; ``tier`` counts where it asks."""

    verdict: Verdict
    tier: Tier = Tier.ALLOW_ONCE
    reason: str = ""

    @property
    def severity(self) -> tuple[int, int]:
        """Greater is stricter."""
        return list(Verdict).index(self.verdict), self.tier.rank if self.verdict is Verdict.ASK else 0


class Approval(Noun):
    """What an approver gives: a tier, or None to refuse; with ``arguments``, the call as the approver edited it."""

    tier: Tier | None
    arguments: dict[str, Any] | None = None
    reason: str = ""


class ToolRequest(Noun):
    """A call that waits for a word of the host.

    ``origin`` is what the runtime says of where it comes from (run, depth, role). ``tier`` and ``reason`` are set
    where an approver is asked.
    """

    tool: str
    effect: Effect
    capability: str
    arguments: dict[str, Any]
    origin: dict[str, Any] = {}
    tier: Tier | None = None
    reason: str = ""


class Authority(Noun):
    """An authority by effect: for each ``allow``, ``deny``, or the tier at which to ask.

    The default reads freely and asks for everything else: a host that gives neither an authority of its own nor
    somebody who approves runs no tool that changes the world.
    """

    read: str = Verdict.ALLOW
    write: str = Tier.APPROVE_DIFF
    repository: str = Tier.APPROVE_DIFF
    process: str = Tier.ALLOW_ONCE
    network: str = Tier.ALLOW_ONCE
    install: str = Tier.DANGEROUS
    service: str = Tier.DANGEROUS

    @pydantic.field_validator("*")
    @classmethod
    def _known(cls, value: str) -> str:
        decision_of(value)
        return value

    def __call__(self, request: ToolRequest) -> Decision:
        return decision_of(getattr(self, request.effect))


Answer: TypeAlias = "Decision | Verdict | Tier | str"
AuthorityCallable: TypeAlias = Callable[[ToolRequest], "Answer | Awaitable[Answer]"]
ApproveCallable: TypeAlias = Callable[[ToolRequest], "Any | Awaitable[Any]"]

DEFAULT_AUTHORITY = Authority()


def decision_of(said: Any) -> Decision:
    """A decision in any of its spellings: a Decision, ``allow``, ``deny``, ``ask``, or a tier to ask at.

    Raises: ConfigurationError ``invalid_decision``.
    """
    if isinstance(said, Decision):
        return said
    if isinstance(said, str) and said in Verdict._value2member_map_:
        return Decision(verdict=Verdict(said))
    if isinstance(said, str) and said in Tier._value2member_map_:
        return Decision(verdict=Verdict.ASK, tier=Tier(said))
    known = [*Verdict, *Tier]
    hint = did_you_mean(said, known) if isinstance(said, str) else ""
    raise ConfigurationError("invalid_decision", f"{said!r} is none of {', '.join(known)}{hint}")


def approval_of(said: Any, asked: Tier) -> Approval:
    """An approval in any of its spellings: an Approval, True (the tier that was asked for), a tier, or a refusal
    (False, None, ``deny``).

    Raises: ConfigurationError ``invalid_approval``.
    """
    if isinstance(said, Approval):
        return said
    if said is True:
        return Approval(tier=asked)
    if said is False or said is None or said == Verdict.DENY:
        return Approval(tier=None)
    if isinstance(said, str) and said in Tier._value2member_map_:
        return Approval(tier=Tier(said))
    hint = did_you_mean(said, list(Tier)) if isinstance(said, str) else ""
    raise ConfigurationError("invalid_approval", f"{said!r} is no approval: {', '.join(Tier)}, or False{hint}")


def refused(kind: str, request: ToolRequest, what: str, **detail: Any) -> ToolError:
    """The error of a call that the host's word stopped."""
    more: Mapping[str, Any] = {"tool": request.tool, "effect": request.effect.value, **detail}
    return ToolError(kind, f"{request.tool}: {what}", more)
