"""``rlm repl``: the Prolog prompt over one compile, typed by a person and read from a pipe."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import RLM, SECONDS, Run, environment, error_of

QUERY = "review what changed in git"


# -- a pipe -----------------------------------------------------------------------------------------


def test_queries_from_a_pipe_are_answered_with_all_their_answers(rlm: Run, tools: Path) -> None:
    queries = """\
?- why(tool(git_diff)).
active(U).
why_not(tool(weather)), X = 'a b'.
member(_X, [1, 2]), fail.
"""
    printed = rlm("repl", QUERY, "-c", tools, stdin=queries).stdout
    assert printed.startswith("tool:git_diff is active, in its full form:\n  - words of the text count ")
    assert "U = tool(git_diff).\nU = tool(git_push).\n" in printed
    assert "tool:weather would be chosen: select tool:weather\n" in printed
    assert printed.endswith("X = 'a b'.\nfalse.\n")


def test_help_is_ours(rlm: Run, tools: Path) -> None:
    printed = rlm("repl", QUERY, "-c", tools, stdin="help.\n").stdout
    assert "?- why(U)." in printed


def test_python_is_alive(rlm: Run, tools: Path) -> None:
    queries = """\
py_call(sys:version_info:major, V).
py_call('rlm.symbolic.engine':engine():call(ping, 7), P).
"""
    assert rlm("repl", QUERY, "-c", tools, stdin=queries).stdout == "V = 3.\nP = 7.\n"


def test_mistakes_are_told_and_the_next_query_is_answered(tools: Path) -> None:
    done = piped(tools, "foo(.\nnosuch(1).\nwhy(tool(nosuch)).\nX = 1.\n")
    assert (done.returncode, done.stdout) == (0, "false.\nX = 1.\n")
    assert "Syntax error" in done.stderr
    assert "nosuch/1" in done.stderr
    assert "\nno unit tool:nosuch\n" in done.stderr


def test_a_query_without_its_full_stop_is_told_so(tools: Path) -> None:
    assert "a query ends with a full stop, as in: active(U)." in piped(tools, "why(x)").stderr


def test_a_misspelt_unit_is_one_line_with_the_right_one_every_time(tools: Path) -> None:
    done = piped(tools, "why(tool(git_dif)).\n" * 2 + "what_if(weathr).\nwhy(git_diff).\n")
    assert done.returncode == 0
    assert done.stdout.startswith("false.\nfalse.\nfalse.\ntool:git_diff is active")
    assert done.stderr.splitlines() == [
        *["no unit tool:git_dif; did you mean tool(git_diff)?"] * 2,
        "no unit weathr; did you mean tool(weather)?",
    ]


@pytest.mark.parametrize(
    ("queries", "code"),
    [
        ("", 0),
        ("halt.\nformat('not reached').\n", 0),
        ("?- halt.\n", 0),
        ("X = 1, halt.\n", 0),
        ("halt(3).\n", 3),
        ("why(tool(git_diff)", 0),
        ("\x00\x01.\n", 0),
    ],
)
def test_the_end_is_clean(tools: Path, queries: str, code: int) -> None:
    done = piped(tools, queries)
    assert (done.returncode, done.stdout) == (code, "")
    assert "Traceback" not in done.stderr


def test_no_file_is_left_behind(tools: Path, tmp_path: Path) -> None:
    done = piped(tools, "active(U), !.\nX = 1, halt.\n", TMPDIR=str(tmp_path))
    assert done.returncode == 0
    assert list(tmp_path.iterdir()) == []


def piped(tools: Path, queries: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(RLM), "repl", QUERY, "-c", str(tools)],
        input=queries,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        env=environment(**env),
        check=False,
    )


# -- a saved session --------------------------------------------------------------------------------


def test_a_saved_session_opens(rlm: Run, tools: Path, tmp_path: Path) -> None:
    file = tmp_path / "s.rlm"
    rlm("compile", QUERY, "-c", tools, "--deny", "tool:git_push", "--save", file)
    explained = json.loads(
        rlm("explain", QUERY, "tool:git_push", "-c", tools, "--deny", "tool:git_push", "--json").stdout
    )
    printed = rlm("repl", "--session", file, stdin="why(tool(git_push)).\n").stdout
    assert printed == "\n".join(
        ["tool:git_push is rejected:", *(f"  - {sentence}" for sentence in explained["text"]), "true.", ""]
    )


def test_what_is_no_session_is_code_1(rlm: Run, tmp_path: Path) -> None:
    file = tmp_path / "s.rlm"
    file.write_text(":- initialization(format('executed')).\n")
    done = rlm("repl", "--session", file, code=1)
    error = error_of(done)
    assert (error["phase"], error["kind"]) == ("engine", "domain_error")
    assert done.stdout == ""


# -- a person ---------------------------------------------------------------------------------------


class Terminal:
    """The program on a terminal: ``until`` waits for what it prints, ``type`` types.

    A key that is pressed while the terminal changes its mode is lost, as it is for a person; so whatever is typed
    with ``insisting_on`` is typed again when nothing happens.
    """

    def __init__(self, tools: Path) -> None:
        self.said = ""
        self._seen = 0
        command = [str(RLM), "repl", QUERY, "-c", str(tools)]
        pid, self._fd = pty.fork()
        if pid == 0:
            os.execve(command[0], command, environment(COLUMNS="120"))
        self._pid = pid
        self.code: int | None = None

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def until(self, pattern: str, *, insisting_on: str = "") -> str:
        """Wait for a pattern behind what was waited for before; return what was printed up to its end."""
        deadline = time.monotonic() + SECONDS
        while (found := re.compile(pattern).search(self.said, self._seen)) is None:
            assert self._read(deadline, insisting_on), f"{pattern!r} did not come: {self.said[self._seen :]!r}"
        start, self._seen = self._seen, found.end()
        return self.said[start : found.end()]

    def end(self, *, insisting_on: str = "") -> int:
        """Wait until the program has ended; its exit code."""
        deadline = time.monotonic() + SECONDS
        while self._read(deadline, insisting_on):
            pass
        if self.code is None:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self.code

    def close(self) -> None:
        if self.code is None:
            os.kill(self._pid, 9)
            os.waitpid(self._pid, 0)
        os.close(self._fd)

    def _read(self, deadline: float, again: str) -> bool:
        """Read what there is; False at the end."""
        while not select.select([self._fd], [], [], 2.0)[0]:
            assert time.monotonic() < deadline, f"silence after {self.said!r}"
            self.type(again)
        try:
            part = os.read(self._fd, 65536)
        except OSError:  # the other end is closed
            return False
        self.said += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", part.decode(errors="replace"))
        return bool(part)


CTRL_C, CTRL_D = "\x03", "\x04"
PROMPT = r"\n\?- "


def test_one_is_one(tmp_path: Path) -> None:
    file = tmp_path / "tools.jsonl"
    file.write_text('{"name": "git_diff", "description": "What changed in git"}\n')
    terminal = Terminal(file)
    terminal.until(PROMPT)
    terminal.close()
    assert "1 unit is shown. Type help." in terminal.said


@pytest.fixture
def terminal(tools: Path) -> Iterator[Terminal]:
    terminal = Terminal(tools)
    terminal.until(PROMPT)
    yield terminal
    terminal.close()


def test_a_person_is_greeted_asks_and_leaves_with_ctrl_d(terminal: Terminal) -> None:
    assert "2 units are shown. Type help." in terminal.said
    terminal.type("why(tool(git_diff)).\n")
    terminal.until("tool:git_diff is active, in its full form:\n  - words of the text")
    terminal.until(PROMPT)
    assert terminal.end(insisting_on=CTRL_D) == 0


def test_answers_come_one_by_one(terminal: Terminal) -> None:
    terminal.type("active(U).\n")
    terminal.until(r"U = tool\(git_diff\) ")
    terminal.type(";")
    terminal.until(r"U = tool\(git_push\)")
    terminal.until(PROMPT)
    terminal.type("?- help.\n")
    terminal.until("what would change it")
    terminal.until(PROMPT)
    terminal.type("halt.\n")
    assert terminal.end() == 0


def test_a_mistake_is_one_line_and_no_tracer_comes(terminal: Terminal) -> None:
    for _ in range(2):
        terminal.type("X is foo + 1.\n")
        said = terminal.until(PROMPT)
        assert said.count("ERROR") == 1
        assert "is not a function" in said
    terminal.type("why(tool(gti_diff)).\n")
    terminal.until(r"no unit tool:gti_diff; did you mean tool\(git_diff\)\?")
    terminal.until(PROMPT)


def test_halt_inside_a_query_ends_with_its_code(terminal: Terminal) -> None:
    terminal.type("X = 1, halt(4).\n")
    assert terminal.end() == 4


def test_ctrl_c_ends_a_query_and_not_the_prompt(terminal: Terminal) -> None:
    terminal.type("format('running~n'), repeat, fail.\n")
    terminal.until(r"\nrunning\n")
    terminal.type(CTRL_C)
    terminal.until(r"\?- ")
    terminal.type(CTRL_C)
    terminal.until(r"\nX = 42", insisting_on="X is 6*7.\n")
    terminal.until(PROMPT)
    assert terminal.end(insisting_on=CTRL_D) == 0
