"""Other systems, each in an interpreter of its own: two of them are imported under one name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PINNED = {"rlms": "rlms==0.1.3", "dspy.RLM": "dspy==3.4.1"}
INSTALL_SECONDS = 900


class MissingPeer(Exception):
    """Why a peer is not here, in a line."""


def cache() -> Path:
    """Where the interpreters are kept between runs; a few hundred MB, safe to delete."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "prolog-rlm" / "peers"


def interpreter(peer: str, *, install: bool) -> Path:
    """The Python in which a peer is installed, at the pinned version.

    Args:
        install: whether it may be installed now, over the network.

    Raises: MissingPeer.
    """
    pinned = PINNED[peer]
    home = cache() / f"{pinned}-py{sys.version_info[0]}.{sys.version_info[1]}"
    python = home / "bin" / "python"
    if (home / "whole").exists():
        return python
    if not install:
        raise MissingPeer(f"{pinned} is not installed: a run without --quick does that")
    shutil.rmtree(home, ignore_errors=True)
    _run(sys.executable, "-m", "venv", str(home))
    _run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", pinned)
    (home / "whole").touch()
    return python


def environment() -> dict[str, str]:
    """That of this process, without what would bring our own modules into a peer's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return {**kept, "OPENAI_API_KEY": "none"}


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, env=environment())
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise MissingPeer(f"cannot be installed: {problem}") from None
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no word of why").splitlines()[-1]
        raise MissingPeer(f"cannot be installed: {last[:300]}")
