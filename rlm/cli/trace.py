"""``rlm trace``: print a trace on the terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlm.cli.options import AsJson
from rlm.cli.outcome import print_json, report_errors

if TYPE_CHECKING:
    from rlm.model.budget import RoleUsage, UnitUsage

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


@app.command("cost")
@report_errors
def cost(
    file: Annotated[Path, typer.Argument(metavar="RUN", exists=True, dir_okay=False, help="A trace (*.jsonl).")],
    json_output: AsJson = False,
) -> None:
    """Show the bill of a run: by role and by unit, and the tools that were shown and not used."""
    from rlm.cli import show
    from rlm.errors import ConfigurationError
    from rlm.model.budget import Spent
    from rlm.trace.writer import Record

    end = Record(file).of("end")
    if not end:
        raise ConfigurationError(
            "no_end", f"{file} has no end: the run goes on, or it was cut off. Look at it with view"
        )
    usage = Spent(**end[0]["usage"])
    if json_output:
        bill = usage.model_dump(mode="json", include={"by_role", "by_unit"})
        print_json({**bill, "unused": list(usage.unused)})
        return
    if not usage.by_role and not usage.by_unit:
        show.line("The trace has no bill by role and unit: an older version wrote it, or nothing was sent.")
        return
    roles = [
        [name, row.requests, row.characters, row.input_tokens, row.output_tokens, row.cached_input_tokens]
        for name, row in usage.by_role.items()
    ]
    prices: list[RoleUsage | UnitUsage] = [*usage.by_role.values()]
    show.line(_table(["role", "requests", "characters", "tokens in", "out", "cached"], roles, prices))
    units = sorted(usage.by_unit.items(), key=lambda item: (-item[1].tokens, item[0]))
    rows = [[id, row.shown, row.used, row.characters, row.tokens, row.cached_tokens] for id, row in units]
    show.line("")
    show.line(_table(["unit", "shown", "used", "characters", "tokens", "cached"], rows, [row for _, row in units]))
    for sentence in usage.unused:
        show.line(sentence)


def _table(head: list[str], rows: list[list[Any]], prices: Sequence[RoleUsage | UnitUsage]) -> str:
    """Return rows in columns; the last column has USD if any price is known."""
    if any(row.cost_usd is not None for row in prices):
        head = [*head, "USD"]
        costs = ["" if row.cost_usd is None else f"{row.cost_usd:.6f}" for row in prices]
        rows = [[*row, cost] for row, cost in zip(rows, costs, strict=True)]
    texts = [head, *([f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[place]) for row in texts) for place in range(len(head))]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in texts]
    return "\n".join(lines)


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
