"""``rlm run``: what arrives at a server, what a person sees on a terminal, what a program reads, and how it ends."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import RLM, SECONDS, Done, environment
from tests.runtime.actors import Cast, child, final, model, plan, var
from tests.support.loopback import Loopback, Request, fails, stalls
from tests.support.signals import heed_sigint

TOOLS = '''
import rlm

CALLS = []


@rlm.tool(effect="read")
def count_lines(text: str) -> int:
    """Count the lines of a text."""
    return len(text.splitlines())


@rlm.tool(effect="write")
def save_note(path: str, old: str, new: str) -> str:
    """Save a note in a file."""
    with open(path, "w") as file:
        file.write(new)
    return "saved"


text = "no tool"
'''

COUNT = {"op": "tool", "name": "count_lines", "args": {"text": "a\nb"}, "bind": "lines"}
SAVE = {
    "op": "tool",
    "name": "save_note",
    "args": {"path": "note.txt", "old": "one\ntwo", "new": "one\nthree"},
    "bind": "saved",
}
COUNTING = [plan(COUNT, final(var("lines")))]
SAVING = [plan(SAVE, final(var("saved"))), plan(final("it may not be saved"))]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a module of tools and a text."""
    (tmp_path / "mytools.py").write_text(TOOLS)
    (tmp_path / "log.txt").write_text("one ERROR\ntwo\nthree ERROR\n" * 100 + "the last line")
    return tmp_path


def words(server: Loopback, *args: object) -> list[str]:
    return [str(RLM), "run", *map(str, args), "--model", f"{server.url}#m"]


def run(server: Loopback, home: Path, *args: object, code: int = 0, stdin: str | None = None) -> Done:
    done = subprocess.run(
        words(server, *args),
        cwd=home,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        env=environment(),
        check=False,
    )
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done


def error_of(done: Done) -> dict[str, Any]:
    """The last line of standard error is the error."""
    error: dict[str, Any] = json.loads(done.stderr.splitlines()[-1])["error"]
    assert {"phase", "kind", "message", "detail"} <= set(error)
    return error


# -- a pipe -----------------------------------------------------------------------------------------


def test_the_answer_goes_to_stdout_and_the_way_there_to_stderr_line_by_line(server: Loopback, home: Path) -> None:
    steps = plan(COUNT, child("a part", "sub"), model("a leaf", "said"), final([var("lines"), var("sub"), var("said")]))
    server.script(Cast(planner=[steps], child=[plan(final("c"))], leaf="l"))
    done = run(server, home, "count the lines of a text", "--tool", "mytools:count_lines")
    assert json.loads(done.stdout) == [2, "c", "l"]
    lines = done.stderr.splitlines()
    assert all(line.startswith("rlm: ") for line in lines)
    assert "rlm: planner 0 begins at depth 0" in lines
    assert "rlm: 0.1:steps[0]: tool:count_lines: ok" in lines
    assert "rlm: child 0.1:steps[1] begins at depth 1" in lines
    assert lines[-1].startswith("rlm: ok: 3 requests, ")
    assert [
        word for word in ("planner 0.1", "child 0.1:steps[1].1", "leaf 0.1:steps[2]") if word not in done.stderr
    ] == []


def test_quiet_says_nothing_and_json_prints_one_object(server: Loopback, home: Path) -> None:
    server.script(Cast(planner=COUNTING))
    done = run(server, home, "count the lines of a text", "--tool", "mytools:count_lines", "--json", "-q")
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert (found["type"], found["status"], found["value"], found["usage"]["tool_calls"]) == ("completion", "ok", 2, 1)
    assert "tool:count_lines" in found["prompt_projection"]["active_units"]


def test_files_are_a_context_and_a_large_one_stands_in_no_request(server: Loopback, home: Path) -> None:
    count = {"op": "context", "handle": "context", "action": "count", "args": {"literal": "ERROR"}, "bind": "n"}
    server.script(Cast(planner=[plan(count, final(var("n", "count")))]))
    assert run(server, home, "how many errors?", "--context", "lo*.txt").stdout == "200\n"
    (seen,) = server.requests
    assert b"the last line" in seen.body  # so small a text stands whole in the request
    assert b"log.txt" in seen.body
    (home / "log.txt").write_text("one ERROR\ntwo\nthree ERROR\n" * 2_000 + "the last line")
    server.script(Cast(planner=[plan(count, final(var("n", "count")))]))
    assert run(server, home, "how many errors?", "--context", "lo*.txt").stdout == "4000\n"
    assert server.requests[-1].body.count(b"three ERROR") < 50  # of a large one an overview
    server.script(Cast(planner=[plan(count, final(var("n", "count")))]))
    assert run(server, home, "how many errors?", "--context", "-", stdin="ERROR, and ERROR").stdout == "2\n"


