"""A small world for plans: a real context store, Python functions as tools, a model that is a function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from rlm.context.arguments import ACTIONS
from rlm.context.store import Store
from rlm.errors import RlmError, ToolError
from rlm.plan import Ending, Execution, Frame, PlanError, PlanProblem, Prompt, Scope, ValidPlan, validate
from rlm.plan.computing import compute

LOG = "10:00 INFO start\n10:01 ERROR disk full\n10:02 INFO retry\n10:03 ERROR disk full\n10:04 INFO stop\n"

ADD = {
    "type": "object",
    "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
FIND = {
    "type": "object",
    "properties": {
        "words": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "mode": {"enum": ["all", "any"]},
        "range": {"type": "object", "properties": {"from": {"type": "integer", "minimum": 0}}, "required": ["from"]},
    },
    "required": ["words"],
    "additionalProperties": False,
}
FAIL = {"type": "object", "properties": {"when": {}}, "additionalProperties": False}

FRAME = Frame(
    inputs={"names": 3, "question": None},
    handles=("log",),
    tools={"add": ADD, "find": FIND, "fail": FAIL},
    known_tools=("deploy",),
    actions={name: spec.schema for name, spec in ACTIONS.items()},
    child=Frame(handles=("log",), inputs=("task",)),
)
INPUTS = {"names": ["Ann", "Bob", "Cy"], "question": "How many errors {x} ${y}?"}


class Stopped(RlmError):
    """The budget or the time is over: nothing may go on."""

    phase = "runtime"
    terminal = True


@dataclass
class World:
    """An executor. ``says`` is the model, ``tools`` are async functions by name; ``events`` is what was told."""

    says: Callable[[str], Any] = len
    tools: dict[str, Callable[[dict[str, Any]], Awaitable[Any]]] = field(default_factory=dict)
    events: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    asked: list[tuple[Prompt, dict[str, Any] | None]] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    store: Store = field(default_factory=Store)

    def __post_init__(self) -> None:
        self.store.put(LOG, "log")

    async def context(self, handle: str, action: str, arguments: dict[str, Any]) -> Any:
        return await self.store.act(handle, action, arguments)

    async def model(self, prompt: Prompt, schema: dict[str, Any] | None) -> Any:
        self.asked.append((prompt, schema))
        texts = [piece if isinstance(piece, str) else await self.store.text(piece, 1000) for piece in prompt]
        return self.says("".join(texts))

    async def rlm(self, query: str, context: Any, plan: dict[str, Any] | None) -> Any:
        if plan is None:
            return {"query": query, "context": context}
        assert FRAME.child is not None
        ending = await Execution(validate(plan, FRAME.child), self, Scope({"task": query}), width=2).run()
        return getattr(ending, "value", None)

    async def tool(self, name: str, arguments: dict[str, Any]) -> Any:
        if name in self.tools:
            return await self.tools[name](arguments)
        if name == "add":
            return arguments["a"] + arguments["b"]
        if name == "fail":
            raise ToolError("broken", f"it fails when {arguments.get('when')}")
        return arguments

    async def models(self, prompts: Sequence[Prompt], schema: dict[str, Any] | None) -> list[Any]:
        return [await self.model(prompt, schema) for prompt in prompts]

    async def let(self, expression: str, values: Mapping[str, Any]) -> Any:
        return compute(expression, values)[0]

    async def checkpoint(self, label: str) -> None:
        self.labels.append(label)

    def event(self, path: str, kind: str, data: dict[str, Any]) -> None:
        self.events.append((path, kind, data))


def plan(*steps: dict[str, Any], frame: Frame = FRAME) -> ValidPlan:
    return validate({"steps": list(steps)}, frame)


def problems(*steps: Any, frame: Frame = FRAME) -> list[PlanProblem]:
    """What is wrong with a plan; nothing where it is valid."""
    error = refusal(validate, {"steps": list(steps)}, frame)
    return [] if error is None else list(error.problems)


def refusal(function: Callable[..., Any], *args: Any) -> PlanError | None:
    """The error of a call that was refused; any other exception comes out."""
    try:
        function(*args)
    except PlanError as error:
        return error
    return None


def kinds(*steps: Any, frame: Frame = FRAME) -> list[tuple[str, str]]:
    return [(problem.kind, problem.path) for problem in problems(*steps, frame=frame)]


def ended(*steps: dict[str, Any], world: World | None = None, frame: Frame = FRAME, width: int = 4) -> Ending:
    """How a plan ends in a world."""
    execution = Execution(plan(*steps, frame=frame), world or World(), Scope(INPUTS), width=width)
    return anyio.run(execution.run)


def value(*steps: dict[str, Any], world: World | None = None) -> Any:
    """The value of a plan that gives one."""
    ending = ended(*steps, world=world)
    assert hasattr(ending, "value"), ending
    return ending.value


def final(value: Any, **fields: Any) -> dict[str, Any]:
    return {"op": "final", "value": value, **fields}


def var(name: str, path: Any = None) -> dict[str, Any]:
    return {"var": name} if path is None else {"var": name, "path": path}


def add(a: Any, b: Any, bind: str) -> dict[str, Any]:
    return {"op": "tool", "name": "add", "args": {"a": a, "b": b}, "bind": bind}
