"""What the door to Prolog costs: one small call, values in and out, awaited calls, errors, limits, starts.

    python bench/engine.py [--quick]

Times are wall-clock; of repeated measurements the least and the median are given, because other work on the
machine only ever adds. ``in`` includes the check; ``json_in`` sends the same values as one text, for comparison,
which Prolog then has to parse.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.common import emit, parser, progress
from rlm.errors import EngineError
from rlm.symbolic.engine import Engine, engine
from rlm.symbolic.values import plain

RULES = """:- encoding(utf8).
:- module(bench_engine, []).
:- use_module(library(http/json), [atom_json_dict/3]).
:- use_module('{bridge}', []).
:- multifile rlm_bridge:operation/2.
rlm_bridge:operation(bench_keep, bench_engine:keep).
rlm_bridge:operation(bench_take, bench_engine:take).
rlm_bridge:operation(bench_parse, bench_engine:parse).
rlm_bridge:operation(bench_give, bench_engine:give).
rlm_bridge:operation(bench_wrong, bench_engine:wrong).
rlm_bridge:operation(bench_loop, bench_engine:loop).
:- dynamic kept/1.
keep(Values, 1) :- retractall(kept(_)), assertz(kept(Values)).
take(Values, 1) :- is_list(Values).
parse(Text, 1) :- atom_json_dict(Text, Values, []), is_list(Values).
give(_, Values) :- kept(Values).
wrong(_, _) :- atom_length(_, _).
loop(_, _) :- repeat, fail.
:- public keep/2, take/2, parse/2, give/2, wrong/2, loop/2.
"""

Row = dict[str, Any]


def measured(work: Callable[[], object], rounds: int, calls: int = 1) -> tuple[float, float]:
    """Seconds per call: the least and the median of ``rounds`` rounds of ``calls`` calls."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in range(calls):
            work()
        times.append((time.perf_counter() - began) / calls)
    return min(times), statistics.median(times)


def small_calls(prolog: Engine, rounds: int) -> list[Row]:
    def wrong() -> None:
        try:
            prolog.call("bench_wrong")
        except EngineError:
            pass

    async def awaited() -> tuple[float, float]:
        times = []
        for _ in range(rounds):
            began = time.perf_counter()
            for _ in range(100):
                await prolog.acall("ping", {"a": 1})
            times.append((time.perf_counter() - began) / 100)
        return min(times), statistics.median(times)

    rows = {
        "call": measured(lambda: prolog.call("ping", {"a": 1}), rounds, 100),
        "acall": asyncio.run(awaited()),
        "error": measured(wrong, rounds, 100),
    }
    return [{"case": case, "us": us(least), "median_us": us(median)} for case, (least, median) in rows.items()]


def bulk(prolog: Engine, rounds: int) -> list[Row]:
    text = "The quick description of a tool that does one thing and says so at some length. "
    cases: dict[str, Any] = {
        "10,000 small dicts": [{"id": f"tool:{n}", "kind": "tool", "n": n, "w": n / 2} for n in range(10_000)],
        "500 units of 20 fields": [{f"f{k}": text + str(n) if k % 2 else n * k for k in range(20)} for n in range(500)],
        "100,000 integers": list(range(100_000)),
        "100,000 texts": [f"word{n}" for n in range(100_000)],
    }
    rows = []
    for case, values in cases.items():
        progress(case)
        as_text = json.dumps(values)
        prolog.call("bench_keep", values)
        row: Row = {"case": case}
        for name, work in {
            "check_ms": lambda values=values: plain(values),
            "in_ms": lambda values=values: prolog.call("bench_take", values),
            "out_ms": lambda: prolog.call("bench_give"),
            "json_in_ms": lambda as_text=as_text: prolog.call("bench_parse", as_text),
        }.items():
            least, median = measured(work, rounds)
            row[name], row[f"median_{name}"] = ms(least), ms(median)
        rows.append(row)
    return rows


def stops(prolog: Engine) -> list[Row]:
    rows = []
    for case, limits in {
        "timeout after 0.1 s": {"timeout": 0.1},
        "inference limit of 1,000,000": {"inferences": 1_000_000},
    }.items():
        began = time.perf_counter()
        try:
            prolog.call("bench_loop", **limits)
        except EngineError as error:
            kind = error.kind
        stopped = time.perf_counter()
        prolog.call("ping")
        rows.append(
            {"case": case, "kind": kind, "ms": ms(stopped - began), "next_call_ms": ms(time.perf_counter() - stopped)}
        )
    return rows


def start(rounds: int) -> Row:
    program = "from rlm.symbolic.engine import engine; engine()"
    least, median = measured(lambda: subprocess.run([sys.executable, "-c", program], check=True), rounds)
    bare, _ = measured(lambda: subprocess.run([sys.executable, "-c", "import rlm.symbolic.engine"], check=True), rounds)
    return {"case": "start of Prolog with all rules", "ms": ms(least - bare), "median_ms": ms(median - bare)}


def us(seconds: float) -> float:
    return round(seconds * 1e6, 1)


def ms(seconds: float) -> float:
    return round(seconds * 1e3, 2)


def main() -> None:
    quick = parser(__doc__).parse_args().quick
    rounds = 7 if quick else 30
    prolog = engine()
    bridge = Path(__file__).resolve().parents[1] / "prolog" / "rlm_bridge"
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder, "bench_engine.pl")
        rules.write_text(RULES.format(bridge=bridge), encoding="utf-8")
        prolog.load(rules)
    progress("small calls")
    rows = small_calls(prolog, 20 * rounds)
    rows += bulk(prolog, rounds)
    progress("stopping a goal")
    rows += stops(prolog)
    progress("starting")
    rows.append(start(3 if quick else 10))
    emit("engine", rows)


if __name__ == "__main__":
    main()
