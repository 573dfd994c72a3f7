"""``rlm skills``: the loader's findings about folders of skills."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from rlm.cli.options import AsJson
from rlm.cli.outcome import failed, print_json, report_errors

PRINTED_ONCE = frozenset({"group_folder"})
"""Notes about the layout of folders: they are printed once for many skills."""

app = typer.Typer(help="Look at SKILL.md packages.", no_args_is_help=True, rich_markup_mode=None)


@app.command("check")
@report_errors
def check(
    path: Annotated[Path, typer.Argument(exists=True, help="A folder of skills, one skill's folder, or a SKILL.md.")],
    strict: Annotated[bool, typer.Option("--strict", help="Refuse a skill for its warnings too.")] = False,
    json_output: AsJson = False,
) -> None:
    """List every problem of skills, with file, line, column and remedy."""
    from rlm.catalog.catalog import Catalog

    with Catalog() as catalog:
        library = catalog.add_skills(path, strict=strict)
    if json_output:
        print_json(library.to_dict())
    else:
        from rlm.cli import show
        from rlm.model.words import counted
        from rlm.skills.findings import FINDINGS

        counts = Counter(
            found.code for entry in library.entries for found in entry.findings if found.code in PRINTED_ONCE
        )
        shared = {code for code, number in counts.items() if number > 1}
        for entry in library.entries:
            show.line(f"{entry.verdict.value}: {entry.path}", style="red" if entry in library.refused else "")
            for found in entry.findings:
                if found.code in shared:
                    continue
                place = f"{found.line}:{found.column}: " if found.line else ""
                fix = f"; {found.fix}" if found.fix else ""
                show.line(f"  {found.level.value}: {place}{found.message}{fix}")
        for code in sorted(shared):
            first = next(found for entry in library.entries for found in entry.findings if found.code == code)
            meaning = FINDINGS[code]
            show.line(f"{first.level.value}, for {counts[code]:,} skills: {meaning.problem}; {meaning.fix}")
        show.line(f"{path}: {counted(len(library.skills), 'good skill')}")
    refused = len(library.refused)
    if refused:
        error = {"phase": "catalog", "kind": "skills_refused", "detail": {"path": str(path), "refused": refused}}
        raise failed({**error, "message": f"{path}: {refused} refused"})


@app.command("list")
@report_errors
def list_command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PATH]...", exists=True, help="Folders of skills; default: those of the library."),
    ] = None,
    json_output: AsJson = False,
) -> None:
    """List the skills of folders, or those that come with the library."""
    folders: list[Path | None] = [*paths] if paths else [None]
    skills = [row for folder in folders for row in _listed(folder)]
    if json_output:
        print_json({"skills": skills})
        return
    from rlm.cli import show

    cells = [(row["id"], str(row["bytes"]), row["digest"][:12], row["description"]) for row in skills]
    show.rows(("skill", "bytes", "digest", "description"), cells, right=(1,))


def _listed(path: Path | None) -> list[dict[str, Any]]:
    """Return a row for each skill of a folder, in order of paths; None stands for the library's own folder."""
    from rlm.catalog.catalog import Catalog
    from rlm.resources import skills_dir
    from rlm.skills.bundle import SCOPE

    with Catalog() as catalog:
        library = catalog.add_skills(path) if path else catalog.add_skills(skills_dir(), scope=SCOPE, trust="host")
    return [
        {
            "id": entry.units[0],
            "name": entry.skill.name,
            "scope": library.scope,
            "path": entry.path,
            "digest": entry.skill.digest,
            "description": entry.skill.package.description,
            "bytes": len(entry.skill.package.body.encode()),
        }
        for entry in library.entries
        if entry.skill is not None and entry.units
    ]
