"""Output of the commands for people: aligned and wrapped on a terminal, one row a line in a pipe."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from rlm.cli.terminal import MOST_FINDINGS, visible
from rlm.compiler.explain.explain import Change, Explanation
from rlm.compiler.view import CompiledContext
from rlm.model.words import counted

if TYPE_CHECKING:
    from rlm.sending.results import Answer

PIPED_WIDTH = 4096
LAST_COLUMN = 0.4
"""The share of a line that the last column of a table keeps where the other columns are wide."""

console = Console(highlight=False)
if not console.is_terminal:
    console = Console(highlight=False, width=PIPED_WIDTH)


def view(view: CompiledContext) -> None:
    """Print the shown units with their reasons, the rejected units, and the sums."""
    overview = view.explain()
    if overview.active:
        rows(("unit", "form", "tokens", "why"), shown_rows(view, overview.active), right=(2,))
    else:
        line("Nothing is shown.")
    if overview.turned_away:
        line()
        away = [(item.unit, reasons(item)) for item in overview.turned_away]
        rows(("turned away", "why"), away, style="dim")
    line()
    line(sums(view))


def shown_rows(view: CompiledContext, active: Iterable[Explanation]) -> list[tuple[str, ...]]:
    """Return a row for each unit that is shown: id, form, tokens and reasons."""
    blocks = {item.unit.id: item.block for item in view.shown}
    return [(item.unit, blocks[item.unit].form, str(blocks[item.unit].tokens), reasons(item)) for item in active]


def reasons(item: Explanation) -> str:
    """Return the reasons for a unit's state in one line."""
    return "; ".join(item.sentences)


def sums(view: CompiledContext) -> str:
    """Return the number of shown units and their tokens in one line."""
    counts, ledger = view.counts, view.ledger
    tokens = "tokens" if ledger.exact else "tokens (estimated)"
    return (
        f"{counts['active']} of {counted(counts['units'], 'unit')}, {ledger.total:,} of {ledger.limit:,} {tokens}, "
        f"fingerprint {view.fingerprint[:12]}"
    )


def explanation(item: Explanation, change: Change) -> None:
    """Print one unit, and the change that would show or hide it."""
    line(str(item))
    line(str(change))


def answer(answer: Answer) -> None:
    """Print a model's answer."""
    if answer.text:
        line(answer.text)
    for call in answer.tool_calls:
        if call.error is None:
            line(f"calls {call.unit} with {call.arguments}")
        else:
            line(f"refused: {call.error['message']}", style="red")
    line(usage(answer), style="dim")


def usage(answer: Answer) -> str:
    """Return the model and its tokens in one line."""
    used, tools = answer.usage, counted(answer.tool_count, "tool")
    input_count = "unknown tokens" if used.input_tokens is None else counted(used.input_tokens, "token")
    output_count = "unknown" if used.output_tokens is None else f"{used.output_tokens:,}"
    return f"{answer.model}: {input_count} in, {output_count} out, {tools} shown, finished by {answer.finish_reason}"


def findings(file: Path, units: int, found: Iterable[Mapping[str, Any]]) -> None:
    """Print the findings of a catalog file: a table of the first ones on a terminal, one line each in a pipe."""
    if console.is_terminal:
        finding_rows(list(found), console.file)
        found = ()
    for row in found:
        where = "".join(f":{row[place]}" for place in ("line", "column") if row[place])
        field = f", field {row['field']}" if row["field"] else ""
        place = f"{row['file']}{where}{field}"
        line(f"{row['level']}: {place}: {row['message']}", style="red" if row["level"] == "error" else "yellow")
    line(f"{file}: {counted(units, 'good unit')}")


def finding_rows(found: Sequence[Mapping[str, Any]], stream: IO[str]) -> None:
    """Print the first findings as a table, and the number of the others."""
    cells = [
        (
            str(row["level"]),
            ":".join(str(row[at]) for at in ("line", "column") if row.get(at)),
            row["field"],
            row["message"],
        )
        for row in found[:MOST_FINDINGS]
    ]
    if cells:
        rows(("level", "line", "field", "what"), cells, stream=stream)
    if len(found) > MOST_FINDINGS:
        print(f"{len(found) - MOST_FINDINGS:,} more; --json prints all", file=stream)


def line(text: str = "", *, style: str = "") -> None:
    """Print a line or a paragraph. A terminal wraps it, a pipe does not."""
    console.print(Text(visible(text), style=style), soft_wrap=not console.is_terminal)


def rows(
    heads: Sequence[str],
    cells: Iterable[Sequence[str]],
    *,
    right: Sequence[int] = (),
    style: str = "",
    stream: IO[str] | None = None,
) -> None:
    """Print a table. Columns are as wide as their text, but the last one keeps its share of the line."""
    lines = [tuple(visible(cell) for cell in row) for row in cells]
    table = Table(box=None, pad_edge=False, header_style="bold", style=style)
    widths = _widths([max(map(len, column)) for column in zip(heads, *lines, strict=True)])
    for place, (head, width) in enumerate(zip(heads, widths, strict=True)):
        justify: JustifyMethod = "right" if place in right else "left"
        table.add_column(head, justify=justify, overflow="fold", width=width)
    for row in lines:
        table.add_row(*(Text(cell) for cell in row))
    with console.capture() as printed:
        console.print(table)
    (stream or console.file).write(re.sub(r" +(?=(\x1b\[0m)?$)", "", printed.get(), flags=re.MULTILINE))


def _widths(natural_widths: Sequence[int]) -> list[int]:
    *first, last = natural_widths
    available = console.width - 2 * len(first)
    least = min(last, int(available * LAST_COLUMN))
    while sum(first) > available - least and max(first) > 1:
        first[first.index(max(first))] -= 1
    return [*first, max(1, min(last, available - sum(first)))]
