"""A session file that was cut or changed anywhere: known when it is opened, at its line, and never a raw error later."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

import rlm
from rlm.errors import EngineError, RlmError
from rlm.symbolic.repl import open_session
from tests.support.bare import asked, atom, bare, sealed

KINDS = {"domain_error"}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    catalog = rlm.Catalog(
        [
            rlm.Unit("tool:git_diff", description="Show what changed", requires=("tool:vault",)),
            rlm.Unit("tool:vault", description="Lock % the 'repository'. Straße, 変更 and \N{ROCKET}"),
            rlm.Unit("tool:deploy", description="Deploy what changed", requires_capability="deploy"),
            rlm.Unit("instruction:house", content="Be brief.", activation="always"),
        ]
    )
    view = rlm.compile(catalog, "review what changed in git", policy=rlm.Policy(capabilities={"tool:*"}))
    return view.save(tmp_path_factory.mktemp("session") / "whole.rlm").read_bytes()


def refused(data: bytes, file: Path) -> RlmError:
    file.write_bytes(data)
    with pytest.raises(EngineError) as caught:
        open_session(file)
    return caught.value


def line_of(data: bytes, place: int) -> int:
    return data[:place].count(b"\n") + 1


def test_the_whole_file_is_read_by_python_and_by_a_bare_prolog(saved: bytes, tmp_path: Path) -> None:
    file = tmp_path / "s.rlm"
    for data in (saved, saved[:-1]):  # of the last line only its end is missing: nothing is lost
        file.write_bytes(data)
        open_session(file)
        assert asked(file, "forall(active(U), (print(U), nl))").splitlines()[0] == "instruction(house)"


def test_a_file_that_was_cut_anywhere_is_refused_at_the_line_where_it_ends(saved: bytes, tmp_path: Path) -> None:
    """Two hundred places, the first and the last, and every end of a line."""
    size = len(saved)
    ends = {place for place in range(1, size - 1) if b"\n" in saved[place - 1 : place + 1]}  # before and after it
    for place in sorted({0, 1, size - 2, *ends, *(size * number // 200 for number in range(200))}):
        error = refused(saved[:place], tmp_path / "s.rlm")
        assert error.kind in KINDS, (place, error)
        line = len(saved[:place].splitlines())
        if place in ends:
            assert error.message.endswith(f"line {line}: the file ends there, and the end that was saved is missing")
        elif line > 1:
            assert f"no session, line {line}: it is not what was saved" in error.message, (place, error.message)
        else:
            assert re.search("does not begin as one of this version|line 1: it is not", error.message)


def test_a_byte_that_was_changed_anywhere_is_noticed_at_its_line(saved: bytes, tmp_path: Path) -> None:
    """A letter, a digit, a bracket; a byte that is no text at all; the end of a line."""
    chance = random.Random(7)
    for _ in range(400):
        place = chance.randrange(len(saved))
        old = saved[place]
        new = chance.choice([0, 10, 13, 32, 37, 39, 46, 92, 128, 195, 255, old ^ 1, old ^ 32, (old + 1) % 256])
        if new == old:
            continue
        error = refused(saved[:place] + bytes([new]) + saved[place + 1 :], tmp_path / "s.rlm")
        assert error.kind in KINDS, (place, new, error)
        line = line_of(saved, place)
        told = re.search(r"line (\d+): it is not what was saved", error.message)
        if line > 1:
            assert told is not None, (place, new, error.message)
            assert int(told[1]) in (line, line + (new == 10)), (place, new, error.message)
        else:  # of a beginning it may not even be known what it was
            assert told or "does not begin as one of this version" in error.message or "its format is" in error.message


def test_lines_that_were_taken_out_doubled_or_moved_are_noticed(saved: bytes, tmp_path: Path) -> None:
    lines = saved.splitlines(keepends=True)
    for number in range(2, len(lines)):
        one = lines[number : number + 1]
        for changed in (
            [*lines[:number], *lines[number + 1 :]],
            [*lines[:number], *one, *one, *lines[number + 1 :]],
            [*lines[: number - 1], *one, lines[number - 1], *lines[number + 1 :]],
        ):
            assert refused(b"".join(changed), tmp_path / "s.rlm").kind in KINDS
    assert "is no term" in refused(saved + lines[-2], tmp_path / "s.rlm").message


def test_nothing_is_said_on_the_terminal_but_the_line(saved: bytes, tmp_path: Path) -> None:
    """No warning of an encoding, no trace: a person sees one sentence."""
    file, place = tmp_path / "s.rlm", saved.index("変".encode())
    file.write_bytes(saved[:place] + b"\xff" + saved[place + 1 :])
    done = bare(f"catch(open_session({atom(file)}), E, (print_message(error, E), halt(7)))")
    assert done.returncode == 7
    (line,) = done.stderr.strip().splitlines()
    assert re.fullmatch(
        r"ERROR: no session, line \d+: it is not what was saved there; it was changed, or cut off", line
    )


def test_the_sums_of_the_tests_are_those_of_the_library(saved: bytes) -> None:
    text = saved.decode()
    written = "".join(re.sub(r" % [0-9a-f]{8}$", "\n", line) for line in text.splitlines()[:-1])
    assert sealed(written) == text
