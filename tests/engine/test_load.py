"""Loading is strict: whatever Prolog would only have printed is an error with file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.engine.conftest import ROOT, Run

FAULTS = {
    "syntax": (":- module(m, []).\np :- x y z.\n", 2, "Syntax error"),
    "unended": (':- encoding(utf8).\n:- module(m, []).\nq("abc\n', None, "End of file"),
    "singleton": (":- module(m, []).\n\np(X) :- q.\n", 3, "Singleton"),
    "failed_directive": (":- module(m, []).\n:- fail.\n", 2, "directive"),
    "raising_directive": (":- module(m, []).\n:- atom_length(_, _).\n", 2, "instantiated"),
    "failed_initialization": (":- module(m, []).\n:- initialization(fail).\n", 2, "failed"),
    "raising_initialization": (":- module(m, []).\n:- initialization(atom_length(_, _)).\n", 2, "instantiated"),
    "missing_import": (":- module(m, []).\n:- use_module(no_such_file).\n", 2, "no_such_file"),
    "missing_predicate": (":- module(m, []).\n:- use_module(library(lists), [no_such/9]).\n", 2, "no_such/9"),
    "missing_export": (":- module(m, [p/1]).\n", None, "p/1"),
    "scattered": (":- module(m, []).\na(1).\nb(1).\na(2).\n", 4, "not together"),
    "library": (":- module(lists, []).\nappend(a, b, c).\n", None, "lists"),
}


@pytest.fixture(scope="module")
def findings(python: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    folder = tmp_path_factory.mktemp("rules")
    for name, (text, _, _) in FAULTS.items():
        (folder / f"{name}.pl").write_text(text.replace("module(m,", f"module({name},"))
    (folder / "good.pl").write_text(":- encoding(utf8).\n:- module(good, []).\nname('世界').\n", encoding="utf-8")
    (folder / "outer.pl").write_text(":- module(outer, []).\n:- use_module(inner).\n")
    (folder / "inner.pl").write_text(":- module(inner, []).\np(X) :- q.\n")
    done = python(
        f"""
        import json
        prolog = engine()
        folder = Path({str(folder)!r})
        def load(name):
            try: prolog.load(folder / name)
            except EngineError as error: return error.to_dict()
            return None
        outcome = {{path.stem: load(path.name) for path in sorted(folder.iterdir()) if path.stem != "inner"}}
        outcome["good again"] = load("good.pl")
        outcome["nowhere"] = load("nowhere.pl")
        (folder / "syntax.pl").write_text(":- module(syntax, []).\\np(1).\\n")
        outcome["mended"] = load("syntax.pl")
        assert prolog.call("ping", 1) == 1
        print(json.dumps(outcome))
        """
    )
    outcome = json.loads(done.stdout)
    assert isinstance(outcome, dict)
    return outcome


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_an_error_naming_file_and_line(findings: dict[str, dict[str, object]], name: str) -> None:
    _, line, words = FAULTS[name]
    error = findings[name]
    assert error is not None
    assert error["kind"] == "load_failed"
    message = str(error["message"])
    assert f"{name}.pl" in message
    assert words in message
    assert line is None or f"{name}.pl:{line}: " in message


def test_a_good_file_loads_and_loads_again(findings: dict[str, object]) -> None:
    assert findings["good"] is None
    assert findings["good again"] is None


def test_a_mended_file_loads(findings: dict[str, object]) -> None:
    assert findings["mended"] is None


def test_a_fault_in_a_file_that_it_loads_is_found(findings: dict[str, dict[str, object]]) -> None:
    assert "inner.pl:2: Singleton" in str(findings["outer"]["message"])


def test_a_file_that_is_not_there(findings: dict[str, dict[str, object]]) -> None:
    assert "nowhere.pl" in str(findings["nowhere"]["message"])


def test_faulty_rules_of_our_own_fail_the_start_every_time(python: Run, tmp_path: Path) -> None:
    for file in ("rlm_load.pl", "rlm_bridge.pl", "rlm_plain.pl"):
        (tmp_path / file).write_text((ROOT / "prolog" / file).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "rlm.pl").write_text(":- module(rlm, []).\n:- use_module(rlm_bridge, []).\n\np(X) :- q.\n")
    done = python(
        f"""
        from rlm import resources
        owner.FACE = "rlm.pl"
        resources.prolog_dir = lambda: Path({str(tmp_path)!r})
        for _ in range(2):
            try: engine()
            except EngineError as error: print(error.kind, error.message)
        """
    )
    assert done.stdout == f"load_failed {tmp_path}/rlm.pl:4: Singleton variables: [X]\n" * 2
