"""200 subagents at once, three deep, with short lives, faults on the line and hosts that change their minds.

Whatever happens to any of them: nobody waits for ever, every answer comes back once and to whoever asked for it, the
ledger says what the server counted, and afterwards every place is free and nothing runs.

``RLM_STRESS_SECONDS`` says for how long rounds are begun; 60 is the long version.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import anyio
import pytest

import rlm
from rlm.agent.agent import Agent
from rlm.agent.run import Run
from rlm.sending.run_budget import RunBudget
from tests.runtime.actors import final, model, part_of, plan, provider, tool, var
from tests.support.loopback import Answer, Line, Loopback, Reply, Request, answers, drops, fails, raw, resets, stalls

SECONDS = float(os.environ.get("RLM_STRESS_SECONDS", "6"))
CHILDREN = 200
DEEPEST = 3
SHARE = 0.12
"""The part of requests that meets a fault, or no reply at all."""

AMPLE = {
    "time_limit": 60,
    "max_recursion_depth": DEEPEST,
    "max_concurrent_subcalls": CHILDREN,
    "max_model_calls": 10**6,
    "max_tool_calls": 10**6,
    "max_total_tokens": 10**9,
    "max_output_bytes": 10**8,
}


@rlm.tool(effect="read")
def rest(seconds: float, cancellation: rlm.Cancellation) -> str:
    """Rest for a while in the middle of a subtask."""
    return "told to stop" if cancellation.wait(seconds) else "rested"


class Chaos:
    """A model and a line that do anything, all of it from one seed.

    A task is called ``task 17``, one that it delegates ``task 17.0``; who answers says whose answer it is.
    ``on_request`` is told how many requests have arrived.
    """

    def __init__(self, seed: int, count: int, on_request: Any = None) -> None:
        self.random = Random(seed)
        self.count = count
        self.arrived = 0
        self.on_request = on_request
        self.lock = threading.Lock()

    def __call__(self, request: Request) -> Line:
        with self.lock:
            self.arrived += 1
            if self.on_request is not None:
                self.on_request(self.arrived)
            part = part_of(request)
            if part == "planner":
                return answers(self.root())
            if self.random.random() < SHARE:
                return self.fault()
            text = "a leaf's word" if part == "leaf" else self.child(request)
            return answers(text, usage=None if self.random.random() < 0.1 else "counted", delay=self.delay())

    def delay(self) -> float:
        return self.random.choice([0, 0, 0, 0.01, 0.2])

    def life(self) -> float:
        return round(self.random.choice([0.05, 0.5, 2.0, 3.0]) * self.random.uniform(0.5, 1.5), 3)

    def root(self) -> str:
        over = [{"query": f"task {n}", "seconds": self.life()} for n in range(self.count)]
        return plan(self.delegated(over), final(var("all")))

    def delegated(self, over: list[dict[str, Any]]) -> dict[str, Any]:
        asked = tool("rlm_subagent", "one", query=var("it", "query"), timeout_seconds=var("it", "seconds"))
        return {"op": "map", "over": over, "as": "it", "steps": [asked], "bind": "all"}

    def child(self, request: Request) -> str:
        found = re.search(r"\btask ([\d.]*\d)", request.user_text)
        assert found is not None, request.user_text
        name = found[1]
        roll = self.random.random()
        if roll < 0.05:
            return "no plan at all"
        if roll < 0.4 and name.count(".") + 1 < DEEPEST:
            over = [{"query": f"task {name}.{n}", "seconds": self.life()} for n in range(self.random.randint(1, 3))]
            return plan(self.delegated(over), final({"task": name, "below": var("all")}))
        if roll < 0.55:
            return plan(tool("rest", "rested", seconds=self.random.choice([0.0, 0.05, 20.0])), final({"task": name}))
        if roll < 0.75:
            return plan(model("a word, please", "word"), final({"task": name, "word": var("word")}))
        return plan(final({"task": name}))

    def fault(self) -> Reply | Answer:
        cut = answers("cut in the middle of it", then="drop", share=self.random.random())
        return self.random.choice(
            [fails(503), fails(429, retry_after="0"), fails(400, "no"), drops(), resets(), raw(b"{no"), cut, stalls()]
        )


class Watched:
    """What the runs of a round told as they went, and what they were made of."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    @property
    def most_at_once(self) -> int:
        """Subagents that were there at the same moment, at the most."""
        now = most = 0
        for row in self.events:
            now += row["event"] == "delegated"
            now -= row["event"] == "tool" and row["tool"] == "tool:rlm_subagent"
            most = max(most, now)
        return most

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [row for row in self.events if row["event"] == kind]


