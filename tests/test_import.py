"""``import rlm`` is light, and works where SWI-Prolog is missing; the first use then says how to get it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rlm

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("anyio", "httpx", "janus_swi", "jsonschema", "numpy", "rich", "tiktoken", "typer")


def run(code: str, *args: str, **environment: str) -> str:
    """What a fresh process prints; standard error is shown where it fails."""
    done = subprocess.run(
        [sys.executable, "-c", code, *args],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_loads_nothing_heavy() -> None:
    loaded = json.loads(run("import json, sys, rlm; print(json.dumps(sorted(sys.modules)))"))
    assert set(loaded) & set(HEAVY) == set()


def test_every_public_name_can_be_had() -> None:
    assert run("import rlm; assert rlm.__all__; [getattr(rlm, name) for name in rlm.__all__]; print('all')") == "all\n"


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """A copy of the library that has no checkout around it, so no ``.swipl`` either."""
    for name in ("rlm", "prolog", "skills"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.qlf"))
    return tmp_path


def test_without_prolog_the_import_works_and_the_first_use_says_how_to_get_it(alone: Path) -> None:
    code = """
import sys
sys.modules["janus_swi"] = sys.modules["prolog_rlm_swipl"] = None  # an import of them raises
import rlm
assert rlm.__file__.startswith(sys.argv[1]), rlm.__file__
from rlm.errors import EngineError
from rlm.symbolic import locate
try:
    catalog = rlm.Catalog()
    catalog.add(rlm.Unit("tool:git_diff", description="Show what changed in git"))
    rlm.compile(catalog, "show the git diff")
except EngineError as problem:
    assert problem.kind == "prolog_missing", problem.to_dict()
    assert locate.how_to_install() in problem.message, problem.message
    print(problem.message)
"""
    environment = {**os.environ, "PYTHONPATH": str(alone), "PATH": str(alone / "bin")}
    environment.pop("RLM_SWIPL", None)
    done = subprocess.run(
        [sys.executable, "-c", code, str(alone)],
        cwd=alone,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "SWI-Prolog was not found" in done.stdout
    assert any(
        command in done.stdout for command in ("apt-get install", "./bootstrap", "brew install", "conda install")
    )


def test_importing_twice_in_threads_gives_one_library() -> None:
    code = """
import threading
def load():
    import rlm
    rlm.Catalog, rlm.Unit, rlm.compile
threads = [threading.Thread(target=load) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
import rlm
from rlm.model.unit import Unit
assert rlm.Unit is Unit
print("one")
"""
    assert run(code) == "one\n"


@pytest.mark.parametrize(("old", "new"), sorted(rlm._RENAMED.items()))
def test_a_name_of_version_0_1_is_answered_with_the_new_one(old, new):
    with pytest.raises(AttributeError, match=f"rlm.{old} is called rlm.{new}"):
        getattr(rlm, old)
    assert isinstance(getattr(rlm, new), type)
