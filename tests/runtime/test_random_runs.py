"""Runs at random, with faults at random: what is reported is what the server counted, and no cap is broken.

The model's part is played by a generator that writes any plan there can be (and sometimes none); the server breaks
connections, refuses, stalls for a moment, and forgets to say what a reply cost.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rlm
from tests.runtime.actors import WIRES, child, final, model, observe, part_of, plan, provider, tool, var
from tests.support.loopback import Answer, Line, Loopback, Reply, Request, answers, drops, fails, raw, resets
from tests.support.wires import tokens

RUNS = 200
SHARE = 0.2
"""The part of requests that meets a fault."""


@rlm.tool(effect="read")
def lucky_number(low: int = 0) -> int:
    """Draw a lucky number."""
    if low > 8:
        raise ValueError("too lucky")
    return low + 1


class Chaos:
    """A model and a line that do anything, all of it from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.names = 0

    def __call__(self, request: Request) -> Line:
        if self.random.random() < SHARE:
            return self.fault()
        part = part_of(request)
        text = self.leaf(request) if part == "leaf" else self.planner(part)
        most = request.json.get("max_tokens") or request.json.get("max_completion_tokens")
        if tokens(text) > most:  # a server that keeps to the limit stops in the middle
            text = text[:most]
        usage: Any = None if self.random.random() < 0.15 else "counted"
        return answers(text, usage=usage)

    def fault(self) -> Reply | Answer:
        return self.random.choice(
            [
                fails(503),
                fails(429, retry_after="0"),
                fails(500),
                fails(400, "no"),
                drops(),
                resets(),
                raw(b"{nonsense"),
                answers("cut in the middle of it", then="drop", share=self.random.random()),
            ]
        )

    def leaf(self, request: Request) -> str:
        most = request.json.get("max_tokens") or request.json.get("max_completion_tokens") or 1
        return " ".join(["word"] * self.random.randint(1, max(1, min(most // 2, 60))))

    def planner(self, part: str) -> str:
        roll = self.random.random()
        if roll < 0.12:
            return self.random.choice(
                ["", "hm", "null", "{}", '{"steps": []}', plan({"op": "fly"}), plan(final(var("no")))]
            )
        steps = [self.step(2, part) for _ in range(self.random.randint(0, 3))]
        bound = [step["bind"] for step in steps]
        value = [var(name) for name in bound] or "nothing"
        return plan(*steps, observe(value) if roll < 0.4 else final(value))

    def step(self, depth: int, part: str) -> dict[str, Any]:
        self.names += 1
        name = f"v{self.names}"
        kind = self.random.choice(
            ["model", "child", "tool", "context", "map", "parallel", "retry"][: 4 if depth == 0 else 7]
        )
        if kind == "child" and part == "planner":
            return child(f"sub-task {self.random.randint(0, 5)}", name)
        if kind == "tool":
            return tool("lucky_number", name, low=self.random.randint(0, 9))
        if kind == "context":
            return {"op": "context", "handle": "context", "action": "count", "args": {"literal": "a"}, "bind": name}
        if kind == "map":
            over = list(range(self.random.randint(0, 6)))
            return {"op": "map", "over": over, "as": f"i{name}", "steps": [self.step(depth - 1, part)], "bind": name}
        if kind == "parallel":
            plans = [{"steps": [self.step(depth - 1, part)]} for _ in range(self.random.randint(1, 3))]
            return {"op": "parallel", "plans": plans, "bind": name}
        if kind == "retry":
            return {"op": "retry", "attempts": 2, "steps": [self.step(depth - 1, part)], "bind": name}
        return model(f"say {name}", name)


def budget_of(random: Random) -> rlm.Budget:
    fields: dict[str, Any] = {"max_iterations": random.randint(1, 6), "max_recursion_depth": random.randint(0, 2)}
    if random.random() < 0.5:
        fields["max_total_tokens"] = random.randint(500, 30_000)
    if random.random() < 0.4:
        fields["max_model_calls"] = random.randint(0, 12)
    if random.random() < 0.3:
        fields["max_tool_calls"] = random.randint(0, 3)
    if random.random() < 0.3:
        fields["max_context_ops"] = random.randint(0, 3)
    fields["max_concurrent_subcalls"] = random.choice([1, 3, 8])
    return rlm.Budget(**fields)


@pytest.mark.parametrize("wire", WIRES)
@settings(max_examples=RUNS // 2, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_what_is_reported_is_what_the_server_counted_and_no_cap_is_broken(wire: str, seed: int) -> None:
    random = Random(seed)
    budget = budget_of(random)
    with Loopback(Chaos(seed)) as server:
        result = rlm.complete(
            "draw a lucky number",
            "a banana and a cabbage",
            model=provider(server, wire),
            tools=[lucky_number],
            budget=budget,
            retry={"base": 0.001, "cap": 0.002},
            skills=random.choice(["on", "off"]),
            max_repairs=random.randint(0, 2),
        )
        told = sum(each.tokens_in + each.tokens_out for each in server.exchanges if each.usage_told)
        counted = server.tokens_in + server.tokens_out
    usage = result.usage
    assert result.status in ("ok", "partial", "failed"), result
    assert (result.status == "ok") == (result.error is None)
    assert usage.total_tokens - usage.estimated_tokens == told
    assert usage.total_tokens >= counted
    assert usage.total_tokens <= budget.max_total_tokens
    assert len(server.requests) <= usage.model_calls <= budget.max_model_calls
    assert usage.tool_calls <= budget.max_tool_calls
    assert usage.context_ops <= budget.max_context_ops
    assert json.loads(json.dumps(result.to_dict()))["status"] == result.status
