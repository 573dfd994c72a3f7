"""Which SWI-Prolog is used, and where it is. Nothing here can take this process down.

There are two kinds. The *bundled* engine is the package ``prolog_rlm_swipl``, with a Janus of its own. The *system's*
is any other program ``swipl``, with the distribution ``janus_swi`` built against it. A process has one Prolog, so where
``janus_swi`` is installed the host may use it as well, and the system's Prolog goes first.
"""

from __future__ import annotations

import errno
import functools
import importlib
import importlib.machinery
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

from rlm import files
from rlm.errors import EngineError, FileError

MOST_RELEASE_BYTES = 65_536
LEAST_VERSION = (9, 2, 0)
UNSOUND_VERSIONS = frozenset({(10, 0, 0), (10, 0, 1)})
"""Releases with a reported race in atom garbage collection."""

ENVIRONMENT_VARIABLE = "RLM_SWIPL"
BUNDLE = "prolog-rlm-swipl"
_PROBE_SECONDS = 20

DESCRIPTORS = 10
"""Files that may be open at the same moment while Prolog starts and loads the rules (measured: 9)."""


@dataclass(frozen=True)
class Installation:
    """One SWI-Prolog: its program, version, home (the library) and shared library, if it has one.

    ``janus`` is the folder of the Janus that belongs to the bundled engine, None for the system's. ``bignums`` names
    the library of its big integers where that is known. ``reason`` says in words why this one was chosen.
    """

    swipl: Path
    version: tuple[int, int, int]
    home: Path
    libswipl: Path | None
    janus: Path | None = None
    janus_version: str | None = field(default=None, compare=False)
    bignums: str | None = field(default=None, compare=False)
    reason: str = field(default="", compare=False)

    @property
    def version_text(self) -> str:
        return ".".join(str(part) for part in self.version)

    @property
    def kind(self) -> str:
        """``bundled`` or ``system``."""
        return "system" if self.janus is None else "bundled"


def find() -> Installation:
    """The SWI-Prolog to use, with the reason.

    First comes the program that ``RLM_SWIPL`` names. Then, where ``janus_swi`` is installed, the system's: the
    checkout's own ``.swipl``, else ``swipl`` on ``PATH``. Then the bundled engine. Where there is none, the system's.

    Raises:
        EngineError: ``prolog_missing`` or ``prolog_unsupported``; the message says how to install one here.
            ``no_descriptors`` where the process may not open the files that a start takes.
    """
    _check_descriptors()
    bundled = _bundled()
    named = os.environ.get(ENVIRONMENT_VARIABLE)
    if named:
        return _named(named, bundled)
    if bundled is None:
        return replace(_system(), reason=f"{BUNDLE} is not installed, or has no engine for this Python")
    if not _janus_is_installed():
        return replace(bundled, reason=f"{BUNDLE} is installed, and janus_swi is not")
    try:
        return replace(
            _system(), reason="janus_swi is installed (extra system-swipl), so the system's Prolog goes first"
        )
    except EngineError as problem:
        return replace(
            bundled, reason=f"janus_swi is installed, but no Prolog for it: {problem.message.split('. ')[0]}"
        )


def _named(named: str, bundled: Installation | None) -> Installation:
    program = shutil.which(named)
    if program is None:
        raise _missing(f"{ENVIRONMENT_VARIABLE} is {named!r}, which is no program")
    reason = f"{ENVIRONMENT_VARIABLE} names it"
    if bundled is not None and os.path.samefile(program, bundled.swipl):
        return replace(bundled, reason=reason)
    return replace(_probe(Path(program)), reason=reason)


def _system() -> Installation:
    own = Path(__file__).resolve().parents[2] / ".swipl" / "bin" / "swipl"
    if os.access(own, os.X_OK):
        return _probe(own)
    program = shutil.which("swipl")
    if program is None:
        raise _missing("there is no program 'swipl' on PATH")
    return _probe(Path(program))


def _bundled() -> Installation | None:
    """The engine of the package ``prolog_rlm_swipl``; None where there is none that fits this Python."""
    try:
        found = importlib.import_module("prolog_rlm_swipl").engine()
    except ImportError:
        return None
    if found is None:
        return None
    return Installation(
        swipl=found.program,
        version=found.version,
        home=found.home,
        libswipl=found.library,
        janus=found.janus,
        janus_version=found.build["janus"],
        bignums=found.build["bignums"],
    )


