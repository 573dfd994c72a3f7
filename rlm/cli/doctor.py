"""``rlm doctor``: installed parts, their paths, missing parts and the commands that install them.

``report`` only reads: it changes nothing, opens no connection, and cannot end this process.
Prolog is tried in a process of its own, because a broken installation can end the process that loads it.
"""

from __future__ import annotations

import importlib.util
import json
import platform
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from rlm import __version__, resources
from rlm.compiler.tokens.vocabulary import VOCABULARIES, Vocabulary, source_of
from rlm.errors import EngineError, RlmError
from rlm.model.versions import installed, satisfies
from rlm.providers import local
from rlm.symbolic import locate

DISTRIBUTION = "prolog-rlm"
CORE = ("pydantic", "httpx", "anyio", "tiktoken", "jsonschema", "pyyaml", "typer", "rich")
ENGINES = {"bundled": f"bundled, from the package {locate.BUNDLE}", "system": "the system's swipl, with janus_swi"}
TRY_SECONDS = 60.0

_TRY = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from rlm.errors import RlmError
from rlm.symbolic.engine import engine
try:
    print(json.dumps({"answer": engine().call("ping")}))
except RlmError as problem:
    print(json.dumps({"error": problem.to_dict()}))
"""


def report() -> dict[str, Any]:
    """Return the state of this installation as JSON data.

    ``ok`` is true if every required part is there and works. ``missing`` lists the other parts: ``what`` (the part),
    ``get`` (a command or a sentence) and ``needed`` (false for an optional part).
    """
    paths, missing = _paths()
    prolog, prolog_missing = _prolog()
    extras = _extras()
    vocabularies = {name: _vocabulary(vocabulary) for name, vocabulary in VOCABULARIES.items()}
    model = _local_model()
    missing += prolog_missing
    missing += [
        _lacks(f"Python package {name}", f"pip install '{DISTRIBUTION}'") for name in CORE if installed(name) is None
    ]
    missing += [
        _lacks(f"extra {name} ({', '.join(extra['lacks'])})", extra["get"], needed=False)
        for name, extra in extras.items()
        if not extra["present"]
    ]
    if not all(vocabulary["exact"] for vocabulary in vocabularies.values()):
        get = f"pip install '{DISTRIBUTION}[offline]'"
        missing.append(_lacks("exact token counts (they are estimated)", get, needed=False))
    if not model["available"]:
        missing.append(_lacks("a local model", model["why"], needed=False))
    return {
        "ok": not any(thing["needed"] for thing in missing),
        "versions": {
            "rlm": __version__,
            "python": platform.python_version(),
            "swi_prolog": prolog["version"],
            "janus_swi": prolog["janus"],
            **{name: installed(name) for name in CORE},
        },
        "platform": platform.platform(),
        "paths": {**paths, **prolog["paths"]},
        "prolog": {name: prolog[name] for name in ("works", "error", "engine", "reason", "bignums")},
        "extras": extras,
        "vocabularies": vocabularies,
        "local_model": model,
        "missing": missing,
    }


def show(state: dict[str, Any]) -> None:
    """Print a report on the terminal."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for title, rows in _sections(state):
        console.print(Text(title, style="bold"))
        width = max((len(name) for name, _ in rows), default=0)
        for name, value in rows:
            console.print(Text.assemble("  ", (name.ljust(width), "cyan"), "  ", value))
        console.print()
    for thing in state["missing"]:
        console.print(Text(f"{'Missing' if thing['needed'] else 'Optional'}: {thing['what']}", style="bold"))
        console.print(Text(f"  {thing['get']}"))
    verdict = "Everything that is needed is there." if state["ok"] else "Something that is needed is missing."
    console.print(Text(verdict, style="green" if state["ok"] else "red"))


