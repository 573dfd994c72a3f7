"""The code blocks of README and docs, run in order, page by page.

Every page gets an empty folder, in which ``prolog``, ``bench``, ``bootstrap`` and ``.ci`` of the checkout appear:

============  =====================================================================================================
``python``    runs; all of a page share one namespace. What it prints stands in the block that follows.
``console``   lines with ``$`` are run by a shell, with the real ``rlm`` and ``swipl``; what stands below is the
              output. A line ``...`` stands for any lines. To save time, a plain ``rlm`` command runs in this
              process where it is not the page's first. What sets up or takes minutes is not run: ``./bootstrap``
              must know the job, a benchmark its options.
``prolog``    with ``?-``: asked in a bare ``swipl prolog/rlm.pl``; else a host's rules, which must load.
``json``      must parse.
``text``      shown as it is.
============  =====================================================================================================

``title="name"`` after the language puts the block into a file of that name first. Any other language is refused.

``python -m tests.docs.pages [PAGE...]`` writes the outputs anew; look at the difference before you believe it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlm.symbolic import locate

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")))
BORROWED = ("prolog", "bench", "bootstrap", ".ci", "rlm")
SECONDS = 120
MARK = "@@ next @@"

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>[\w+-]*) *(?P<rest>.*)$")
_PLAIN = re.compile(r'rlm (?!repl)(?P<words>[^|<>&;$]+?)(?: > (?P<file>\S+))?(?P<told> \|\| echo "exit code \$\?")?$')
_TIME = re.compile(r"\b[0-9][0-9,.]* ms\b")
_TITLE = re.compile(r'title="([^"]+)"')


class Untrue(AssertionError):
    """A block that does not do what its page shows."""


@dataclass
class Block:
    """One fenced block: language, file title, text, and the page's lines from ``first`` to before ``last``."""

    page: str
    language: str
    title: str | None
    text: str
    first: int
    last: int
    indent: str = ""
    written: str | None = field(default=None, compare=False)

    @property
    def place(self) -> str:
        return f"{self.page}:{self.first}"


def blocks(page: str) -> list[Block]:
    """All fenced blocks of a page, in order."""
    found: list[Block] = []
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        opening = _FENCE.match(lines[number])
        number += 1
        if opening is None:
            continue
        first = number
        while not re.fullmatch(rf" *{opening['ticks']} *", lines[number]):
            number += 1
        indent = opening["indent"]
        text = "\n".join(line.removeprefix(indent) for line in lines[first:number])
        title = _TITLE.search(opening["rest"])
        found.append(Block(page, opening["language"], title[1] if title else None, text, first, number, indent))
        number += 1
    return found


def run_page(page: str, *, write: bool = False) -> None:
    """Run all blocks of a page.

    Raises:
        Untrue: naming the page and line, with what was shown and what came.
    """
    found = blocks(page)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name in BORROWED:
            os.symlink(ROOT / name, name)
        namespace: dict[str, Any] = {"__name__": "__docs__"}
        for block, after in zip(found, [*found[1:], None][: len(found)], strict=True):
            if block.title is not None:
                Path(block.title).parent.mkdir(parents=True, exist_ok=True)
                Path(block.title).write_text(block.text + "\n", encoding="utf-8")
            run = RUNNERS.get(block.language)
            if run is None:
                raise Untrue(f"{block.place}: a block in {block.language or 'no language'!r} cannot be run")
            run(block, after, namespace, write)
    if write:
        _rewrite(page, found)


def _rewrite(page: str, found: list[Block]) -> None:
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    for block in reversed(found):
        if block.written is not None:
            lines[block.first : block.last] = [f"{block.indent}{line}".rstrip() for line in block.written.splitlines()]
    (ROOT / page).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _compare(block: Block, shown: str, came: str, write: bool) -> None:
    if _matches(shown.rstrip().splitlines(), came.rstrip().splitlines()):
        return
    if not write:
        raise Untrue(f"{block.place} shows\n{shown.rstrip()}\nbut it is\n{came.rstrip()}")
    block.written = came.rstrip()


