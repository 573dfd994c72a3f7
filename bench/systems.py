"""One system in a process of its own: it completes when it is told to, and says how long that took.

    python bench/systems.py NAME URL

A line on standard input is a number of completions, ``first`` (which makes what completes, too) or ``fanout``; a line
on standard output is the answer: JSON with ``wall``, ``cpu`` and ``undisturbed`` (seconds, one for each), and
``rss_mb`` (the most until now). ``undisturbed`` is wall time less that in which a thread of the process was ready and
waited for a processor, but not less than the processor time: threads that wait side by side would count twice.

Only the standard library and the system itself are imported: each has an interpreter of its own.

Every completion is one request whose reply ends the run; a fan-out is one more, whose reply asks for 32 sub-calls.
What a user would make once is made once: clients, modules, providers.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

QUESTION = "What is two plus two?"
CONTEXT = "Two plus two is four, and four and four is eight.\n" * 40
SUBCALLS = 32
SUBCALL_SECONDS = 0.2
WIDTH = 16

Made = tuple[Callable[[], Any], Callable[[], Any] | None]
"""What completes, and what fans out."""


def replies() -> dict[str, dict[str, Any]]:
    """What the server says to each model's name; every system has two planners and one leaf."""
    final = {"steps": [{"op": "final", "value": "four"}]}
    ask = {"op": "model", "prompt": {"join": ["Say ok to ", {"var": "item"}]}, "bind": "said"}
    over = {"op": "map", "over": list(range(SUBCALLS)), "as": "item", "steps": [ask], "bind": "all"}
    fan = {"steps": [over, {"op": "reduce", "over": {"var": "all"}, "with": "count", "bind": "many"}]}
    fan["steps"].append({"op": "final", "value": {"var": "many"}})
    batch = f"said = llm_query_batched([f'Say ok to {{n}}' for n in range({SUBCALLS})])\n"
    repl = "```repl\n{code}answer['ready'] = True\n```"
    chat = "[[ ## reasoning ## ]]\nPlain.\n\n[[ ## code ## ]]\n```python\n{code}```\n\n[[ ## completed ## ]]\n"
    texts = {
        "rlm": (json.dumps(final), json.dumps(fan)),
        "rlms": (
            repl.format(code="answer['content'] = 'four'\n"),
            repl.format(code=f"{batch}answer['content'] = str(said.count('ok'))\n"),
        ),
        "dspy": (
            chat.format(code="SUBMIT(answer='four')\n"),
            chat.format(code=f"{batch}SUBMIT(answer=str(said.count('ok')))\n"),
        ),
    }
    said: dict[str, dict[str, Any]] = {"leaf": {"text": "ok", "delay": SUBCALL_SECONDS}, "floor": {"text": "four"}}
    for system, (one, many) in texts.items():
        said |= {f"{system}-one": {"text": one}, f"{system}-fan": {"text": many}}
    return said


# -- systems ------------------------------------------------------------------------------------------


def httpx_floor(url: str) -> Made:
    """A bare client that is kept, and a body of the size that a completion of ours sends."""
    import asyncio

    import httpx

    loop, client = asyncio.new_event_loop(), httpx.AsyncClient(trust_env=False)
    body = {"model": "floor", "messages": [{"role": "user", "content": "x" * 6_000}]}

    async def post() -> Any:
        reply = await client.post(f"{url}/chat/completions", json=body)
        return reply.json()["choices"][0]["message"]["content"]

    return lambda: loop.run_until_complete(post()), None


def our_own(url: str, tokenizer: str | None = None) -> Made:
    """``rlm.complete`` with everything as it is out of the box: skills, rules, ledger, exact counts."""
    import rlm

    policy = rlm.Policy() if tokenizer is None else rlm.Policy(tokenizer=tokenizer)
    leaf, one, many = (f"{url}#{model}" for model in ("leaf", "rlm-one", "rlm-fan"))
    budget = {"max_concurrent_subcalls": WIDTH, "max_model_calls": 2 + SUBCALLS, "max_total_tokens": 10_000_000}

    def value(model: str, **options: Any) -> Any:
        done = rlm.complete(QUESTION, CONTEXT, model=model, policy=policy, **options)
        assert done.status == "ok", done.error
        return done.value

    return lambda: value(one), lambda: value(many, leaf_model=leaf, budget=budget)


