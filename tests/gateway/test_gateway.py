"""The gateway before real servers, through real clients of both protocol eras."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

import rlm
from tests.gateway.support import ERAS, client, error, gateway, read, upstream
from tests.mcp.support import PATIENCE

SERVERS = {"files": upstream("files"), "git": upstream("git")}
META = ["find_tools", "call_read", "call_write", "call_destructive", "why"]


@pytest.fixture(scope="module")
def served() -> Any:
    settings = {
        "policy": {"denied": ["git/push"]},
        "hints": ["files"],
        "effects": {"git/status": "read", "git/sl*": "read"},
    }
    with gateway(SERVERS, settings=settings) as made:
        yield made


@pytest.mark.parametrize("era", ERAS)
def test_a_client_lists_finds_calls_and_asks_why(served: rlm.Gateway, era: str) -> None:
    async def run() -> None:
        async with client(served, era) as one:
            assert [tool.name for tool in (await one.list_tools()).tools] == META
            found = read(await one.call_tool("find_tools", {"task": "read the text of a file"}))
            row = found["tools"][0]
            assert (row["name"], row["with"]) == ("read_file", "call_read")
            assert row["args"]["required"] == ["path"]
            result = await one.call_tool("call_read", {"name": "read_file", "args": {"path": "a"}}, meta={"test/x": 7})
            assert result.structured_content == {"tool": "read_file", "meta": {"test/x": 7}}
            assert [block.type for block in result.content] == ["text", "image"]
            assert result.meta is not None
            assert result.meta["test/back"] == 1
            answer = read(await one.call_tool("why", {"task": "push my commits", "name": "push"}))
            assert answer["state"] == "rejected"
            assert "denied" in " ".join(answer["reasons"])

    anyio.run(run)


@pytest.mark.parametrize("era", ERAS)
def test_the_explanation_of_a_find_is_a_resource(served: rlm.Gateway, era: str) -> None:
    async def run() -> None:
        async with client(served, era) as one:
            found = read(await one.call_tool("find_tools", {"task": "write a text to a file"}))
            contents = (await one.read_resource(f"rlm://view/{found['fingerprint']}")).contents
            assert "mcp_tool:files/write_file" in [row["unit"] for row in json.loads(contents[0].text)["active"]]
            with pytest.raises(Exception, match="no recent view"):
                await one.read_resource("rlm://view/000000000000")

    anyio.run(run)


def test_a_named_hidden_tool_comes_with_its_reason_and_a_call_of_it_is_refused(served: rlm.Gateway) -> None:
    async def run() -> None:
        async with client(served) as one:
            found = read(await one.call_tool("find_tools", {"task": "use git/push now"}))
            assert found["hidden"][0]["name"] == "git/push"
            assert "denied" in found["hidden"][0]["reason"]
            result = await one.call_tool("call_write", {"name": "push", "args": {"remote": "x"}})
            assert error(result) == "tool_hidden"
            assert "denied" in read(result)["error"]["message"]
            assert "remedy" in read(result)["error"]

    anyio.run(run)


def test_each_tool_has_one_lane_and_a_bare_name_only_where_it_is_unique(served: rlm.Gateway) -> None:
    async def run() -> None:
        async with client(served) as one:
            assert error(await one.call_tool("call_read", {"name": "write_file", "args": {}})) == "other_lane"
            assert error(await one.call_tool("call_write", {"name": "delete_file", "args": {}})) == "other_lane"
            assert not (
                await one.call_tool("call_destructive", {"name": "delete_file", "args": {"path": "x"}})
            ).is_error
            ambiguous = await one.call_tool("call_read", {"name": "status", "args": {}})
            assert error(ambiguous) == "ambiguous_name"
            assert read(ambiguous)["error"]["candidates"] == ["files/status", "git/status"]
            assert not (await one.call_tool("call_read", {"name": "git/status"})).is_error
            assert error(await one.call_tool("call_read", {"name": "nothing_like_it"})) == "unknown_tool"

    anyio.run(run)


def test_arguments_as_text_are_parsed_once_or_refused(served: rlm.Gateway) -> None:
    async def run() -> None:
        async with client(served) as one:
            call = {"name": "read_file", "args": '{"path": "a"}'}
            assert not (await one.call_tool("call_read", call)).is_error
            for text in ("", "path=a", '"{\\"path\\": \\"a\\"}"', "[]", "null"):
                result = await one.call_tool("call_read", {"name": "read_file", "args": text})
                assert error(result) == "invalid_arguments"
            assert (
                error(await one.call_tool("call_read", {"name": "read_file", "args": {"paht": 1}}))
                == "invalid_arguments"
            )

    anyio.run(run)


def test_a_session_gets_no_description_twice(served: rlm.Gateway) -> None:
    task = "read the text of a file"
    first = served.find(task, session="a")
    again = served.find(task, session="a")
    assert "read_file" in [row["name"] for row in first["tools"]]
    assert again["tools"] == []
    assert "read_file" in again["sent_before"]
    assert served.find(task, session="b")["tools"] == first["tools"]


def test_a_cancelled_call_and_progress_pass_through(served: rlm.Gateway) -> None:
    async def run() -> None:
        reports: list[Any] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            reports.append((done, total, message))

        async with client(served) as one:
            began = time.monotonic()
            with anyio.move_on_after(1):
                await one.call_tool("call_read", {"name": "slow", "args": {"seconds": 60}}, progress_callback=progress)
            assert time.monotonic() - began < 30
            assert not (await one.call_tool("call_read", {"name": "git/status"})).is_error
        assert reports == [(1, 2, "half")]

    anyio.run(run)


def test_the_list_is_the_same_bytes_whatever_happened_and_in_both_eras(served: rlm.Gateway) -> None:
    async def run() -> None:
        lists = set()
        for era in ERAS:
            async with client(served, era) as one:
                for number in range(25):
                    tools = (await one.list_tools()).tools
                    lists.add(json.dumps([tool.model_dump(mode="json", by_alias=True) for tool in tools], indent=1))
                    await one.call_tool("find_tools", {"task": f"file number {number}"})
                    await one.call_tool("call_read", {"name": "git/status"})
                    await one.call_tool("why", {"task": "push", "name": "no such"})
        assert len(lists) == 1, sorted(lists)

    anyio.run(run)


def test_a_dead_server_costs_nothing_and_is_reported() -> None:
    servers = {**SERVERS, "gone": {"command": sys.executable, "args": ["-c", "import time; time.sleep(600)"]}}
    made = rlm.Gateway(servers, limits=rlm.MCPLimits(connect_seconds=PATIENCE, close_seconds=1))
    try:
        made.start()
        while len(made.finder().names.ids) < 7:
            time.sleep(0.05)
        made.find("warm")

        async def run() -> None:
            async with client(made) as one:
                await one.call_tool("find_tools", {"task": "anything"})  # the first may wait for half a second
                began = time.monotonic()
                found = read(await one.call_tool("find_tools", {"task": "read the text of a file"}))
                assert time.monotonic() - began < 0.4
                assert found["tools"][0]["name"] == "read_file"
                assert list(found["servers_away"]) == ["gone"]
                tools = (await one.list_tools()).tools
                assert "files, git, gone" in str(tools[0].description)

        anyio.run(run)
    finally:
        made.close()


def test_a_profile_knows_nothing_outside_of_it() -> None:
    with gateway(SERVERS, settings={"profiles": {"reader": {"tools": ["files/*"]}}}) as made:

        async def run() -> None:
            async with client(made, profile="reader") as one:
                outside = await one.call_tool("why", {"task": "x", "name": "git/push"})
                nowhere = await one.call_tool("why", {"task": "x", "name": "git/puhs"})
                assert error(outside) == error(nowhere) == "unknown_tool"
                assert read(outside)["error"]["message"] == "there is no tool 'git/push'"
                assert error(await one.call_tool("call_write", {"name": "git/push", "args": {}})) == "unknown_tool"
                found = read(await one.call_tool("find_tools", {"task": "push commits with git/push"}))
                assert "git" not in json.dumps(found["tools"])
                assert "hidden" not in found
                assert not (await one.call_tool("call_write", {"name": "status"})).is_error  # unique in the profile

        anyio.run(run)


def test_the_command_serves_a_real_client_over_stdio(tmp_path: Path) -> None:
    config = tmp_path / "servers.json"
    config.write_text(json.dumps({"mcpServers": SERVERS}))
    arguments = ["-m", "rlm", "gateway", "--config", str(config)]
    arguments = ["-c", "from rlm.cli import main; main()", *arguments[2:]]

    async def run(era: str) -> None:
        async with Client(stdio_client(StdioServerParameters(command=sys.executable, args=arguments)), mode=era) as one:
            assert [tool.name for tool in (await one.list_tools()).tools] == META
            result = await one.call_tool("call_write", {"name": "git/status"})
            for _ in range(200):
                if not result.is_error:
                    break
                await anyio.sleep(0.1)
                result = await one.call_tool("call_write", {"name": "git/status"})
            assert result.structured_content["tool"] == "status"

    for era in ERAS:
        anyio.run(run, era)


def test_a_skill_is_found_by_its_description_and_read_as_data(tmp_path: Path) -> None:
    (tmp_path / "brew").mkdir()
    text = "---\nname: brew\ndescription: How to brew green tea.\n---\nPour water of 70 degrees.\n"
    (tmp_path / "brew" / "SKILL.md").write_text(text)
    with gateway({"git": upstream("git")}, skills=[tmp_path]) as made:

        async def run() -> None:
            async with client(made) as one:
                assert [tool.name for tool in (await one.list_tools()).tools] == [*META, "read_skill"]
                found = read(await one.call_tool("find_tools", {"task": "brew green tea"}))
                assert found["skills"] == [{"name": "brew", "description": "How to brew green tea."}]
                result = await one.call_tool("read_skill", {"name": "brew"})
                assert "Pour water of 70 degrees." in result.content[0].text
                assert error(await one.call_tool("read_skill", {"name": "boil"})) == "unknown_skill"

        anyio.run(run)