@pytest.fixture
def roots(monkeypatch: pytest.MonkeyPatch) -> list[Agent]:
    """The root of every run."""
    made: list[Agent] = []
    original = Agent.answer

    def answer(self: Agent) -> Any:
        if self.depth == 0:
            made.append(self)
        return original(self)

    monkeypatch.setattr(Agent, "answer", answer)
    return made


@pytest.fixture
def run_budgets(monkeypatch: pytest.MonkeyPatch) -> list[RunBudget]:
    """Every run budget but the roots'."""
    made: list[RunBudget] = []
    original = RunBudget.child

    def child(self: RunBudget, budget: Any = None) -> RunBudget:
        made.append(original(self, budget))
        return made[-1]

    monkeypatch.setattr(RunBudget, "child", child)
    return made


def test_200_subagents_at_once_three_deep(roots: list[Agent], run_budgets: list[RunBudget]) -> None:
    seeds = iter(range(10**6))
    met: Counter[str] = Counter()
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        seed = next(seeds)
        runs = 1 if seed % 2 == 0 else 4
        found = anyio.run(one_round, seed, runs, roots, run_budgets)
        most = max(met["at once"], found.pop("at once"))
        met += found
        met["at once"] = most
        roots.clear()
        run_budgets.clear()
    print(dict(met))  # what was met, for whoever runs the long version
    assert {"ok", "timeout", "depth 3"} <= met.keys()
    assert met["at once"] >= CHILDREN
    if SECONDS >= 60:
        assert met["cancelled runs"] >= 2