def _matches(shown: list[str], came: list[str]) -> bool:
    """Whether the lines are the same, times apart; a line ``...`` stands for any lines."""
    if "..." not in shown:
        return [_timeless(line) for line in shown] == [_timeless(line) for line in came]
    gap = shown.index("...")
    if not _matches(shown[:gap], came[:gap]):
        return False
    return any(_matches(shown[gap + 1 :], came[start:]) for start in range(gap, len(came) + 1))


def _timeless(line: str) -> str:
    return _TIME.sub("N ms", line.rstrip())


# -- languages --------------------------------------------------------------------------------------


def python(block: Block, after: Block | None, namespace: dict[str, Any], write: bool) -> None:
    """Run the block; what it prints is what the next block shows."""
    printed = io.StringIO()
    code = compile("\n" * block.first + block.text, block.page, "exec", dont_inherit=True)
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    if printed.getvalue():
        if after is None or after.language not in ("text", "json"):
            raise Untrue(f"{block.place} prints what the page does not show:\n{printed.getvalue()}")
        _compare(after, after.text, printed.getvalue(), write)


def console(block: Block, _after: Block | None, namespace: dict[str, Any], write: bool) -> None:
    """Run each command of the block; output that is not shown is not compared."""
    said: list[str] = []
    for command, shown in _steps(block, "$ "):
        came = _ran(block, command, first=not namespace.setdefault("__rlm__", False))
        namespace["__rlm__"] |= command.startswith("rlm ")
        same = came is None or not shown or _matches(shown, came.rstrip().splitlines())
        said += [f"$ {command}", *(shown if same else [str(came).rstrip()])]
    _compare(block, block.text, "\n".join(said), write)


def _steps(block: Block, prompt: str) -> list[tuple[str, list[str]]]:
    steps: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith(prompt):
            steps.append((line.removeprefix(prompt), []))
        elif steps and steps[-1][0].endswith("\\") and not steps[-1][1]:
            steps[-1] = (f"{steps[-1][0]}\n{line}", [])
        elif steps:
            steps[-1][1].append(line)
        elif line.strip():
            raise Untrue(f"{block.place}: {line!r} stands before the first {prompt.strip()}")
    return [(command, [line for line in shown if line.strip()] and _trimmed(shown)) for command, shown in steps]


def _trimmed(lines: list[str]) -> list[str]:
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return lines


