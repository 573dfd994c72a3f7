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


class AuthorityVerdict(enum.StrEnum):
    """What an authority says of a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class AuthorityLevel(enum.StrEnum):
    """How much an approval gives, from this very change to anything."""

    APPROVE_DIFF = "approve_diff"
    ALLOW_ONCE = "allow_once"
    ALLOW_SESSION = "allow_session"
    DANGEROUS = "dangerous"

    @property
    def rank(self) -> int:
        """The place in the order, from 0."""
        return list(AuthorityLevel).index(self)


class Decision(Noun):
    """What an authority says, with its reason; ``tier`` counts where it asks."""

    verdict: AuthorityVerdict
    tier: AuthorityLevel = AuthorityLevel.ALLOW_ONCE
    reason: str = ""

    @property
    def severity(self) -> tuple[int, int]:
        """Greater is stricter."""
        return list(AuthorityVerdict).index(self.verdict), self.tier.rank if self.verdict is AuthorityVerdict.ASK else 0


class Approval(Noun):
    """What an approver gives: a tier, or None to refuse; with ``arguments``, the call as the approver edited it."""

    tier: AuthorityLevel | None
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
    tier: AuthorityLevel | None = None
    reason: str = ""


class Authority(Noun):
    """An authority by effect: for each ``allow``, ``deny``, or the tier at which to ask.

    The default reads freely and asks for everything else: a host that gives neither an authority of its own nor
    somebody who approves runs no tool that changes the world.
    """

    read: str = AuthorityVerdict.ALLOW
    write: str = AuthorityLevel.APPROVE_DIFF
    repository: str = AuthorityLevel.APPROVE_DIFF
    process: str = AuthorityLevel.ALLOW_ONCE
    network: str = AuthorityLevel.ALLOW_ONCE
    install: str = AuthorityLevel.DANGEROUS
    service: str = AuthorityLevel.DANGEROUS

    @pydantic.field_validator("*")
    @classmethod
    def _known(cls, value: str) -> str:
        decision_of(value)
        return value

    def __call__(self, request: ToolRequest) -> Decision:
        return decision_of(getattr(self, request.effect))


Answer: TypeAlias = "Decision | AuthorityVerdict | AuthorityLevel | str"
AuthorityCallable: TypeAlias = Callable[[ToolRequest], "Answer | Awaitable[Answer]"]
ApproveCallable: TypeAlias = Callable[[ToolRequest], "Any | Awaitable[Any]"]

DEFAULT_AUTHORITY = Authority()


def decision_of(said: Any) -> Decision:
    """A decision in any of its spellings: a Decision, ``allow``, ``deny``, ``ask``, or a tier to ask at.

    Raises: ConfigurationError ``invalid_decision``.
    """
    if isinstance(said, Decision):
        return said
    if isinstance(said, str) and said in AuthorityVerdict._value2member_map_:
        return Decision(verdict=AuthorityVerdict(said))
    if isinstance(said, str) and said in AuthorityLevel._value2member_map_:
        return Decision(verdict=AuthorityVerdict.ASK, tier=AuthorityLevel(said))
    known = [*AuthorityVerdict, *AuthorityLevel]
    hint = did_you_mean(said, known) if isinstance(said, str) else ""
    raise ConfigurationError("invalid_decision", f"{said!r} is none of {', '.join(known)}{hint}")


def approval_of(said: Any, asked: AuthorityLevel) -> Approval:
    """An approval in any of its spellings: an Approval, True (the tier that was asked for), a tier, or a refusal
    (False, None, ``deny``).

    Raises: ConfigurationError ``invalid_approval``.
    """
    if isinstance(said, Approval):
        return said
    if said is True:
        return Approval(tier=asked)
    if said is False or said is None or said == AuthorityVerdict.DENY:
        return Approval(tier=None)
    if isinstance(said, str) and said in AuthorityLevel._value2member_map_:
        return Approval(tier=AuthorityLevel(said))
    hint = did_you_mean(said, list(AuthorityLevel)) if isinstance(said, str) else ""
    raise ConfigurationError(
        "invalid_approval", f"{said!r} is no approval: {', '.join(AuthorityLevel)}, or False{hint}"
    )


def refused(kind: str, request: ToolRequest, what: str, **detail: Any) -> ToolError:
    """The error of a call that the host's word stopped."""
    more: Mapping[str, Any] = {"tool": request.tool, "effect": request.effect.value, **detail}
    return ToolError(kind, f"{request.tool}: {what}", more)
