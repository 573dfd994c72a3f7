"""The bundled engine: when it is chosen, and that no other SWI-Prolog is mixed with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rlm.errors import EngineError
from rlm.symbolic import locate
from tests.engine.conftest import Run

BUNDLED = locate._bundled()
pytestmark = pytest.mark.skipif(BUNDLED is None, reason="prolog-rlm-swipl is not installed")

SYSTEM = locate.Installation(Path("/usr/bin/swipl"), (9, 3, 1), Path("/usr/lib/swi-prolog"), None)


@pytest.fixture(autouse=True)
def unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLM_SWIPL", raising=False)


def test_it_is_chosen_where_janus_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locate, "_janus_is_installed", lambda: False)
    monkeypatch.setattr(locate, "_system", lambda: SYSTEM)
    found = locate.find()
    assert found == BUNDLED
    assert found.kind == "bundled"
    assert found.reason == "prolog-rlm-swipl is installed, and janus_swi is not"
    assert found.version not in locate.UNSOUND_VERSIONS


def test_the_systems_goes_first_where_janus_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locate, "_janus_is_installed", lambda: True)
    monkeypatch.setattr(locate, "_system", lambda: SYSTEM)
    found = locate.find()
    assert (found, found.kind) == (SYSTEM, "system")
    assert "system-swipl" in found.reason


def test_it_is_chosen_where_janus_is_installed_without_a_prolog(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> locate.Installation:
        raise EngineError("prolog_missing", "SWI-Prolog was not found: no program. Install it")

    monkeypatch.setattr(locate, "_janus_is_installed", lambda: True)
    monkeypatch.setattr(locate, "_system", missing)
    found = locate.find()
    assert found == BUNDLED
    assert found.reason == "janus_swi is installed, but no Prolog for it: SWI-Prolog was not found: no program"


def test_the_variable_may_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locate, "_janus_is_installed", lambda: True)
    monkeypatch.setenv("RLM_SWIPL", str(BUNDLED.swipl))
    found = locate.find()
    assert (found, found.reason) == (BUNDLED, "RLM_SWIPL names it")


def test_the_variable_may_name_another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "swipl"
    other.write_text(f'#!/bin/sh\nexec "{BUNDLED.swipl}" "$@"\n')
    other.chmod(0o755)
    monkeypatch.setenv("RLM_SWIPL", str(other))
    found = locate.find()
    assert (found.swipl, found.kind) == (other, "system")


def test_the_systems_is_looked_for_where_the_package_has_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    import prolog_rlm_swipl

    monkeypatch.setattr(prolog_rlm_swipl, "engine", lambda: None)
    monkeypatch.setattr(locate, "_system", lambda: SYSTEM)
    found = locate.find()
    assert found == SYSTEM
    assert "has no engine for this Python" in found.reason


def test_an_extension_of_another_python_is_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    import prolog_rlm_swipl

    monkeypatch.setattr(prolog_rlm_swipl.importlib.machinery, "EXTENSION_SUFFIXES", [".cpython-999.so"])
    assert prolog_rlm_swipl.engine() is None


def foreign(folder: Path) -> dict[str, str]:
    """Settings of another SWI-Prolog: a home that works, and libraries that are none."""
    home = folder / "other"
    home.mkdir()
    for path in BUNDLED.home.iterdir():
        (home / path.name).symlink_to(path)
    for name in ("libswipl.so.9", "libgmp.so.10", "libtinfo.so.6", "libedit.so.2"):
        (folder / name).write_bytes(b"no library")
    return {"SWI_HOME_DIR": str(home), "SWIPL": str(home), "LD_LIBRARY_PATH": str(folder)}


def test_nothing_of_another_prolog_reaches_it(python: Run, tmp_path: Path) -> None:
    done = python(
        """
        from rlm.symbolic import locate
        found = locate.find()
        path = list(sys.path)
        prolog = start()
        import janus_swi
        print(found.kind, Path(janus_swi.__file__).parent == found.janus, sys.path == path, locate.find() == found)
        home = janus_swi.query_once("current_prolog_flag(home, Home), use_module(library(editline))")["Home"]
        print(Path(home).samefile(found.home), prolog.call("ping", 1))
        maps = Path("/proc/self/maps").read_text().split()
        print(len({line for line in maps if "libswipl" in line or "swi-prolog" in line}))
        """,
        env=foreign(tmp_path),
    )
    assert done.stdout == "bundled True True True\nTrue 1\n1\n"


def test_nothing_of_another_prolog_reaches_its_program(tmp_path: Path) -> None:
    command = [BUNDLED.swipl, "-q", "-f", "none", "-g", "current_prolog_flag(home, H), write(H)", "-t", "halt"]
    environment = {"PATH": "/nowhere", **foreign(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert Path(done.stdout).samefile(BUNDLED.home)


def test_its_command_is_its_program() -> None:
    command = [sys.executable, "-m", "prolog_rlm_swipl", "-g", "write(yes)", "-t", "halt"]
    assert subprocess.run(command, capture_output=True, text=True, timeout=60).stdout == "yes"
    script = Path(sys.executable).parent / "rlm-swipl"
    assert subprocess.run([script, *command[3:]], capture_output=True, text=True, timeout=60).stdout == "yes"


@pytest.mark.long
def test_every_library_of_the_rules_loads_and_big_integers_are_gmps() -> None:
    libraries = (
        "clpfd, clpb, plunit, prolog_coverage, editline, snowball, porter_stem, isub, unicode, process, sha, time"
    )
    goals = (
        f"forall(member(L, [{libraries}]), use_module(library(L))), X is 7^200 mod 1000007, R is 1 rdiv 3, print(X-R)"
    )
    done = subprocess.run(
        [BUNDLED.swipl, "-q", "-f", "none", "-g", goals, "-t", "halt"], capture_output=True, text=True, timeout=60
    )
    assert (done.stderr, done.stdout) == ("", f"{7**200 % 1000007}-1r3")
    assert BUNDLED.bignums == "GMP"


@pytest.mark.long
def test_an_older_compiled_library_does_no_harm(tmp_path: Path) -> None:
    """pip does not keep the times of files, so a source may be newer than what was compiled of it."""
    folder = tmp_path / "site"
    shutil.copytree(BUNDLED.home.parent, folder / "prolog_rlm_swipl")
    (folder / "prolog_rlm_swipl.libs").symlink_to(BUNDLED.libswipl.parent)
    for source in (folder / "prolog_rlm_swipl" / "home").rglob("*.pl"):
        os.utime(source)
    code = (
        "import rlm; print(rlm.compile(rlm.Catalog([rlm.Unit('tool:mail', description='Send a mail')]), 'mail').active)"
    )
    for _ in range(2):
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(folder), str(Path(locate.__file__).parents[2])]),
        }
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "('tool:mail',)\n", "")
