"""Authority, approval and grants: who says yes, how far it goes, and that a child only narrows."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

import rlm
from rlm.errors import ConfigurationError
from rlm.tools.outcome import Status
from tests.tools.calls import call, kind

pytestmark = pytest.mark.anyio


class Approver:
    """Answers what it was told to answer, and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[rlm.ToolRequest] = []

    def __call__(self, request: rlm.ToolRequest) -> Any:
        self.asked.append(request)
        return self.answers.pop(0)


def acting(effect: str, **options: Any) -> rlm.Tool:
    def act(path: str, times: int = 1) -> str:
        return path * times

    return rlm.tool(effect=effect, **options)(act)


ASKS = {"write": "approve_diff", "repository": "approve_diff", "process": "allow_once", "network": "allow_once"}
ASKS |= {"install": "dangerous", "service": "dangerous"}


@pytest.mark.parametrize("effect", list(rlm.Effect))
async def test_by_default_a_read_is_allowed_and_everything_else_asks(effect: rlm.Effect) -> None:
    approver = Approver(True)
    outcome = await call(acting(effect), {"path": "a"}, rlm.Grant(approve=approver))
    assert outcome.ok
    if effect == "read":
        assert (approver.asked, outcome.consent) == ([], None)
        return
    (request,) = approver.asked
    assert (request.tool, request.effect, request.tier) == ("tool:act", effect, ASKS[effect])
    assert request.arguments == {"path": "a"}
    assert outcome.consent is not None
    assert (outcome.consent.asked, outcome.consent.given) == (ASKS[effect], ASKS[effect])
    nobody = await call(acting(effect), {"path": "a"}, rlm.Grant())
    assert (nobody.status, kind(nobody)) == (Status.REFUSED, "approval_required")
    assert nobody.error is not None
    assert nobody.error["detail"]["tier"] == ASKS[effect]
    assert "approve= or authority=" in nobody.error["message"]


async def test_a_read_never_asks_but_may_be_denied() -> None:
    approver = Approver()
    grant = rlm.Grant(authority="dangerous", approve=approver)
    assert (await call(acting("read"), {"path": "a"}, grant)).ok
    assert approver.asked == []
    assert kind(await call(acting("read"), {"path": "a"}, rlm.Grant(authority="deny"))) == "denied"


async def test_an_authority_by_effect_says_what_the_host_wrote() -> None:
    grant = rlm.Grant(authority=rlm.Authority(write="allow", network="deny"))
    assert (await call(acting("write"), {"path": "a"}, grant)).ok
    assert kind(await call(acting("network"), {"path": "a"}, grant)) == "denied"
    assert kind(await call(acting("process"), {"path": "a"}, grant)) == "approval_required"
    with pytest.raises(ConfigurationError, match="did you mean 'allow'"):
        rlm.Authority(write="alow")
    with pytest.raises(ConfigurationError, match="did you mean 'write'"):
        rlm.Authority(wriet="allow")


@pytest.mark.parametrize("way", ["sync", "async"])
async def test_an_authority_of_the_host_sees_the_call_and_decides(way: str) -> None:
    seen: list[rlm.ToolRequest] = []

    def decide(request: rlm.ToolRequest) -> Any:
        seen.append(request)
        return rlm.Decision(verdict="deny", reason="not on Sundays")

    async def later(request: rlm.ToolRequest) -> Any:
        await asyncio.sleep(0)
        return decide(request)

    outcome = await call(
        acting("write", capability="notes"),
        {"path": "a"},
        rlm.Grant(authority=decide if way == "sync" else later),
        origin={"role": "child", "depth": 1},
    )
    assert outcome.error is not None
    assert (outcome.error["kind"], "not on Sundays" in outcome.error["message"]) == ("denied", True)
    (request,) = seen
    assert (request.capability, request.origin) == ("notes", {"role": "child", "depth": 1})
    request.arguments["path"] = "changed"
    assert outcome.arguments == {"path": "a"}


