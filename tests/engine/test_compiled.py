"""The compiled rules: they are taken where they belong to the sources and to this Prolog, and do the same."""

from __future__ import annotations

import json
import shutil
import textwrap
from pathlib import Path

import pytest

from hatch_build import compile_rules, newest_engine
from rlm.symbolic import compiled, locate
from tests.engine.conftest import ROOT, Run

ENGINE = newest_engine(ROOT / "engine" / "dist")
pytestmark = pytest.mark.skipif(
    ENGINE is None or locate.find().kind != "bundled", reason="engine/build has made no engine here"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The rules with their compiled form, as in a wheel."""
    made = compile_rules(ROOT, ENGINE, tmp_path)
    rules = tmp_path / "installed"
    shutil.copytree(ROOT / "prolog", rules)
    for path in made:
        shutil.copy(path, rules)
    return rules


class Janus:
    """Answers the one query that is asked."""

    def __init__(self, identity: str) -> None:
        self.identity = identity

    def query_once(self, query: str) -> dict[str, str]:
        assert query == "rlm_load:identity(Text)"
        return {"Text": self.identity}


@pytest.mark.long
def test_they_are_taken_where_all_fits_and_only_then(folder: Path) -> None:
    note = json.loads((folder / compiled.NOTE).read_text())
    janus = Janus(note["prolog"])
    source = folder / "rlm.pl"
    assert compiled.face(folder, "rlm.pl", janus) == folder / "rlm.qlf"
    assert compiled.face(folder, "other.pl", janus) == folder / "other.pl"
    assert compiled.face(folder, "rlm.pl", Janus("x86_64-linux 90300 1 2 3")) == source
    with (folder / "rlm_rank.pl").open("a") as file:
        file.write("% changed\n")
    assert compiled.face(folder, "rlm.pl", janus) == source


@pytest.mark.long
@pytest.mark.parametrize("damage", ["cut", "note", "unreadable", "gone"])
def test_damaged_ones_are_left_alone(folder: Path, damage: str) -> None:
    note = json.loads((folder / compiled.NOTE).read_text())
    match damage:
        case "cut":
            (folder / compiled.COMPILED).write_bytes((folder / compiled.COMPILED).read_bytes()[:-1])
        case "note":
            (folder / compiled.NOTE).write_text("[]")
        case "unreadable":
            (folder / compiled.NOTE).write_bytes(b"\xff")
        case "gone":
            (folder / compiled.COMPILED).unlink()
    assert compiled.face(folder, "rlm.pl", Janus(note["prolog"])) == folder / "rlm.pl"


@pytest.mark.long
def test_the_same_is_loaded_from_them_as_from_the_sources(python: Run, folder: Path, tmp_path: Path) -> None:
    program = """
        from rlm import resources
        from rlm.symbolic import compiled
        resources.prolog_dir = lambda: Path({folder!r})
        owner.FACE = "rlm.pl"
        faces = []
        face = compiled.face
        compiled.face = lambda *args: faces.append(face(*args)) or faces[-1]
        prolog = start()
        import janus_swi
        modules = janus_swi.query_once(
            "findall(_M/_N, (current_module(_M), sub_atom(_M, 0, _, _, rlm), findall(_C, (current_predicate(_M:_P/_A), "
            "\\\\+ sub_atom(_P, 0, _, _, '__aux_'), "  # how Prolog unfolds maplist/N, which it does or does not
            "functor(_H, _P, _A), \\\\+ predicate_property(_M:_H, imported_from(_)), "
            "predicate_property(_M:_H, number_of_clauses(_C))), _Cs), sum_list(_Cs, _N)), _L), "
            "sort(_L, _S), length(_S, Count), format(string(Text), '~q', [_S])")
        flags = janus_swi.query_once("findall(_F=_V, (member(_F, [debug_on_error, backtrace, double_quotes, unknown]), "
            "current_prolog_flag(_F, _V)), _L), format(string(Text), '~q', [_L])")
        prolog.load(Path({folder!r}) / "rlm_repl.pl")
        print(faces[0].name)
        print(modules["Count"] > 40, modules["Text"], flags["Text"], prolog.call("ping", 1))
        """
    from_compiled = python(textwrap.dedent(program.format(folder=str(folder)))).stdout.split("\n", 1)
    from_sources = python(textwrap.dedent(program.format(folder=str(ROOT / "prolog")))).stdout.split("\n", 1)
    assert (from_compiled[0], from_sources[0]) == ("rlm.qlf", "rlm.pl")
    assert from_compiled[1].startswith("True ")
    assert from_compiled[1] == from_sources[1]
