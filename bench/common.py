"""What every benchmark shares: progress on standard error, one JSON object on standard output.

A benchmark is a script with ``--quick`` (done in 50 seconds) that calls ``emit`` once, at its end::

    {"bench": name, "machine": {...}, "results": [row, ...]}

A benchmark of several parts has the rows of the others beside these, as ``{"parts": {name: [row, ...]}}``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

_STARTED = time.monotonic()


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser that knows ``--quick``; add what else the benchmark takes."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--quick", action="store_true", help="fewer or smaller runs: done in 50 seconds")
    return made


def progress(message: str) -> None:
    """One line on standard error, with the seconds since the start."""
    print(f"[{time.monotonic() - _STARTED:6.1f} s] {message}", file=sys.stderr, flush=True)


def emit(name: str, rows: Iterable[Mapping[str, Any]], **more: Any) -> None:
    """The one JSON object on standard output."""
    print(json.dumps({"bench": name, "machine": machine(), "results": list(rows), **more}, ensure_ascii=False))


def machine() -> dict[str, Any]:
    """What a number depends on: processor, cores that may be used, memory, system, versions."""
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_mb": _memory_mb(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": _versions("prolog-rlm", "janus_swi", "pydantic", "numpy", "tiktoken"),
    }


def _cpu() -> str:
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory_mb() -> int | None:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemTotal"):
            return int(line.split()[1]) // 1024
    return None


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _versions(*names: str) -> dict[str, str]:
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