def our_own_estimating(url: str) -> Made:
    """The same without a vocabulary."""
    return our_own(url, "estimate")


def rlms(url: str) -> Made:
    """alexzhang13's, with the environment that it takes by default (``local``); its batches are 16 wide."""
    from rlm import RLM

    def at(model: str) -> dict[str, Any]:
        return {"model_name": model, "base_url": url, "api_key": "none"}

    one = RLM("openai", at("rlms-one"))
    many = RLM("openai", at("rlms-fan"), other_backends=["openai"], other_backend_kwargs=[at("leaf")])
    return (
        lambda: one.completion(CONTEXT, QUESTION).response,
        lambda: many.completion(CONTEXT, QUESTION).response,
    )


def dspy_rlm(url: str) -> Made:
    """``dspy.RLM`` with its own interpreter that needs no Deno; its batches are 8 wide."""
    import dspy
    from dspy.primitives import LocalInterpreter

    def lm(model: str) -> Any:
        return dspy.LM(f"openai/{model}", api_base=url, api_key="none", cache=False)

    module = dspy.RLM("context, query -> answer", sub_lm=lm("leaf"), interpreter_factory=LocalInterpreter)

    def value(planner: Any) -> Any:
        with dspy.context(lm=planner):
            return module(context=CONTEXT, query=QUESTION).answer

    one, many = lm("dspy-one"), lm("dspy-fan")
    return lambda: value(one), lambda: value(many)


SYSTEMS: dict[str, Callable[[str], Made]] = {
    "httpx": httpx_floor,
    "rlm": our_own,
    "rlm-estimate": our_own_estimating,
    "rlms": rlms,
    "dspy.RLM": dspy_rlm,
}
MODULES = {"httpx": "httpx", "rlm": "rlm", "rlm-estimate": "rlm", "rlms": "rlm", "dspy.RLM": "dspy"}
"""What a user imports."""


# -- the process --------------------------------------------------------------------------------------


def told(call: Callable[[], Any], right: str, times: int) -> dict[str, Any]:
    """So many calls, one after the other. Raises: AssertionError where one gives another answer."""
    wall, cpu, undisturbed = [], [], []
    for _ in range(times):
        began = (time.perf_counter(), time.process_time(), queued())
        value = call()
        seconds, own = time.perf_counter() - began[0], time.process_time() - began[1]
        wall.append(seconds)
        cpu.append(own)
        undisturbed.append(max(min(own, seconds), seconds - (queued() - began[2])))
        assert str(value) == right, f"{value!r} instead of {right!r}"
    return {"wall": wall, "cpu": cpu, "undisturbed": undisturbed, "rss_mb": peak_mb()}


def queued() -> float:
    """Seconds that the threads of this process were ready and waited for a processor; 0 where no one knows."""
    total = 0
    try:
        for thread in os.listdir("/proc/self/task"):
            total += int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        pass
    return total / 1e9


def peak_mb() -> float | None:
    """Megabytes of memory that this process held at the most (VmHWM)."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def main(name: str, url: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a system prints is no answer
    made: list[Made] = []

    def first() -> Any:
        made.append(SYSTEMS[name](url))
        return made[0][0]()

    for line in sys.stdin:
        command = line.strip()
        if command == "first":
            answer = told(first, "four", 1)
        elif command != "fanout":
            answer = told(made[0][0], "four", int(command))
        else:
            fan_out = made[0][1]
            answer = {} if fan_out is None else told(fan_out, str(SUBCALLS), 1)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
