"""Files, lists and folders of a first hour that are not what they should be, and what is said of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rlm
from rlm.errors import ConfigurationError, RlmError, RlmWarning
from rlm.providers import ScriptedProvider

GOOD = {"name": "a", "description": "Do a thing"}

FILES = {
    "a comma too many": ("t.json", f"[{json.dumps(GOOD)},]", "broken JSON: .*: take away the comma before ']'$"),
    "single quotes": ("t.json", "[{'name': 'a'}]", "line 1, column 3: .*: write double quotes, not single ones$"),
    "a line that is cut": (
        "t.jsonl",
        '{"name": "a"',
        "line 1, column 13: .*: it ends too early$",
    ),
    "a module": (
        "t.py",
        "import rlm\n",
        r"t.py: it is no JSON; functions of a module are added by add_tools\(\[function\]\)",
    ),
    "a skill": ("SKILL.md", "---\nname: a\n---\n", "SKILL.md: it is no JSON; a SKILL.md is read by add_skills"),
    "YAML": ("t.yaml", "- name: a\n", "t.yaml: it is no JSON; write the tools as JSON"),
    "questions": ("q.jsonl", '{"query": "x", "tools": []}\n' * 2, "field 'query': .*Write: rlm eval CATALOG QUERIES"),
    "a type of Python": (
        "t.jsonl",
        json.dumps({**GOOD, "parameters": {"type": "object", "properties": {"p": {"type": "int"}}}}),
        "'int' is none of array, boolean, .*, string; did you mean 'integer'",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_a_file_that_is_no_catalog_is_told_what_to_mend(tmp_path: Path, case: str) -> None:
    name, text, words = FILES[case]
    (tmp_path / name).write_text(text)
    with pytest.raises(RlmError, match=words) as caught:
        rlm.Catalog().add_file(tmp_path / name)
    assert caught.value.kind == "bad_file"


@pytest.mark.parametrize("text", ['{"tools": []}', "[]", ""])
def test_a_file_without_a_tool_is_no_error_and_is_warned_of(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.warns(RlmWarning, match="t.json: there is no tool in it"):
        assert rlm.Catalog().add_file(tmp_path / "t.json").ids == ()


def test_a_tool_without_a_description_and_a_schema_without_a_keyword_are_noted() -> None:
    rows = [{"name": "a"}, {**GOOD, "name": "b", "parameters": {"city": "string"}}, GOOD | {"name": "c"}]
    found = rlm.Catalog().add_tool_list(rows)
    assert found.ids == ("tool:a", "tool:b", "tool:c")
    assert [(row["level"], row["kind"], row["line"], row["field"]) for row in found.findings] == [
        ("note", "no_description", 1, "description"),
        ("note", "no_keyword", 2, "parameters"),
    ]
    assert '{"type": "object", "properties": {"city": {"type": "string"}}}' in found.findings[1]["message"]


@rlm.tool(effect="read")
def clock() -> str:
    """Tell the time."""
    return "noon"


CALLS: dict[str, tuple[Callable[[rlm.Catalog], Any], str]] = {
    "functions as JSON": (lambda c: c.add_tool_list([clock]), "not a Tool; functions are added by add_tools"),  # type: ignore[list-item]
    "one tool as a list": (lambda c: c.add_tool_list(GOOD), "; for one tool write .tool."),  # type: ignore[arg-type]
    "a file as a list": (lambda c: c.add_tool_list("t.jsonl"), "; a file is read by add_file"),  # type: ignore[arg-type]
    "a misspelt option": (
        lambda c: c.add_tool_list([GOOD], srtict=False),
        "takes from the host; did you mean 'strict'",
    ),
    "options of servers": (lambda c: c.add_mcp({"a": {"command": "b"}}, tool={}), "; did you mean 'tools'?"),
    "an effect of a unit": (lambda c: c.add_tools([clock], effect="read"), "write @rlm.tool.effect=..."),
    "a file of servers": (lambda c: c.add_mcp("mcp.json"), "; a file is read by rlm.load_mcp_config.path."),  # type: ignore[arg-type]
    "a command alone": (lambda c: c.add_mcp({"a": "server"}), "is wanted, not str: write {'command': ...}"),
    "a command with arguments": (
        lambda c: c.add_mcp({"a": {"command": "no-such-server --zone UTC"}}),
        "was not found; write one program as the command, and its arguments in 'args'",
    ),
    "a command that is not there": (
        lambda c: c.add_mcp({"a": {"command": "no-such-server"}}),
        "no-such-server was not found; install it, or write its whole path",
    ),
    "an address that nothing listens at": (
        lambda c: c.add_mcp({"a": {"url": "http://127.0.0.1:9/mcp"}}),
        "http://127.0.0.1:9.*: ConnectError: All connection attempts failed",
    ),
    "no folder of skills": (lambda c: c.add_skills("skils"), "there is no file or folder 'skils' in /"),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_call_that_takes_something_else_names_the_right_one(case: str) -> None:
    call, words = CALLS[case]
    with rlm.Catalog() as catalog, pytest.raises(RlmError, match=words):
        call(catalog)


def test_a_broken_file_of_servers_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"mcpServers": {\n  "time": {"command": "x"},\n}}')
    with pytest.raises(ConfigurationError, match=r"mcp.json, line 3, column 1: "):
        rlm.load_mcp_config(tmp_path / "mcp.json")


def test_a_library_of_skills_is_shown_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "SKILL.md").write_text("---\nname: notes\ndescription: Take notes.\n---\nDo it.\n")
    assert repr(rlm.Catalog().add_skills(tmp_path)) == f"<Library {str(tmp_path)!r}: 1 skill, 0 refused>"


@pytest.mark.parametrize("line", [{"steps": []}, None, 3])
def test_a_line_of_a_script_that_is_no_reply_is_named(line: Any) -> None:
    words = "reply 2 of the script is a text, a ProviderReply or an exception, not "
    with pytest.raises(ConfigurationError, match=words):
        ScriptedProvider(["x", line])
    result = rlm.complete("q", model=ScriptedProvider(lambda request: line))
    assert result.error is not None
    assert result.error["kind"] == "invalid_script"


def test_a_script_that_ends_says_what_was_asked_last() -> None:
    result = rlm.complete("q", model=ScriptedProvider(["It is 3."]))
    assert result.error is not None
    assert result.error["message"] == (
        "the script has no reply for request 2, whose last message begins '# Refused: no valid plan'"
    )
