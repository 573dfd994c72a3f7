"""A bare SWI-Prolog with the rules, and no Python anywhere near it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from rlm import resources
from tests.plunit import swipl

FACE = resources.prolog_dir() / "rlm.pl"
FIRST_LINE = "session(1,'f','english').\n"


def bare(*goals: str) -> subprocess.CompletedProcess[str]:
    """Run goals, one after the other, in a Prolog that knows of no Python; the first that raises or fails ends it."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8"}
    words = [word for goal in goals for word in ("-g", goal)]
    return swipl(*words, "-g", "halt", FACE, env=environment)


def asked(file: Path, *goals: str) -> str:
    """What the goals print about a session."""
    done = bare(f"open_session({atom(file)})", *goals)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def atom(value: object) -> str:
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
