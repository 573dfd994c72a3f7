"""What a user's type checker says: the package ships ``py.typed``, so the documented ways of calling it must pass."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

GOOD = """
from pathlib import Path

import rlm

@rlm.tool(effect="read")
def git_diff(base: str = "main") -> str:
    "Show what changed against a base branch."
    return base

@rlm.tool
def project_search(text: str) -> str:
    "Find text."
    return text

catalog = rlm.Catalog()
catalog.add_tools([git_diff, project_search])
catalog.add(rlm.Unit("instruction:house-style", content="...", activation="always", requires=["tool:git_diff"]))
catalog.add(rlm.Unit("skill:x", triggers=[rlm.Trigger(value="x"), {"value": "y"}]))

rlm.Policy(capabilities={"tool:git_diff"}, mode="all_tools")
rlm.Policy(capabilities=frozenset({"tool:*"}), mode=rlm.Mode.COMPILED, denied=["tool:x"], disabled=("tool:y",))
rlm.Policy(scope={"tool:*"}, selected=set(), withheld=[], rules="policy.pl", floor=0, budget=5_000)
policy = rlm.Policy(rules=Path("policy.pl")).model_copy(update={"rules": None})

view = rlm.compile(
    catalog,
    "review my change",
    policy=policy,
    messages=[rlm.Message(role="user", content="x"), {"role": "user", "content": "y"}],
    needs=["a diff"],
    signals={"mode": "review", "files": ["a", "b"]},
    sensors={"embedding": {"tool:git_diff": 1}},
    admitted=[rlm.Preselected(unit="tool:git_diff", klass="mandatory", premises=["skill:x"])],
)
text: str = view.system + str(view.explain("tool:git_diff")) + view.fingerprint
active: tuple[str, ...] = view.active
patterns: frozenset[str] | None = policy.capabilities
mode: rlm.Mode = policy.mode
answer: str = rlm.ask("which?", catalog, model="local", policy=policy).unwrap()
"""

# a line and what a type checker must find wrong with it
BAD = {
    "rlm.Policy(bugdet=1)": "call-arg",
    "rlm.Policy(capabilities='tool:x')": "arg-type",
    "rlm.Policy(mode='al_tools')": "arg-type",
    "rlm.Policy(budget='many')": "arg-type",
    "rlm.Preselected(unit='tool:x', klass='optional')": "arg-type",
    "rlm.compile(rlm.Catalog(), 5)": "arg-type",
    "rlm.Trigger(valu='x')": "call-arg",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What mypy says of both programs: the good one first, then a line for each of the bad ones."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "good.py").write_text(GOOD)
    (folder / "bad.py").write_text("\n".join(["import rlm", *BAD]))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary", "good.py", "bad.py"],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "MYPYPATH": str(ROOT), "MYPY_CACHE_DIR": str(folder / "cache")},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_the_documented_ways_of_calling_pass_a_strict_type_check(told: list[str]) -> None:
    assert [line for line in told if not line.startswith("bad.py:")] == []


def test_a_misspelt_or_ill_typed_option_is_found_where_it_is_written(told: list[str]) -> None:
    found = [re.fullmatch(r"bad\.py:(\d+): error: .*\[([a-z-]+)\]", line) for line in told if ": error: " in line]
    assert {(int(each[1]), each[2]) for each in found if each} == {
        (number, code) for number, code in enumerate(BAD.values(), 2)
    }