def _sections(state: dict[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the titles and rows of the parts that are installed. ``show`` prints the missing parts below them."""
    model = state["local_model"]
    return [
        ("Versions", [(name, version or "not installed") for name, version in state["versions"].items()]),
        ("Paths", [(name, path or "not found") for name, path in state["paths"].items()]),
        ("Prolog in Python", _engine_rows(state["prolog"])),
        ("Extras", [(name, "present" if extra["present"] else "missing") for name, extra in state["extras"].items()]),
        ("Token counts", [(name, _counted(found)) for name, found in state["vocabularies"].items()]),
        ("Local model", [("model", model["file"] if model["available"] else "none")]),
    ]


def _engine_rows(prolog: dict[str, Any]) -> list[tuple[str, str]]:
    """Which engine runs, why, and whether it works."""
    rows = [("state", "works" if prolog["works"] else "does not work")]
    if prolog["engine"] is not None:
        rows += [("engine", ENGINES[prolog["engine"]]), ("because", prolog["reason"])]
    if prolog["bignums"] is not None:
        rows.append(("big integers", prolog["bignums"]))
    return rows


def _counted(found: dict[str, Any]) -> str:
    return f"{'exact' if found['exact'] else 'estimated, on the high side'} ({found['source']})"


def _lacks(what: str, get: str, *, needed: bool = True) -> dict[str, Any]:
    return {"what": what, "get": get, "needed": needed}


def _paths() -> tuple[dict[str, str | None], list[dict[str, Any]]]:
    paths: dict[str, str | None] = {"python": sys.executable, "package": str(Path(resources.__file__).parent)}
    missing = []
    for name, folder in (("rules", resources.prolog_dir), ("skills", resources.skills_dir)):
        try:
            paths[name] = str(folder())
        except RlmError as problem:
            paths[name] = None
            missing.append(_lacks(f"the library's own {name}", problem.message))
    return paths, missing


def _prolog() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the state of SWI-Prolog and of its bridge, and the missing parts."""
    try:
        found = locate.find()
    except EngineError as problem:
        state: dict[str, Any] = {
            "version": None,
            "janus": installed("janus_swi"),
            "engine": None,
            "reason": None,
            "bignums": None,
            "paths": {"swipl": None, "prolog_home": None, "libswipl": None},
            "works": False,
            "error": problem.to_dict(),
        }
        return state, [_lacks("SWI-Prolog", problem.message)]
    error = _try_engine()
    state = {
        "version": found.version_text,
        "janus": installed("janus_swi") if found.janus is None else found.janus_version,
        "engine": found.kind,
        "reason": found.reason,
        "bignums": found.bignums,
        "paths": {
            "swipl": str(found.swipl),
            "prolog_home": str(found.home),
            "libswipl": None if found.libswipl is None else str(found.libswipl),
        },
        "works": error is None,
        "error": error,
    }
    if error is None:
        return state, []
    return state, [_lacks("the bridge from Python to SWI-Prolog", str(error["message"]))]


def _try_engine() -> dict[str, Any] | None:
    """Return None if Prolog answers in a process like this one, else the error as data."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _TRY, json.dumps(sys.path)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TRY_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return EngineError("bridge", f"Prolog could not be tried in a process of its own: {problem}").to_dict()
    output_lines = done.stdout.strip().splitlines()
    if done.returncode == 0 and output_lines:
        error: dict[str, Any] | None = json.loads(output_lines[-1]).get("error")
        return error
    last = (done.stderr.strip() or "nothing").splitlines()[-1][:300]
    message = f"a process that loads Prolog ended with {done.returncode} and said: {last}"
    return EngineError("bridge", message, {"returncode": done.returncode}).to_dict()


def _extras() -> dict[str, dict[str, Any]]:
    """Return each extra for users, with the versions of its packages."""
    try:
        required = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        required = []
    packages: dict[str, dict[str, str | None]] = {}
    lacks: dict[str, list[str]] = {}
    for line in required:
        found = re.match(r"([A-Za-z0-9._-]+)([^;]*).*extra *== *[\"']([A-Za-z0-9._-]+)[\"']", line)
        if found and found[3] not in ("dev", "system-swipl"):  # the latter is instead of the bundled engine
            version, versions_accepted = installed(found[1]), re.sub(r"[\s()]|\[[^]]*\]", "", found[2])
            packages.setdefault(found[3], {})[found[1]] = version
            missing = lacks.setdefault(found[3], [])
            if version is None:
                missing.append(found[1])
            elif not satisfies(version, versions_accepted):
                missing.append(f"{found[1]} {versions_accepted}; {version} is installed")
    return {
        extra: {
            "present": not lacks[extra],
            "packages": versions,
            "lacks": lacks[extra],
            "get": f"pip install '{DISTRIBUTION}[{extra}]'",
        }
        for extra, versions in sorted(packages.items())
    }


def _vocabulary(vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the source of a tokenizer's vocabulary, and whether counts are exact."""
    source = source_of(vocabulary)
    return {"source": source or "estimate", "exact": source is not None}


def _local_model() -> dict[str, Any]:
    """Return the model that ``local`` would serve, or the reason why it cannot."""
    try:
        file = local.default_model()
    except RlmError as problem:
        return {"available": False, "file": None, "why": problem.message}
    if not file.is_file():
        return {"available": False, "file": str(file), "why": f"{local.MODEL_VARIABLE} names no file: {file}"}
    if importlib.util.find_spec("xllamacpp") is None:
        return {"available": False, "file": str(file), "why": f"pip install '{DISTRIBUTION}[local]'"}
    return {"available": True, "file": str(file), "why": None}
