"""How long it takes to catalogue a folder of skills, and that their resources are not touched.

    python bench/skills.py [--quick]

2,000 skills of ordinary size, each with resources. ``file_ms`` is processor time for one file, from its bytes to a
package (median and 99th percentile); ``load`` reads all of them, ``register`` makes units of them in a new catalog,
``again`` does so once more with nothing changed. ``opened`` counts what was opened for a file; more than its folder and
the file itself would be a resource. Goals: 1 ms a file, 2 s for 2,000 files.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rlm
from bench.common import emit, parser, progress
from rlm.skills import SkillPolicy, load, read_package

SKILLS = 2_000
RESOURCES = 5
WORDS = (
    "Extract text and tables from documents, fill forms, merge files. Use when somebody works with documents or forms."
)
_opened: list[str] | None = None


def main() -> None:
    options = parser(__doc__).parse_args()
    sys.addaudithook(_hook)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(SKILLS):
            written(folder / f"skill-{number:04d}", number)
        progress(f"{SKILLS} skills with {RESOURCES} resources each")
        emit("skills", [one_file(folder), whole_folder(folder, 1 if options.quick else 5)])


def written(folder: Path, number: int) -> None:
    """A skill of ordinary size: six fields, some two thousand characters of body."""
    folder.mkdir()
    body = "".join(
        f"## Step {step}\n\nLook before acting, take one small step, then verify it.\n\n" for step in range(30)
    )
    (folder / "SKILL.md").write_text(
        f"---\nname: {folder.name}\ndescription: Number {number}. {WORDS}\nlicense: MIT\n"
        f'metadata:\n  author: somebody\n  version: "1.{number}"\n'
        f"allowed-tools: Bash(git add *) Read\n---\n# Title\n\n{body}"
    )
    (folder / "references").mkdir()
    for resource in range(RESOURCES):
        (folder / "references" / f"{resource}.md").write_text("untouched\n")


def one_file(folder: Path) -> dict[str, Any]:
    """From bytes to a package, file by file."""
    policy = SkillPolicy()
    spent = []
    for path in sorted(folder.glob("*/SKILL.md")):
        data = path.read_bytes()
        before = time.process_time()
        package, _ = read_package(data, path.parent.name, policy)
        spent.append(1000 * (time.process_time() - before))
        assert package is not None
    quantiles = statistics.quantiles(spent, n=100)
    return {"what": "file", "file_ms": round(statistics.median(spent), 3), "file_p99_ms": round(quantiles[98], 3)}


def whole_folder(folder: Path, runs: int) -> dict[str, Any]:
    """Reading and registering all of them; the medians of some runs."""
    global _opened
    _opened = []
    library = load(folder)
    opened, _opened = _opened, None
    assert len(library.skills) == SKILLS
    catalog = rlm.Catalog()
    rows: list[dict[str, float]] = []
    for run in range(runs):
        rows.append(
            {
                **timed("load", lambda: load(folder)),
                **timed("register", lambda: rlm.Catalog().add_skills(folder)),
                **timed("again", lambda: catalog.add_skills(folder)),
            }
        )
        progress(f"run {run + 1} of {runs}: {rows[-1]}")
    middle = {key: round(statistics.median(row[key] for row in rows), 3) for key in rows[0]}
    return {"what": "folder", "skills": SKILLS, **middle, "opened": len(opened) / SKILLS}


def timed(name: str, call: Callable[[], object]) -> dict[str, float]:
    """Wall and processor seconds of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return {f"{name}_s": time.perf_counter() - wall, f"{name}_cpu_s": time.process_time() - cpu}


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if event == "open" and _opened is not None:
        _opened.append(str(args[0]))


if __name__ == "__main__":
    main()
