"""The rules as Prolog sees them, without Python: they load without a word, call what exists, and are all used."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.conftest import ROOT
from tests.plunit import swipl

FACE = ROOT / "prolog" / "rlm.pl"
RULES = sorted((ROOT / "prolog").glob("*.pl"))
TESTS = sorted((ROOT / "tests" / "prolog").glob("*.pl*"))
STRICT = ("--on-warning=status", "--on-error=status")

EXPORTS_FOR_PEOPLE = {
    *("rlm.pl", "rlm_help.pl", "rlm_host_words.pl", "rlm_open.pl", "rlm_prompt.pl", "rlm_relations.pl"),
    *("rlm_session.pl", "rlm_what_if.pl"),
}
"""What these export is for the REPL, a host's own rules and programs: nothing here need call it."""


@pytest.mark.parametrize("file", RULES, ids=[file.name for file in RULES])
def test_each_file_loads_alone_without_a_warning(file: Path) -> None:
    done = swipl(*STRICT, "-g", "halt", file)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("file", [*RULES, *TESTS], ids=lambda file: file.name)
def test_each_file_states_its_encoding_first(file: Path) -> None:
    assert file.read_text(encoding="utf-8").startswith(":- encoding(utf8).\n")


def test_check_finds_nothing() -> None:
    done = swipl(*STRICT, "-g", "check", "-g", "halt", FACE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_nothing_is_left_to_the_autoloader() -> None:
    """A call that is stopped while a library loads would leave half of it, for good."""
    done = swipl(
        "-g", "use_module(library(check)), set_prolog_flag(autoload, false), list_undefined", "-g", "halt", FACE
    )
    assert done.stderr == ""


def test_every_predicate_is_used() -> None:
    done = swipl(ROOT / "tests" / "prolog" / "xref.pl", "--", *RULES)
    assert done.returncode == 0, done.stderr
    unused = [line.split() for line in done.stdout.splitlines()]
    assert not [
        f"{file}: {predicate}"
        for file, predicate, how in unused
        if not (how == "exported" and file in EXPORTS_FOR_PEOPLE)
    ]


def test_the_check_for_unused_predicates_finds_them(tmp_path: Path) -> None:
    a, b = tmp_path / "a.pl", tmp_path / "b.pl"
    a.write_text(
        ":- module(a, [used/1, unused/1]).\n:- public open/1.\n"
        "used(X) :- helper(X).\nunused(X) :- helper(X).\nhelper(1).\n"
        "open(1).\nforgotten(1).\nselfish(X) :- selfish(X).\n"
    )
    b.write_text(":- module(b, []).\n:- use_module(a, [used/1]).\n:- initialization((used(X), print(X))).\n")
    done = swipl(ROOT / "tests" / "prolog" / "xref.pl", "--", a, b)
    assert done.stdout.splitlines() == ["a.pl forgotten/1 local", "a.pl selfish/1 local", "a.pl unused/1 exported"]
