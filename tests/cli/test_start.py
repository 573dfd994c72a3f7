"""The ways in: version, help, doctor; and that they load no more than they need."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rlm as package
from tests.cli.conftest import SECONDS, Run, environment

HEAVY = ("httpx", "janus_swi", "jsonschema", "numpy", "pydantic", "rich.table", "tiktoken", "anyio")


def test_it_tells_its_version(rlm: Run) -> None:
    assert rlm("--version").stdout == f"rlm {package.__version__}\n"


@pytest.mark.parametrize("command", ["compile", "explain", "ask", "repl", "doctor", "demo", "catalog check"])
def test_every_command_has_help(rlm: Run, command: str) -> None:
    printed = rlm(*command.split(), "--help").stdout
    assert printed.startswith(f"Usage: rlm {command}")
    assert not re.search("<list|<int range>", printed)


def test_help_loads_nothing_heavy() -> None:
    code = f"""
import sys
sys.argv = ["rlm", "--help"]
from rlm.cli import main
try:
    main()
except SystemExit:
    print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, env=environment(), check=False
    )
    assert done.stderr == "[]\n"


def test_a_compile_loads_no_http_and_no_tables_where_json_is_wanted(tools: Path) -> None:
    code = f"""
import sys
sys.argv = ["rlm", "compile", "git", "-c", {str(tools)!r}, "--json"]
from rlm.cli import main
try:
    main()
except SystemExit:
    print([name for name in ("httpx", "rich", "anyio") if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, env=environment(), check=False
    )
    assert done.stderr == "[]\n"


def test_doctor_is_happy_here(rlm: Run) -> None:
    printed = rlm("doctor").stdout
    assert "Everything that is needed is there." in printed
    assert package.__version__ in printed
    report = json.loads(rlm("doctor", "--json").stdout)
    assert report["ok"]
    assert report["prolog"]["works"]


def test_doctor_fails_where_prolog_is_missing(rlm: Run) -> None:
    done = rlm("doctor", code=1, RLM_SWIPL="/nowhere/swipl")
    assert "Missing: SWI-Prolog" in done.stdout
    error = json.loads(done.stderr)["error"]
    assert (error["kind"], error["detail"]["missing"]) == ("incomplete_installation", ["SWI-Prolog"])
