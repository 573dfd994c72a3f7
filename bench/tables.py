"""From the JSON of benchmarks to the tables of a page, so that no figure is ever copied by hand.

    python bench/tables.py RESULT.json... [--page docs/benchmarks.md]

A table stands between ``<!-- table: NAME -->`` and ``<!-- end of table -->``, with the machine below it; what stood
there is replaced, and a table whose benchmark (or part) is in none of the files stays as it is. NAME is one of
``TABLES``. What was written, and what was left, is said on standard error.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
_TABLE = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n).*?(\n<!-- end of table -->)", re.DOTALL)

Row = Mapping[str, Any]
Cells = list[list[str]]
"""A table, heads first."""

DATASETS = {
    "bfcl": "BFCL, 2,487 functions",
    "bfcl_multiturn": "BFCL multi-turn, 128 tools, per turn",
    "docker_registry": "real servers, 755 tools",
    "metatool_multi": "MetaTool multi, 199 tools",
    "metatool_single": "MetaTool single, 199 tools",
}
LANGUAGES = {"en": "English", "de": "German", "fr": "French", "es": "Spanish", "zh": "Chinese", "ja": "Japanese"}
PLAIN = {
    "compile": ("units", "select_pack_render_ms", "p99_ms", "repeat_ms", "bm25s_ms", "register_s", "rss_mb"),
    "packing": ("family", "n", "instances", "gap_median", "gap_p99", "gap_worst", "ms_median", "ms_p99"),
    "engine": ("case", "us", "median_us"),
    "skills": (
        *("what", "file_ms", "file_p99_ms", "skills", "load_s", "load_cpu_s", "register_s", "register_cpu_s", "opened"),
    ),
    "import_time": ("module", "runs", "wall_ms", "cpu_ms", "ratio"),
}
"""Benchmarks whose rows are printed as they are: these columns of them."""


class UnknownTable(Exception):
    """A page asks for a table that nothing here makes."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("results", nargs="+", type=Path, help="what benchmarks printed")
    arguments.add_argument("--page", type=Path, default=PAGE, help="the page whose tables are written anew")
    options = arguments.parse_args()
    found = [json.loads(path.read_text(encoding="utf-8")) for path in options.results]
    text, said = written(options.page.read_text(encoding="utf-8"), found)
    options.page.write_text(text, encoding="utf-8")
    print(*said, sep="\n", file=sys.stderr)


def written(page: str, results: Iterable[Mapping[str, Any]]) -> tuple[str, list[str]]:
    """The page with its tables anew, and a sentence for each of them.

    Raises:
        UnknownTable: for a name that no benchmark has.
    """
    rows: dict[str, tuple[Sequence[Row], Mapping[str, Any]]] = {}
    for result in results:
        parts = {result["bench"]: result["results"], **result.get("parts", {})}
        rows |= {name: (part, result["machine"]) for name, part in parts.items() if part}
    said = []

    def table(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in TABLES:
            raise UnknownTable(f"{name} is none of {', '.join(sorted(TABLES))}")
        source, made = TABLES[name]
        if source not in rows:
            said.append(f"{name}: left as it was")
            return match[0]
        part, machine = rows[source]
        said.append(f"{name}: written")
        return f"{match[1]}{markdown(made(part))}\n\n{_machine(machine)}{match[3]}"

    return _TABLE.sub(table, page), said


def markdown(cells: Cells) -> str:
    """A table in Markdown."""
    heads, *rows = cells
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _machine(machine: Mapping[str, Any]) -> str:
    packages = machine["packages"]
    versions = ", ".join(f"{name} {packages[name]}" for name in ("prolog-rlm", "numpy") if name in packages)
    return f"*{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}, {versions}*"


# -- cells --------------------------------------------------------------------------------------------


def number(value: Any) -> str:
    """A figure as it is, with commas; nothing where there is none."""
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, (int, float)) else str(value)


def share(value: float | None) -> str:
    """Three digits."""
    return "" if value is None else f"{value:.3f}"


def percent(value: float | None) -> str:
    """One digit after the point."""
    return "" if value is None else f"{value:.1%}"


def tokens(value: float | None) -> str:
    """Whole tokens."""
    return "" if value is None else f"{value:,.0f}"


def _few(value: float | None) -> str:
    """One digit after the point."""
    return "" if value is None else f"{value:,.1f}"


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"


Column = tuple[str, str, Callable[[Any], str]]
"""Head, key of the row, and how its value is written."""


def _columns(rows: Sequence[Row], columns: Sequence[Column]) -> Cells:
    return [[head for head, _, _ in columns], *([told(row.get(key)) for _, key, told in columns] for row in rows)]


def _plain(keys: Sequence[str]) -> Callable[[Sequence[Row]], Cells]:
    return lambda rows: _columns(rows, [(key, key, number) for key in keys])


def _by(columns: Sequence[Column]) -> Callable[[Sequence[Row]], Cells]:
    return lambda rows: _columns(rows, columns)


# -- tables -------------------------------------------------------------------------------------------


def _dataset(value: str) -> str:
    return DATASETS.get(value, value)


def _code(value: str) -> str:
    return f"`{value}`"


_SYSTEM: Column = ("system", "system", _code)
_DATASET: Column = ("data set", "dataset", _dataset)

