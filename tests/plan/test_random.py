"""Random valid plans run as they read: side by side or one by one, the machine agrees with a naive reading."""

from __future__ import annotations

import json
from typing import Any

import anyio
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from rlm.errors import ToolError
from rlm.plan import (
    ActionOutcome,
    Execution,
    Failed,
    Final,
    Frame,
    Prompt,
    Scope,
    ToolAction,
    ValidPlan,
    advance,
    begin,
    bindings,
    is_failure,
    proceed,
    read,
    resume,
    validate,
    worst_case,
)
from tests.plan import naive

INPUTS: dict[str, Any] = {"words": ["ax", "b", "c {y}"], "numbers": [3, 1, 2], "deep": {"rows": [{"k": 1}, {"k": "x"}]}}
FRAME = Frame(inputs={"words": 3, "numbers": 3, "deep": None}, tools={"echo": {"type": "object"}})
BAD = {"error": {"phase": "tool", "kind": "broken", "message": "it broke", "detail": {}}}


class Deterministic:
    """An executor whose answers depend on what it is asked and on nothing else; it always gives way to the others."""

    def __init__(self) -> None:
        self.calls = 0

    async def tool(self, name: str, arguments: dict[str, Any]) -> Any:
        self.calls += 1
        await anyio.lowlevel.checkpoint()
        try:
            return naive.tool(arguments)
        except naive.Broke:
            raise ToolError("broken", "it broke") from None

    async def model(self, prompt: Prompt, schema: dict[str, Any] | None) -> Any:
        self.calls += 1
        await anyio.lowlevel.checkpoint()
        return f"<{''.join(map(str, prompt))}>"

    async def context(self, handle: str, action: str, arguments: dict[str, Any]) -> Any:
        raise AssertionError

    async def rlm(self, query: str, context: Any, plan: dict[str, Any] | None) -> Any:
        raise AssertionError

    async def checkpoint(self, label: str) -> None:
        await anyio.lowlevel.checkpoint()

    def event(self, path: str, kind: str, data: dict[str, Any]) -> None:
        assert path.startswith("steps")