def _ran(block: Block, command: str, *, first: bool) -> str | None:
    """What a command prints; None for one that is only looked at."""
    plain = _PLAIN.match(command)
    if plain and not first:
        return _in_process(block, command, plain)
    words = command.split()
    if words[0] == "./bootstrap" and words[1:2] != ["check"]:
        _known(block, ["./bootstrap", "--help"], [f"./bootstrap {job}" for job in words[1:2]])
        return None
    if words[0] == ".ci/run":
        if not os.access(".ci/run", os.X_OK):
            raise Untrue(f"{block.place}: .ci/run is no program")
        return None
    if words[0] == "python" and words[1].startswith("bench/"):
        options = [word for word in words[2:] if word.startswith("--")]
        _known(block, [sys.executable, words[1], "--help"], options)
        return None
    done = _shell(["bash", "-eu", "-o", "pipefail", "-c", command])
    if done.returncode != 0:
        raise Untrue(f"{block.place}: {command!r} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def _in_process(block: Block, command: str, plain: re.Match[str]) -> str:
    """As the shell would, without its start: output to a file, the exit code told."""
    from rlm.cli.app import app

    printed = io.StringIO()
    code: Any = 0
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            app(shlex.split(plain["words"]), prog_name="rlm")
        except SystemExit as end:
            code = end.code or 0
    said = printed.getvalue()
    if plain["told"]:
        said += f"exit code {code}\n" if code else ""
    elif code:
        raise Untrue(f"{block.place}: {command!r} ended with {code}:\n{said}")
    if plain["file"]:
        Path(plain["file"]).write_text(said, encoding="utf-8")
        said = ""
    return said


def _known(block: Block, command: list[str], words: list[str]) -> None:
    told = _shell(command)
    for word in words:
        if told.returncode != 0 or word not in told.stdout:
            raise Untrue(f"{block.place}: {' '.join(command)} does not know {word!r}:\n{told.stdout}")


def _shell(command: list[str], given: str = "") -> subprocess.CompletedProcess[str]:
    swipl = locate.find().swipl
    path = f"{Path(sys.executable).parent}:{swipl.parent}:{os.environ.get('PATH', '')}"
    return subprocess.run(
        command,
        input=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
        env={**os.environ, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"},
    )


def prolog(block: Block, _after: Block | None, _namespace: dict[str, Any], write: bool) -> None:
    """Ask the queries of the block, or load its rules."""
    if block.text.lstrip().startswith("?- "):
        _asked(block, write)
        return
    from rlm.compiler.rules import load_rules

    file = Path(block.title or "untitled.pl")
    file.write_text(block.text + "\n", encoding="utf-8")
    load_rules(file)


def _asked(block: Block, write: bool) -> None:
    """Ask the real toplevel, its input from a pipe.

    Where there may be further answers it waits, for the ``;`` that the page shows, or for the empty line that ends
    every query here; it does not echo them.
    """
    steps = _steps(block, "?- ")
    given = "".join(
        f"{query}\n" + ";\n" * sum(line.endswith(" ;") for line in shown) + f"\nwrite('{MARK}'), nl.\n"
        for query, shown in steps
    )
    program = ["swipl", "-q", "-f", "none", "prolog/rlm.pl"]
    told = _shell(program, given).stdout
    answers = [_answer(answer) for answer in told.split(f"{MARK}\ntrue.")][:-1]
    if len(answers) != len(steps):
        raise Untrue(f"{block.place}: {len(steps)} queries, {len(answers)} answers:\n{told}")
    said = [
        shown if _flat(shown) == _flat(answer) else answer for (_, shown), answer in zip(steps, answers, strict=True)
    ]
    whole = "\n\n".join("\n".join([f"?- {query}", *lines]) for (query, _), lines in zip(steps, said, strict=True))
    _compare(block, block.text, whole, write)


def _flat(lines: list[str]) -> str:
    return " ".join(" ".join(lines).replace(" ;", "").split())


def _answer(printed: str) -> list[str]:
    """The lines of an answer, ended by the full stop that the toplevel writes when it is told to stop."""
    lines = _trimmed(printed.strip("\n").splitlines())
    if lines and not lines[-1].rstrip().endswith("."):
        lines[-1] = f"{lines[-1].rstrip()}."
    return lines


def json_value(block: Block, _after: Block | None, _namespace: dict[str, Any], _write: bool) -> None:
    """Parse the block, line by line where it is JSON Lines."""
    lines = block.text.splitlines() if (block.title or "").endswith(".jsonl") else [block.text]
    for line in lines:
        try:
            json.loads(line)
        except ValueError as problem:
            raise Untrue(f"{block.place}: {problem}") from None


def text(_block: Block, _after: Block | None, _namespace: dict[str, Any], _write: bool) -> None:
    """Nothing to run."""


Runner = Callable[[Block, "Block | None", dict[str, Any], bool], None]
RUNNERS: dict[str, Runner] = {
    "python": python,
    "console": console,
    "prolog": prolog,
    "json": json_value,
    "text": text,
}


def main(pages: list[str]) -> None:
    """Write the outputs of pages anew."""
    for page in pages or PAGES:
        print(page, file=sys.stderr)
        try:
            run_page(page, write=True)
        except Untrue as problem:
            print(problem, file=sys.stderr)


def links(page: str) -> Iterator[tuple[int, str]]:
    """``(line, target)`` of every link of a page's Markdown, blocks left out."""
    inside = False
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
        if _FENCE.match(line) or re.fullmatch(r" *`{3,} *", line):
            inside = not inside
        elif not inside:
            for match in re.finditer(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
                yield number, match[1]


if __name__ == "__main__":
    main(sys.argv[1:])