def test_every_option_reaches_the_run(server: Loopback, home: Path) -> None:
    (home / "AGENTS.md").write_text("Say please.\n")
    (home / "tools.jsonl").write_text(
        '{"name": "count_lines", "description": "Zähle die Zeilen."}\n{"name": "other", "description": "Zähle."}\n'
    )
    (home / "skills/notes").mkdir(parents=True)
    (home / "skills/notes/SKILL.md").write_text("---\nname: notes\ndescription: Zähle Zeilen.\n---\nBy heart.\n")
    server.script(Cast(planner=[plan(model("x", "y"), final(var("y")))], leaf="leaf"))
    done = run(
        server, home, "Zähle die Zeilen", "--tool", "mytools:count_lines", "--tool", "mytools:save_note",
        "--catalog", "tools.jsonl", "--skills", "skills", "--capability", "tool:count_lines", "--leaf-model",
        f"{server.url}#leaf", "--budget", "max_model_calls=5", "--budget", "max_total_tokens=60_000",
        "--instruction", "Answer in German.", "--instruction-file", "AGENTS.md", "--mode", "all_tools",
    )  # fmt: skip
    assert done.stdout == "leaf\n"
    assert "1 units of --catalog are left out" in done.stderr
    root, leaf = server.requests
    assert (root.json["model"], leaf.json["model"]) == ("m", "leaf")
    assert "Zähle die Zeilen." in root.text
    assert "By heart." in root.text
    assert "save_note" not in root.text
    assert "model calls: 4" in root.text
    for request in (root, leaf):
        assert "Answer in German." in request.system_text
        assert "Say please." in request.system_text


@pytest.mark.parametrize(
    ("options", "kind", "hint"),
    [
        (["--tool", "mytool:count_lines"], "unknown_module", "did you mean 'mytools'?"),
        (["--tool", "mytools:count_line"], "unknown_function", "did you mean 'count_lines'?"),
        (["--tool", "mytools:text"], "not_a_tool", "'no tool'"),
        (["--tool", "mytools"], "invalid_address", "module:function"),
        (["--tool", "broken:x"], "module_failed", "ZeroDivisionError"),
        (["--tool", "importing:x"], "module_failed", "nowhere_at_all"),
        (["--context", "nothing.txt"], "unreadable_file", "nothing.txt"),
        (["--trace", "run.json"], "wrong_suffix", "*.jsonl"),
    ],
)
def test_mistakes_are_told_before_anything_is_sent(
    server: Loopback, home: Path, options: list[str], kind: str, hint: str
) -> None:
    (home / "broken.py").write_text("1 / 0\n")
    (home / "importing.py").write_text("import nowhere_at_all\n")
    error = error_of(run(server, home, "x", *options, code=1))
    assert (error["kind"], server.requests) == (kind, [])
    assert hint in error["message"]


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (["--budget", "time_limit"], "field=number"),
        (["--budget", "time_limit=x"], "field=number"),
        (["--budget", "time_limit=-1"], "'time_limit'"),
        (["--budget", "time_limt=3"], "did you mean 'time_limit'?"),
        (["--allow", "wrte"], "did you mean 'write'?"),
        (["--leaf-model", "opnai:x"], "did you mean 'openai'?"),
        (["--leaf-model", "http://127.0.0.1:9/v1"], "#MODEL"),
    ],
)
def test_mistakes_of_usage_are_code_2(server: Loopback, home: Path, options: list[str], hint: str) -> None:
    done = run(server, home, "x", *options, code=2)
    assert not done.stdout
    assert hint in " ".join(done.stderr.split())
    assert server.requests == []


def test_a_failed_run_is_code_1_with_the_error_last(server: Loopback, home: Path) -> None:
    server.script(lambda _: fails(401, "who are you"))
    done = run(server, home, "x", code=1)
    assert (done.stdout, error_of(done)["status"]) == ("", 401)
    done = run(server, home, "x", "--json", code=1)
    found = json.loads(done.stdout)
    assert (found["type"], found["status"], found["error"]) == ("completion_error", "failed", error_of(done))


def test_a_limit_gives_what_there_is_and_code_1(server: Loopback, home: Path) -> None:
    answers = iter(["the first half", stalls()])
    steps = plan(model("a", "a"), model("b", "b"), final(var("b")))
    server.script(Cast(planner=[steps], leaf=lambda _: next(answers)))
    done = run(server, home, "x", "--budget", "time_limit=6", code=1)
    assert (done.stdout, error_of(done)["kind"]) == ("the first half\n", "timeout")


