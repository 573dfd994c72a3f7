"""What the commands print for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rlm.compiler.explain import Change, Explanation
from rlm.compiler.view import CompiledContext

console = Console(highlight=False)


def view(view: CompiledContext) -> None:
    """What is visible and why, then what was turned away."""
    console.print(active_table(view))
    overview = view.explain()
    for item in overview.turned_away:
        console.print(f"[dim]{escape(item.unit)}: {escape('; '.join(item.sentences))}[/dim]")
    counts, ledger = view.counts, view.ledger
    console.print(
        f"{counts['active']} of {counts['units']} units, {ledger.total} of {ledger.limit} tokens, "
        f"fingerprint {view.fingerprint[:12]}"
    )


def active_table(view: CompiledContext) -> Table:
    """The active units with form, tokens and reasons."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("unit", "form", "tokens", "why"):
        table.add_column(name, justify="right" if name == "tokens" else "left", overflow="fold")
    shown = {item.unit.id: item for item in view.shown}
    for id in view.active:
        item = shown[id]
        why = "; ".join(view.explain(id).sentences)
        table.add_row(escape(id), item.block.form, str(item.block.tokens), escape(why))
    return table


def explanation(item: Explanation, change: Change) -> None:
    """One unit, and what would change."""
    console.print(escape(str(item)))
    console.print(escape(str(change)))


def answer(answer: Any) -> None:
    """A model's answer, or what went wrong."""
    if answer.status == "ok":
        console.print(escape(answer.text))
        for call in answer.tool_calls:
            console.print(f"[bold]calls[/bold] {escape(str(call.unit or call.name))}({escape(call.arguments)})")
    else:
        console.print(f"[red]{escape(str(answer.error))}[/red]")


def findings(file: Path, units: int, rows: Iterable[Mapping[str, Any]]) -> None:
    """The findings of a catalog file."""
    for row in rows:
        colour = "red" if row["level"] == "error" else "yellow"
        field = f", field {row['field']}" if row["field"] else ""
        column = f":{row['column']}" if row["column"] else ""
        place = f"{row['file']}:{row['line']}{column}{field}"
        console.print(f"[{colour}]{row['level']}[/{colour}] {escape(place)}: {escape(row['message'])}")
    console.print(f"{escape(str(file))}: {units} good units")
