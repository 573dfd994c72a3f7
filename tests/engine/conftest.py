"""Each dangerous case runs in a process of its own: if Prolog takes one down, a test fails and not pytest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROBE = ROOT / "tests" / "prolog" / "engine_probe.pl"
SECONDS = 120

PRELUDE = f"""
import faulthandler, os, signal, sys, threading, time
from pathlib import Path
faulthandler.enable()
signal.signal(signal.SIGINT, signal.default_int_handler)  # the suite may have been started with SIGINT ignored
from rlm.errors import EngineError
from rlm.symbolic import owner
from rlm.symbolic.engine import engine

owner.FACE = {str(PROBE)!r}  # the bridge and the probe, without the rules
start = engine

def kind(call, *args, **options):
    try:
        value = call(*args, **options)
    except EngineError as error:
        return error.kind
    return ("no error", value)
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def python() -> Run:
    """Run a program with the engine's prelude; it must end with ``code`` (0) and print nothing on stderr."""

    def run(
        program: str, *, code: int = 0, quiet: bool = True, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", PRELUDE + textwrap.dedent(program)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)  # faulthandler shows where it hung
            out, err = process.communicate()
        done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
        assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        if quiet:
            assert done.stderr == "", done.stderr
        return done

    return run
