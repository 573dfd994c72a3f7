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


# -- names and arguments ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("why-not", "q", "git_diff"), "No such command 'why-not'. Did you mean 'rlm explain QUERY UNIT'?"),
        (("help",), "Did you mean 'rlm --help'?"),
        (("complie",), "Did you mean 'compile'?"),
        (
            ("compile", "q", "tools.jsonl"),
            "(tools.jsonl). A QUERY is one argument, in quotes; files are named by options",
        ),
        (("repl", "x.rlm"), "a session is opened by --session: rlm repl --session x.rlm"),
        (("compile", "q", "-c", "FILE", "--mode", "ALL_TOOLS"), "did you mean 'all_tools'?"),
        (("explain", "git_diff", "show my changes", "-c", "FILE"), "rlm explain QUERY UNIT"),
        (("run", "q", "--model", "local", "--tool", "json.dumps"), "did you mean 'json:dumps'?"),
    ],
)
def test_a_first_mistake_on_the_command_line_is_answered(
    rlm: Run, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    file = tmp_path / "tools.jsonl"
    file.write_text(GOOD)
    done = rlm(*(str(file) if each == "FILE" else each for each in arguments), code=1 if "--tool" in arguments else 2)
    assert words in " ".join(done.stderr.split())


def test_a_list_of_tools_is_told_to_be_named_one_by_one(
    rlm: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_tools.py").write_text("def one() -> int:\n    'One.'\n    return 1\n\nALL = [one]\n")
    monkeypatch.chdir(tmp_path)
    message = error_of(rlm("run", "q", "--model", "local", "--tool", "my_tools:ALL", code=1))["message"]
    assert message == "--tool 'my_tools:ALL' is a list; name each function by itself: --tool my_tools:one ..."


def test_a_grant_that_matches_nothing_is_told_once_in_words_of_the_command_line(rlm: Run, tmp_path: Path) -> None:
    file = tmp_path / "tools.jsonl"
    file.write_text(GOOD)
    told = (
        "rlm: warning: nothing is granted: no capability of the catalog matches git_*; did you mean 'tool:git_*'?; "
        "write --capability 'tool:*', or name the ones that you mean\n"
    )
    assert "Nothing is shown" in rlm("compile", "git", "-c", file, "--capability", "git_*", told=told).stdout


def test_a_misspelt_field_of_a_question_is_named(rlm: Run, tmp_path: Path) -> None:
    (tmp_path / "tools.jsonl").write_text(GOOD)
    (tmp_path / "q.jsonl").write_text('{"query": "x", "tool": ["git_diff"]}\n')
    error = error_of(rlm("eval", tmp_path / "tools.jsonl", tmp_path / "q.jsonl", code=1))
    assert error["message"].endswith("; no such field 'tool'; did you mean 'tools'?")


def test_where_no_relation_is_proposed_that_is_said(rlm: Run, tmp_path: Path) -> None:
    (tmp_path / "tools.jsonl").write_text(GOOD)
    told = "rlm: no relation is proposed; --traces DIR looks at what runs called together\n"
    assert rlm("suggest-relations", tmp_path / "tools.jsonl", told=told).stdout == ""


# -- the Prolog prompt ------------------------------------------------------------------------------


def test_ids_without_quotes_are_units_and_what_is_none_is_told(rlm: Run, tmp_path: Path) -> None:
    (tmp_path / "tools.jsonl").write_text(GOOD)
    saved = tmp_path / "view.rlm"
    rlm("compile", "show git changes", "-c", tmp_path / "tools.jsonl", "--save", saved)
    done = rlm("repl", "--session", saved, stdin="why(tool:git_diff).\n", told="")
    assert done.stdout.startswith("tool:git_diff is active")
    told = (
        "a unit is wanted, such as tool(git_diff), not a variable; a name with a capital letter is written in quotes: "
        "'Git_diff'\n"
        "the name of a file is expected, in quotes: open_session('review.rlm').\n"
    )
    rlm("repl", "--session", saved, stdin="why(Git_Diff).\nopen_session(review.rlm).\n", told=told)