@pytest.mark.parametrize("authority", [lambda request: 1 / 0, lambda request: True, lambda request: "alow", lambda: 1])
async def test_an_authority_that_goes_wrong_denies(authority: Any) -> None:
    outcome = await call(acting("write"), {"path": "a"}, rlm.Grant(authority=authority))
    assert (outcome.status, kind(outcome)) == (Status.REFUSED, "authority_failed")


# -- approval ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "given", "passes"),
    [
        ("approve_diff", "approve_diff", True),
        ("approve_diff", "dangerous", True),
        ("allow_once", "approve_diff", False),
        ("allow_once", "allow_session", True),
        ("allow_session", "allow_once", False),
        ("dangerous", "allow_session", False),
        ("dangerous", "dangerous", True),
        ("allow_once", False, False),
        ("allow_once", None, False),
        ("allow_once", "deny", False),
    ],
)
async def test_an_approval_must_reach_the_tier_that_was_asked_for(asked: str, given: Any, passes: bool) -> None:
    outcome = await call(acting("write"), {"path": "a"}, rlm.Grant(authority=asked, approve=Approver(given)))
    assert outcome.ok is passes
    assert outcome.consent is not None
    assert outcome.consent.asked == asked
    if not passes:
        assert (outcome.status, kind(outcome)) == (Status.REFUSED, "approval_denied")


async def test_a_refusal_carries_its_reason() -> None:
    approver = Approver(rlm.Approval(tier=None, reason="too late"))
    outcome = await call(acting("write"), {"path": "a"}, rlm.Grant(approve=approver))
    assert outcome.error is not None
    assert "too late" in outcome.error["message"]
    assert outcome.consent is not None
    assert (outcome.consent.given, outcome.consent.reason) == (None, "too late")


async def leaves(request: object) -> bool:
    sys.exit(1)


@pytest.mark.parametrize(
    "approve",
    [lambda request: 1 / 0, lambda request: 7, lambda request: "allow_onec", lambda request: sys.exit(1), leaves],
)
async def test_an_approver_that_goes_wrong_approves_nothing(approve: Any) -> None:
    outcome = await call(acting("write"), {"path": "a"}, rlm.Grant(approve=approve))
    assert (outcome.status, kind(outcome)) == (Status.REFUSED, "approval_failed")


async def test_an_approver_may_be_async() -> None:
    async def approve(request: rlm.ToolRequest) -> str:
        await asyncio.sleep(0)
        return "allow_once"

    assert (await call(acting("write"), {"path": "a"}, rlm.Grant(approve=approve))).ok


async def test_a_session_is_remembered_for_that_tool_and_effect_in_that_run() -> None:
    approver = Approver("allow_session", True, True)
    grant = rlm.Grant(authority="allow_once", approve=approver)
    write = acting("write")
    assert (await call(write, {"path": "a"}, grant)).ok
    again = await call(write, {"path": "b"}, grant)
    assert again.consent is not None
    assert again.consent.remembered
    assert len(approver.asked) == 1
    assert (await call(acting("network"), {"path": "a"}, grant)).ok, "another effect is asked for"
    assert len(approver.asked) == 2
    assert (await call(write, {"path": "a"}, grant.begun())).ok, "another run is asked for"
    assert len(approver.asked) == 3


async def test_what_is_dangerous_is_never_remembered() -> None:
    approver = Approver("allow_session", "dangerous", "dangerous")
    tool = acting("write")
    grant = rlm.Grant(
        authority=lambda request: "dangerous" if request.arguments["times"] > 1 else "ask", approve=approver
    )
    for times in (1, 2, 3):
        assert (await call(tool, {"path": "a", "times": times}, grant)).ok
    assert [request.tier for request in approver.asked] == ["allow_once", "dangerous", "dangerous"]


# -- edited arguments --------------------------------------------------------------------------------


