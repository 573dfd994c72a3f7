"""The gateway before 755 tools of 28 servers: what a find brings, what it costs, and FastMCP's search beside it.

    python bench/gateway.py CATALOG [--fastmcp PYTHON] [--budget N] [--sensor]

CATALOG is the catalog of Docker's MCP registry (one tool a line, ``namespace/name``). The questions are
``bench/gateway_questions.jsonl``; each needs one tool. Both systems get the same questions, tools and descriptions in
the same run, FastMCP in an interpreter of its own. Recall is the share of questions whose tool is among the callable
ones; FastMCP's search may bring as many tools as ours at most.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

QUESTIONS = Path(__file__).with_name("gateway_questions.jsonl")
UPSTREAM = Path(__file__).with_name("gateway_upstream.py")
MOST = 8

FASTMCP = """
import asyncio, json, sys, time
from fastmcp import FastMCP
from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools import Tool
rows, questions, most = json.load(sys.stdin)
class T(Tool):
    async def run(self, arguments): return None
tools = [T(name=r["name"].replace("/", "_"), description=r.get("description") or "",
           parameters=r.get("parameters") or {"type": "object", "properties": {}}) for r in rows]
names = {r["name"].replace("/", "_"): r["name"] for r in rows}
search = BM25SearchTransform(max_results=most)
async def main():
    await search._search(tools, "warm")
    found, ms = [], []
    for q in questions:
        began = time.perf_counter()
        hits = await search._search(tools, q)
        ms.append(1000 * (time.perf_counter() - began))
        found.append([names[t.name] for t in hits])
    print(json.dumps({"found": found, "ms": ms}))
asyncio.run(main())
"""


def ours(catalog: Path, questions: list[dict[str, Any]], budget: int | None, *, sensor: bool) -> dict[str, Any]:
    """Return what the gateway finds, over real connections to 28 servers."""
    import rlm
    from rlm.compiler.tokens.token_counter import counter

    count = counter("o200k_base").count
    process = subprocess.Popen([sys.executable, str(UPSTREAM), str(catalog)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        servers = {name: {"url": url} for name, url in json.loads(process.stdout.readline()).items()}
        began = time.perf_counter()
        with rlm.Gateway(servers, budget=budget, sensor=rlm.Sensor() if sensor else None) as gateway:
            connected = time.perf_counter() - began
            finder, found, sizes, ms, callable_counts = gateway.finder(), [], [], [], []
            began = time.perf_counter()
            gateway.find("warm the rules")
            first = 1000 * (time.perf_counter() - began)
            for row in questions:
                began = time.perf_counter()
                reply = gateway.find(row["question"])
                ms.append(1000 * (time.perf_counter() - began))
                sizes.append(count(json.dumps(reply, ensure_ascii=False)))
                callable_counts.append(len(reply["tools"]))
                found.append([finder.names.id_of(tool["name"]).partition(":")[2] for tool in reply["tools"]])
            return {
                "found": found,
                "ms": ms,
                "first_ms": first,
                "connect_s": connected,
                "tools": len(finder.names.ids),
                "tokens": sizes,
                "callable": callable_counts,
            }
    finally:
        process.terminate()
        process.wait()


def fastmcp(python: str, catalog: Path, questions: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what FastMCP's search finds."""
    rows = [json.loads(line) for line in catalog.read_text(encoding="utf-8").splitlines()]
    text = json.dumps([rows, [row["question"] for row in questions], MOST])
    reply = subprocess.run([python, "-c", FASTMCP], input=text, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(reply.stdout.splitlines()[-1])
    return result


def recall(found: list[list[str]], questions: list[dict[str, Any]]) -> float:
    """Return the share of questions with all of their tools among the found ones."""
    return statistics.mean(set(row["tools"]) <= set(names) for names, row in zip(found, questions, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalog", type=Path)
    parser.add_argument("--fastmcp", metavar="PYTHON", help="an interpreter that has fastmcp")
    parser.add_argument("--budget", type=int)
    parser.add_argument("--sensor", action="store_true", help="rules and sensor (the extra semantic)")
    parser.add_argument("--misses", action="store_true")
    options = parser.parse_args()
    questions = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    result = ours(options.catalog, questions, options.budget, sensor=options.sensor)
    print(f"{len(questions)} questions, {result['tools']} tools")
    print(
        f"gateway: recall {recall(result['found'], questions):.3f}, callable {statistics.mean(result['callable']):.1f}"
        f" (at most {max(result['callable'])}), tokens {statistics.mean(result['tokens']):.0f} on average"
        f" (at most {max(result['tokens'])}), find p50 {statistics.median(result['ms']):.1f} ms,"
        f" first {result['first_ms']:.0f} ms, connect {result['connect_s']:.1f} s"
    )
    if options.misses:
        for names, row in zip(result["found"], questions, strict=True):
            if not set(row["tools"]) <= set(names):
                print(f"  {row['question']}  needs {row['tools'][0]}, got {', '.join(names)}")
    if options.fastmcp:
        other = fastmcp(options.fastmcp, options.catalog, questions)
        print(
            f"FastMCP BM25SearchTransform(max_results={MOST}): recall {recall(other['found'], questions):.3f},"
            f" find p50 {statistics.median(other['ms']):.1f} ms"
        )


if __name__ == "__main__":
    main()
