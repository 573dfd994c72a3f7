"""The command line as its users have it: the installed program, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RLM = Path(sysconfig.get_path("scripts")) / "rlm"
ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "rlm" / "cli" / "demo_catalog.jsonl"
REAL = ROOT.parent / "shared" / "data" / "docker_registry" / "catalog.jsonl"
SECONDS = 120

TOOLS = [
    {
        "name": "git_diff",
        "namespace": "git",
        "description": "Show what changed in the git working tree",
        "parameters": {"type": "object", "properties": {"base": {"type": "string", "description": "Branch"}}},
    },
    {"name": "git_push", "namespace": "git", "description": "Push commits to a remote"},
    {"name": "project_search", "description": "Find text in the files of a project"},
    {"name": "weather", "description": "Forecast of rain for a city", "parameters": {"type": "object"}},
]

Done = subprocess.CompletedProcess[str]
Run = Callable[..., Done]


def environment(**more: str) -> dict[str, str]:
    """This process's environment without what would colour or widen the output, or bring somebody's keys."""
    unwanted = ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "OPENAI_API_KEY", "OPENAI_BASE_URL", "PYTHONPATH")
    return {**{name: value for name, value in os.environ.items() if name not in unwanted}, "TERM": "xterm", **more}


@pytest.fixture(scope="session")
def rlm() -> Run:
    """``rlm(*args)`` runs it; the exit code must be ``code``, and where that is 0 stderr says what is ``told``."""

    def run(*args: object, code: int = 0, stdin: str | None = None, told: str = "", **env: str) -> Done:
        done = subprocess.run(
            [str(RLM), *map(str, args)],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            encoding="utf-8",
            timeout=SECONDS,
            env=environment(**env),
            check=False,
        )
        assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert code or done.stderr == told, done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return run


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog file of four tools."""
    file = tmp_path_factory.mktemp("catalog") / "tools.jsonl"
    file.write_text("".join(json.dumps(tool) + "\n" for tool in TOOLS), encoding="utf-8")
    return file


def error_of(done: Done) -> dict[str, Any]:
    """The structured error: exactly one JSON object on stderr."""
    told = json.loads(done.stderr)
    assert set(told) == {"error"}
    error: dict[str, Any] = told["error"]
    assert {"phase", "kind", "message", "detail"} <= set(error)
    return error
