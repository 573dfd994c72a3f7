"""The wheel, installed in an environment elsewhere, works as the checkout does."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from rlm.symbolic import locate

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the checkout, without a network and without touching the checkout."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("prolog_rlm-*.whl")
    return built


@pytest.fixture(scope="module")
def elsewhere(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment with the wheel in it; only its dependencies come from this one.

    The line in a ``.pth`` file adds this environment's packages, but not the ``.pth`` files among them, so
    the checkout itself is out of reach.
    """
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
    python = folder / "bin" / "python"
    packages = next((folder / "lib").glob("python3*/site-packages"))
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, str(wheel)], check=True, timeout=120)
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def run(python: Path, *args: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["RLM_SWIPL"] = str(locate.find().swipl)
    done = subprocess.run(
        [str(python), *args], cwd=python.parent, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_ships_rules_and_skills_and_no_tests(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {"rlm/__init__.py", "rlm/_prolog/rlm.pl", "rlm/_prolog/rlm_select.pl"} <= set(names)
    assert any(name.startswith("rlm/_skills/") for name in names)
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"rlm"}
    assert [name for name in names if name.endswith((".plt", ".pyc"))] == []
    assert [name for name in names if name.endswith(".qlf")] in ([], ["rlm/_prolog/rlm.qlf"])
    shipped = {name.removeprefix("rlm/_prolog/") for name in names if name.startswith("rlm/_prolog/")}
    rules = {str(path.relative_to(ROOT / "prolog")) for path in (ROOT / "prolog").rglob("*.pl")}
    assert rules <= shipped


def test_its_files_are_found_inside_it(elsewhere: Path) -> None:
    code = "from rlm import resources; import rlm; print(rlm.__file__, resources.prolog_dir(), resources.skills_dir())"
    for path in run(elsewhere, "-c", code).split():
        assert Path(path).is_relative_to(elsewhere.parent.parent), path


def test_a_catalog_compiles_from_it(elsewhere: Path) -> None:
    code = """
import rlm
catalog = rlm.Catalog()
catalog.add(rlm.Unit("tool:git_diff", description="Show what changed in git"))
view = rlm.compile(catalog, "show the git diff")
assert "tool:git_diff" in view.active, view.active
print(rlm.__file__)
"""
    assert Path(run(elsewhere, "-c", code).strip()).is_relative_to(elsewhere.parent.parent)


def test_its_command_line_starts(elsewhere: Path) -> None:
    assert "compile" in run(elsewhere, str(elsewhere.parent / "rlm"), "--help")
