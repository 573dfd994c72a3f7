"""What one step comes to, with the values that are there: pure, one function for each operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rlm.model.plan import Final, Observe
from rlm.plan.actions import Action, CheckpointAction, ContextAction, ModelAction, RlmAction, ToolAction
from rlm.plan.expressions import evaluate, is_handle, keys_of, pieces, text
from rlm.plan.parse import normalise
from rlm.plan.problems import failure, inside, joined, shown, type_name
from rlm.plan.reduce import items_of, listed, reading, reduced
from rlm.plan.schemas import mismatch
from rlm.plan.sizes import size_of, units_of
from rlm.plan.state import MapBody

CHECK_SECONDS = 0.1
"""Processor time of the check of one final value: nothing else on the event loop runs meanwhile."""


@dataclass(frozen=True, slots=True)
class Value:
    """The step has its value already."""

    value: Any


@dataclass(frozen=True, slots=True)
class Many:
    """A body is to run for each of these, side by side."""

    over: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Again:
    """A body is to run until it succeeds."""


Work = Action | Value | Many | Again | Final | Observe


def work_of(body: MapBody) -> Work:
    """What the step that is under way comes to. Raises: PlanError, with the path of the place."""
    return _OPS[body.step["op"]](body)


def _context(body: MapBody) -> Work:
    step = body.step
    handle = _handle(body, step["handle"])
    return ContextAction(body.at, body.step_id, body.step_path, handle, step["action"], _arguments(body))


def _model(body: MapBody) -> Work:
    return _asked(body, pieces(body.step["prompt"], body.scope, _place(body, "prompt")))


def _rlm(body: MapBody) -> Work:
    step = body.step
    query = text(step["query"], body.scope, _place(body, "query"))
    context = evaluate(step.get("context"), body.scope, _place(body, "context"))
    plan = normalise(step["plan"]) if "plan" in step else None
    return RlmAction(body.at, body.step_id, body.step_path, query, context, plan)


def _tool(body: MapBody) -> Work:
    arguments, place = _arguments(body), _place(body, "args")
    for name, value in arguments.items():
        if isinstance(value, str):
            arguments[name] = text(body.step["args"][name], body.scope, inside(place, name))
    return ToolAction(body.at, body.step_id, body.step_path, body.step["name"], arguments)


def _map(body: MapBody) -> Work:
    place = _place(body, "over")
    return Many(tuple(listed(evaluate(body.step["over"], body.scope, place), place)))


def _parallel(body: MapBody) -> Work:
    return Many(tuple(normalise(plan)["steps"] for plan in body.step["plans"]))


def _retry(_body: MapBody) -> Work:
    return Again()


def _reduce(body: MapBody) -> Work:
    step, path = body.step, body.step_path
    over = evaluate(step["over"], body.scope, _place(body, "over"))
    part, failed, work = keys_of(step.get("path", "")) or (), step.get("failed", "fail"), body.scope.work
    items = items_of(over, path, part=part, failed=failed, work=work)
    if step["with"] != "model":
        return Value(reduced(step["with"], items, path, separator=step.get("separator", "\n"), work=work))
    prompt = pieces(step["prompt"], body.scope, _place(body, "prompt"))
    return _asked(body, reading(prompt, items, path, work))


def _checkpoint(body: MapBody) -> Work:
    return CheckpointAction(body.at, body.step_id, body.step_path, body.step["label"])


def _observe(body: MapBody) -> Work:
    values, place = body.step["values"], _place(body, "values")
    if isinstance(values, dict):
        seen = {label: evaluate(value, body.scope, inside(place, label)) for label, value in values.items()}
    else:
        seen = {_label(item, n): evaluate(item, body.scope, inside(place, n)) for n, item in enumerate(values)}
    return Observe(seen, tuple(body.step.get("needs", ())))


def _final(body: MapBody) -> Work:
    place, schema = _place(body, "value"), body.step.get("schema")
    value = evaluate(body.step["value"], body.scope, place)
    broken = None if schema is None else _broken(body, schema, value, place)
    if broken is not None:
        raise failure("schema_violation", f"the value does not follow its schema: {broken}", place)
    return Final(value, schema)


def _broken(body: MapBody, schema: dict[str, Any], value: Any, place: str) -> str | None:
    """Where the value breaks the schema first. To check a value takes as long as to look at it ten times."""
    for each, times in ((schema, 1), (value, 10)):
        body.scope.work.add(times * units_of(*size_of(each)), place)
    return mismatch(schema, value, CHECK_SECONDS)


_OPS: Mapping[str, Callable[[MapBody], Work]] = {
    "context": _context,
    "model": _model,
    "rlm": _rlm,
    "tool": _tool,
    "map": _map,
    "reduce": _reduce,
    "parallel": _parallel,
    "retry": _retry,
    "checkpoint": _checkpoint,
    "observe": _observe,
    "final": _final,
}


def _place(body: MapBody, field: str) -> str:
    return inside(body.step_path, field)


def _asked(body: MapBody, prompt: tuple[Any, ...]) -> Work:
    return ModelAction(body.at, body.step_id, body.step_path, prompt, body.step.get("schema"))


def _arguments(body: MapBody) -> dict[str, Any]:
    """Arguments by name; the object itself is never a reference, whatever the names are."""
    place = _place(body, "args")
    return {name: evaluate(item, body.scope, inside(place, name)) for name, item in body.step.get("args", {}).items()}


def _handle(body: MapBody, expression: Any) -> str:
    place = _place(body, "handle")
    value = evaluate(expression, body.scope, place)
    if is_handle(value):
        return str(value["handle"])
    if not isinstance(value, str):
        raise failure("not_a_context", f"a context is wanted, and this is {type_name(value)}: {shown(value)}", place)
    return value


def _label(value: Any, number: int) -> str:
    """What an observed value is called: as the variable is, or by its number."""
    name = value.get("var", value.get("input")) if isinstance(value, dict) else None
    if not isinstance(name, str):
        return f"[{number}]"
    return joined(name, keys_of(value.get("path", "")) or ())
