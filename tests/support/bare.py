"""A bare SWI-Prolog with the rules, and no Python anywhere near it."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from rlm import resources
from rlm.symbolic import locate
from tests.plunit import swipl

FACE = resources.prolog_dir() / "rlm.pl"
FIRST_LINE = "session(3,'f','english').\n"


def bare(*goals: str) -> subprocess.CompletedProcess[str]:
    """Run goals, one after the other, in a Prolog that knows of no Python; the first that raises or fails ends it."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8"}
    words = [word for goal in goals for word in ("-g", goal)]
    return swipl(*words, "-g", "halt", FACE, env=environment)


def typed(*queries: str) -> tuple[str, str]:
    """What the ordinary toplevel, loaded as the documentation says, prints for queries: stdout and stderr."""
    done = subprocess.run(
        [str(locate.find().swipl), "-q", "-f", "none", str(FACE)],
        input="".join(f"{query}.\n" for query in queries),
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def asked(file: Path, *goals: str) -> str:
    """What the goals print about a session."""
    done = bare(f"open_session({atom(file)})", *goals)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def sealed(text: str) -> str:
    """Lines of a session as they are saved: each with the sum of it and of all before it, and an end."""
    total, lines = "", []
    for line in [*text.splitlines(), "end."]:
        total = hashlib.sha1(f"{total}{line}".encode()).hexdigest()[:8]
        lines.append(f"{line} % {total}\n")
    return "".join(lines)


def atom(value: object) -> str:
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