def edited(arguments: dict[str, Any], tier: str = "allow_once") -> rlm.Approval:
    return rlm.Approval(tier=tier, arguments=arguments)


async def test_edited_arguments_are_what_the_handler_gets() -> None:
    approver = Approver(edited({"path": "b", "times": 2}))
    outcome = await call(acting("write"), {"path": "a"}, rlm.Grant(approve=approver))
    assert (outcome.value, outcome.arguments) == ("bb", {"path": "b", "times": 2})
    assert outcome.consent is not None
    assert outcome.consent.edited
    assert len(approver.asked) == 1


async def test_edited_arguments_are_validated_again_from_the_schema_on() -> None:
    looked: list[Any] = []

    def preflight(arguments: dict[str, Any]) -> dict[str, Any] | None:
        looked.append(arguments)
        return {"kind": "closed", "message": "no"} if arguments["path"] == "closed" else None

    def authority(request: rlm.ToolRequest) -> str:
        return {"denied": "deny", "worse": "dangerous"}.get(request.arguments["path"], "allow_once")

    tool = acting("write", preflight=preflight)
    for arguments, wanted in (
        ({"path": 3}, "invalid_arguments"),
        ({"path": "a", "extra": 1}, "invalid_arguments"),
        ({"path": "closed"}, "closed"),
        ({"path": "denied"}, "denied"),
        ({"path": "worse"}, "approval_denied"),
    ):
        grant = rlm.Grant(authority=authority, approve=Approver(edited(arguments)))
        outcome = await call(tool, {"path": "a"}, grant)
        assert (outcome.status, kind(outcome)) == (Status.REFUSED, wanted)
        assert outcome.consent is not None
        assert outcome.consent.edited
    assert {"path": "closed"} in looked
    grant = rlm.Grant(authority=authority, approve=Approver(edited({"path": "worse"}, "dangerous")))
    assert (await call(tool, {"path": "a"}, grant)).value == "worse"


# -- grants ------------------------------------------------------------------------------------------


def imported(name: str) -> rlm.Tool:
    return rlm.Tool(
        name, "", {"type": "object"}, rlm.Effect.READ, lambda: name, server="github", trust=rlm.Trust.STRANGER
    )


async def test_without_capabilities_what_the_host_registered_is_granted_and_nothing_imported() -> None:
    assert (await call(acting("read"), {"path": "a"}, rlm.Grant())).ok
    refused = await call(imported("issues"), {}, rlm.Grant())
    assert kind(refused) == "capability_missing"
    assert refused.error is not None
    assert refused.error["detail"]["capability"] == "mcp_tool:github/issues"
    assert (await call(imported("issues"), {}, rlm.Grant({"mcp_tool:github/*"}))).value == "issues"
    assert kind(await call(imported("issues"), {}, rlm.Grant({"tool:*"}))) == "capability_missing"
    assert kind(await call(acting("read"), {"path": "a"}, rlm.Grant(set()))) == "capability_missing"


async def test_k31_no_text_of_a_package_changes_a_grant() -> None:
    """``allowed-tools`` is text; a grant is made of the host's arguments and of nothing else."""
    policy = rlm.Policy(capabilities={"tool:other"})
    unit = rlm.Unit("skill:helper", content="allowed-tools: act, tool:act, *", requires=["tool:act"], trust="stranger")
    catalog = rlm.Catalog([unit, *rlm.Registry([acting("read")]).units()])
    view = rlm.compile(catalog, "use the helper skill", policy=policy)
    assert view.tools("openai") == []
    assert kind(await call(acting("read"), {"path": "a"}, rlm.Grant.of(policy))) == "capability_missing"