class Maker:
    """Draws the steps of a plan; every name is new, so that all of it is valid."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.names = 0
        self.steps = 0
        self.lists: set[str] = set()

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def expression(self, names: list[str], depth: int = 2) -> Any:
        forms = [
            "scalar",
            "input",
            "literal",
            *(["var"] * 4 if names else []),
            *(["list", "object", "join"] if depth else []),
        ]
        match self.draw(st.sampled_from(forms)):
            case "scalar":
                return self.draw(st.sampled_from([0, 1, 2.5, "a", "x{y}", None, True]))
            case "input":
                return {"input": self.draw(st.sampled_from(sorted(INPUTS))), **self.path()}
            case "literal":
                return {"literal": self.draw(st.sampled_from([{"var": "v1"}, [1, 2], [], {"a": ["x"]}]))}
            case "var":
                return {"var": self.draw(st.sampled_from(names)), **self.path()}
            case "list":
                return [self.expression(names, depth - 1) for _ in range(self.draw(st.integers(0, 3)))]
            case "object":
                return {
                    key: self.expression(names, depth - 1) for key in self.draw(st.sets(st.sampled_from(["k", "a b"])))
                }
            case _:
                return {"join": [self.expression(names, depth - 1) for _ in range(self.draw(st.integers(0, 3)))]}

    def path(self) -> dict[str, Any]:
        if self.draw(st.integers(0, 9)):
            return {}
        return {"path": self.draw(st.lists(st.sampled_from(["rows", "k", 0, 1, -1]), max_size=2))}

    def over(self, names: list[str]) -> Any:
        """Mostly a list."""
        lists = [name for name in names if name in self.lists]
        if lists and self.draw(st.booleans()):
            return {"var": self.draw(st.sampled_from(lists))}
        known = [{"input": "words"}, {"input": "numbers"}, {"input": "deep", "path": ["rows"]}]
        odd = [self.expression(names), [self.expression(names), self.expression(names)]]
        return self.draw(st.sampled_from([*known, *known, *odd]))

    def body(self, names: list[str], level: int) -> list[Any]:
        names, made = list(names), []
        for _ in range(self.draw(st.integers(1, 4))):
            step = self.step(names, level)
            made.append(step)
            names += [step["bind"]] if "bind" in step else []
        if "bind" not in made[-1] or self.draw(st.booleans()):
            made.append({"op": "final", "value": self.expression(names)})
        return made

    def step(self, names: list[str], level: int) -> dict[str, Any]:
        self.steps += 1
        bodies = ["map", "map", "parallel", "retry"] if level < 3 and self.steps < 12 else []
        op = self.draw(st.sampled_from(["tool", "model", "reduce", "checkpoint", *bodies]))
        match op:
            case "tool":
                fields: dict[str, Any] = {
                    "name": "echo",
                    "args": {"a": self.expression(names), "var": self.expression(names)},
                }
            case "model":
                fields = {"prompt": {"join": [self.expression(names), "?"]}}
            case "reduce":
                kind = self.draw(st.sampled_from(["count", "concat", "sum", "vote"]))
                over = {"input": "numbers"} if kind == "sum" and self.draw(st.booleans()) else self.over(names)
                fields = {"over": over, "with": kind}
                fields |= {"failed": "skip"} if self.draw(st.booleans()) else {}
            case "map":
                item = self.name()
                fields = {"over": self.over(names), "as": item, "steps": self.body([*names, item], level + 1)}
            case "parallel":
                plans = [{"steps": self.body(names, level + 1)} for _ in range(self.draw(st.integers(1, 3)))]
                fields = {"plans": plans}
            case "retry":
                fields = {"attempts": self.draw(st.integers(1, 3)), "steps": self.body(names, level + 1)}
            case _:
                return {"op": "checkpoint", "label": "here"}
        name = self.name()
        self.lists |= {name} if op in ("map", "parallel") else set()
        return {"op": op, **fields, "bind": name}


@st.composite
def plans(draw: Any) -> ValidPlan:
    made = Maker(draw).body([], 0)
    if made[-1]["op"] != "final":
        made.append({"op": "final", "value": {"var": made[-1]["bind"]}})
    return validate({"steps": made}, FRAME)


def plain(value: Any) -> Any:
    """The value with failures written as the naive reading writes them."""
    if is_failure(value):
        return "BROKE"
    if isinstance(value, list):
        return [plain(item) for item in value]
    return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value


def expected(plan: ValidPlan) -> Any:
    try:
        return naive.run(plan.data["steps"], {}, INPUTS)
    except naive.Broke:
        return Failed


def holds_a_failure(value: Any) -> bool:
    return "BROKE" in repr(value) or "broke" in repr(value)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plan=plans(), width=st.integers(1, 4))
def test_a_plan_runs_as_it_reads(plan: ValidPlan, width: int) -> None:
    want = expected(plan)
    executor = Deterministic()
    execution = Execution(plan, executor, Scope(INPUTS), width=width)
    ending = anyio.run(execution.run)
    event("failed" if want is Failed else "final")
    if want is Failed:
        assert isinstance(ending, Failed)
        assert set(ending.bound) <= {step["bind"] for step in plan.data["steps"] if "bind" in step}
    else:
        assert isinstance(ending, Final)
        got = plain(ending.value)
        # an error as a value looks different in a text, so only what holds none is compared to the letter
        assert got == want or holds_a_failure(want)
    estimate = worst_case(plan, FRAME)
    if not estimate.unbounded:
        assert executor.calls <= estimate.model_calls + estimate.tool_calls


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plan=plans(), data=st.data())
def test_the_order_in_which_things_end_changes_nothing(plan: ValidPlan, data: st.DataObject) -> None:
    def play(choose: Any) -> tuple[Any, dict[str, Any]]:
        state = begin(plan, Scope(INPUTS), width=3)
        open_: list[Any] = []
        while isinstance(due := advance(state), tuple):
            open_ += due
            action = open_.pop(choose(len(open_)))
            value, error = None, None
            if isinstance(action, ToolAction):
                try:
                    value = naive.tool(action.arguments)
                except naive.Broke:
                    error = BAD["error"]
            else:
                value = f"<{getattr(action, 'prompt', None)}>"
            state = resume(state, ActionOutcome(action.at, value, error))
        return due, bindings(state)

    first = play(lambda _: 0)
    assert play(lambda count: data.draw(st.integers(0, count - 1))) == first
    assert play(lambda _: -1) == first


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plan=plans())
def test_a_valid_plan_stays_valid_and_a_text_of_it_is_read_back(plan: ValidPlan) -> None:
    assert read(f"So:\n```json\n{json.dumps(plan.data, indent=1)}\n```\n", FRAME) == plan


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plan=plans(), most=st.integers(1, 7))
def test_a_plan_that_pauses_comes_to_the_same(plan: ValidPlan, most: int) -> None:
    def play(**limit: int) -> tuple[Any, dict[str, Any], list[Any], int]:
        state = begin(plan, Scope(INPUTS), width=3, **limit)
        open_: list[Any] = []
        notes, steps = [*state.notes], state.steps
        while isinstance(due := advance(state), tuple):
            open_ += due
            if state.pause is not None:
                state = proceed(state, **limit)
            else:
                action = open_.pop(0)
                state = resume(state, ActionOutcome(action.at, "a" if "1" in action.id else None), **limit)
            notes += state.notes
            steps += state.steps
        return due, bindings(state), notes, steps

    assert play(most=most) == play()
