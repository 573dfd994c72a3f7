"""Consent of the host to one call: the effect is checked, then the authority, then the approver if it is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from rlm.errors import ConfigurationError, ToolError
from rlm.tools.authority import (
    Approval,
    Authority,
    AuthorityLevel,
    AuthorityVerdict,
    Decision,
    ToolRequest,
    approval_of,
    decision_of,
    refusal,
)
from rlm.tools.grant import Grant
from rlm.tools.outcome import Consent, failure_of
from rlm.tools.tool import Effect, Tool


class PendingCall(Protocol):
    """A call before its handler runs. ``rlm.tools.execute`` makes one for each call."""

    tool: Tool
    grant: Grant
    origin: dict[str, Any]
    arguments: Any
    consent: Consent | None

    async def ask(self, function: Callable[..., Any], *arguments: Any, stage: str) -> Any: ...


APPROVAL_NEEDED = "Each call needs the host's approval."
REFUSED = "The host refuses every call."


def notes_of(grant: Grant, tools: Iterable[Tool]) -> dict[str, str]:
    """Return by tool id what is known of its calls beforehand: that each needs an approval, or that it is refused.

    Only an authority by effect (``Authority``) is known beforehand. A function of the host decides at the call, so its
    tools have no note. For example, ``rlm.compile(..., notes=notes_of(grant, catalog.registry))``.
    """
    known = notes_by_effect(grant)
    return {tool.id: known[tool.effect] for tool in tools if tool.effect in known}


def notes_by_effect(grant: Grant) -> dict[str, str]:
    """Return what is known beforehand of calls with an effect; nothing for effects that are allowed or unknown."""
    return {effect.value: note for effect in Effect if (note := _known_of(grant, effect))}


def _known_of(grant: Grant, effect: Effect) -> str:
    if effect not in grant.effects:
        return REFUSED
    decisions = [decision_of(getattr(each, effect)) for each in grant.authorities if isinstance(each, Authority)]
    strictest = max(decisions, key=lambda decision: decision.severity, default=None)
    if strictest is None or strictest.verdict is AuthorityVerdict.ALLOW:
        return ""
    if strictest.verdict is AuthorityVerdict.DENY:
        return REFUSED
    if effect is Effect.READ:
        return ""
    askable = grant.approve is not None and grant.ceiling is not None and strictest.tier.rank <= grant.ceiling.rank
    return APPROVAL_NEEDED if askable else REFUSED


async def obtain_consent(call: PendingCall) -> dict[str, Any] | None:
    """Return the arguments as an approver edited them, or None if the call may run with its own arguments.

    Raises:
        ToolError: ``effect_not_admitted``, ``denied``, ``authority_failed``, ``approval_required``,
            ``approval_denied``, ``approval_failed``, ``timeout``, ``abandoned``.
    """
    request = _request(call)
    if call.tool.effect not in call.grant.effects:
        raise refusal("effect_not_admitted", request, f"the effect {call.tool.effect.value!r} is not admitted")
    decision = await _decide(call, request)
    if decision.verdict is AuthorityVerdict.DENY:
        raise refusal("denied", request, f"the host's authority denies it{_because(decision.reason)}")
    if decision.verdict is AuthorityVerdict.ALLOW or call.tool.effect is Effect.READ:
        return None
    return await _ask_approver(call, request.model_copy(update={"tier": decision.tier, "reason": decision.reason}))


def _request(call: PendingCall) -> ToolRequest:
    return ToolRequest(
        tool=call.tool.id,
        effect=call.tool.effect,
        capability=call.tool.capability,
        arguments=json.loads(json.dumps(call.arguments)),
        origin=call.origin,
    )


async def _decide(call: PendingCall, request: ToolRequest) -> Decision:
    """Return the strictest decision of all authorities."""
    decisions = [await _ask_authority(call, authority, request) for authority in call.grant.authorities]
    return max(decisions, key=lambda decision: decision.severity)


async def _ask_authority(call: PendingCall, authority: Any, request: ToolRequest) -> Decision:
    if isinstance(authority, Authority):
        return authority(request)
    try:
        return decision_of(await call.ask(authority, request, stage="authority"))
    except ToolError:
        raise
    except Exception as problem:  # noqa: BLE001 - a host's code; it fails closed
        reason = problem.message if isinstance(problem, ConfigurationError) else failure_of(problem)["message"]
        raise refusal("authority_failed", request, f"the host's authority made no decision: {reason}") from None


async def _ask_approver(call: PendingCall, request: ToolRequest) -> dict[str, Any] | None:
    tier = request.tier or AuthorityLevel.ALLOW_ONCE
    if call.consent is not None and call.consent.edited:
        _check_edited(call.consent, request, tier)
        return None
    if call.grant.ceiling is None or tier.rank > call.grant.ceiling.rank:
        ceiling = call.grant.ceiling.value if call.grant.ceiling else "nothing"
        raise refusal("denied", request, f"it requires {tier.value}; this grant may ask for {ceiling} at most")
    if _is_remembered(call, tier):
        call.consent = Consent(asked=tier, given=AuthorityLevel.ALLOW_SESSION, remembered=True)
        return None
    if call.grant.approve is None:
        reason = f"the effect {request.effect.value!r} requires approval ({tier.value}), and the host has no approver"
        raise refusal("approval_required", request, f"{reason}: set approve= or authority=", tier=tier.value)
    approval = await _request_approval(call, request, tier)
    call.consent = Consent(
        asked=tier, given=approval.tier, edited=approval.arguments is not None, reason=approval.reason
    )
    _check_approval(approval, request, tier)
    if approval.tier is AuthorityLevel.ALLOW_SESSION:
        call.grant.remembered.add((call.tool.id, call.tool.effect))
    return approval.arguments


def _check_edited(consent: Consent, request: ToolRequest, tier: AuthorityLevel) -> None:
    """Check that the tier of an edited call covers the edited arguments."""
    if consent.given is None or consent.given.rank < tier.rank:
        tier_name = consent.given.value if consent.given else "nothing"
        raise refusal(
            "approval_denied", request, f"as edited it requires {tier.value}, and the approver granted {tier_name}"
        )


def _is_remembered(call: PendingCall, tier: AuthorityLevel) -> bool:
    session = AuthorityLevel.ALLOW_SESSION.rank
    ceiling = call.grant.ceiling.rank if call.grant.ceiling else -1
    known = (call.tool.id, call.tool.effect) in call.grant.remembered
    return known and tier.rank <= session <= ceiling


async def _request_approval(call: PendingCall, request: ToolRequest, tier: AuthorityLevel) -> Approval:
    assert call.grant.approve is not None
    try:
        return approval_of(await call.ask(call.grant.approve, request, stage="approval"), tier)
    except ToolError:
        raise
    except Exception as problem:  # noqa: BLE001 - a host's code; it fails closed
        reason = problem.message if isinstance(problem, ConfigurationError) else failure_of(problem)["message"]
        raise refusal("approval_failed", request, f"the approver did not answer: {reason}") from None


def _check_approval(approval: Approval, request: ToolRequest, tier: AuthorityLevel) -> None:
    if approval.tier is None:
        raise refusal("approval_denied", request, f"it was not approved{_because(approval.reason)}", tier=tier.value)
    if approval.tier.rank < tier.rank:
        reason = f"it requires {tier.value}, and the approver granted {approval.tier.value}"
        raise refusal("approval_denied", request, reason, tier=tier.value)


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""
