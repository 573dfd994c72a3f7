"""Asking the host for its word on one call: effect, authority, and approver where the authority asks."""

from __future__ import annotations

import json
from collections.abc import Callable
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
    refused,
)
from rlm.tools.failure import failure_of
from rlm.tools.grant import Grant
from rlm.tools.outcome import Consent
from rlm.tools.tool import Effect, Tool


class PendingCall(Protocol):
    """A call before its handler runs: ``rlm.tools.execute`` has one for each call."""

    tool: Tool
    grant: Grant
    origin: dict[str, Any]
    arguments: Any
    consent: Consent | None

    async def ask(self, function: Callable[..., Any], *arguments: Any, what: str) -> Any: ...


async def consented(call: PendingCall) -> dict[str, Any] | None:
    """None where the call may be made with its arguments; new arguments where an approver edited them.

    Raises: ToolError ``effect_not_admitted``, ``denied``, ``authority_failed``, ``approval_required``,
    ``approval_denied``, ``approval_failed``, ``timeout``, ``abandoned``.
    """
    request = _request(call)
    if call.tool.effect not in call.grant.effects:
        raise refused("effect_not_admitted", request, f"the effect {call.tool.effect.value!r} is not admitted")
    decision = await _decided(call, request)
    if decision.verdict is AuthorityVerdict.DENY:
        raise refused("denied", request, f"the host's authority denies it{_because(decision.reason)}")
    if decision.verdict is AuthorityVerdict.ALLOW or call.tool.effect is Effect.READ:
        return None
    return await _asked(call, request.model_copy(update={"tier": decision.tier, "reason": decision.reason}))


def _request(call: PendingCall) -> ToolRequest:
    return ToolRequest(
        tool=call.tool.id,
        effect=call.tool.effect,
        capability=call.tool.capability,
        arguments=json.loads(json.dumps(call.arguments)),
        origin=call.origin,
    )


async def _decided(call: PendingCall, request: ToolRequest) -> Decision:
    """The strictest word of all authorities."""
    decisions = [await _said(call, authority, request) for authority in call.grant.authorities]
    return max(decisions, key=lambda decision: decision.severity)


async def _said(call: PendingCall, authority: Any, request: ToolRequest) -> Decision:
    if isinstance(authority, Authority):
        return authority(request)
    try:
        return decision_of(await call.ask(authority, request, what="authority"))
    except ToolError:
        raise
    except Exception as problem:  # noqa: BLE001 - a host's code; it fails closed
        said = problem.message if isinstance(problem, ConfigurationError) else failure_of(problem)["message"]
        raise refused("authority_failed", request, f"the host's authority gave no word: {said}") from None


async def _asked(call: PendingCall, request: ToolRequest) -> dict[str, Any] | None:
    tier = request.tier or AuthorityLevel.ALLOW_ONCE
    if call.consent is not None and call.consent.edited:
        _check_edited(call.consent, request, tier)
        return None
    if call.grant.ceiling is None or tier.rank > call.grant.ceiling.rank:
        ceiling = call.grant.ceiling.value if call.grant.ceiling else "nothing"
        raise refused("denied", request, f"it needs {tier.value}; this grant may ask for {ceiling} at most")
    if _is_remembered(call, tier):
        call.consent = Consent(asked=tier, given=AuthorityLevel.ALLOW_SESSION, remembered=True)
        return None
    if call.grant.approve is None:
        what = f"the effect {request.effect.value!r} needs approval ({tier.value}), and nobody is there to give it"
        raise refused("approval_required", request, f"{what}: the host sets approve= or authority=", tier=tier.value)
    approval = await _approved(call, request, tier)
    call.consent = Consent(
        asked=tier, given=approval.tier, edited=approval.arguments is not None, reason=approval.reason
    )
    _check_given(approval, request, tier)
    if approval.tier is AuthorityLevel.ALLOW_SESSION:
        call.grant.remembered.add((call.tool.id, call.tool.effect))
    return approval.arguments


def _check_edited(consent: Consent, request: ToolRequest, tier: AuthorityLevel) -> None:
    """What an approver wrote is approved as far as the tier goes that came with it."""
    if consent.given is None or consent.given.rank < tier.rank:
        given = consent.given.value if consent.given else "nothing"
        raise refused("approval_denied", request, f"as edited it needs {tier.value}, and {given} was given")


def _is_remembered(call: PendingCall, tier: AuthorityLevel) -> bool:
    session = AuthorityLevel.ALLOW_SESSION.rank
    ceiling = call.grant.ceiling.rank if call.grant.ceiling else -1
    known = (call.tool.id, call.tool.effect) in call.grant.remembered
    return known and tier.rank <= session <= ceiling


async def _approved(call: PendingCall, request: ToolRequest, tier: AuthorityLevel) -> Approval:
    assert call.grant.approve is not None
    try:
        return approval_of(await call.ask(call.grant.approve, request, what="approval"), tier)
    except ToolError:
        raise
    except Exception as problem:  # noqa: BLE001 - a host's code; it fails closed
        said = problem.message if isinstance(problem, ConfigurationError) else failure_of(problem)["message"]
        raise refused("approval_failed", request, f"the approver gave no word: {said}") from None


def _check_given(approval: Approval, request: ToolRequest, tier: AuthorityLevel) -> None:
    if approval.tier is None:
        raise refused("approval_denied", request, f"it was not approved{_because(approval.reason)}", tier=tier.value)
    if approval.tier.rank < tier.rank:
        what = f"it needs {tier.value}, and {approval.tier.value} was given"
        raise refused("approval_denied", request, what, tier=tier.value)


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""
