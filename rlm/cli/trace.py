"""``rlm trace``: print a trace on the terminal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from rlm.cli.options import AsJson
from rlm.cli.outcome import print_json, report_errors

app = typer.Typer(help="Look at traces.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def traces() -> None:
    """Look at traces."""


@app.command("view")
@report_errors
def view(
    file: Annotated[Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="A trace (*.jsonl).")],
    json_output: AsJson = False,
) -> None:
    """Show a run as a tree: agents, turns, requests with their tokens, tools, refusals and ends."""
    from rlm.cli.tree import Tree
    from rlm.trace.writer import Record

    record = Record(file)
    tree = Tree(_Bodies(record))
    for event in record.events:
        tree.see(event)
    if json_output:
        print_json({"events": list(record.events)})
        return
    from rlm.cli import show
    from rlm.cli.live import drawn

    with show.console.capture() as printed:
        show.console.print(drawn(tree.root))
    show.console.file.write(re.sub(r" +$", "", printed.get(), flags=re.MULTILINE))
    end = record.of("end")
    seconds = f", {end[0]['usage']['seconds']:.1f} s" if end else ""
    show.line(f"{tree.totals}{seconds}")
    if not end:
        show.line("The trace has no end: the run goes on, or it was cut off.", style="yellow")


class _Bodies:
    """Returns the stored body of a digest, or None if the trace has no store."""

    def __init__(self, record: Any) -> None:
        self._record = record

    def __call__(self, digest: str) -> Any:
        from rlm.errors import ConfigurationError

        try:
            return self._record.value(digest)
        except (ConfigurationError, ValueError):  # a trace without its store is still worth a look
            return None
