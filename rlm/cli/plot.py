"""Plots of recall against tokens: in letters for a terminal, or as SVG. This module only draws; it measures nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rlm.evaluation.evaluate import Figures

COLUMNS, LINES = 64, 16
WIDTH, HEIGHT, EDGE = 640, 420, 56
COLORS = ("#1f6feb", "#d1570b", "#2a7d3f", "#8250a8")
LETTERS = "abcd"
_SVG = 'xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12"'

Point: TypeAlias = tuple[str, float, float]
"""Label, tokens and recall."""


def points(row: Figures) -> list[Point]:
    """Return a point for each number of first tools, and a last point for the tools that are shown."""
    found = [(f"{first} tools" if first > 1 else "1 tool", tokens, recall) for first, recall, tokens in row.curve]
    shown = [] if row.recall_shown is None else [("as shown", row.tokens, row.recall_shown)]
    return found + shown


def _most(rows: Sequence[Figures]) -> float:
    return max((tokens for row in rows for _, tokens, _ in points(row)), default=1) or 1


def letters(rows: Sequence[Figures]) -> list[str]:
    """Return the plot as lines: a letter for each system, in upper case for the shown tools.

    ``#`` marks a place where two systems meet.
    """
    most = _most(rows)
    grid = [[" "] * (COLUMNS + 1) for _ in range(LINES + 1)]
    for letter, row in zip(LETTERS, rows, strict=False):
        for label, tokens, recall in points(row):
            x, y = round(COLUMNS * tokens / most), LINES - round(LINES * recall)
            mark = letter.upper() if label == "as shown" else letter
            free = grid[y][x].lower() in (" ", letter)
            grid[y][x] = mark if free else "#"
    names = ", ".join(f"{letter}: {row.system}" for letter, row in zip(LETTERS, rows, strict=False))
    return [
        f"recall against tokens of the first tools; in upper case, as shown ({names})",
        *(f"{1 - y / LINES:5.2f} |{''.join(cells).rstrip()}" for y, cells in enumerate(grid)),
        f"      +{'-' * COLUMNS} {most:,.0f} tokens",
    ]


def svg(rows: Sequence[Figures]) -> str:
    """Return the plot as an SVG document that loads nothing from elsewhere."""
    most = _most(rows)
    wide, high = WIDTH - 2 * EDGE, HEIGHT - 2 * EDGE

    def x(tokens: float) -> float:
        return EDGE + wide * tokens / most

    def y(recall: float) -> float:
        return HEIGHT - EDGE - high * recall

    parts = [f'<svg {_SVG} viewBox="0 0 {WIDTH} {HEIGHT}">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for fifth in range(6):
        parts.append(
            f'<line x1="{EDGE}" y1="{y(fifth / 5):.1f}" x2="{x(most):.1f}" y2="{y(fifth / 5):.1f}" stroke="#ddd"/>'
        )
        parts.append(f'<text x="{EDGE - 8}" y="{y(fifth / 5) + 4:.1f}" text-anchor="end">{fifth / 5:.1f}</text>')
        below = f'<text x="{x(most * fifth / 5):.1f}" y="{y(0) + 18:.1f}" text-anchor="middle">'
        parts.append(f"{below}{most * fifth / 5:,.0f}</text>")
    for place, (row, color) in enumerate(zip(rows, COLORS, strict=False)):
        parts += _drawn(row, color, [(label, x(tokens), y(recall)) for label, tokens, recall in points(row)])
        name = f'<text x="{x(most) - 8:.1f}" y="{y(0) - 12 - 16 * place:.1f}" text-anchor="end" fill="{color}">'
        parts.append(f"{name}{escape(row.system)}</text>")
    parts.append(f'<text x="{EDGE}" y="{EDGE - 20}">recall</text>')
    axis_label = "tokens of a request with so many of the first tools; the ring marks the tools that are shown"
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 14}" text-anchor="middle">{axis_label}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _drawn(row: Figures, color: str, spots: Sequence[tuple[str, float, float]]) -> Iterator[str]:
    line = " ".join(f"{x:.1f},{y:.1f}" for label, x, y in spots if label != "as shown")
    yield f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>'
    for label, x, y in spots:
        radius, fill = (7, "none") if label == "as shown" else (3, color)
        circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}" stroke="{color}" stroke-width="2">'
        yield f"{circle}<title>{escape(row.system)}: {label}</title></circle>"
