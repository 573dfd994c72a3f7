"""Calls go through the registry: schema, capability, authority, limits; what comes back is data, or an error that is."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import anyio
import pytest

import rlm
from rlm.tools.execute import execute
from tests.mcp.support import ALLOW, PATIENCE, QUICK, bad, called, good, kind


def test_a_tool_is_called_and_gives_data(catalog: rlm.Catalog) -> None:
    outcome = called(catalog, "weather", city="Ulm")
    assert outcome.value == {"city": "Ulm", "degrees": 3}
    assert called(catalog, "shout", text="hello there").value == "HELLO THERE"


def test_arguments_are_checked_before_they_leave(catalog: rlm.Catalog) -> None:
    outcome = called(catalog, "shout", text="ALREADY LOUD")
    assert (outcome.status, kind(outcome)) == ("refused", "invalid_arguments")


def test_without_the_capability_nothing_is_called(stdio: rlm.Catalog, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for grant in (rlm.Grant(authority="allow"), rlm.Grant(capabilities={"mcp_tool:other/*"}, authority="allow")):
        outcome = called(stdio, "counted", grant, mark=str(mark))
        assert (outcome.status, kind(outcome)) == ("refused", "capability_missing")
    assert not mark.exists()


def test_a_write_asks_for_authority(stdio: rlm.Catalog, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    grant = rlm.Grant(capabilities={"mcp_tool:t/*"})
    outcome = called(stdio, "counted", grant, mark=str(mark))
    assert (outcome.status, kind(outcome)) == ("refused", "approval_required")
    assert not mark.exists()
    asked: list[rlm.ToolRequest] = []

    def approve(request: rlm.ToolRequest) -> bool:
        asked.append(request)
        return True

    outcome = called(stdio, "counted", rlm.Grant(capabilities={"mcp_tool:t/*"}, approve=approve), mark=str(mark))
    assert outcome.value == "called\n"
    assert [(request.tool, request.effect) for request in asked] == [("mcp_tool:t/counted", "write")]


def test_a_read_by_the_hosts_word_does_not_ask() -> None:
    with rlm.Catalog() as catalog:
        catalog.add_mcp({"t": good()}, limits=QUICK, tools={"effects": {"weather": "read"}})
        assert called(catalog, "weather", rlm.Grant(capabilities={"mcp_tool:t/weather"}), city="Ulm").ok


def test_an_error_of_a_tool_is_an_error_and_no_text(catalog: rlm.Catalog) -> None:
    outcome = called(catalog, "fails")
    assert (outcome.status, kind(outcome)) == ("failed", "tool_failed")
    assert outcome.value is None


def test_a_picture_is_described_and_not_inlined(catalog: rlm.Catalog) -> None:
    value = called(catalog, "picture").value
    assert value["result"] == "a dot"
    (picture,) = value["attachments"]
    assert (picture["type"], picture["mime_type"], picture["bytes"]) == ("image", "image/png", 15)
    assert len(picture["sha256"]) == 64


def test_a_result_over_the_tools_limit_is_an_error(catalog: rlm.Catalog) -> None:
    assert kind(called(catalog, "large", size=100_000)) == "result_too_large"


def test_fifty_megabytes_are_refused_and_the_connection_lives_on(catalog: rlm.Catalog) -> None:
    outcome = called(catalog, "large", size=50_000_000)
    assert kind(outcome) == "result_too_large"
    assert called(catalog, "shout", text="still here").value == "STILL HERE"


def test_a_projection_gives_the_beginning() -> None:
    with rlm.Catalog() as catalog:
        catalog.add_mcp({"t": good()}, limits=QUICK, tools={"projection": "head", "max_result_bytes": 1000})
        outcome = called(catalog, "large", size=5000)
        assert (outcome.value["projection"], outcome.value["truncated"], outcome.projection) == ("head", True, "head")


@pytest.mark.anyio
async def test_a_deadline_ends_the_call_here_and_there(catalog: rlm.Catalog) -> None:
    slow, follow = catalog.registry.lookup("slow"), catalog.registry.lookup("follow")
    began = anyio.current_time()
    outcome = await execute(slow, {}, ALLOW, deadline=began + 0.5)
    assert kind(outcome) == "timeout"
    assert anyio.current_time() - began < 1.0
    outcome = await execute(follow, {}, ALLOW, deadline=anyio.current_time() + PATIENCE)
    assert outcome.value == "slow was cancelled"


@pytest.mark.anyio
async def test_calls_run_side_by_side(stdio: rlm.Catalog) -> None:
    shout = stdio.registry.lookup("shout")
    words = [f"{'abcdefgh'[number % 8] * (number + 1)}" for number in range(40)]
    outcomes = await asyncio.gather(
        *(execute(shout, {"text": word}, ALLOW, deadline=anyio.current_time() + PATIENCE) for word in words)
    )
    assert [outcome.value for outcome in outcomes] == [word.upper() for word in words]


def test_any_event_loop_may_call(stdio: rlm.Catalog) -> None:
    values: list[object] = []

    def use(word: str) -> None:
        values.append(called(stdio, "shout", text=word).value)

    threads = [threading.Thread(target=use, args=(word,)) for word in ("one", "two", "three")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, values)) == ["ONE", "THREE", "TWO"]


def test_a_plan_calls_a_servers_tool(stdio: rlm.Catalog) -> None:
    from rlm.api.complete import run_plan

    plan = {
        "steps": [
            {"op": "tool", "name": "mcp_tool:t/weather", "args": {"city": "Ulm"}, "bind": "w"},
            {"op": "final", "value": {"var": "w", "path": "degrees"}},
        ]
    }
    result = run_plan(plan, catalog=stdio, policy=rlm.Policy(capabilities={"mcp_tool:t/*"}), authority="allow")
    assert (result.status, result.value) == ("ok", 3), result.error


@pytest.mark.parametrize(
    ("what", "error"),
    [
        ("id last", "result_too_large"),
        ("no id", "connection_lost"),
        ("no end", "connection_lost"),
        ("asks", "connection_lost"),
        ("wrong result", "invalid_result"),
        ("own error", "mcp_error"),
        ("wants input", "mcp_error"),
    ],
)
def test_a_wrong_answer_is_an_error_in_time(what: str, error: str) -> None:
    with rlm.Catalog() as catalog:
        catalog.add_mcp({"b": bad(what)}, limits=QUICK)
        assert kind(called(catalog, "fine")) == error


def test_two_thousand_changes_in_a_row_are_read_a_few_times() -> None:
    with rlm.Catalog() as catalog:
        catalog.add_mcp({"b": bad("changes")}, limits=QUICK)
        assert called(catalog, "fine").value == "fine"
        assert catalog.revision == 1


def test_what_a_tool_gives_is_checked_by_what_it_promised(tmp_path: Path) -> None:
    with rlm.Catalog() as catalog:
        catalog.add_mcp({"b": bad("breaks promise")}, limits=QUICK)
        outcome = called(catalog, "fine")
        assert kind(outcome) == "invalid_result"
        assert outcome.error is not None
        assert outcome.error["detail"]["path"] == "number"