def _janus_is_installed() -> bool:
    """Whether ``janus_swi`` lies on the path by itself, whatever is loaded under that name."""
    return importlib.machinery.PathFinder.find_spec("janus_swi") is not None


def _check_descriptors() -> None:
    """Raises: EngineError ``no_descriptors`` where fewer than ``DESCRIPTORS`` are left."""
    held: list[int] = []
    try:
        while len(held) < DESCRIPTORS:
            held.append(os.open(os.devnull, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)))
    except OSError as problem:
        if problem.errno not in (errno.EMFILE, errno.ENFILE):
            return
        raise EngineError(
            "no_descriptors",
            f"no file descriptors are left for SWI-Prolog: its start takes {DESCRIPTORS}, and {len(held)} are free; "
            "raise the limit (ulimit -n 1024), or close files",
            {"left": len(held), "needed": DESCRIPTORS},
        ) from None
    finally:
        for descriptor in held:
            os.close(descriptor)


@functools.cache
def _probe(swipl: Path) -> Installation:
    try:
        done = subprocess.run(
            [str(swipl), "--dump-runtime-variables"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise _missing(f"{swipl} does not start: {problem}") from None
    variables = dict(re.findall(r'^(PL\w+)="(.*)";$', done.stdout, re.MULTILINE))
    if done.returncode != 0 or not variables.get("PLVERSION", "").isdigit():
        output = (done.stderr.strip() or done.stdout.strip() or "nothing")[:200]
        raise _missing(f"{swipl} is no SWI-Prolog: it ended with {done.returncode} and said {output}")
    library = variables.get("PLLIBSWIPL")
    installation = Installation(
        swipl=swipl,
        version=version_of(int(variables["PLVERSION"])),
        home=Path(variables["PLBASE"]),
        libswipl=Path(library) if library else None,
    )
    _refuse_unsupported(installation, threads=variables.get("PLTHREADS") == "yes")
    return installation


def version_of(number: int) -> tuple[int, int, int]:
    """Return a version number of SWI-Prolog in parts: for example 90209 becomes (9, 2, 9)."""
    return number // 10_000, number // 100 % 100, number % 100


def _refuse_unsupported(found: Installation, *, threads: bool) -> None:
    detail = {"swipl": str(found.swipl), "version": found.version_text}
    if found.version < LEAST_VERSION:
        why = f"{found.swipl} is SWI-Prolog {found.version_text}; 9.2 or later is needed"
    elif found.version in UNSOUND_VERSIONS:
        why = f"{found.swipl} is SWI-Prolog {found.version_text}, which can crash; use 9.2 or 10.0.2 and later"
    elif not threads:
        why = f"{found.swipl} was built without threads"
    else:
        return
    raise EngineError("prolog_unsupported", f"{why}. {how_to_install()}", detail)


def _missing(why: str) -> EngineError:
    return EngineError("prolog_missing", f"SWI-Prolog was not found: {why}. {how_to_install()}")


def how_to_install() -> str:
    """One sentence with the command that installs SWI-Prolog on this platform."""
    otherwise = (
        f"or the engine of the package {BUNDLE} where it has one for this platform, "
        "or run ./bootstrap in a checkout of prolog-rlm, or set "
        f"{ENVIRONMENT_VARIABLE} to a program of version 9.2, or of 10.0.2 and later."
    )
    if sys.platform == "darwin":
        return f"Install it with: brew install swi-prolog, {otherwise}"
    if sys.platform == "win32":
        return f"Install it from https://www.swi-prolog.org/download/stable, {otherwise}"
    system = _linux_release()
    version = system.get("VERSION_ID", "").split(".")[0]
    if system.get("ID") == "debian" and version.isdigit():
        if int(version) >= 13:
            return f"Install it with: apt-get install swi-prolog-nox, {otherwise}"
        if int(version) == 12:
            return f"Debian 12 packages one that is too old: {otherwise.removeprefix('or ')}"
    return f"Install 9.2 or later from your system's packages, {otherwise}"


def _linux_release() -> dict[str, str]:
    try:
        text = files.read_text("/etc/os-release", MOST_RELEASE_BYTES, errors="replace")
    except FileError:
        return {}
    return {name: value.strip('"') for name, value in re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE)}
