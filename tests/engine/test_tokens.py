"""Foreign Prolog text: the tokenizer beside the reader, and what hostile text does at every door.

``RLM_TOKEN_TEXTS=100000`` tries that many generated texts instead of 4,000; ``RLM_TOKEN_SEED`` other ones.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

import rlm
from rlm.errors import ConfigurationError
from tests.engine import token_texts
from tests.plunit import swipl
from tests.support.bare import FIRST_LINE, atom, bare, sealed

RLM = str(Path(sysconfig.get_path("scripts")) / "rlm")
PROBE = Path(__file__).parent.parent / "prolog" / "token_probe.pl"
TEXTS = int(os.environ.get("RLM_TOKEN_TEXTS", "4000"))
SEED = int(os.environ.get("RLM_TOKEN_SEED", "1"))
BATCH = 4000

CONSTRUCTS = {
    "hexadecimal": "16'FF",
    "hexadecimal with 0x": "0xFF",
    "octal": "0o17",
    "binary": "0b101",
    "base 36": "36'zz",
    "zeros": "00",
    "float": "1.00",
    "NaN": "1.5NaN",
    "infinite": "1.0Inf",
    "rational": "1r3",
    "digit groups": "1 000_000",
    "character": "0'a",
    "quote as a character": "0'''",
    "bracket as a character": "0'(",
    "escape as a character": "0'\\x41\\",
    "backslash as a character": "0'\\\\",
    "atom": "'a'",
    "atom with quotes": "'a''b'",
    "atom with escapes": "'\\x41\\\\''",
    "string": '"\'"',
    "codes": "`'`",
    "comment": "/* ' */1",
    "nested comment": "/* /* ' */ ' */1",
    "dict": "_{a:1}",
    "curly": "{}",
    "operator": "-",
    "variable": "_",
}
"""Each is a whole term, and none of them hides the brackets behind it."""


def brackets(size: int) -> str:
    return "[" * (size // 2) + "]" * (size // 2)


def policy(folder: Path, text: str) -> Path:
    file = folder / "policy.pl"
    file.write_text(text, encoding="utf-8")
    return file


def session(folder: Path, name: str, line: str) -> Path:
    file = folder / f"{name}.rlm"
    file.write_text(sealed(f"{FIRST_LINE}{line}\n"), encoding="utf-8")
    return file


@pytest.mark.timeout(1200)
def test_the_reader_never_goes_deeper_than_the_tokenizer_says(tmp_path: Path) -> None:
    source = random.Random(SEED)
    texts = accepted = read = mixed = 0
    loose: list[str] = []
    for _ in range(0, TEXTS, BATCH):
        batch = [token_texts.text(source) for _ in range(min(BATCH, TEXTS - texts))]
        file = tmp_path / "texts"
        with file.open("w", encoding="utf-8", newline="") as out:
            out.writelines(f"{len(text)}\n{text}\n" for text in batch)
        done = swipl(PROBE, "--", file)
        lines = done.stdout.splitlines()
        assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
        unsound = [(line, batch[int(line.split()[1])]) for line in lines if line.startswith("unsound")]
        assert not unsound
        loose += [line for line in lines if line.startswith("tight") and not line.endswith((" digit", " mixed"))]
        counts = map(int, lines[-1].removeprefix("done ").split())
        texts, accepted, read, mixed = (a + b for a, b in zip((texts, accepted, read, mixed), counts, strict=True))
    assert texts == TEXTS
    assert accepted > texts / 3
    assert read > texts / 10
    assert 0 < mixed < texts / 5  # a third of the texts aim at them
    assert len(loose) <= read / 100, loose[:20]


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_brackets_behind_a_construct_in_a_policy_are_a_finding(tmp_path: Path, construct: str) -> None:
    before = f"veto(tool(x), _, no) :- p({CONSTRUCTS[construct]}, "
    file = policy(tmp_path, f"% one line\n{before}{brackets(40_000)}).\n")
    with pytest.raises(ConfigurationError) as caught:
        rlm.compile(rlm.Catalog([]), "x", policy=rlm.Policy(rules=file))
    (finding,) = caught.value.detail["findings"]
    assert (finding["line"], finding["message"]) == (2, "brackets nested deeper than 100")
    assert finding["column"] == len(before) + 100  # one is open before them
    assert str(file) in caught.value.message
    assert f"line 2, column {finding['column']}: brackets nested deeper than 100" in caught.value.message


@pytest.mark.parametrize("size", [40_000, 4_000_000])
def test_brackets_behind_any_construct_in_a_session_are_an_error_with_a_place(tmp_path: Path, size: int) -> None:
    chosen = CONSTRUCTS.items() if size < 1_000_000 else list(CONSTRUCTS.items())[::9]
    files = [
        session(tmp_path, name.replace(" ", "-"), f"input(text,[{construct},{brackets(size)}]).")
        for name, construct in chosen
    ]
    program = """
import sys
import sysconfig
from pathlib import Path
from rlm.errors import EngineError
from rlm.symbolic.repl import open_session
for file in sys.argv[1:]:
    try:
        open_session(Path(file))
    except EngineError as problem:
        print(problem.message)