async def one_round(seed: int, runs: int, roots: list[Agent], run_budgets: list[RunBudget]) -> Counter[str]:
    """Runs side by side that have 200 subagents between them; in some rounds the host cancels one of the runs."""
    random = Random(seed)
    watched = [Watched() for _ in range(runs)]
    tokens = [rlm.CancelToken() for _ in range(runs)]
    unlucky = random.randint(30, 300) if random.random() < 0.5 else None
    results: list[Any] = [None] * runs

    def arrived(count: int) -> None:
        if count == unlucky:
            tokens[0].cancel()

    before = asyncio.all_tasks()
    with Loopback(Chaos(seed, CHILDREN // runs, arrived)) as server:

        async def run(place: int) -> None:
            results[place] = await rlm.acomplete(
                "delegate subtasks to child agents that rest in the middle",
                model=provider(server, random.choice(["openai", "anthropic"])),
                tools=[rlm.subagent_tool(), rest],
                budget=AMPLE,
                skills="off",
                retry={"base": 0.001, "cap": 0.002},
                cancel=tokens[place],
                on_event=watched[place].events.append,
            )

        async with anyio.create_task_group() as group:
            for place in range(runs):
                group.start_soon(run, place)
        left = asyncio.all_tasks() - before
        await server.wait_until_quiet()
        exchanges = list(server.exchanges)
    met: Counter[str] = Counter({"rounds": 1, "at once": sum(seen.most_at_once for seen in watched)})
    assert not {task for task in left if not task.done()}, left
    assert len(roots) == runs
    for root in roots:
        assert_all_places_are_free(root.run)
        assert root.run.run_budget.reserved_tokens == 0
    for result, seen, token in zip(results, watched, tokens, strict=True):
        assert result.abandoned == ()
        if token.cancelled:
            assert result.status == "ok" or (result.status, result.error["kind"]) == ("partial", "cancelled"), result
            met["cancelled runs"] += result.status != "ok"
        else:
            assert result.status == "ok", result
        if result.status == "ok":
            met += answers_are_whole(result, seen)
        assert (result.usage.total_tokens, result.usage.estimated_tokens) == ledger_of(seen)
    assert all((run_budget.reserved_tokens, round(run_budget.reserved_cost, 9)) == (0, 0) for run_budget in run_budgets)
    assert_the_server_counted_the_same(results, watched, exchanges)
    return met


def assert_all_places_are_free(run: Run) -> None:
    workers = [run.workers, *run.workers._levels.values()]
    limiters = [run.slots, *(each._limiter for each in workers), *run._places.values()]
    assert [limiter.borrowed_tokens for limiter in limiters] == [0] * len(limiters)
    assert [limiter.statistics().tasks_waiting for limiter in limiters] == [0] * len(limiters)


def answers_are_whole(result: Any, seen: Watched) -> Counter[str]:
    """Every child that was asked for came back once, in its place, with its own answer; and all that they used is the
    whole that was used."""
    met: Counter[str] = Counter()
    below = list(envelopes(result.value, [f"{n}" for n in range(len(result.value))]))
    for name, got in below:
        if got["status"] == "ok":
            assert got["value"]["task"] == name
        else:
            assert got["error"] is not None
        met["ok" if got["status"] == "ok" else got["error"]["kind"]] += 1
        met[f"depth {name.count('.') + 1}"] += 1
        assert got["timeout"]["effective_seconds"] <= got["timeout"]["requested_seconds"]
    children = [got["correlation"]["child"] for _, got in below if got["correlation"]["child"] is not None]
    assert len(children) == len(set(children))
    own = [row for row in seen.of("request") if row["role"] == "planner"]
    assert result.usage.model_calls == len(own) + sum(got["usage"]["model_calls"] for got in result.value)
    assert result.usage.model_calls == len(seen.of("request"))
    told = [
        row["usage"] for row in seen.of("reply") if "usage" in row and row["call"] in {each["call"] for each in own}
    ]
    mine = sum(usage["input_tokens"] + usage["output_tokens"] for usage in told)
    theirs = sum(got["usage"]["input_tokens"] + got["usage"]["output_tokens"] for got in result.value)
    assert result.usage.total_tokens == mine + theirs
    return met


def envelopes(value: list[dict[str, Any]], names: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every envelope in a value, with the task that it was asked for."""
    assert len(value) == len(names)
    for name, got in zip(names, value, strict=True):
        yield name, got
        below = (got["value"] or {}).get("below", []) if isinstance(got["value"], dict) else []
        yield from envelopes(below, [f"{name}.{n}" for n in range(len(below))])


def ledger_of(seen: Watched) -> tuple[int, int]:
    """Tokens that the run must have been charged, and how many of them nobody told: what a reply said it took; our own
    count where it said nothing; what was reserved where it broke or was not waited for; nothing where the request was
    refused."""
    under_way: dict[str, list[int]] = {}
    total = guessed = 0
    for row in seen.events:
        if row["event"] == "request":
            assert row["call"] not in under_way  # one attempt of a call at a time
            under_way[row["call"]] = row["reserved"]
        elif row["event"] == "reply":
            reserved = under_way.pop(row["call"])
            if "error" in row:
                assert ("charged" not in row) == refused(row["error"])
                if refused(row["error"]):
                    continue
                detail = row["error"]["detail"]
                told = {"input_tokens": None, "output_tokens": None, **detail.get("usage", {})}
                received = detail.get("received_bytes", reserved[1])
                own = (reserved[0], min(received, reserved[1]))
            else:
                told, own = row["usage"], (reserved[0], row["charged"]["output_tokens"])
            for name, most in zip(("input_tokens", "output_tokens"), own, strict=True):
                total += most if told[name] is None else told[name]
                guessed += most if told[name] is None else 0
    left = sum(sum(reserved) for reserved in under_way.values())
    return total + left, guessed + left


def refused(error: dict[str, Any]) -> bool:
    """Whether a request that failed so cost nothing: it was refused with a status, or never left."""
    status = error.get("status")
    if status is None:
        return error.get("detail", {}).get("unsent") is True
    return bool(status >= 400 and status not in (408, 504))


def assert_the_server_counted_the_same(results: list[Any], watched: list[Watched], exchanges: list[Any]) -> None:
    """Each reply that arrived is one that the server made, with the server's numbers; none is there twice. What is
    reported is never below what the server counted."""
    made: Counter[tuple[str, int, int]] = Counter()
    for each in exchanges:
        if each.usage_told or each.tokens_in:
            digest = hashlib.sha256(each.request.body).hexdigest()
            made[digest, each.tokens_in, each.tokens_out] += 1
    arrived: Counter[tuple[str, int, int]] = Counter()
    for seen in watched:
        under_way: dict[str, str] = {}
        for row in seen.events:
            if row["event"] == "request":
                under_way[row["call"]] = row["body"]  # one attempt of a call at a time
            elif row["event"] == "reply" and (row.get("usage") or {}).get("input_tokens") is not None:
                usage = row["usage"]
                arrived[under_way[row["call"]], usage["input_tokens"], usage["output_tokens"]] += 1
    assert arrived <= made, arrived - made
    counted = sum(each.tokens_in + each.tokens_out for each in exchanges)
    assert sum(result.usage.total_tokens for result in results) >= counted
    assert sum(result.usage.model_calls for result in results) >= len(exchanges)
