"""The plunit collector cannot be fooled: by a choice point, a vanished condition, or a file that breaks."""

from __future__ import annotations

from pathlib import Path

from tests.plunit import drive

TESTS = """
:- encoding(utf8).
:- use_module(library(plunit)).
:- begin_tests(sample).
test(passes) :- true.
test(value, X == 1) :- X = 1.
test(wrong_value, X == 2) :- X = 1.
test(fails_as_it_should, fail) :- fail.
test(raises, error(type_error(_, _))) :- atom_length(f(x), _).
test(raises_unasked) :- atom_length(_, _).
test(leaves_a_choice) :- member(_, [a, b]).
test(may_leave_one, nondet) :- member(_, [a, b]).
test(vanished, condition(fail)) :- true.
test(blocked, blocked(later)) :- true.
test(to_be_mended, fixme(later)) :- fail.
test(generated, forall(member(X, [1, 2]))) :- integer(X).
test(generated_badly, forall(member(X, [1, a]))) :- integer(X).
test(generated_never, forall(member(_, []))) :- true.
test(slow, timeout(0.1)) :- repeat, fail.
test(twice) :- true.
test(twice) :- fail.
:- end_tests(sample).
:- begin_tests(absent, [condition(fail)]).
test(never) :- true.
:- end_tests(absent).
"""

EXPECTED = [
    ("sample:passes", "passed"),
    ("sample:value", "passed"),
    ("sample:wrong_value", "failed"),
    ("sample:fails_as_it_should", "passed"),
    ("sample:raises", "passed"),
    ("sample:raises_unasked", "failed"),
    ("sample:leaves_a_choice", "choicepoint"),
    ("sample:may_leave_one", "passed"),
    ("sample:vanished", "vanished"),
    ("sample:blocked", "blocked"),
    ("sample:to_be_mended", "failed"),
    ("sample:generated", "passed"),
    ("sample:generated_badly", "failed"),
    ("sample:generated_never", "vanished"),
    ("sample:slow", "failed"),
    ("sample:twice", "passed"),
    ("sample:twice", "failed"),
    ("absent:never", "vanished"),
]


def test_each_kind_of_outcome(tmp_path: Path) -> None:
    file = tmp_path / "sample.plt"
    file.write_text(TESTS.lstrip(), encoding="utf-8")
    rows = drive("run", file)
    assert sorted((f"{row['unit']}:{row['name']}", row["result"]) for row in rows) == sorted(EXPECTED)
    listed = drive("list", file)
    assert [(row["unit"], row["name"], row["line"]) for row in listed] == [
        (row["unit"], row["name"], row["line"]) for row in rows
    ]
    words = {row["name"]: row["message"] for row in rows}
    assert "X" in words["wrong_value"]
    assert "instantiated" in words["raises_unasked"]
    assert words["passes"] == ""


def test_a_file_with_a_warning_has_trouble_and_no_tests(tmp_path: Path) -> None:
    file = tmp_path / "sloppy.plt"
    file.write_text(":- use_module(library(plunit)).\n:- begin_tests(s).\ntest(a) :- p(X).\n:- end_tests(s).\n")
    for command in ("list", "run"):
        rows = drive(command, file)
        assert rows
        assert all("trouble" in row for row in rows)
        assert "Singleton" in rows[0]["trouble"]


def test_a_file_that_ends_prolog_has_trouble(tmp_path: Path) -> None:
    file = tmp_path / "ends.plt"
    file.write_text(":- use_module(library(plunit)).\n:- begin_tests(s).\ntest(a) :- halt(3).\n:- end_tests(s).\n")
    assert [row for row in drive("run", file) if "trouble" in row]
