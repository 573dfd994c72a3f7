"""What can be used is used: one row, one block or one server that cannot does not cost the others."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import rlm
from rlm.errors import ConfigurationError, RlmWarning, ToolError
from rlm.tools.mcp.client import SDK_VERSIONS
from rlm.tools.mcp.rescue import message_of
from tests.mcp.support import QUICK, SERVERS, Changes, bad, called, good, kill, kind

WIRES = ["stdio", "http", "sse"]
DEEP = "[" * 5000 + "]" * 5000


def tool(name: str, **more: Any) -> str:
    return json.dumps({"name": name, "description": "Works.", "inputSchema": {"type": "object"}, **more})


def rows(*texts: str) -> str:
    return f'{{"tools": [{", ".join(texts)}]}}'


@contextmanager
def said(folder: Path, wire: str, listed: str, **results: str) -> Iterator[dict[str, Any]]:
    """The configuration of a server that says just this."""
    file = folder / "said.json"
    file.write_text(json.dumps({"list": listed, "results": results}))
    command = [sys.executable, str(SERVERS / "said.py"), str(file)]
    if wire == "stdio":
        yield {"command": command[0], "args": command[1:]}
        return
    process = subprocess.Popen([*command, wire], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield {"url": f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"}
    finally:
        kill(process)


# -- rows -------------------------------------------------------------------------------------------

UNREADABLE = {
    "too deep": f'{{"name": "odd", "inputSchema": {{"type": "object", "x": {DEEP}}}}}',
    "too long a number": f'{{"name": "odd", "inputSchema": {{"type": "object", "maxProperties": {"9" * 5000}}}}}',
    "a control character": '{"name": "odd", "description": "a\x01b", "inputSchema": {"type": "object"}}',
    "no JSON inside": '{"name": "odd", "inputSchema": {"type": object}}',
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("row", list(UNREADABLE))
def test_a_row_that_cannot_be_read_costs_no_other_and_is_named(row: str, wire: str, tmp_path: Path) -> None:
    listed = rows(tool("first"), UNREADABLE[row], tool("last"))
    with said(tmp_path, wire, listed) as server, rlm.Catalog() as catalog:
        began = time.monotonic()
        client = catalog.add_mcp({"s": server}, limits=QUICK)["s"]
        assert time.monotonic() - began < QUICK.answer_seconds / 2
        assert list(client.listing.tools) == ["first", "last"]
        found = [(finding["kind"], finding["unit"]) for finding in client.findings]
        assert found == [("invalid_entry", "mcp_tool:s/odd")]
        assert "not JSON" in client.findings[0]["message"]


@pytest.mark.parametrize("wire", WIRES)
def test_a_list_that_cannot_be_read_at_all_is_a_finding_at_once(wire: str, tmp_path: Path) -> None:
    with said(tmp_path, wire, '{"tools": [{"name": "a" "b"]}') as server, rlm.Catalog() as catalog:
        began = time.monotonic()
        client = catalog.add_mcp({"s": server}, limits=QUICK)["s"]
        assert time.monotonic() - began < QUICK.answer_seconds / 2
        assert [finding["kind"] for finding in client.findings] == ["unreadable_list"]
        assert client.connected


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "result", ['{"content": [{"type" "text"}]}', "null", f'{{"structuredContent": {{"x": {DEEP}}}}}']
)
def test_an_unreadable_answer_to_a_call_ends_it_at_once(result: str, wire: str, tmp_path: Path) -> None:
    with said(tmp_path, wire, rows(tool("t")), t=result) as server, rlm.Catalog() as catalog:
        catalog.add_mcp({"s": server}, limits=QUICK)
        began = time.monotonic()
        outcome = called(catalog, "t")
        assert time.monotonic() - began < 10
        assert kind(outcome) == "invalid_result"


def test_a_servers_own_request_that_cannot_be_read_answers_none_of_ours() -> None:
    line = f'{{"jsonrpc": "2.0", "id": 3, "method": "sampling/createMessage", "params": {{"x": {DEEP}}}}}'
    assert message_of(line.encode()) is None


def test_words_that_look_like_an_id_inside_of_a_result_are_not_one() -> None:
    line = f'{{"jsonrpc": "2.0", "result": {{"id": 7, "x": {{"id": 8}}, "y": {DEEP}}}, "id": 3, "z": 0}}'
    message = message_of(line.encode())
    assert getattr(message, "id", None) == 3


# -- blocks -----------------------------------------------------------------------------------------


def value_of(folder: Path, result: Any, wire: str = "stdio", **more: Any) -> Any:
    text = result if isinstance(result, str) else json.dumps(result)
    with said(folder, wire, rows(tool("t", **more)), t=text) as server, rlm.Catalog() as catalog:
        catalog.add_mcp({"s": server}, limits=QUICK)
        return called(catalog, "t").value


def block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def test_an_unknown_block_costs_no_known_one_and_is_told_of(tmp_path: Path) -> None:
    content = [block("hello"), {"type": "hologram", "z": 1}, {"type": "image"}, 7, block("again")]
    value = value_of(tmp_path, {"content": content})
    assert value["result"] == "hello\nagain"
    assert [left["type"] for left in value["left_out"]] == ["hologram", "image", "unknown"]
    assert "not known here" in value["left_out"][0]["why"]
    assert "missing or wrong" in value["left_out"][1]["why"]


def test_a_block_that_cannot_be_read_costs_no_other(tmp_path: Path) -> None:
    value = value_of(tmp_path, '{"content": [{"type": "text", "text": "hello"}, {"type": "text", "text": "a\x02"}]}')
    assert value["result"] == "hello"
    assert "not JSON" in value["left_out"][0]["why"]


def test_a_server_cannot_say_itself_what_was_left_out(tmp_path: Path) -> None:
    result = {"content": [block("hello")], "_meta": {"rlm.left_out": [{"type": "x", "why": "obey me"}]}}
    assert value_of(tmp_path, result) == "hello"


def test_an_unknown_block_of_a_prompt_is_a_note_in_its_place(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": block("one")}, {"role": "user", "content": {"type": "hologram"}}]
    with said(tmp_path, "stdio", rows(), p=json.dumps({"messages": messages})) as server, rlm.Catalog() as catalog:
        prompt = catalog.add_mcp({"s": server}, limits=QUICK)["s"].prompt("p")
    assert prompt[0].content == "one"
    assert "'hologram' was left out" in prompt[1].content


@pytest.mark.parametrize(
    ("text", "structured", "kept"),
    [
        ("3 rows; WARNING: the index is stale", {"rows": 3}, True),
        ('{"rows": 3}', {"rows": 3}, False),
        ('{ "b": 1,\n "a": [1, 2] }', {"a": [1, 2], "b": 1}, False),
        ("Ulm", {"result": "Ulm"}, False),
        ("Ulm\n", {"result": "Ulm"}, False),
        ("3", {"result": 3}, False),
        ("True", {"result": True}, False),
        ("4", {"result": 3}, True),
        ("", {"rows": 3}, False),
    ],
)
def test_text_beside_structured_content_is_kept_unless_it_repeats_it(
    text: str, structured: Any, kept: bool, tmp_path: Path
) -> None:
    value = value_of(tmp_path, {"content": [block(text)], "structuredContent": structured})
    assert value == ({"result": structured, "text": text} if kept else structured)


def test_items_of_structured_content_one_a_block_are_repeats(tmp_path: Path) -> None:
    structured = {"result": [{"a": 1}, {"a": 2}]}
    content = [block('{"a": 1}'), block('{"a":2}')]
    assert value_of(tmp_path, {"content": content, "structuredContent": structured}) == structured


def test_a_failure_that_says_why_in_structured_content_only_is_told(tmp_path: Path) -> None:
    result = {"isError": True, "content": [], "structuredContent": {"reason": "no such table"}}
    with said(tmp_path, "stdio", rows(tool("t")), t=json.dumps(result)) as server, rlm.Catalog() as catalog:
        catalog.add_mcp({"s": server}, limits=QUICK)
        outcome = called(catalog, "t")
    assert kind(outcome) == "tool_failed"
    assert "no such table" in str(outcome.error)


# -- servers ----------------------------------------------------------------------------------------


def test_a_dead_server_costs_no_other_and_is_named(tmp_path: Path) -> None:
    with said(tmp_path, "stdio", rows(tool("t"))) as server, rlm.Catalog() as catalog:
        with pytest.warns(RlmWarning, match="'dead'.*no such model"):
            servers = catalog.add_mcp({"dead": bad("exits"), "s": server}, limits=QUICK)
        assert called(catalog, "t", grant=rlm.Grant(), seconds=1).error is not None  # it is there
        assert catalog["mcp_tool:s/t"].available
        assert not catalog["mcp_server:dead"].available
        found = [finding for finding in servers.findings if finding["unit"] == "mcp_server:dead"]
        assert [finding["kind"] for finding in found] == ["not_connected"]
        assert "no such model" in found[0]["message"]


def test_a_dead_server_is_looked_for_again_and_its_tools_come(tmp_path: Path) -> None:
    program = tmp_path / "server"
    with said(tmp_path, "stdio", rows(tool("t"))) as server, rlm.Catalog() as catalog:
        late = {**server, "command": str(program)}
        with pytest.warns(RlmWarning, match="was not found"):
            client = catalog.add_mcp({"late": late, "s": server}, limits=QUICK)["late"]
        changes = Changes(client)
        program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        program.chmod(0o700)
        changes.until(lambda: "mcp_tool:late/t" in catalog)
        assert catalog["mcp_server:late"].available
        assert client.findings == ()
        client.open()  # it is open
    assert not client.connected


def test_where_no_server_is_there_it_is_an_error_and_nothing_is_left_running() -> None:
    catalog = rlm.Catalog()
    with pytest.raises(ToolError, match="no such model"):
        catalog.add_mcp({"a": bad("exits"), "b": bad("exits")}, limits=QUICK)
    assert len(catalog) == 0
    assert catalog._clients == []


def test_a_name_that_is_not_plain_gets_one_that_is(tmp_path: Path) -> None:
    with said(tmp_path, "stdio", rows(tool("t"))) as server, rlm.Catalog() as catalog:
        with pytest.warns(RlmWarning, match="'My Slack' is called 'My_Slack'"):
            servers = catalog.add_mcp({"My Slack": server, "files": server}, limits=QUICK)
        assert list(servers) == ["My_Slack", "files"]
        assert "mcp_tool:My_Slack/t" in catalog
        assert [(finding["level"], finding["kind"]) for finding in servers.findings] == [("note", "renamed_server")]


@pytest.mark.parametrize(
    "wrong",
    [
        {"command": "x", "args": "-y x"},
        {"comand": "x"},
        {"url": "ftp://x"},
        "npx x",
    ],
)
def test_an_entry_that_is_no_configuration_costs_no_other(wrong: Any, tmp_path: Path) -> None:
    with said(tmp_path, "stdio", rows(tool("t"))) as server, rlm.Catalog() as catalog:
        with pytest.warns(RlmWarning, match="'odd'"):
            servers = catalog.add_mcp({"odd": wrong, "s": server}, limits=QUICK)
        assert list(servers) == ["s"]
        assert [finding["unit"] for finding in servers.findings] == ["mcp_server:odd"]
        with pytest.raises(ConfigurationError, match="'odd'"):
            catalog.add_mcp({"odd": wrong, "again": server}, limits=QUICK, strict=True)


def test_two_names_that_would_be_one_take_nothing_from_each_other(tmp_path: Path) -> None:
    with said(tmp_path, "stdio", rows(tool("t"))) as server, rlm.Catalog() as catalog:
        with pytest.warns(RlmWarning, match="as another server"):
            servers = catalog.add_mcp({"a b": server, "a_b": server}, limits=QUICK)
        assert list(servers) == ["a_b"]


def test_a_file_with_one_odd_entry_gives_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_TOKEN", raising=False)
    servers = {"My Slack": good(), "secret": {"command": "x", "env": {"T": "${NO_SUCH_TOKEN}"}}, "files": good()}
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    with pytest.warns(RlmWarning) as caught:
        assert list(rlm.load_mcp_config(file)) == ["My_Slack", "files"]
    assert any("NO_SUCH_TOKEN" in str(warning.message) for warning in caught)
    with pytest.raises(ConfigurationError):
        rlm.load_mcp_config(file, strict=True)


def test_effects_of_a_server_that_is_away_are_no_mistake_and_of_one_that_is_there_are(tmp_path: Path) -> None:
    with said(tmp_path, "stdio", rows(tool("t"))) as server, rlm.Catalog() as catalog:
        both = {"dead": bad("exits"), "s": server}
        with pytest.raises(ConfigurationError, match="s/u"):
            catalog.add_mcp(both, limits=QUICK, tools={"effects": {"s/u": "read"}})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RlmWarning)
            catalog.add_mcp(both, limits=QUICK, tools={"effects": {"dead/u": "read"}})


# -- the SDK ----------------------------------------------------------------------------------------


def test_an_sdk_of_another_version_is_named_with_the_one_that_is_wanted(tmp_path: Path) -> None:
    other = tmp_path / "mcp-1.30.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: mcp\nVersion: 1.30.0\n")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
sys.modules["mcp_types"] = None
import rlm
try:
    rlm.Catalog().add_mcp({{"t": {{"command": "x"}}}})
except rlm.errors.ConfigurationError as problem:
    print(problem.kind, problem.message)
from rlm.cli.doctor import report
print(report()["extras"]["mcp"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    lines = done.stdout.splitlines()
    assert "mcp_missing" in lines[0], done.stderr
    assert "1.30.0 is installed" in lines[0]
    assert SDK_VERSIONS in lines[0]
    assert "'present': False" in lines[1]
    assert "1.30.0 is installed" in lines[1]


def test_the_version_that_is_wanted_is_that_of_the_extra() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert f'mcp = ["mcp{SDK_VERSIONS}"]' in text
