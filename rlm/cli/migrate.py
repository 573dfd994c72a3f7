"""``rlm migrate``: files of earlier versions, in the newest format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rlm.cli.options import AsJson
from rlm.cli.outcome import print_json, report_errors


@report_errors
def migrate_command(
    file: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", exists=True, dir_okay=False, help="Traces, sessions, policies, relations; repeatable."
        ),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what each file is.")] = False,
    json_output: AsJson = False,
) -> None:
    """Rewrite files of earlier versions in the newest format, and say what each file is."""
    from rlm.migration import migrate

    results = [migrate(path, dry_run=dry_run) for path in file]
    if json_output:
        print_json({"files": [result.model_dump(mode="json") for result in results]})
        return
    from rlm.cli import show

    for result in results:
        state = "rewritten" if result.changed else "left as it is"
        show.line(f"{result.path}: {result.kind}, format {result.found}, {state}")
        if result.note:
            show.line(f"  {result.note}")
