"""Small pieces of HTML for notebooks. Every text is escaped: units and results may hold text of third parties."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import Any

MOST_ROWS = 200
"""Rows of a table; a line says how many follow."""

MOST_CHARACTERS = 2_000
"""Characters of one text; a text that is longer ends with its length."""

_CELL = "text-align:left;vertical-align:top;padding:2px 10px 2px 0"
_NUMBER = "text-align:right;vertical-align:top;padding:2px 10px 2px 0"


def text(value: Any) -> str:
    """Return a text, escaped and bounded. For example ``<b>`` becomes ``&lt;b&gt;``."""
    whole = str(value)
    if len(whole) > MOST_CHARACTERS:
        whole = f"{whole[:MOST_CHARACTERS]} … ({len(whole):,} characters)"
    return escape(whole)


def card(title: str, *parts: str) -> str:
    """Return a title with finished pieces below it."""
    return f"<div><strong>{text(title)}</strong>{''.join(parts)}</div>"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], total: int | None = None) -> str:
    """Return a table of the first rows. Numbers stand right. ``total`` is the number of all rows."""
    listed = list(islice(rows, MOST_ROWS if total is not None else None))
    if not listed:
        return ""
    shown = [f"<tr>{''.join(_cell(value) for value in row)}</tr>" for row in listed[:MOST_ROWS]]
    heads = "".join(f'<th style="{_CELL}">{text(name)}</th>' for name in head)
    more = (len(listed) if total is None else total) - len(shown)
    rest = f"<div>{more:,} more</div>" if more > 0 else ""
    return f'<table style="border-collapse:collapse"><tr>{heads}</tr>{"".join(shown)}</table>{rest}'


def items(lines: Iterable[Any]) -> str:
    """Return a list of lines."""
    listed = "".join(f"<li>{text(line)}</li>" for line in lines)
    return f"<ul>{listed}</ul>" if listed else ""


def block(value: Any) -> str:
    """Return a text as it is written, with its line ends."""
    return f'<pre style="white-space:pre-wrap">{text(value)}</pre>'


def _cell(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f'<td style="{_NUMBER}">{value:,}</td>'
    return f'<td style="{_CELL}">{text("" if value is None else value)}</td>'
