"""The work of one step with the values that are bound: pure, one function for each operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rlm.model.plan import Final, Observe, PlanError
from rlm.plan.actions import (
    Action,
    CheckpointAction,
    ContextAction,
    LetAction,
    ModelAction,
    PackedModelAction,
    RlmAction,
    ToolAction,
)
from rlm.plan.computing import is_true, names_in
from rlm.plan.expressions import bare_handle, evaluate, is_handle, keys_of, pieces, text
from rlm.plan.parse import normalise
from rlm.plan.problems import failure, inside, joined, short_json, type_name
from rlm.plan.reduce import check_list, items_of, model_prompt, reduce_items
from rlm.plan.schemas import mismatch
from rlm.plan.sizes import size_of, units_of
from rlm.plan.state import BodyState

MAX_PACKED = 1_000
"""The most items of a map with ``pack``: their prompts are all made at once."""

CHECK_SECONDS = 0.1
"""Processor seconds of the check of one final value, in which nothing else on the event loop runs."""


@dataclass(frozen=True, slots=True)
class StepValue:
    """The value of a step that needs no action."""

    value: Any


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Bodies to run side by side, one for each of ``over``."""

    over: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Retried:
    """A body to run again until it succeeds."""


Work = Action | StepValue | SideBySide | Retried | Final | Observe


def work_of(body: BodyState) -> Work:
    """Return the work of the current step. Raises: PlanError, with the path of the place."""
    return _OPS[body.step["op"]](body)


def _context(body: BodyState) -> Work:
    step = body.step
    handle = _handle(body, step["handle"])
    return ContextAction(body.at, body.step_id, body.step_path, handle, step["action"], _arguments(body))


def _model(body: BodyState) -> Work:
    return _model_action(body, pieces(body.step["prompt"], body.scope, _place(body, "prompt")))


def _rlm(body: BodyState) -> Work:
    step = body.step
    query = text(step["query"], body.scope, _place(body, "query"))
    context = evaluate(step.get("context"), body.scope, _place(body, "context"))
    context = bare_handle(context) if is_handle(context) else context
    plan = normalise(step["plan"]) if "plan" in step else None
    return RlmAction(body.at, body.step_id, body.step_path, query, context, plan)


def _tool(body: BodyState) -> Work:
    arguments, place = _arguments(body), _place(body, "args")
    for name, value in arguments.items():
        if isinstance(value, str):
            arguments[name] = text(body.step["args"][name], body.scope, inside(place, name))
    return ToolAction(body.at, body.step_id, body.step_path, body.step["name"], arguments)


def _let(body: BodyState) -> Work:
    """Return the action of an expression, with the values that it names."""
    expression = body.step["expr"]
    known = {**body.scope.inputs, **body.scope.variables}
    values = {name: known[name] for name in names_in(expression) if name in known}
    return LetAction(body.at, body.step_id, body.step_path, expression, values)


def check_ending(body: BodyState, value: Any) -> Observe | None:
    """Return the ending of a plan whose check has a value; None where the check holds."""
    if is_true(value):
        return None
    known = {**body.scope.inputs, **body.scope.variables}
    values = {name: known[name] for name in sorted(names_in(body.step["expr"])) if name in known}
    return Observe({"the check": value, **values}, failed_check=body.step_path)


def check_failed(path: str) -> PlanError:
    """Return the error of a check that does not hold."""
    return failure("check_failed", "the check does not hold", path)


def _map(body: BodyState) -> Work:
    place = _place(body, "over")
    items = tuple(check_list(evaluate(body.step["over"], body.scope, place), place))
    return SideBySide(items) if body.step.get("pack") is not True or not items else _packed(body, items)


def _packed(body: BodyState, items: tuple[Any, ...]) -> Work:
    """Return the action of a map with ``pack``: a prompt for each item. Raises: PlanError ``too_many_items``."""
    if len(items) > MAX_PACKED:
        message = f"the list has {len(items)} items, and at most {MAX_PACKED} are packed"
        raise failure("too_many_items", message, _place(body, "over"), items=len(items), limit=MAX_PACKED)
    inner, name = body.step["steps"][0], body.step["as"]
    bind = body.scope.bind_own if body.scope.is_own(body.step["over"]) else body.scope.bind
    place = f"{_place(body, 'steps')}[0].prompt"
    prompts = tuple(pieces(inner["prompt"], bind(name, item), place) for item in items)
    return PackedModelAction(body.at, body.step_id, body.step_path, prompts, inner.get("schema"))


