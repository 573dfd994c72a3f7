"""Hatchling's hook: adds the compiled rules to a wheel where ``engine/dist`` has the bundled engine of this machine.

A wheel without them works as well; the rules are then loaded from their sources. ``rlm/symbolic/compiled.py`` decides.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = "rlm.pl"
# The loader is loaded from its source, at run time as well: it watches how the rest is loaded.
COMPILE = "load_files(user:'rlm_load.pl', [silent(true)]), qcompile('rlm.pl', [include(user)])"
IDENTITY = "load_files(user:'rlm_load.pl', [silent(true)]), rlm_load:identity(Text), write(Text)"


class CompiledRules(BuildHookInterface):  # type: ignore[type-arg, misc, unused-ignore]
    """Compiles the rules into a folder that lives as long as the build."""

    folder: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        engine = newest_engine(root / "engine" / "dist")
        if version == "editable" or engine is None:
            return
        self.folder = tempfile.TemporaryDirectory(prefix="rules-")
        work = Path(self.folder.name)
        try:
            made = compile_rules(root, engine, work)
        except (OSError, subprocess.SubprocessError, zipfile.BadZipFile) as problem:
            self.app.display_warning(f"the rules are not compiled: {problem}")
            return
        for path in made:
            build_data["force_include"][str(path)] = f"rlm/_prolog/{path.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self.folder is not None:
            self.folder.cleanup()


def newest_engine(dist: Path) -> Path | None:
    """The engine's wheel for this kind of machine; its Python does not matter."""
    if not sys.platform.startswith("linux"):
        return None
    wheels = dist.glob(f"prolog_rlm_swipl-*_{platform.machine()}.whl")
    return max(wheels, key=lambda path: path.stat().st_mtime, default=None)


def compile_rules(root: Path, engine: Path, work: Path) -> list[Path]:
    """The compiled rules and the note on what they were made of."""
    with zipfile.ZipFile(engine) as archive:
        archive.extractall(work / "engine")
    (program,) = (work / "engine" / "prolog_rlm_swipl" / "home" / "bin").glob("*/swipl")
    program.chmod(0o755)
    rules = work / "rules"
    rules.mkdir()
    total = hashlib.sha256()
    for path in sorted((root / "prolog").glob("*.pl")):
        content = path.read_bytes()
        (rules / path.name).write_bytes(content)
        total.update(f"{path.name} {hashlib.sha256(content).hexdigest()}\n".encode())
    run(program, rules, COMPILE)
    compiled = rules / "rlm.qlf"
    note = {
        "source": SOURCE,
        "prolog": run(program, rules, IDENTITY),
        "rules": total.hexdigest(),
        "compiled": hashlib.sha256(compiled.read_bytes()).hexdigest(),
    }
    note_file = rules / "rlm.qlf.json"
    note_file.write_text(json.dumps(note, indent=1) + "\n", encoding="utf-8")
    return [compiled, note_file]


def run(program: Path, folder: Path, goal: str) -> str:
    """What a goal prints, in a Prolog that any warning ends with a failure."""
    words = [program, "-q", "-f", "none", "--on-warning=status", "--on-error=status", "-g", goal, "-t", "halt"]
    environment = {name: value for name, value in os.environ.items() if name not in ("SWI_HOME_DIR", "SWIPL")}
    done = subprocess.run(
        [str(word) for word in words], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )
    if done.returncode != 0 or done.stderr:
        raise OSError(f"{goal}: {done.stderr.strip() or done.returncode}")
    return done.stdout
