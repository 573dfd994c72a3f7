"""``--sensor``: every command that compiles a text takes it, and says what is missing."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.test_run import run
from tests.runtime.actors import Cast, child, final, plan, var
from tests.support.loopback import Loopback

MISSING = importlib.util.find_spec("wordllama") is None or importlib.util.find_spec("numpy") is None
semantic = pytest.mark.skipif(MISSING, reason="the extra semantic is not installed")

TOOLS = [
    {"name": "tomatoes", "description": "Grow tomatoes"},
    *({"name": f"plain_{number}", "description": f"Does the thing of number {number}"} for number in range(10)),
]
TEXT = "vegetables for the garden"
FOUND = "sensor semantic gives it"
CODE = '''
import rlm


@rlm.tool(effect="read")
def tomatoes(kind: str) -> int:
    """Grow tomatoes"""
    return 1
'''


@pytest.fixture(scope="module")
def garden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("garden") / "tools.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in TOOLS), encoding="utf-8")
    return file


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """A folder on the path in which there is a package of the vectors' name without any."""
    (tmp_path / "wordllama").mkdir()
    (tmp_path / "wordllama" / "__init__.py").touch()
    return str(tmp_path)


@semantic
def test_compile_explain_and_the_prompt_tell_what_only_the_sensor_finds(rlm: Run, garden: Path) -> None:
    assert json.loads(rlm("compile", TEXT, "-c", garden, "--json").stdout)["active"] == []
    found = rlm("compile", TEXT, "-c", garden, "--sensor", "semantic").stdout
    assert [line for line in found.splitlines() if line.startswith("tool:tomatoes") and FOUND in line]
    why = rlm("explain", TEXT, "tool:tomatoes", "-c", garden, "--sensor", "semantic").stdout
    assert why.startswith("tool:tomatoes is active, in its full form:\n  - " + FOUND)
    asked = rlm("repl", TEXT, "-c", garden, "--sensor", "semantic", stdin="why(tool(tomatoes)).\n").stdout
    assert f"tool:tomatoes is active, in its full form:\n  - {FOUND}" in asked


@semantic
def test_ask_sends_it(rlm: Run, server: Loopback, garden: Path) -> None:
    for options, seen in (((), False), (("--sensor", "semantic"), True)):
        rlm("ask", TEXT, "-c", garden, "--model", f"{server.url}#m", *options)
        assert (b"Grow tomatoes" in server.requests[-1].body) is seen


@semantic
def test_run_sends_it_to_the_root_and_to_children(server: Loopback, tmp_path: Path) -> None:
    (tmp_path / "mytools.py").write_text(CODE)
    for options, seen in (((), False), (("--sensor", "semantic"), True)):
        before = len(server.requests)
        server.script(
            Cast(
                planner=[plan(child("something with leaves for a garden", "x"), final(var("x")))],
                child=[plan(final(1))],
            )
        )
        run(server, tmp_path, TEXT, "--tool", "mytools:tomatoes", *options)
        assert [b"Grow tomatoes" in request.body for request in server.requests[before:]] == [seen, seen]


COMMANDS = (
    ("compile", TEXT, "-c", "{}"),
    ("explain", TEXT, "tool:tomatoes", "-c", "{}"),
    ("ask", TEXT, "-c", "{}"),
    ("repl", TEXT, "-c", "{}"),
    ("run", TEXT, "--model", "local"),
    ("eval", "{}", "{}"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_where_the_extra_is_missing_it_is_a_mistake_of_usage(
    rlm: Run, garden: Path, bare: str, command: tuple[str, ...]
) -> None:
    words = [word.format(garden) for word in command]
    done = rlm(*words, "--sensor", "semantic", code=2, PYTHONPATH=bare)
    assert "Invalid value for '--sensor': the word vectors are not installed" in done.stderr
    assert "pip install 'prolog-rlm[semantic]'" in done.stderr
    assert done.stdout == ""


def test_a_misspelt_sensor_is_answered_with_the_right_one(rlm: Run, garden: Path) -> None:
    done = rlm("compile", TEXT, "-c", garden, "--sensor", "semantc", code=2)
    assert "'semantc' is none of semantic; did you mean 'semantic'?" in done.stderr
