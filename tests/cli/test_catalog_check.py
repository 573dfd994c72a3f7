"""``rlm catalog check``: everything that is wrong with a file, with line and field; and nothing of it is registered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import DEMO, Run, error_of

GOOD = '{"name": "a", "description": "Does a"}'

# what the file holds; level, kind, line and field of what is found
BROKEN: dict[str, tuple[bytes, list[tuple[str, str, int, str]]]] = {
    "not UTF-8": (GOOD.encode() + b'\n{"name": "b\xff"}\n', [("error", "not_utf8", 2, "")]),
    "broken JSON": (f'{GOOD}\n\n{{"name": "b",}}\n'.encode(), [("error", "broken_json", 3, "")]),
    "unknown field": (b'{"name": "a", "descripton": "x"}\n', [("error", "unknown_field", 1, "descripton")]),
    "wrong types": (
        b'{"name": "a", "description": 5, "parameters": []}\n[1]\n{"name": 7}\n',
        [
            ("error", "wrong_type", 1, "description"),
            ("error", "wrong_type", 1, "parameters"),
            ("error", "wrong_type", 2, ""),
            ("error", "wrong_type", 3, "name"),
        ],
    ),
    "no name": (f'{GOOD}\n{{"description": "x"}}\n'.encode(), [("error", "missing_field", 2, "name")]),
    "duplicate id": (
        f'{GOOD}\n{{"name": "a", "description": "Another"}}\n'.encode(),
        [("error", "duplicate_unit", 2, "name")],
    ),
    "the host's fields": (
        b'{"name": "a", "trust": "host", "activation": "always", "mandatory": true}\n',
        [("error", "host_only_field", 1, field) for field in ("trust", "activation", "mandatory")],
    ),
    "a field twice": (b'{"name": "a", "name": "b"}\n', [("error", "broken_json", 1, "")]),
    "a bad id": (b'{"name": "a\\u0007b"}\n', [("error", "invalid_field", 1, "id")]),
    "a list": (
        b'[{"name": "a"}, {"name": "b", "colour": 1}]',
        [("note", "no_description", 1, "[0].description"), ("error", "unknown_field", 2, "[1].colour")],
    ),
    "a list that breaks": (b'[\n{"name": "a"},\n{"name": }\n]', [("error", "broken_json", 3, "")]),
    "no tools": (b'{"tools": 5}', [("error", "wrong_type", 1, "tools")]),
    "long text": (
        f'{{"name": "a", "description": "{"x" * 3000}"}}\n'.encode(),
        [("note", "description_cut", 1, ""), ("note", "long_text", 1, "description")],
    ),
    "oversize text": (
        f'{{"name": "a", "description": "{"x" * 70_000}"}}\n'.encode(),
        [("error", "invalid_field", 1, "description")],
    ),
    "a deep line": (b"[" * 200_000 + b"\n", [("error", "too_deep", 1, "")]),
    "nothing": (b"", []),
}


@pytest.mark.parametrize("case", BROKEN)
def test_findings_name_line_and_field(rlm: Run, tmp_path: Path, case: str) -> None:
    content, expected = BROKEN[case]
    file = tmp_path / "tools.jsonl"
    file.write_bytes(content)
    failed = any(level == "error" for level, *_ in expected)
    done = rlm("catalog", "check", file, "--json", code=int(failed))
    report = json.loads(done.stdout)
    assert [(row["level"], row["kind"], row["line"], row["field"]) for row in report["findings"]] == expected
    assert {row["file"] for row in report["findings"]} <= {str(file)}
    assert all(row["message"] for row in report["findings"])
    if failed:
        error = error_of(done)
        assert (error["phase"], error["kind"], error["detail"]["file"]) == ("catalog", "bad_file", str(file))


def test_people_read_a_line_for_each_finding(rlm: Run, tmp_path: Path) -> None:
    file = tmp_path / "tools.jsonl"
    file.write_text(f'{GOOD}\n{{"name": "b", "trsut": 1}}\n{{"name": \n')
    done = rlm("catalog", "check", file, code=1)
    unknown, broken, total = done.stdout.splitlines()
    assert unknown.startswith(f"error: {file}:2, field trsut: ")
    assert broken.startswith(f"error: {file}:3:")
    assert "broken JSON" in broken
    assert total == f"{file}: 1 good unit"


def test_a_file_without_a_good_line_is_an_error_that_says_where(rlm: Run, tmp_path: Path) -> None:
    file = tmp_path / "tools.jsonl"
    file.write_bytes(b'\n{"name": "b", "activation": "always"}\n{"name": "c\xff"}\n')
    error = error_of(rlm("compile", "a", "-c", file, code=1))
    assert (error["phase"], error["kind"]) == ("catalog", "bad_file")
    assert str(file) in error["message"]
    assert {finding["line"] for finding in error["detail"]["findings"]} == {2, 3}


def test_a_good_file_is_good(rlm: Run) -> None:
    assert rlm("catalog", "check", DEMO).stdout == f"{DEMO}: 143 good units\n"


def test_the_catalog_of_the_demo_is_well_made() -> None:
    tools: list[dict[str, Any]] = [json.loads(line) for line in DEMO.read_text(encoding="utf-8").splitlines()]
    assert len({tool["name"] for tool in tools}) == len(tools) > 100
    assert len({tool["namespace"] for tool in tools}) >= 15
    for tool in tools:
        assert set(tool) == {"name", "namespace", "description", "parameters"}
        assert tool["description"].endswith(".")
        properties = tool["parameters"]["properties"]
        assert 1 <= len(properties) <= 5
        assert set(tool["parameters"].get("required", [])) <= set(properties)
        assert all(schema["description"].endswith(".") for schema in properties.values()), tool["name"]


def test_a_file_commands_no_terminal(rlm: Run, tmp_path: Path) -> None:
    file = tmp_path / "tools.jsonl"
    evil = r"\u001b]0;owned\u0007 \u009b31m \u202e"
    file.write_text(
        f'{{"name": "a", "{evil}": 1}}\n{{"name": "{evil}"}}\n{{"name": "b", "annotations": {{"x": 1e999}}}}\n'
    )
    printed = rlm("catalog", "check", file, code=1)
    for said in (printed.stdout, printed.stderr, rlm("catalog", "check", file, "--json", code=1).stdout):
        assert all(char.isprintable() or char == "\n" for char in said), said
    assert len(printed.stdout.splitlines()) == 4
