"""``rlm compile`` and ``rlm explain``: for people, for programs, and how they fail."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import REAL, RLM, SECONDS, Run, environment, error_of
from tests.support.signals import heed_sigint

QUERY = "review what changed in git"


def test_compile_prints_a_table_with_reasons(rlm: Run, tools: Path) -> None:
    printed = rlm("compile", QUERY, "--catalog", tools, "--deny", "tool:git_push").stdout
    assert "\x1b" not in printed
    lines = printed.splitlines()
    assert lines[0].split() == ["unit", "form", "tokens", "why"]
    (diff,) = [line for line in lines if line.startswith("tool:git_diff")]
    assert re.search(r"tool:git_diff +full +\d+  words of the text count \d\.\d\d \(", diff)
    (push,) = [line for line in lines if line.startswith("tool:git_push")]
    assert "the host denied it" in push
    assert re.fullmatch(r"1 of 4 units, \d+ of [\d,]+ tokens, fingerprint [0-9a-f]{12}", lines[-1])
    assert all(line == line.rstrip() for line in lines)


def test_compile_json_is_one_object_with_what_is_promised(rlm: Run, tools: Path) -> None:
    found = json.loads(rlm("compile", QUERY, "-c", tools, "--budget", 500, "--json").stdout)
    assert found["active"] == ["tool:git_diff", "tool:git_push"]
    assert sorted(found["tools"]) == ["git_diff", "git_push"]
    assert found["rejected"] == {}
    assert 0 < found["ledger"]["total"] <= found["ledger"]["limit"] == 500
    assert re.fullmatch("[0-9a-f]{64}", found["fingerprint"])
    assert found["counts"] == {"units": 4, "candidates": 2, "active": 2}
    assert {"select", "pack", "render"} <= set(found["timings_ms"])


def test_every_option_reaches_the_policy(rlm: Run, tools: Path) -> None:
    options = ["--pin", "tool:weather", "--select", "tool:project_search", "--capability", "tool:w*"]
    options += ["--capability", "tool:project_*", "--limit", "1"]
    found = json.loads(rlm("compile", QUERY, "-c", tools, *options, "--json").stdout)
    assert found["active"] == ["tool:weather", "tool:project_search"]
    assert found["rejected"]["tool:git_diff"][0] == {
        "kind": "capability_missing",
        "capability": "tool:git_diff",
    }
    everything = json.loads(rlm("compile", QUERY, "-c", tools, "--mode", "all_tools", "--json").stdout)
    assert sorted(everything["tools"]) == ["git_diff", "git_push", "project_search", "weather"]


def test_several_files_are_one_catalog(rlm: Run, tools: Path, tmp_path: Path) -> None:
    other = tmp_path / "more.json"
    other.write_text('[{"name": "git_log", "description": "What changed in git, commit by commit"}]')
    found = json.loads(rlm("compile", QUERY, "-c", tools, "-c", other, "--json").stdout)
    assert found["counts"]["units"] == 5
    assert "git_log" in found["tools"]


def test_what_is_saved_is_a_session(rlm: Run, tools: Path, tmp_path: Path) -> None:
    file = tmp_path / "s.rlm"
    rlm("compile", QUERY, "-c", tools, "--save", file)
    assert file.read_text(encoding="utf-8").startswith("session(")
    assert file.stat().st_mode & 0o077 == 0


def test_explain_says_why_and_what_would_change_it(rlm: Run, tools: Path) -> None:
    shown = rlm("explain", QUERY, "tool:git_diff", "-c", tools).stdout
    assert shown.startswith("tool:git_diff is active, in its full form:\n  - words of the text count ")
    assert shown.endswith("tool:git_diff is shown already\n")
    denied = json.loads(rlm("explain", QUERY, "tool:git_push", "-c", tools, "--deny", "*push", "--json").stdout)
    assert (denied["state"], denied["reasons"][0]["kind"]) == ("rejected", "denied")
    assert denied["what_if"] == {"unit": "tool:git_push", "changes": [{"undeny": "tool:git_push"}], "blocker": None}
    assert "the host denied it" in denied["text"]


def test_a_terminal_gets_lines_that_fit(tools: Path) -> None:
    for columns in (40, 80, 120):
        printed = in_terminal(["compile", QUERY, "-c", str(tools)], columns)
        assert "\x1b[" in printed
        plain = re.sub(r"\x1b\[[0-9;]*m", "", printed)
        assert max(len(line) for line in plain.splitlines()) <= columns
    assert re.search(r"^tool:git_diff ", plain, re.MULTILINE)


def in_terminal(args: list[str], columns: int) -> str:
    """What the program prints on a terminal of that width."""
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [str(RLM), *args],
        stdin=subprocess.DEVNULL,
        stdout=child,
        stderr=subprocess.PIPE,
        env=environment(COLUMNS=str(columns)),
    )
    os.close(child)
    said = b""
    while True:
        try:
            part = os.read(parent, 65536)
        except OSError:  # the other end is closed: the program has ended
            break
        if not part:
            break
        said += part
    os.close(parent)
    assert process.stderr is not None
    problems = process.stderr.read().decode()
    assert (process.wait(SECONDS), problems) == (0, "")
    process.stderr.close()
    return said.decode().replace("\r\n", "\n")


PRINTING = (
    ["compile", QUERY, "-c", "{tools}", "--json"],
    ["compile", QUERY, "-c", "{tools}"],
    ["explain", QUERY, "tool:weather", "-c", "{tools}"],
    ["repl", QUERY, "-c", "{tools}"],
    ["catalog", "check", "{tools}"],
    ["skills", "list", "--json"],
    ["doctor"],
    ["demo", "--no-answer"],
    ["--help"],
    ["--version"],
)


def printing_to(stdout: int, args: list[str], tools: Path) -> tuple[int, bytes]:
    """Exit code and stderr of a command that prints; ``repl`` is asked something."""
    done = subprocess.run(
        [str(RLM), *(arg.format(tools=tools) for arg in args)],
        input=b"active(U).\n" * 3,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=SECONDS,
        env=environment(),
        check=False,
    )
    return done.returncode, done.stderr


def test_output_is_buffered_here_as_it_is_elsewhere() -> None:
    """Else what is left for the end is nothing, and the tests below see nothing."""
    assert "PYTHONUNBUFFERED" not in environment()


@pytest.mark.parametrize("args", PRINTING, ids=" ".join)
def test_a_reader_that_goes_away_is_no_crash(tools: Path, args: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = printing_to(writer, args, tools)
    os.close(writer)
    assert ended == (1, b"")


@pytest.mark.parametrize("args", [PRINTING[place] for place in (0, 1, 3, -1)], ids=" ".join)
def test_a_full_disk_is_told_in_one_line(tools: Path, args: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        code, said = printing_to(full.fileno(), args, tools)
    (line,) = said.strip().splitlines()
    assert code == 1
    assert b"No space left on device" in line


@pytest.mark.parametrize("stdout", ["/dev/full", "/dev/null"])
def test_where_an_error_cannot_be_told_the_exit_code_says_it(tools: Path, stdout: str) -> None:
    pins = ["--pin", "tool:nosuch"] if stdout == "/dev/null" else []
    with Path("/dev/full").open("wb") as full, Path(stdout).open("wb") as out:
        done = subprocess.run(
            [str(RLM), "compile", "branch", "-c", str(tools), "--json", *pins],
            stdout=out,
            stderr=full,
            timeout=SECONDS,
            env=environment(),
            check=False,
        )
    assert done.returncode == 1


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_is_no_crash(tools: Path, closed: str) -> None:
    for options in ("--json", "--pin tool:nosuch"):
        command = f"{RLM} compile branch -c {tools} {options} {closed}"
        done = subprocess.run(
            ["sh", "-c", command], capture_output=True, timeout=SECONDS, env=environment(), check=False
        )
        assert done.returncode == (options != "--json"), done.stderr
        assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("git_dif", "; did you mean 'tool:git_diff'?"),
        ("git_diff", "; did you mean 'tool:git_diff'?"),
        ("mail:nobody", ""),
    ],
)
def test_a_denial_that_does_nothing_is_told(rlm: Run, tools: Path, pattern: str, hint: str) -> None:
    warning = f"denied names {pattern!r}, which is no unit of the catalog{hint}"
    options = ["-c", tools, "--deny", pattern, "--json"]
    for args in (["compile", QUERY], ["explain", QUERY, "tool:git_push"]):
        printed = rlm(*args, *options, told=f"rlm: warning: {warning}\n").stdout
        assert printed.startswith("{")
    assert json.loads(rlm("compile", QUERY, *options, told=f"rlm: warning: {warning}\n").stdout)["warnings"] == [
        warning
    ]


def test_a_denial_that_does_something_or_may_later_is_not_told(rlm: Run, tools: Path) -> None:
    rlm(
        "compile", QUERY, "-c", tools, "--deny", "tool:git_diff", "--deny", "mcp_tool:later/*", "--capability", "tool:*"
    )


def test_one_is_one(rlm: Run, tmp_path: Path) -> None:
    file = tmp_path / "tool.jsonl"
    file.write_text('{"name": "git_diff", "description": "What changed in git"}\n')
    assert re.search(r"^1 of 1 unit, ", rlm("compile", QUERY, "-c", file).stdout, re.MULTILINE)
    assert rlm("catalog", "check", file).stdout == f"{file}: 1 good unit\n"


def test_a_file_that_cannot_be_read_has_no_line(rlm: Run, tmp_path: Path) -> None:
    file = tmp_path / "tools.jsonl"
    file.symlink_to("/dev/zero")
    assert rlm("catalog", "check", file, code=1).stdout.startswith(
        f"error: {file}: it is a device, not a regular file\n"
    )
    assert (
        error_of(rlm("compile", QUERY, "-c", file, code=1))["message"] == f"{file}: it is a device, not a regular file"
    )


def test_letters_that_stdout_cannot_write_are_escaped(rlm: Run, tmp_path: Path) -> None:
    file = tmp_path / "tools.jsonl"
    file.write_text('{"name": "wetter", "description": "Wetter für die Straße"}\n', encoding="utf-8")
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    rlm("compile", "Straße", "-c", file, **ascii_only)
    printed = rlm("explain", "Straße für", "tool:wetter", "-c", file, "--json", **ascii_only).stdout
    assert json.loads(printed)["words"]


def test_an_error_is_json_whatever_stderr_can_write(rlm: Run, tools: Path) -> None:
    for encoding in ("ascii", "latin-1", "utf-8"):
        done = rlm("explain", QUERY, "tool:Straße\x9b変", "-c", tools, code=1, PYTHONIOENCODING=encoding)
        assert error_of(done)["detail"] == {"unit": "tool:Straße\x9b変"}
        assert "\x9b" not in done.stderr


@pytest.mark.parametrize(("mode", "meant"), [("all", "all_tools"), ("al_tools", "all_tools"), ("compilde", "compiled")])
def test_p19_an_unknown_mode_is_a_mistake_of_usage(rlm: Run, tools: Path, mode: str, meant: str) -> None:
    done = rlm("compile", QUERY, "-c", tools, "--mode", mode, "--json", code=2)
    assert done.stdout == ""
    assert f"{mode!r} is none of compiled, all_tools; did you mean {meant!r}?" in done.stderr


@pytest.mark.parametrize(
    ("args", "phase", "kind", "hint"),
    [
        (["--pin", "tool:git_dif"], "catalog", "unknown_unit", "did you mean 'tool:git_diff'"),
        (["--pin", "git_dif"], "catalog", "unknown_unit", "did you mean 'tool:git_diff'"),
        (["--pin", "tool:git_diff", "--budget", "5"], "budget", "over_budget", "tool:git_diff"),
        (["--pin", "tool:git_diff", "--deny", "tool:git*"], "compile", "pinned_blocked", "tool:git_diff"),
        (["--save", "session.txt"], "configuration", "wrong_suffix", ".rlm"),
        (["--save", "/nowhere/s.rlm"], "configuration", "cannot_write", "/nowhere/s.rlm"),
    ],
)
def test_what_fails_is_one_json_object_on_stderr(
    rlm: Run, tools: Path, args: list[str], phase: str, kind: str, hint: str
) -> None:
    error = error_of(rlm("compile", QUERY, "-c", tools, *args, code=1))
    assert (error["phase"], error["kind"]) == (phase, kind)
    assert hint in error["message"]


def test_an_unknown_unit_cannot_be_explained(rlm: Run, tools: Path) -> None:
    error = error_of(rlm("explain", QUERY, "tool:gitdiff", "-c", tools, code=1))
    assert error["detail"] == {"unit": "tool:gitdiff"}
    assert "did you mean 'tool:git_diff'" in error["message"]


def test_a_missing_prolog_is_told_with_the_command_that_installs_it(rlm: Run, tools: Path) -> None:
    error = error_of(rlm("compile", QUERY, "-c", tools, code=1, RLM_SWIPL="/nowhere/swipl"))
    assert (error["phase"], error["kind"]) == ("engine", "prolog_missing")
    assert "/nowhere/swipl" in error["message"]


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (["comple", "x"], "compile"),
        (["compile", "x", "--catalog", "{tools}", "--budgt", "5"], "--budget"),
        (["compile", "x"], "--catalog"),
        (["compile"], "query"),
        (["compile", "x", "-c", "/nowhere.jsonl"], "/nowhere.jsonl"),
        (["compile", "x", "-c", "{tools}", "--budget", "many"], "--budget"),
        (["compile", "x", "-c", "{tools}", "--budget", "-1"], "--budget"),
        (["explain", "x", "-c", "{tools}"], "unit"),
        (["ask", "x", "-c", "{tools}", "--tools", "txt"], "did you mean 'text'?"),
        (["ask", "x", "-c", "{tools}", "--tools", "json"], "native, text"),
        (["ask", "x", "-c", "{tools}", "--time-limit", "0"], "--time-limit"),
        (["ask", "x", "-c", "{tools}", "--time-limit", "soon"], "'soon'"),
        (["ask", "x", "-c", "{tools}", "--model", "opnai:x"], "did you mean 'openai'?"),
        (["demo", "--model", "gpt-5"], "did you mean 'openai:gpt-5'?"),
        (["behaviour", "--model", "opnai:x"], "--model"),
        (["run", "x", "--model", "opnai:x"], "--model"),
        (["repl"], "--session"),
        (["repl", "x"], "--catalog"),
        (["repl", "x", "--session", "{tools}"], "--session"),
        (["catalog", "chek", "{tools}"], "check"),
    ],
)
def test_mistakes_of_usage_end_with_2_and_a_hint(rlm: Run, tools: Path, args: list[str], hint: str) -> None:
    done = rlm(*(arg.format(tools=tools) for arg in args), code=2)
    assert done.stdout == ""
    assert "Usage: rlm" in done.stderr
    assert hint in done.stderr.partition("Error")[2]


def test_nothing_at_all_shows_the_commands(rlm: Run) -> None:
    done = rlm(code=2)
    for command in ("compile", "explain", "ask", "repl", "doctor", "demo", "catalog"):
        assert re.search(rf"^  {command} ", done.stdout + done.stderr, re.MULTILINE)


def test_ctrl_c_ends_quietly() -> None:
    process = subprocess.Popen(
        [str(RLM), "run", "x", "--model", "http://127.0.0.1:9/v1#none", "--context", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        preexec_fn=heed_sigint,
    )
    assert process.stdin is not None
    process.stdin.write(b"x" * 4_000_000)  # returns when the program has begun to read: no pipe holds so much
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in err


@pytest.mark.skipif(not REAL.is_file(), reason="the data set docker_registry is not on this machine")
def test_755_real_tools_within_a_budget(rlm: Run) -> None:
    query = "Create a new GitLab merge request and add a comment to an issue"
    found = json.loads(rlm("compile", query, "--catalog", REAL, "--budget", 4000, "--json").stdout)
    assert found["counts"]["units"] == 755
    assert found["ledger"]["total"] <= 4000
    assert 0 < len(found["tools"]) <= 40
    assert len(found["active"]) == found["counts"]["active"]
    assert {id.partition(":")[2] for id in found["active"]} >= set(found["tools"])
