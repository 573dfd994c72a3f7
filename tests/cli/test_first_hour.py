"""The command line of a new user: files with odd lines, bare names, many findings."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import typer

from rlm.cli import outcome
from tests.cli.conftest import Run, error_of

GOOD = '{"name": "git_diff", "description": "Show changes in git"}\n'


def test_a_command_uses_the_good_lines_and_says_how_many_it_does_not(rlm: Run, tmp_path: Path) -> None:
    file = tmp_path / "tools.jsonl"
    file.write_text(GOOD + '{"name": "x", "paramters": {}}\n{"name"\n')
    said = (
        f"rlm: not used: {file}, line 2, field 'paramters': no such field; did you mean 'parameters'?; "
        f"2 findings in all, see: rlm catalog check {file}\n"
    )
    done = rlm("explain", "show git changes", "git_diff", "--catalog", str(file), told=said)
    assert "tool:git_diff is active" in done.stdout


def test_a_bare_name_that_is_misspelt_gets_a_hint(rlm: Run, tmp_path: Path) -> None:
    file = tmp_path / "tools.jsonl"
    file.write_text(GOOD)
    done = rlm("explain", "show git changes", "git_dif", "--catalog", str(file), code=1)
    assert "did you mean 'tool:git_diff'" in error_of(done)["message"]


def test_of_many_findings_the_first_twenty_are_told_and_all_with_json(rlm: Run, tmp_path: Path) -> None:
    file = tmp_path / "tools.jsonl"
    file.write_text('{"name": 1}\n' * 70)
    arguments = ("compile", "show git changes", "--catalog", str(file))
    detail = error_of(rlm(*arguments, code=1))["detail"]
    assert len(detail["findings"]) == 20
    assert detail["other_findings"] == 50
    assert len(error_of(rlm(*arguments, "--json", code=1))["detail"]["findings"]) == 70


def test_on_a_terminal_findings_are_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stderr = Terminal()
    monkeypatch.setattr("sys.stderr", stderr)
    row = {
        "level": "error",
        "kind": "wrong_type",
        "file": "t",
        "line": 3,
        "column": 0,
        "field": "name",
        "message": "odd",
    }
    error = {"phase": "catalog", "kind": "bad_file", "message": "t: odd", "detail": {"findings": [row] * 25}}
    assert isinstance(outcome.failed(error), typer.Exit)
    lines = stderr.getvalue().splitlines()
    assert lines[1].split() == ["level", "line", "field", "what"]
    assert lines[2].split() == ["error", "3", "name", "odd"]
    assert lines[-1] == "5 more; --json prints all"
    assert len(lines) == 23
    stderr.truncate(0)
    stderr.seek(0)
    outcome.failed(error, whole=True)
    assert len(json.loads(stderr.getvalue().splitlines()[-1])["error"]["detail"]["findings"]) == 25