def refuses(grant: rlm.Grant, **wider: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        grant.narrowed(**wider)
    assert caught.value.kind == "wider_than_parent"
    return caught.value.message


async def test_a_child_may_only_narrow() -> None:
    parent = rlm.Grant({"tool:*"}, effects={"read", "write"}, ceiling="allow_session")
    words = "a child's {} must be a subset of its parent's; {!r} is not"
    assert refuses(parent, capabilities={"mcp_tool:x/*"}) == words.format("capabilities", "mcp_tool:x/*")
    assert refuses(parent, capabilities=None) == words.format("capabilities", "*")
    assert refuses(parent, effects={"read", "network"}) == words.format("effects", "network")
    assert refuses(parent, ceiling="dangerous") == words.format("ceiling", "dangerous")
    assert refuses(rlm.Grant(), capabilities={"tool:a"}) == words.format("capabilities", "tool:a")
    with pytest.raises(ConfigurationError) as caught:
        rlm.Policy(capabilities={"tool:*"}).narrowed(rlm.Policy(capabilities={"mcp_tool:x/*"}))
    assert refuses(parent, capabilities={"mcp_tool:x/*"}) == caught.value.message

    child = parent.narrowed(capabilities={"tool:act"}, effects={"read"}, ceiling=None)
    assert (child.capabilities, child.effects, child.ceiling) == ({"tool:act"}, {rlm.Effect.READ}, None)
    assert kind(await call(acting("write"), {"path": "a"}, child)) == "effect_not_admitted"
    assert refuses(child, effects={"write"}) == words.format("effects", "write")
    assert refuses(child, ceiling="approve_diff") == words.format("ceiling", "approve_diff")
    same = parent.narrowed()
    assert (same.capabilities, same.effects, same.ceiling) == (parent.capabilities, parent.effects, parent.ceiling)


async def test_a_childs_authority_is_asked_after_its_parents_and_the_stricter_counts() -> None:
    for parent, child, wanted in (
        ("deny", "allow", "denied"),
        ("allow", "deny", "denied"),
        ("ask", "allow", "approval_required"),
        ("allow", "dangerous", "approval_required"),
    ):
        outcome = await call(acting("write"), {"path": "a"}, rlm.Grant(authority=parent).narrowed(authority=child))
        assert kind(outcome) == wanted
    approver = Approver(True)
    grant = rlm.Grant(authority="approve_diff", approve=approver).narrowed(authority="dangerous")
    assert (await call(acting("write"), {"path": "a"}, grant.narrowed(authority="allow"))).ok
    assert approver.asked[0].tier == "dangerous"


async def test_a_ceiling_denies_what_would_have_to_be_asked_above_it() -> None:
    approver = Approver("dangerous", True)
    grant = rlm.Grant(authority="allow_session", approve=approver)
    below = grant.narrowed(ceiling="allow_once")
    assert kind(await call(acting("write"), {"path": "a"}, below)) == "denied"
    assert approver.asked == []


async def test_what_a_session_remembers_counts_for_children_that_may_ask_for_it() -> None:
    approver = Approver("allow_session", True)
    grant = rlm.Grant(authority="allow_once", approve=approver)
    assert (await call(acting("write"), {"path": "a"}, grant)).ok
    child = await call(acting("write"), {"path": "a"}, grant.narrowed())
    assert child.consent is not None
    assert child.consent.remembered
    assert len(approver.asked) == 1
    lower = await call(acting("write"), {"path": "a"}, grant.narrowed(ceiling="allow_once"))
    assert lower.consent is not None
    assert not lower.consent.remembered
    assert len(approver.asked) == 2


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"capabilities": "tool:a"}, "write {'tool:a'}"),
        ({"effects": {"reed"}}, "did you mean 'read'"),
        ({"ceiling": "dangeruos"}, "did you mean 'dangerous'"),
        ({"authority": "alow"}, "did you mean 'allow'"),
        ({"authority": 3}, "must be callable"),
        ({"approve": "yes"}, "cannot be called"),
    ],
)
def test_a_wrong_grant_is_answered_with_the_right_word(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        rlm.Grant(**fields)
    assert said in caught.value.message
