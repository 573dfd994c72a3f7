"""``rlm eval`` and ``rlm suggest-relations``: how good selection is for one's own catalog, and what could help it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlm.cli.options import AsJson
from rlm.cli.outcome import print_json, told

if TYPE_CHECKING:
    from rlm.compiler.evaluate import Figures

CatalogFile = Annotated[
    Path, typer.Argument(metavar="CATALOG", exists=True, dir_okay=False, help="JSON Lines or JSON file of tools.")
]
_WIDTH, _HEIGHT = 64, 16
_WIDTHS = (9, 11, 6, 7, 7, 6, 6)
_SVG = 'xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12"'


@told
def eval_command(
    catalog: CatalogFile,
    queries: Annotated[
        Path,
        typer.Argument(
            metavar="QUERIES",
            exists=True,
            dir_okay=False,
            help="JSON Lines: query, and tools (needed names) or groups.",
        ),
    ],
    sensor: Annotated[bool, typer.Option("--sensor", help="Also with the sensor (extra semantic).")] = False,
    relations: Annotated[
        Path | None, typer.Option("--relations", metavar="FILE", exists=True, help="Relations to add to the catalog.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw recall against tokens into FILE (SVG).")
    ] = None,
    misses: Annotated[int, typer.Option("--misses", metavar="N", min=0, help="So many misses are explained.")] = 10,
    json_output: AsJson = False,
) -> None:
    """Measure selection on your own catalog: recall, tokens, and every miss explained."""
    from rlm.cli import show, work
    from rlm.compiler.evaluate import all_tools, evaluated, read_questions
    from rlm.compiler.sensor import Sensor

    units = work.load(work.Named((catalog,)), ())
    if relations is not None:
        units.add_relations(relations)
    questions = read_questions(queries, units)
    policy = work.policy(None, None, "compiled", None, None, 64)
    systems: list[tuple[str, Any]] = [("rules", None)]
    if sensor:
        systems.append(("rules+sensor", Sensor()))
    rows = [
        evaluated(name, units, questions, policy=policy, sensor=which, most_misses=misses) for name, which in systems
    ]
    everything = all_tools(units, questions[0].text, policy)
    if plot is not None:
        plot.write_text(svg(rows), encoding="utf-8")
    if json_output:
        print_json(
            {"units": len(units), "all_tools_tokens": everything, "systems": [dataclasses.asdict(r) for r in rows]}
        )
        return
    show.line(f"{len(units)} units, {len(questions)} questions; all tools: {everything} tokens")
    for line in table(rows, everything):
        show.line(line)
    show.line()
    for line in drawn(rows):
        show.line(line)
    for row in rows:
        for miss in row.misses:
            show.line()
            show.line(f"{row.system} missed {miss.unit} for: {miss.text[:200]}")
            for sentence in (*miss.why, miss.change):
                show.line(f"  - {sentence}")


@told
def suggest_command(
    catalog: CatalogFile,
    traces: Annotated[
        Path | None,
        typer.Option("--traces", metavar="DIR", exists=True, file_okay=False, help="A folder with traces (*.jsonl)."),
    ] = None,
    json_output: AsJson = False,
) -> None:
    """Propose relations, with the evidence for them, as lines that a person reads and `--relations` takes."""
    from rlm.catalog.suggest import calls_of_traces, propose
    from rlm.cli import work

    units = work.load(work.Named((catalog,)), ())
    found = propose(units, calls_of_traces(traces) if traces is not None else ())
    if json_output:
        print_json({"proposals": [proposal.model_dump(mode="json") for proposal in found]})
        return
    for proposal in found:
        print(proposal.line())


def table(rows: Sequence[Figures], everything: int) -> list[str]:
    """The figures, a line for each system."""
    heads = zip(("recall@5", "complete@5", "shown", "recall", "tokens", "saved", "ms"), _WIDTHS, strict=True)
    lines = [f"{'system':14} " + " ".join(f"{head:>{width}}" for head, width in heads)]
    for row in rows:
        saved = 1 - row.tokens / everything if everything else 0
        lines.append(
            f"{row.system:14} {row.recall5:9.3f} {row.completeness5:11.3f} {row.shown:6.1f} "
            f"{row.recall_shown:7.3f} {row.tokens:7.0f} {saved:6.1%} {row.query_ms:6.1f}"
        )
    return lines


def drawn(rows: Sequence[Figures]) -> list[str]:
    """Recall (upwards) against tokens, in letters: one letter for each system, ``#`` where two meet."""
    points = [
        (letter, tokens, recall) for letter, row in zip("ab", rows, strict=False) for _, recall, tokens in row.curve
    ]
    most = max((tokens for _, tokens, _ in points), default=1) or 1
    grid = [[" "] * (_WIDTH + 1) for _ in range(_HEIGHT + 1)]
    for letter, tokens, recall in points:
        x, y = round(_WIDTH * tokens / most), _HEIGHT - round(_HEIGHT * recall)
        grid[y][x] = letter if grid[y][x] in (" ", letter) else "#"
    lines = [f"{1 - y / _HEIGHT:5.2f} |{''.join(row).rstrip()}" for y, row in enumerate(grid)]
    names = ", ".join(f"{letter}: {row.system}" for letter, row in zip("ab", rows, strict=False))
    return [f"recall against tokens of the first tools ({names})", *lines, f"      +{'-' * _WIDTH} {most:.0f} tokens"]


def svg(rows: Sequence[Figures]) -> str:
    """The same as a picture."""
    most = max((tokens for row in rows for _, _, tokens in row.curve), default=1) or 1
    width, height, edge = 640, 400, 48
    parts = [
        f'<svg {_SVG} viewBox="0 0 {width} {height}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for tenth in range(0, 11, 2):
        y = height - edge - (height - 2 * edge) * tenth / 10
        parts.append(f'<line x1="{edge}" y1="{y:.1f}" x2="{width - edge}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{edge - 8}" y="{y + 4:.1f}" text-anchor="end">{tenth / 10:.1f}</text>')
    for place, (row, color) in enumerate(zip(rows, ("#1f6feb", "#d1570b"), strict=False)):
        spots = [
            (edge + (width - 2 * edge) * tokens / most, height - edge - (height - 2 * edge) * recall, count)
            for count, recall, tokens in row.curve
        ]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in spots)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        for x, y, count in spots:
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"><title>{count} tools</title></circle>'
            )
        name = escape(row.system)
        parts.append(f'<text x="{edge + 8}" y="{edge + 16 * place}" fill="{color}">{name}</text>')
    label = f"recall against tokens of the first tools (up to {most:.0f})"
    parts.append(f'<text x="{width / 2}" y="{height - 12}" text-anchor="middle">{label}</text>')
    return "\n".join([*parts, "</svg>", ""])