def test_ctrl_c_gives_what_there_is(server: Loopback, home: Path) -> None:
    answers = iter(["the first half", stalls()])
    steps = plan(model("a", "a"), model("b", "b"), final(var("b")))
    server.script(Cast(planner=[steps], leaf=lambda _: next(answers)))
    process = subprocess.Popen(
        words(server, "x", "--trace", "run.jsonl"),
        cwd=home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
        preexec_fn=heed_sigint,
    )  # fmt: skip
    server.wait_for_requests(3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (1, "the first half\n")
    assert json.loads(err.splitlines()[-1])["error"]["kind"] == "cancelled"
    assert "Traceback" not in err
    server.wait_for_no_connections()
    assert '"event":"end"' in (home / "run.jsonl").read_text()


def test_an_effect_that_nobody_can_be_asked_about_is_refused(server: Loopback, home: Path) -> None:
    server.script(Cast(planner=SAVING))
    done = run(server, home, "save a note in a file", "--tool", "mytools:save_note")
    assert done.stdout == "it may not be saved\n"
    assert not (home / "note.txt").exists()
    assert "requires approval (approve_diff)" in server.requests[1].text


def test_an_effect_that_is_allowed_is_done_in_a_process_of_its_own(server: Loopback, home: Path) -> None:
    server.script(Cast(planner=SAVING))
    done = run(server, home, "save a note in a file", "--tool", "mytools:save_note", "--allow", "write")
    assert done.stdout == "saved\n"
    assert (home / "note.txt").read_text() == "one\nthree"


EVIL = "\x1b]0;owned\x07 \x9b31m \u202e"


def test_a_model_commands_no_terminal(server: Loopback, home: Path) -> None:
    server.script(Cast(planner=[EVIL, plan(final(EVIL))]))
    done = run(server, home, "x", "--trace", "run.jsonl")
    view = subprocess.run(
        [str(RLM), "trace", "view", "run.jsonl"],
        cwd=home,
        capture_output=True,
        encoding="utf-8",
        env=environment(),
        check=True,
    )
    for said in (done.stdout, done.stderr, view.stdout):
        assert all(char.isprintable() or char in "\n\t" for char in said), said


# -- a terminal -------------------------------------------------------------------------------------


class Terminal:
    """A program on a terminal of its own: standard input and error; output goes to a pipe."""

    def __init__(self, command: list[str], folder: Path) -> None:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 120, 0, 0))
        self._screen = ours
        self.seen = ""
        self.process = subprocess.Popen(
            command, cwd=folder, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, env=environment(),
            preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0), start_new_session=True,
        )  # fmt: skip
        os.close(theirs)

    def wait_for(self, text: str) -> None:
        """Read until this is there."""
        until = time.monotonic() + SECONDS
        while text not in self.plain:
            assert time.monotonic() < until, f"{text!r} never came:\n{self.plain}"
            if select.select([self._screen], [], [], 1)[0]:
                assert self._read(), f"{text!r} never came:\n{self.plain}"

    def type(self, text: str) -> None:
        os.write(self._screen, text.encode())

    def end(self) -> tuple[int, str]:
        """The exit code and what was printed."""
        assert self.process.stdout is not None
        while self._read():
            pass
        out = self.process.stdout.read().decode()
        os.close(self._screen)
        return self.process.wait(SECONDS), out

    @property
    def plain(self) -> str:
        """What was written, without what a terminal obeys."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.seen)

    def _read(self) -> bool:
        try:
            said = os.read(self._screen, 65536)
        except OSError:  # the other side is closed
            return False
        self.seen += said.decode("utf-8", "replace")
        return bool(said)


def test_on_a_terminal_the_tree_lives(server: Loopback, home: Path) -> None:
    steps = plan(COUNT, child("a part", "sub"), model("a leaf", "said"), final(var("said")))
    seen = threading.Event()

    def leaf(_: Request) -> str:
        assert seen.wait(SECONDS)
        return "leaf's word"

    server.script(Cast(planner=["no plan", steps], child=[plan(final("c"))], leaf=leaf))
    shown = Terminal(words(server, "count the lines", "--tool", "mytools:count_lines"), home)
    shown.wait_for("… request 0.1:steps[2] (leaf)")
    shown.wait_for(" s left")
    seen.set()
    code, out = shown.end()
    assert (code, out) == (0, "leaf's word\n")
    last = shown.plain[shown.plain.rindex("✓ run") :]
    for part in (
        "request 0.1 (planner)",
        "refused: the reply holds no plan",
        "✓ tool -> lines, tool:count_lines: ok",
        "child 0.1:steps[1]",
        "(leaf)",
        "tokens in",
        "4 requests",
    ):
        assert part in last, f"{part}\n{last}"
    assert re.search(r"\d tokens in, \d+ out, \d+ s left", shown.plain)


@pytest.mark.parametrize(("typed", "saved", "answer"), [("y", True, "saved"), ("n", False, "it may not be saved")])
def test_on_a_terminal_an_effect_is_asked_about_with_its_change(
    server: Loopback, home: Path, typed: str, saved: bool, answer: str
) -> None:
    server.script(Cast(planner=SAVING))
    asked = Terminal(words(server, "save a note in a file", "--tool", "mytools:save_note"), home)
    asked.wait_for("[y]es, [n]o")
    for part in ("tool:save_note wants to write for planner 0 (approve_diff)", "-two", "+three", "path: note.txt"):
        assert part in asked.plain
    asked.type("what?\n")
    asked.wait_for("? what?")
    asked.type(f"{typed}\n")
    assert asked.end() == (0, f"{answer}\n")
    assert (home / "note.txt").exists() == saved


def test_ctrl_c_at_a_question_ends_the_run(server: Loopback, home: Path) -> None:
    server.script(Cast(planner=SAVING))
    asked = Terminal(words(server, "save a note in a file", "--tool", "mytools:save_note"), home)
    asked.wait_for("[y]es, [n]o")
    asked.type("\x03")
    assert asked.end() == (1, "")
    assert '"kind": "cancelled"' in asked.plain
    assert not (home / "note.txt").exists()
