"""``rlm eval`` measures selection on a catalog; ``rlm suggest-relations`` proposes relations that could improve it."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlm.cli.options import AsJson, SensorName
from rlm.cli.outcome import print_json, report_errors

if TYPE_CHECKING:
    from rlm.evaluation.evaluate import Figures, Miss

CatalogFile = Annotated[
    Path, typer.Argument(metavar="CATALOG", exists=True, dir_okay=False, help="JSON Lines or JSON file of tools.")
]
_HEADS = (
    *("system", "recall@5", "complete@5", "tokens@5", "recall@10", "tokens@10"),
    *("shown", "recall", "complete", "tokens", "saved"),
)


@report_errors
def eval_command(
    catalog: CatalogFile,
    queries: Annotated[
        Path,
        typer.Argument(
            metavar="QUERIES",
            exists=True,
            dir_okay=False,
            help="JSON Lines: query, and tools (needed names; none is fine) or groups.",
        ),
    ],
    sensor: SensorName = None,
    relations: Annotated[
        Path | None, typer.Option("--relations", metavar="FILE", exists=True, help="Relations to add to the catalog.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw recall against tokens into FILE (SVG).")
    ] = None,
    misses: Annotated[int, typer.Option("--misses", metavar="N", min=0, help="So many misses are explained.")] = 10,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", metavar="N", min=1, help="Ask in N worker processes at the same time.")
    ] = 1,
    json_output: AsJson = False,
) -> None:
    """Measure selection on your own catalog: recall, tokens, and every miss explained."""
    from rlm.cli import work
    from rlm.cli.plot import svg
    from rlm.evaluation.evaluate import evaluated, everything, read_questions

    units = work.load(work.Sources((catalog,)), ())
    if relations is not None:
        units.add_relations(relations)
    questions = read_questions(queries, units)
    policy = work.policy(None, None, None, "compiled", None, None, work.DEFAULT_LIMIT)
    systems = [("rules", None)] + ([] if sensor is None else [("rules+sensor", work.sensor_of(sensor))])
    rows = [
        evaluated(name, units, questions, policy=policy, sensor=which, most_misses=misses, jobs=jobs)
        for name, which in systems
    ]
    whole = everything(units, questions, policy)
    if plot is not None:
        _draw(plot, svg(rows))
    if json_output:
        row_fields = [dataclasses.asdict(row) for row in (*rows, whole)]
        print_json({"units": len(units), "questions": len(questions), "systems": row_fields})
    else:
        _print(len(units), rows, whole)


def _draw(plot: Path, picture: str) -> None:
    """Write the picture.

    Raises: ConfigurationError ``cannot_write``.
    """
    from rlm import files
    from rlm.errors import ConfigurationError, FileError

    try:
        files.write(plot, [picture.encode()], mode=0o644)
    except FileError as problem:
        what = f"cannot write {plot}: {problem.why}"
        raise ConfigurationError("cannot_write", what, {"path": str(plot)}) from None


def _print(units: int, rows: Sequence[Figures], whole: Figures) -> None:
    """Print the figures, the plot and the misses for people."""
    from rlm.cli import plot, show
    from rlm.model.words import counted

    show.line(f"{counted(units, 'unit')}, {counted(whole.questions, 'question')}")
    show.rows(_HEADS, [_cells(row, whole) for row in (*rows, whole)], right=range(1, len(_HEADS)))
    for row in rows:
        quiet = "" if row.quiet is None else f"; quiet for {row.quiet:.1%} of the questions that need no tool"
        show.line(f"{row.system}: {row.query_ms:.1f} ms of processor time a question{quiet}")
    show.line()
    for line in plot.letters(rows):
        show.line(line)
    for row in rows:
        show.line()
        show.line(f"{row.system}: {counted(row.missed, 'miss', 'misses')}")
        for line in _miss_lines(row.misses):
            show.line(line)
        if len(row.misses) < row.missed:
            show.line(f"{row.missed - len(row.misses):,} more; --misses N explains more of them")


def _cells(row: Figures, whole: Figures) -> list[str]:
    """Return a line of the table. A figure that a system does not have stays empty."""
    tokens = {} if row is whole else {first: tokens for first, _, tokens in row.curve}

    def share(value: float | None) -> str:
        return "" if value is None else f"{value:.3f}"

    def cost(first: int) -> str:
        return f"{tokens[first]:,.0f}" if first in tokens else ""

    own = [None] * 3 if row is whole else [row.recall5, row.completeness5, row.recall10]
    saved = 1 - row.tokens / whole.tokens if whole.tokens else 0
    return [
        row.system,
        *(share(own[0]), share(own[1]), cost(5), share(own[2]), cost(10)),
        *(f"{row.shown:,.1f}", share(row.recall_shown), share(row.completeness_shown)),
        *(f"{row.tokens:,.0f}", f"{saved:.1%}"),
    ]


def _miss_lines(misses: Iterable[Miss]) -> Iterable[str]:
    """Yield the lines about each miss: the reason, the change that would show the tool, and the units shown instead."""
    for miss in misses:
        yield ""
        yield f"missed {miss.unit} for: {miss.text[:200]}"
        yield from (f"  - {sentence}" for sentence in (*miss.why, miss.change))
        yield f"  - shown first: {', '.join(miss.shown)}" if miss.shown else "  - nothing was shown"


@report_errors
def suggest_command(
    catalog: CatalogFile,
    traces: Annotated[
        Path | None,
        typer.Option("--traces", metavar="DIR", exists=True, file_okay=False, help="A folder with traces (*.jsonl)."),
    ] = None,
    json_output: AsJson = False,
) -> None:
    """Propose relations, with the evidence for them, as lines that a person reads and `--relations` takes."""
    from rlm.cli import work
    from rlm.mining.relations import FIRST_LINE, calls_of_traces, propose

    units = work.load(work.Sources((catalog,)), ())
    found = propose(units, calls_of_traces(traces) if traces is not None else ())
    if json_output:
        print_json({"proposals": [proposal.model_dump(mode="json") for proposal in found]})
        return
    if not found:
        hint = "" if traces is not None else "; --traces DIR looks at what runs called together"
        print(f"rlm: no relation is proposed{hint}", file=sys.stderr)
    else:
        print(FIRST_LINE)
    for proposal in found:
        print(proposal.line())
