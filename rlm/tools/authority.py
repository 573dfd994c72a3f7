"""Authority: the host allows, denies or asks about each tool call. Text of a model has no influence.

A capability lets a tool be invoked at all. Authority decides about one call with its arguments: for example, a tool
that may be invoked can still be denied for one path. An approval has one of four tiers, from the narrowest:

    approve_diff < allow_once < allow_session < dangerous

An authority that asks names a tier, and the approver must grant that tier or a higher one. ``allow_session`` is
remembered for the same tool and effect until the run ends. ``dangerous`` is never remembered. A read never asks.
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
    """The verdict of an authority about a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class AuthorityLevel(enum.StrEnum):
    """The extent of an approval: from one reviewed change (``approve_diff``) to any call (``dangerous``)."""

    APPROVE_DIFF = "approve_diff"
    ALLOW_ONCE = "allow_once"
    ALLOW_SESSION = "allow_session"
    DANGEROUS = "dangerous"

    @property
    def rank(self) -> int:
        """Return the position in the order of tiers, from 0."""
        return list(AuthorityLevel).index(self)


class Decision(Noun):
    """The decision of an authority, with its reason. ``tier`` matters only if the verdict is ``ask``."""

    verdict: AuthorityVerdict
    tier: AuthorityLevel = AuthorityLevel.ALLOW_ONCE
    reason: str = ""

    @property
    def severity(self) -> tuple[int, int]:
        """Return a sort key: a greater key is stricter."""
        return list(AuthorityVerdict).index(self.verdict), self.tier.rank if self.verdict is AuthorityVerdict.ASK else 0


class Approval(Noun):
    """The reply of an approver: a tier, or None for a refusal. ``arguments``, if set, replace those of the call."""

    tier: AuthorityLevel | None
    arguments: dict[str, Any] | None = None
    reason: str = ""


class ToolRequest(Noun):
    """A tool call that waits for a decision of the host.

    ``origin`` is the runtime's record of the caller (run, depth, role). ``tier`` and ``reason`` are set for an
    approver only.
    """

    tool: str
    effect: Effect
    capability: str
    arguments: dict[str, Any]
    origin: dict[str, Any] = {}
    tier: AuthorityLevel | None = None
    reason: str = ""


class Authority(Noun):
    """An authority by effect: each effect is set to ``allow``, ``deny``, or the tier at which to ask.

    The default allows reads and asks for everything else. A host that sets neither an authority nor an approver
    therefore runs no tool that changes the world. For example, ``Authority(network="deny")`` denies network calls.
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


def decision_of(reply: Any) -> Decision:
    """Return the decision that an authority's reply stands for.

    Args:
        reply: a Decision, ``allow``, ``deny``, ``ask``, or a tier to ask at. For example, ``"dangerous"`` asks for
            an approval of that tier.

    Raises:
        ConfigurationError: ``invalid_decision``.
    """
    if isinstance(reply, Decision):
        return reply
    if isinstance(reply, str) and reply in AuthorityVerdict._value2member_map_:
        return Decision(verdict=AuthorityVerdict(reply))
    if isinstance(reply, str) and reply in AuthorityLevel._value2member_map_:
        return Decision(verdict=AuthorityVerdict.ASK, tier=AuthorityLevel(reply))
    known = [*AuthorityVerdict, *AuthorityLevel]
    hint = did_you_mean(reply, known) if isinstance(reply, str) else ""
    raise ConfigurationError("invalid_decision", f"{reply!r} is not a decision: return one of {', '.join(known)}{hint}")


def approval_of(reply: Any, requested: AuthorityLevel) -> Approval:
    """Return the approval that an approver's reply stands for.

    Args:
        reply: an Approval, True (grants the requested tier), a tier, or a refusal (False, None, ``deny``).
        requested: the tier that the authority asks for.

    Raises:
        ConfigurationError: ``invalid_approval``.
    """
    if isinstance(reply, Approval):
        return reply
    if reply is True:
        return Approval(tier=requested)
    if reply is False or reply is None or reply == AuthorityVerdict.DENY:
        return Approval(tier=None)
    if isinstance(reply, str) and reply in AuthorityLevel._value2member_map_:
        return Approval(tier=AuthorityLevel(reply))
    hint = did_you_mean(reply, list(AuthorityLevel)) if isinstance(reply, str) else ""
    raise ConfigurationError(
        "invalid_approval", f"{reply!r} is not an approval: return one of {', '.join(AuthorityLevel)}, or False{hint}"
    )


def refusal(kind: str, request: ToolRequest, reason: str, **detail: Any) -> ToolError:
    """Return the error of a call that a decision of the host stopped."""
    more: Mapping[str, Any] = {"tool": request.tool, "effect": request.effect.value, **detail}
    return ToolError(kind, f"{request.tool}: {reason}", more)