"""
    python = subprocess.run(
        [sys.executable, "-c", program, *map(str, files)],
        capture_output=True,
        encoding="utf-8",
        timeout=170,
        check=False,
    )
    goals = ", ".join(
        f"catch(open_session({atom(file)}), E{n}, print_message(error, E{n}))" for n, file in enumerate(files)
    )
    plain = bare(goals)
    assert (python.returncode, plain.returncode) == (0, 0)
    for file, line in zip(files, python.stdout.splitlines(), strict=True):
        assert f"{file}, line 2, column " in line
        assert line.endswith(": brackets nested deeper than 32")
    assert plain.stderr.count("brackets nested deeper than") == len(files)


@pytest.mark.parametrize("size", [40_000, 4_000_000])
def test_rlm_repl_refuses_a_deep_session_with_a_message(tmp_path: Path, size: int) -> None:
    file = session(tmp_path, "deep", f"input(text,[16'FF,{brackets(size)}]).")
    done = subprocess.run(
        [RLM, "repl", "--session", str(file)],
        input="true.\n",
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode > 0, done.returncode
    assert "line 2, column" in done.stderr
    assert "brackets nested deeper than 32" in done.stderr


def test_rlm_repl_refuses_a_deep_query_from_a_pipe_and_answers_the_next(tmp_path: Path) -> None:
    file = session(tmp_path, "good", "floor(300).")
    done = subprocess.run(
        [RLM, "repl", "--session", str(file)],
        input=f"X = [16'FF, {brackets(4_000_000)}].\nX = {'1' * 100_000}.\nX = [1, 'a, b'].\nX = 1",
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "X = [1, 'a, b'].\n")
    assert "brackets nested deeper than 100" in done.stderr
    assert "a number of more than 4,096 characters" in done.stderr


NUMBERS = {
    "decimal": "1" * 2_000_000,
    "hexadecimal": "0x" + "F" * 2_000_000,
    "base 36": "36'" + "z" * 2_000_000,
    "groups": "1" + "_000" * 500_000,
    "groups with spaces": "1" + " 000" * 500_000,
    "groups with comments": "1" + "_/*,*/0" * 300_000,
    "fraction": "1." + "3" * 2_000_000,
}


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_of_two_million_digits_in_a_session_is_refused_at_once(tmp_path: Path, number: str) -> None:
    from rlm.errors import EngineError
    from rlm.symbolic.repl import open_session

    open_session(session(tmp_path, "good", "floor(300)."))  # the engine runs
    file = session(tmp_path, "long", f"input(text,[a,{NUMBERS[number]}]).")
    began = time.process_time()
    with pytest.raises(EngineError, match=r"line 2, column \d+: a number of more than 4,096 characters"):
        open_session(file)
    assert time.process_time() - began < 1


@pytest.mark.parametrize("digits", [2_000, 200_000, 2_000_000])
def test_a_long_number_in_a_policy_is_refused_at_once(tmp_path: Path, digits: int) -> None:
    file = policy(tmp_path, f"veto(tool(x), _, no) :- {'1' * digits} > 2.\n")
    rlm.compile(rlm.Catalog([]), "x")
    began = time.process_time()
    with pytest.raises(ConfigurationError, match=r"column 25: a number of more than 1,000 char|more than 262,144"):
        rlm.compile(rlm.Catalog([]), "x", policy=rlm.Policy(rules=file))
    assert time.process_time() - began < 1


@pytest.mark.parametrize("number", ["1.00", " 00", "[00, 01]", "0.50", "007"])
def test_numbers_with_zeros_are_ordinary_numbers_in_a_policy(tmp_path: Path, number: str) -> None:
    catalog = rlm.Catalog([rlm.Unit("tool:x", content="x")])
    file = policy(tmp_path, f"veto(tool(x), _, no) :- X = {number}, X == {number}.\n")
    assert "tool:x" not in rlm.compile(catalog, "x", policy=rlm.Policy(rules=file)).active


def test_a_session_with_a_line_beyond_all_memory_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "s.rlm"
    file.write_text(sealed(f"{FIRST_LINE}input(text,'{'x' * 17_000_000}').\n"))
    done = bare(f"catch(open_session({atom(file)}), E, (print_message(error, E), halt(7)))")
    assert done.returncode == 7
    assert "line 2: it has more than 16,777,216 bytes" in " ".join(done.stderr.split())


GREEDY = {
    "atoms": "findall(S, (between(1, 300000, I), atom_concat(Y, I, S)), L), L == [].",
    "strings": "d(Y, 30, S), S == a. d(X, 0, X). d(X, N, S) :- N > 0, string_concat(X, X, Z), M is N - 1, d(Z, M, S).",
    "lists": "length(L, 2000000), findall(M, (between(1, 200, _), msort(L, M)), Ms), Ms == Y.",
}
MEASURED = """
import resource, sys
import rlm
catalog = rlm.Catalog([rlm.Unit("tool:x", content="x")])
text = chr(0x5B57) * 8000
rlm.compile(catalog, text)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    rlm.compile(catalog, text, policy=rlm.Policy(rules=sys.argv[1]))
except rlm.errors.RlmError as problem:
    print(problem.kind, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("limit", [None, 400])
@pytest.mark.parametrize("what", GREEDY)
def test_rules_are_bounded_in_memory(tmp_path: Path, what: str, limit: int | None) -> None:
    """With a limit on the address space, in MB, too: Prolog would abort where memory is refused to it."""
    file = policy(tmp_path, f"veto(tool(x), T, no) :- text(T, X), sub_atom(X, 0, 4000, _, Y), {GREEDY[what]}\n")
    command = [sys.executable, "-c", MEASURED, str(file)]
    if limit is not None:
        command = ["/bin/sh", "-c", f'ulimit -v {limit * 1024}; exec "$@"', "sh", *command]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    kind, megabytes = done.stdout.split()
    assert kind == "host_rule_failed"
    assert int(megabytes) < 450