def _parallel(body: BodyState) -> Work:
    return SideBySide(tuple(normalise(plan)["steps"] for plan in body.step["plans"]))


def _retry(_body: BodyState) -> Work:
    return Retried()


def _reduce(body: BodyState) -> Work:
    step, path = body.step, body.step_path
    over = evaluate(step["over"], body.scope, _place(body, "over"))
    part, failed, work = keys_of(step.get("path", "")) or (), step.get("failed", "fail"), body.scope.work
    items = items_of(over, path, part=part, failed=failed, work=work)
    if step["with"] != "model":
        return StepValue(reduce_items(step["with"], items, path, separator=step.get("separator", "\n"), work=work))
    prompt = pieces(step["prompt"], body.scope, _place(body, "prompt"))
    return _model_action(body, model_prompt(prompt, items, path, work))


def _checkpoint(body: BodyState) -> Work:
    return CheckpointAction(body.at, body.step_id, body.step_path, body.step["label"])


def _observe(body: BodyState) -> Work:
    values, place = body.step["values"], _place(body, "values")
    if isinstance(values, dict):
        values_by_label = {label: evaluate(value, body.scope, inside(place, label)) for label, value in values.items()}
    else:
        values_by_label = {
            _label(item, n): evaluate(item, body.scope, inside(place, n)) for n, item in enumerate(values)
        }
    return Observe(values_by_label, tuple(body.step.get("needs", ())))


def _final(body: BodyState) -> Work:
    place, schema = _place(body, "value"), body.step.get("schema")
    value = evaluate(body.step["value"], body.scope, place)
    violation = None if schema is None else _schema_violation(body, schema, value, place)
    if violation is not None:
        raise failure("schema_violation", f"the value does not follow its schema: {violation}", place)
    return Final(value, schema, body.step.get("assumptions", ""))


def _schema_violation(body: BodyState, schema: dict[str, Any], value: Any, place: str) -> str | None:
    """Return the first place where the value breaks the schema. The check of a value counts as ten reads of it."""
    for each, times in ((schema, 1), (value, 10)):
        body.scope.work.add(times * units_of(*size_of(each)), place)
    return mismatch(schema, value, CHECK_SECONDS)


_OPS: Mapping[str, Callable[[BodyState], Work]] = {
    "context": _context,
    "model": _model,
    "rlm": _rlm,
    "tool": _tool,
    "let": _let,
    "check": _let,
    "map": _map,
    "reduce": _reduce,
    "parallel": _parallel,
    "retry": _retry,
    "checkpoint": _checkpoint,
    "observe": _observe,
    "final": _final,
}


def _place(body: BodyState, field: str) -> str:
    return inside(body.step_path, field)


def _model_action(body: BodyState, prompt: tuple[Any, ...]) -> Work:
    return ModelAction(body.at, body.step_id, body.step_path, prompt, body.step.get("schema"))


def _arguments(body: BodyState) -> dict[str, Any]:
    """Return the arguments by name. The object itself is never a reference, whatever its keys are."""
    place = _place(body, "args")
    return {name: evaluate(item, body.scope, inside(place, name)) for name, item in body.step.get("args", {}).items()}


def _handle(body: BodyState, expression: Any) -> str:
    place = _place(body, "handle")
    value = evaluate(expression, body.scope, place)
    if is_handle(value):
        return str(value["handle"])
    if not isinstance(value, str):
        raise failure(
            "not_a_context", f"a context is wanted, and this is {type_name(value)}: {short_json(value)}", place
        )
    return value


def _label(value: Any, number: int) -> str:
    """Return the label of an observed value: the name of its variable, or its number."""
    name = value.get("var", value.get("input")) if isinstance(value, dict) else None
    if not isinstance(name, str):
        return f"[{number}]"
    return joined(name, keys_of(value.get("path", "")) or ())
