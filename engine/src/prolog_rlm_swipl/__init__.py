"""SWI-Prolog and Janus in one folder, for prolog-rlm. Importing this starts nothing.

Nothing here is found by name: the shared libraries have names of their own, and Janus lies in ``_vendor``, which is
on no path. So this engine and a SWI-Prolog of the system do not mix.
"""

from __future__ import annotations

import importlib.machinery
import json
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Engine", "engine"]

_FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Engine:
    """One SWI-Prolog with its Janus.

    ``program`` starts Prolog, ``home`` is its library, ``library`` the shared library (None where it was not found),
    ``janus`` the package ``janus_swi``, ``build`` what it was made from.
    """

    version: tuple[int, int, int]
    program: Path
    home: Path
    library: Path | None
    janus: Path
    build: dict[str, str]


def engine() -> Engine | None:
    """The engine in this package; None where it has none for this Python.

    On a platform that has no engine the package is installed without one.
    """
    janus = _FOLDER / "_vendor" / "janus_swi"
    suffixes = importlib.machinery.EXTENSION_SUFFIXES
    if not any((janus / f"_swipl{suffix}").is_file() for suffix in suffixes):
        return None
    build = json.loads((_FOLDER / "build.json").read_text(encoding="utf-8"))
    first, second, third = (int(part) for part in build["swi_prolog"].split("."))
    beside = _FOLDER.parent / "prolog_rlm_swipl.libs"
    return Engine(
        version=(first, second, third),
        program=_FOLDER / "bin" / "swipl",
        home=_FOLDER / "home",
        library=next(iter(sorted(beside.glob("libswipl*"))), None),
        janus=janus,
        build=build,
    )
