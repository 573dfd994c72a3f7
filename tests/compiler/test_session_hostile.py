"""Files that only look like a session: refused with their line, and nothing in them is ever run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.bare import FIRST_LINE, atom, bare, sealed

MANY = 1_000_000
DEEP = {
    "list": f"{'[' * MANY}{']' * MANY}",
    "term": f"{'f(' * MANY}x{')' * MANY}",
    "pair of brackets": f"{'(' * MANY}x{')' * MANY}",
    "set": f"{'{' * MANY}x{'}' * MANY}",
    "list behind a quote": f"0'',{'[' * MANY}{']' * MANY}",
    "list behind a comment": f"/* ' */{'[' * MANY}{']' * MANY}",
    "list behind a quoted quote": f"'\\'',{'[' * MANY}{']' * MANY}",
    "chain of prefixes": f"{'- ' * MANY}x",
    "chain of operators": f"{'x:' * MANY}x",
}

# what follows the first line; what the refusal must name
HOSTILE = {
    "a directive": (":- shell('touch MARK').\n", "2"),
    "an initialization": (":- initialization(shell('touch MARK')).\n", "2"),
    "a query": ("?- shell('touch MARK').\n", "2"),
    "a clause": ("active(a,full,1,[]) :- shell('touch MARK').\n", "2"),
    "a call as data": ("unit('tool:a',shell('touch MARK')).\n", "2"),
    "a call inside a list": ("unit('tool:a',[1,[shell('touch MARK')]]).\n", "2"),
    "a dict that would be evaluated": ("unit('tool:a',_{a:1}.put(shell('touch MARK'))).\n", "2"),
    "a module's goal": ("user:unit('tool:a',[]).\n", "2"),
    "an unknown term": ("floor(300).\nassertz(foo).\n", "3"),
    "a second beginning": (FIRST_LINE, "2"),
    "another arity": ("unit('tool:a').\n", "2"),
    "an atom": ("halt.\n", "2"),
    "a variable": ("X.\n", "2"),
    "a variable inside": ("unit('tool:a',[X]).\n", "2"),
    "an operator of its own": (":- op(700,xfx,===>).\n", "2"),
    "an operator that is not there": ("unit('tool:a',a===>b).\n", "2"),
    "a broken term": ("unit('tool:a',[1,2).\n", "2"),
    "no end": ("unit('tool:a',[1,2])", "2"),
    "a partial list": ("unit('tool:a',[1|2]).\n", "2"),
    "a cycle": ("@(unit('tool:a',X),[X=[X]]).\n", "2"),
    "a deep list": (f"unit('tool:a',{'[' * 40}{']' * 40}).\n", "2"),
    **{f"a very deep {what}": (f"unit('tool:a',{text}).\n", "2") for what, text in DEEP.items()},
    "two terms in a line": ("floor(300). halt.\n", "2"),
    "a term over two lines": ("unit('tool:a',\n[]).\n", "2"),
    "control characters in an id": ("unit('tool:\\x1b\\[31ma',[]).\n", "2"),
    "a C1 control character in an id": ("active('tool:\\x9b\\31ma',full,1,[]).\n", "2"),
    "an id that turns the line round": ("ranked('tool:\\x202e\\a',1).\n", "2"),
    "a term expansion": ("term_expansion(a,b).\n", "2"),
    "an include": (":- include('/etc/passwd').\n", "2"),
    "an encoding": (":- encoding(octet).\n", "2"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_is_not_in_the_grammar_is_refused_and_never_run(tmp_path: Path, case: str) -> None:
    text, line = HOSTILE[case]
    mark, file = tmp_path / "executed", tmp_path / "s.rlm"
    file.write_text(sealed(FIRST_LINE + text.replace("MARK", str(mark))))
    done = bare(f"catch(open_session({atom(file)}), E, (print_message(error, E), halt(7)))", "halt(8)")
    assert done.returncode == 7, f"exit {done.returncode}\n{done.stderr[-2000:]}"
    assert not mark.exists()
    assert done.stdout == ""
    if line:
        assert re.search(rf"line\({line}\)|:{line}:\d+|, line {line}\b", done.stderr), done.stderr[-2000:]


def test_depth_does_not_end_a_process_that_reads_in_a_thread_of_python(tmp_path: Path) -> None:
    """Nothing catches the end of such a thread's stack: ``rlm repl --session`` reads in one."""
    files = []
    for number, text in enumerate(DEEP.values()):
        files.append(tmp_path / f"{number}.rlm")
        files[-1].write_text(sealed(f"{FIRST_LINE}unit('tool:a',{text}).\n"))
    program = """
import sys
from pathlib import Path
from rlm.errors import EngineError
from rlm.symbolic.repl import open_session
for file in sys.argv[1:]:
    try:
        open_session(Path(file))
    except EngineError as problem:
        print(problem.kind)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, files)],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["domain_error"] * len(files)


@pytest.mark.parametrize("kind", ["pipe", "directory", "device", "missing", "sparse"])
def test_what_is_no_regular_file_is_refused_unread(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "s.rlm"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "directory":
        file.mkdir()
    elif kind == "device":
        file.symlink_to("/dev/zero")
    elif kind == "sparse":
        with file.open("wb") as made:
            made.truncate(1 << 40)
    done = bare(f"catch(open_session({atom(file)}), error(_, _), halt(7))", "halt(8)")
    assert (done.returncode, done.stdout) == (7, "")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("s.pl", FIRST_LINE),
        ("s.rlm.pl", FIRST_LINE),
        ("s", FIRST_LINE),
        ("empty.rlm", ""),
        ("late.rlm", sealed(f"floor(300).\n{FIRST_LINE}")),
        ("twice.rlm", sealed(f"{FIRST_LINE}{FIRST_LINE}")),
        ("more.rlm", sealed(FIRST_LINE) + "floor(300).\n"),
        ("future.rlm", "session(4,'f','english').\n"),
        ("binary.rlm", "\x00\x01\x02"),
    ],
)
def test_what_is_no_session_is_refused(tmp_path: Path, name: str, content: str) -> None:
    file = tmp_path / name
    file.write_text(content)
    done = bare(f"catch(open_session({atom(file)}), error(_, _), halt(7))", "halt(8)")
    assert (done.returncode, done.stdout) == (7, "")


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "s.rlm"
    with file.open("wb") as hole:
        hole.truncate(300 * 1024 * 1024)
    done = bare(f"catch(open_session({atom(file)}), error(E, _), (print(E), halt(7)))")
    assert done.returncode == 7
    assert "size(314572800)" in done.stdout


@pytest.mark.parametrize(
    "lines",
    [
        "active('no id at all',full,1,[]).\n",
        "unit('tool:a',[1,2,3]).\nactive('tool:a',full,1,[]).\n",
        "unit('tool:a',5).\nrejected('tool:a',[[[kind,denied]]]).\n",
        "unit('tool:a',[]).\nactive('tool:a',full,1,[[[kind,shell]]]).\n",
        "input(capabilities,5).\nunit('tool:a',[]).\n",
        "input(rules,'/etc/passwd').\nunit('tool:a',[]).\n",
    ],
)
def test_nonsense_inside_the_grammar_is_an_error_when_it_is_asked(tmp_path: Path, lines: str) -> None:
    file = tmp_path / "s.rlm"
    file.write_text(sealed(FIRST_LINE + lines))
    goals = ("active(_)", "why(tool(a))", "what_if(tool(a))", "explained(tool(a), _, _)")
    for goal in goals:
        done = bare(f"open_session({atom(file)})", f"catch(ignore({goal}), error(_, _), true)", "halt(5)")
        assert done.returncode == 5, done.stderr
