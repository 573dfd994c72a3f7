"""Long-context tasks with exact answers (``bench/longtasks.py``): what the framework costs, and how a model does.

Without ``--model``, plans are written by a scripted planner and leaves make no mistake, so that all but the model is
real: compiling, planning, looking into the context, sub-calls, the ledger. ``cpu_ms`` is the processor time of a whole
``rlm.complete`` without that of the script, ``wall_ms`` likewise (on a busy machine the first says more), ``requests``
and ``request_tokens`` what was sent (``largest`` in one request, by ``o200k_base``), ``memory_mb`` how much more the
process held at the most while it ran than before. The context is about ``tokens`` long.

With ``--model``, the same questions go to that model, end to end: ``right`` is how many of ``runs`` were answered
exactly; what was wrong stands in ``answers``.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Any

import rlm
from bench.common import emit, parser, progress
from bench.longtasks import KINDS, SIZES, Task, make
from rlm.compiler.tokens.token_counter import counter
from rlm.providers.base import ProviderRequest, Usage
from rlm.providers.scripted import ScriptedProvider

QUICK_SIZES = (4_000, 64_000, 1_000_000)
MODEL_SIZES = (4_000, 16_000)
SHOWN = 200
"""Characters of a wrong answer that a row shows."""


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--model", help="a model string of rlm.complete: openai:NAME, http://HOST:PORT/v1#NAME, local")
    options.add_argument("--sizes", type=int, nargs="+", metavar="TOKENS", help="sizes of the context")
    options.add_argument("--kinds", nargs="+", choices=tuple(KINDS), default=tuple(KINDS))
    options.add_argument("--runs", type=int, help="runs of each task; with a model, seeds")
    options.add_argument("--time-limit", type=float, help="seconds of a run with a model: 300, or 8 with --quick")
    said = options.parse_args()
    if said.model is None:
        sizes = said.sizes or (QUICK_SIZES if said.quick else SIZES)
        scripted(make("needle", 4_000), 1)  # loads what is loaded once
        rows = [scripted(task, said.runs or (1 if said.quick else 5)) for task in tasks(said.kinds, sizes)]
    else:
        sizes = said.sizes or MODEL_SIZES[: 1 if said.quick else None]
        runs = said.runs or (1 if said.quick else 3)
        limit = said.time_limit or (8.0 if said.quick else 300.0)
        rows = [asked(said.model, kind, size, runs, limit) for size in sizes for kind in said.kinds]
    emit("tasks", rows)


def tasks(kinds: tuple[str, ...], sizes: tuple[int, ...]) -> Iterator[Task]:
    """The tasks, the small ones first: memory that one has freed would hide what the next one takes."""
    for size in sorted(sizes):
        for kind in kinds:
            yield make(kind, size)


# -- the framework's cost -------------------------------------------------------------------------------


class Script:
    """A planner that knows the plan and leaves that make no mistake; ``wall`` and ``cpu`` are what they took."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.wall = self.cpu = 0.0

    def __call__(self, request: ProviderRequest) -> str:
        began = time.perf_counter(), time.thread_time()
        reply = self._task.reply("\n".join(texts(request.parts)))
        self.wall += time.perf_counter() - began[0]
        self.cpu += time.thread_time() - began[1]
        return reply


def scripted(task: Task, runs: int) -> dict[str, Any]:
    """The row of a task. Raises: AssertionError where the answer is not the right one."""
    wall, cpu, memory = [], [], []
    for _ in range(runs):
        script = Script(task)
        provider = ScriptedProvider(script, usage=Usage(input_tokens=1_000, output_tokens=20))
        before = forget_peak()
        began = time.perf_counter(), time.process_time()
        done = rlm.complete(task.question, task.context, model=provider, budget=task.budget)
        wall.append(time.perf_counter() - began[0] - script.wall)
        cpu.append(time.process_time() - began[1] - script.cpu)
        memory.append(None if before is None else peak_mb() - before)
        assert (done.status, done.value) == ("ok", task.answer), (task, done.error or done.value)
    sent = [sum(counter().count(text) for text in texts(request.parts)) for request in provider.requests]
    progress(f"{task.kind}, {task.tokens:,} tokens: {1000 * statistics.median(cpu):.0f} ms")
    return {
        "task": task.kind,
        "tokens": task.tokens,
        "cpu_ms": round(1000 * statistics.median(cpu), 1),
        "wall_ms": round(1000 * statistics.median(wall), 1),
        "requests": len(sent),
        "request_tokens": sum(sent),
        "largest": max(sent),
        "memory_mb": None if None in memory else round(max(memory), 1),
        "context_ops": done.usage.context_ops,
        "runs": runs,
    }


def texts(value: Any) -> Iterator[str]:
    """Every string in the parts of a request."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts(inner)


def forget_peak() -> float | None:
    """Let the peak of this process's memory begin anew, and return what it holds now, in MB; None where none can."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        return _memory_mb("VmRSS")
    except OSError:
        return None


def peak_mb() -> float:
    """The most memory since ``forget_peak``, in MB."""
    return _memory_mb("VmHWM")


def _memory_mb(field: str) -> float:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith(field))


# -- a model ------------------------------------------------------------------------------------------


def asked(model: str, kind: str, size: int, runs: int, time_limit: float) -> dict[str, Any]:
    """How a model does: the row of a kind of task at a size."""
    answers, right, seconds, requests, spent = [], 0, [], 0, 0
    for seed in range(runs):
        task = make(kind, size, seed)
        budget = {**task.budget, "time_limit": time_limit}
        done = rlm.complete(task.question, task.context, model=model, budget=budget)
        good = done.status == "ok" and same(done.value, task.answer)
        right += good
        seconds.append(done.usage.seconds)
        requests += done.usage.model_calls
        spent += done.usage.total_tokens
        if not good:
            said = done.value if done.status == "ok" else (done.error or {}).get("kind")
            answers.append({"seed": seed, "status": done.status, "said": str(said)[:SHOWN], "right": str(task.answer)})
        progress(f"{kind}, {size:,} tokens, seed {seed}: {'right' if good else done.status + ', not right'}")
    return {
        "task": kind,
        "tokens": size,
        "model": model,
        "right": right,
        "runs": runs,
        "seconds": round(statistics.median(seconds), 1),
        "requests": round(requests / runs, 1),
        "total_tokens": round(spent / runs),
        "answers": answers,
    }


def same(value: Any, right: Any) -> bool:
    """Whether an answer is the right one, however its numbers are spelt: 7, "7" and 7.0 are the same."""
    if isinstance(right, list):
        return isinstance(value, list) and len(value) == len(right) and all(map(same, value, right))
    if isinstance(right, dict):
        return isinstance(value, dict) and value.keys() == right.keys() and all(same(value[k], right[k]) for k in right)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip().replace(",", "") == str(right)


if __name__ == "__main__":
    main()