_SETS = (
    _DATASET,
    _SYSTEM,
    ("recall@5", "recall5", share),
    ("complete@5", "completeness5", share),
    ("recall@10", "recall10", share),
    ("shown", "shown", _few),
    ("recall of what is shown", "recall_shown", share),
    ("tokens", "tokens", tokens),
    ("saved", "saved", percent),
    ("tokens@5", "tokens5", tokens),
    ("tokens@10", "tokens10", tokens),
    ("all tools", "all_tokens", tokens),
    ("ms", "query_ms", _ms),
)


def fixed(rows: Sequence[Row]) -> Cells:
    """How many tools one would always have to show, by another ranking, for the recall of what is shown here."""
    others = [row for row in rows if row.get("same_tools")]
    names = list(dict.fromkeys(name for row in others for name in row["same_tools"]))
    heads = ["data set", "system", *(f"{what} for that of `{name}`" for name in names for what in ("tools", "tokens"))]

    def cells(row: Row) -> Iterable[str]:
        for name in names:
            enough = row["same_tools"].get(name)
            yield number(enough) if enough else "over 100"
            yield tokens(row["same_tokens"].get(name))

    return [heads, *([_dataset(row["dataset"]), _code(row["system"]), *cells(row)] for row in others)]


def languages(rows: Sequence[Row]) -> Cells:
    """A line for each catalog and language, two columns for each system: among the first five, and shown at all."""
    systems = list(dict.fromkeys((row["system"], row["abstain"]) for row in rows))
    usual = systems[0][1]
    names = [f"`{system}`" + ("" if abstain == usual else f", abstain {abstain:g}") for system, abstain in systems]
    heads = ["catalog", "asked in", "questions", *(f"{name}: @5, shown, silent" for name in names)]
    lines: dict[tuple[str, str], dict[Any, Row]] = {}
    for row in rows:
        lines.setdefault((row["catalog"], row["asked"]), {})[row["system"], row["abstain"]] = row
    cells = [heads]
    for (catalog, asked), line in lines.items():
        told = [LANGUAGES[catalog], LANGUAGES[asked], str(next(iter(line.values()))["questions"])]
        for system in systems:
            row = line.get(system)
            told.append(", ".join(f"{row[key]:.0%}" for key in ("first5", "shown", "silent")) if row else "")
        cells.append(told)
    return cells


TABLES: dict[str, tuple[str, Callable[[Sequence[Row]], Cells]]] = {
    **{name: (name, _plain(keys)) for name, keys in PLAIN.items()},
    "selection": ("selection", _by(_SETS)),
    "selection-fixed": ("selection", fixed),
    "sessions": (
        "sessions",
        _by(
            (
                _SYSTEM,
                ("way", "way", str),
                ("turns", "turns", number),
                ("identical prefix", "identical_prefix", percent),
                ("uncached tokens a turn", "uncached_tokens", tokens),
                ("complete", "completeness", share),
                ("recall", "recall", share),
                ("shown", "shown_mean", _few),
            )
        ),
    ),
    "nothing": (
        "nothing",
        _by(
            (
                _DATASET,
                _SYSTEM,
                ("AUC, tool removed", "auc_removed", share),
                ("AUC, no tool needed", "auc_no_tool", share),
                ("AUC, both", "auc", share),
                ("shown at 95 % kept: removed", "shown_at_95_removed", percent),
                ("no tool", "shown_at_95_no_tool", percent),
                ("by default: kept", "default_kept", percent),
                ("removed", "default_removed", percent),
                ("no tool needed", "default_no_tool", percent),
            )
        ),
    ),
    "relations": (
        "relations",
        _by(
            (
                _SYSTEM,
                ("relations", "way", str),
                ("recall@6", "recall6", share),
                ("complete@6", "completeness6", share),
                ("shown", "shown_mean", _few),
            )
        ),
    ),
    "attacks": (
        "attacks",
        _by(
            (
                ("catalog", "catalog", number),
                ("catalog", "catalog", str),
                _SYSTEM,
                ("attack", "attack", str),
                ("worst on", "dataset", str),
                ("recall, clean", "recall_clean", share),
                ("attacked", "recall_attacked", share),
                ("pushed out", "pushed_out", percent),
                ("selected units lost", "selected_lost", number),
            )
        ),
    ),
    "languages": ("languages", languages),
    "examples": ("examples", _by((_SYSTEM, ("examples", "way", str), ("recall@5", "recall5", share)))),
    "names": (
        "names",
        _by((_DATASET, ("tools asked for", "asked", number), ("shown", "shown", percent))),
    ),
    "speed": (
        "speed",
        _by(
            (
                ("units", "units", number),
                ("rules", "rules_ms", _ms),
                ("rules, all in Prolog", "prolog_ms", _ms),
                ("plain Python", "python_ms", _ms),
                ("bm25s", "bm25s_ms", _ms),
                ("sensor alone", "sensor_ms", _ms),
                ("whole selection", "select_ms", _ms),
                ("with the sensor", "sensor_select_ms", _ms),
                ("more", "sensor_more_ms", _ms),
            )
        ),
    ),
}
"""By name: the benchmark or part whose rows it takes, and what makes the table of them."""


if __name__ == "__main__":
    main()
