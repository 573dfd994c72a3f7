"""The check of a plan before it runs: is it a plan, and may it run here?

One check finds all problems (up to ``MAX_PROBLEMS``), each with the path of its place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from rlm.errors import did_you_mean
from rlm.model.plan import OPS, REDUCTIONS, Frame, PlanError, PlanProblem, ValidPlan
from rlm.plan.fields import EnoughProblems, FieldCheck, Names
from rlm.plan.grammar import ENDINGS, FIELDS, NAME, ONLY_WITH, PLAN_FIELDS, Shape
from rlm.plan.parse import MAX_CHARS, MAX_DEPTH, normalise, parse
from rlm.plan.problems import inside, names_of, one_of, problem, short_json, unknown_name, wrong_value
from rlm.plan.schemas import mismatch

MAX_VALUES = 100_000
"""The most values in a plan; lists and objects count too."""

NOTHING: Names = frozenset()
MISSING = object()


def validate(data: Any, frame: Frame) -> ValidPlan:
    """Check a plan and return it as a ``ValidPlan``.

    Args:
        data: a plan as JSON data, or data that ``normalise`` turns into one.
        frame: the names that the plan may use, and its limits.

    Raises:
        PlanError: ``problems`` has all problems.
    """
    json_problem = problem_of_json(data)
    if json_problem is not None:
        raise PlanError.of([json_problem])
    data = normalise(data)
    check = _Check(frame)
    check.plan(data, "")
    if check.problems:
        raise PlanError.of(check.problems)
    return ValidPlan(data=data, tools=tuple(sorted(check.tools)), limits=frame.limits)


def read(text: str, frame: Frame, material: str = "") -> ValidPlan:
    """Return the checked plan in a reply: ``validate(parse(text, material), frame)``. Raises: PlanError."""
    return validate(parse(text, material), frame)


def problem_of_json(data: Any) -> PlanProblem | None:
    """Return the problem of a value that is no JSON, or that is too large or too deep; None where it has none."""
    stack: list[tuple[Any, str, int]] = [(data, "", 0)]
    values = chars = 0
    while stack:
        value, path, depth = stack.pop()
        values += 1
        if depth > MAX_DEPTH:
            return problem(path[:200], "too_deep", "the plan is nested too deeply", f"<= {MAX_DEPTH} levels")
        if values + len(stack) > MAX_VALUES or chars > MAX_CHARS:
            most = f"<= {MAX_VALUES} values and {MAX_CHARS} characters"
            return problem("", "too_large", "the plan is too large", most)
        if isinstance(value, dict):
            if not all(isinstance(key, str) and _is_unicode(key) for key in value):
                return wrong_value(path, "keys that are strings of Unicode", list(value))
            chars += sum(map(len, value))
            stack += [(item, inside(path, key), depth + 1) for key, item in value.items()]
        elif isinstance(value, list):
            stack += [(item, inside(path, number), depth + 1) for number, item in enumerate(value)]
        elif isinstance(value, str):
            chars += len(value)
            if not _is_unicode(value):
                return wrong_value(path, "valid Unicode", value, kind="invalid_text")
        elif isinstance(value, float) and not math.isfinite(value):
            return wrong_value(path, "a finite number", value, kind="invalid_number")
        elif value is not None and not isinstance(value, bool | int | float):
            return wrong_value(path, "JSON", value)
    return None


def problem_of_value(schema: dict[str, Any] | None, value: Any) -> str | None:
    """Return the fault of a value in a model's reply, as no JSON or as a breach of a schema; None where it has none."""
    json_problem = problem_of_json(value)  # Python's parser accepts NaN, lone surrogates and any depth
    if json_problem is not None:
        return str(json_problem)
    return None if schema is None else mismatch(schema, value)


class _Check(FieldCheck):
    """One check of one plan."""

    def __init__(self, frame: Frame) -> None:
        super().__init__(frame)
        self.steps = 0

    # -- plans and bodies ---------------------------------------------------------------------------

    def plan(self, data: Any, path: str) -> None:
        """Check the plan itself, which must end with ``final`` or ``observe``."""
        try:
            steps, here = self.steps_of(data, path), inside(path, "steps")
            if steps is not MISSING:
                for name, home in _binds(steps, here):
                    self.homes.setdefault(name, home)
                self.body(steps, here, frozenset(self.frame.variables), NOTHING, 0)
                self.ending(steps, here)
        except EnoughProblems:
            pass

    def steps_of(self, data: Any, path: str) -> Any:
        """Return the steps of a plan; MISSING where it has none."""
        if not isinstance(data, dict):
            self.add(wrong_value(path, 'an object {"steps": [...]}', data))
            return MISSING
        for key in [key for key in data if key not in PLAN_FIELDS]:
            self.add(unknown_name(inside(path, key), "unknown_field", "field", key, PLAN_FIELDS))
        if "note" in data:
            self.note(data["note"], inside(path, "note"), NOTHING)
        if "steps" not in data:
            got = f"the keys {names_of(data)}"
            self.add(problem(path, "missing_field", "a plan has `steps`", '{"steps": [...]}', got))
        return data.get("steps", MISSING)

    def body(self, steps: Any, path: str, names: Names, bound_names: Names, level: int) -> None:
        """Check steps one after the other. ``names`` may be read; ``bound_names`` are those that this plan bound."""
        most = self.frame.limits.max_nesting
        if not isinstance(steps, list) or not steps:
            self.add(
                wrong_value(path, "a list of at least one step", steps, kind="empty" if steps == [] else "wrong_type")
            )
        elif level > most:
            self.add(problem(path, "too_deep", "steps are nested too deeply", f"<= {most} levels of steps in steps"))
        else:
            for number, step in enumerate(steps):
                own_names = self.step(step, inside(path, number), names, bound_names, level)
                names, bound_names = names | own_names, bound_names | own_names

    def inner(self, steps: Any, path: str, names: Names, bound_names: Names, level: int) -> None:
        """Check a body that has a value: the value of its ``final``, or of its last step."""
        self.body(steps, path, names, bound_names, level)
        if not _are_steps(steps):
            return
        for number, step in enumerate(steps):
            if step["op"] in ("observe", "check"):
                message = f"`{step['op']}` ends the whole plan, so it cannot stand in a body"
                self.add(problem(inside(path, number), "misplaced_ending", message, "any other operation", step["op"]))
            elif step["op"] == "final" and number < len(steps) - 1:
                self._follows(step["op"], inside(path, number))
        if steps[-1]["op"] == "checkpoint":
            message = "the last step of a body gives its value, and `checkpoint` has none"
            last = inside(path, len(steps) - 1)
            self.add(problem(last, "no_value", message, "`final`, or a step that binds", "checkpoint"))

    def ending(self, steps: Any, path: str) -> None:
        """Check that the plan has exactly one ending, as its last step."""
        if not _are_steps(steps):
            return
        for number, step in enumerate(steps[:-1]):
            if step["op"] in ENDINGS:
                self._follows(step["op"], inside(path, number))
        if steps[-1]["op"] not in ENDINGS:
            last = inside(path, len(steps) - 1)
            expected = one_of(f"`{op}`" for op in ENDINGS & self.frame.ops) + " as the last step"
            self.add(problem(last, "missing_ending", "the plan has no ending", expected, steps[-1]["op"]))

    def _follows(self, op: str, path: str) -> None:
        message = f"`{op}` ends what it stands in, so nothing may follow it"
        self.add(problem(path, "misplaced_ending", message, f"`{op}` as the last step", op))

    # -- one step -----------------------------------------------------------------------------------

    def step(self, step: Any, path: str, names: Names, bound_names: Names, level: int) -> Names:
        """Check a step and return the names that it binds."""
        self.steps += 1
        if self.steps > self.frame.limits.max_steps:
            most = f"<= {self.frame.limits.max_steps} steps in all bodies together"
            self.add(problem(path, "too_many_steps", "the plan is too long", most))
            raise EnoughProblems
        if not isinstance(step, dict):
            self.add(wrong_value(path, 'an object with "op"', step))
            return NOTHING
        op = self._op(step, path)
        if op is None:
            return NOTHING
        self._fields(op, step, path)
        for name, field in FIELDS[op].items():
            if name == "values" and step.get("needs") and step.get(name) in ([], {}):
                continue  # a plan may end to get tools alone
            if name in step and field.shape in self.by_shape:
                self.by_shape[field.shape](step[name], inside(path, name), names)
        self._composed(op, step, path, names, bound_names, level)
        if "bind" not in FIELDS[op]:
            return NOTHING
        return self._bound_name(step, "bind", path, bound_names | {_text(step.get("as"))})

    def _op(self, step: dict[str, Any], path: str) -> str | None:
        op, allowed, here = step.get("op"), one_of(self.frame.ops), inside(path, "op")
        if "op" not in step:
            named = [key for key in step if key in OPS]
            hint = f'; write {{"op": "{named[0]}", ...}}' if len(named) == 1 else ""
            self.add(problem(path, "missing_field", f"a step has `op`{hint}", allowed, f"the keys {names_of(step)}"))
        elif not isinstance(op, str):
            self.add(wrong_value(here, allowed, op))
        elif op not in OPS:
            self.add(unknown_name(here, "unknown_op", "operation", op, self.frame.ops))
        elif op not in self.frame.ops:
            self.add(problem(here, "op_not_allowed", f"`{op}` is not available to this plan", allowed, short_json(op)))
        else:
            return op
        return None

    def _fields(self, op: str, step: dict[str, Any], path: str) -> None:
        fields = FIELDS[op]
        missing = [name for name, field in fields.items() if field.required and name not in step]
        for key in [key for key in step if key not in fields and key != "op"]:
            message = f"`{op}` has no field {short_json(key)}{did_you_mean(key, missing) or did_you_mean(key, fields)}"
            self.add(problem(inside(path, key), "unknown_field", message, one_of(fields), short_json(key)))
        for name in missing:
            self._missing(op, name, fields[name].shape, path)

    def _missing(self, op: str, name: str, shape: Shape, path: str) -> None:
        self.add(problem(inside(path, name), "missing_field", f"`{op}` needs `{name}`", shape.value, "nothing"))

    def _composed(self, op: str, step: dict[str, Any], path: str, names: Names, bound_names: Names, level: int) -> None:
        """Check bodies, and fields that depend on each other."""
        if op == "context":
            self.arguments(step, path, self.frame.actions.get(_text(step.get("action"))), names)
        elif op == "tool":
            self.arguments(step, path, self.frame.tools.get(_text(step.get("name"))), names)
        elif op == "reduce":
            self._reduce(step, path)
        elif op == "map":
            item = self._bound_name(step, "as", path, bound_names)
            self._packed(step, path)
            self._repeated(step, path, names | item, bound_names | item, level)
        elif op == "retry":
            self._repeated(step, path, names, bound_names, level)
        elif op == "parallel" and "plans" in step:
            self._plans(step["plans"], inside(path, "plans"), names, bound_names, level)
        elif op == "rlm" and "plan" in step:
            self._child(step["plan"], inside(path, "plan"))

    def _repeated(self, step: dict[str, Any], path: str, names: Names, bound_names: Names, level: int) -> None:
        if "steps" in step:
            self.inner(step["steps"], inside(path, "steps"), names, bound_names, level + 1)

    def _packed(self, step: dict[str, Any], path: str) -> None:
        """Check that a map with ``pack`` has one step, which asks a model."""
        steps: Any = step.get("steps")
        if step.get("pack") is True and _are_steps(steps) and [each["op"] for each in steps] != ["model"]:
            message = "a map with `pack` has one step, which is `model`"
            expected = 'steps: [{"op": "model", ...}], or no `pack`'
            self.add(problem(inside(path, "steps"), "misplaced_ending", message, expected, f"{len(steps)} steps"))

    def _plans(self, plans: Any, path: str, names: Names, bound_names: Names, level: int) -> None:
        most = self.frame.limits.max_plans
        if not isinstance(plans, list):
            self.add(wrong_value(path, f"a list of 1 to {most} plans", plans))
        elif not 0 < len(plans) <= most:
            self.add(wrong_value(path, f"1 to {most} plans", plans, kind="out_of_range"))
        else:
            for number, plan in enumerate(plans):
                here = inside(path, number)
                steps = self.steps_of(normalise(plan), here)
                if steps is not MISSING:
                    self.inner(steps, inside(here, "steps"), names, bound_names, level + 1)

    def _child(self, plan: Any, path: str) -> None:
        """Check the plan of a child, which does not see the names of this plan."""
        if self.frame.child is None:
            message = "a child plans for itself here: give it a query and a context"
            self.add(problem(path, "unknown_field", message, "no `plan`", short_json(plan)))
            return
        child = _Check(self.frame.child)
        child.steps, child.schema_values = self.steps, self.schema_values
        child.plan(normalise(plan), path)
        self.steps, self.schema_values = child.steps, child.schema_values
        for found in child.problems:
            self.add(found)

    def _reduce(self, step: dict[str, Any], path: str) -> None:
        kind = step.get("with")
        for name, only in ONLY_WITH.items():
            if name in step and kind in REDUCTIONS and kind != only:
                expected = f"no `{name}` with {kind!r}"
                message = f"`{name}` goes with {only!r} only"
                self.add(problem(inside(path, name), "unknown_field", message, expected, short_json(step[name])))
        if kind == "model" and "prompt" not in step:
            self._missing("reduce with model", "prompt", Shape.TEXT, path)

    def _bound_name(self, step: dict[str, Any], field: str, path: str, bound_names: Names) -> Names:
        """Return the name in a field that binds, as a set of one; empty where the field has no valid name."""
        if field not in step:
            return NOTHING
        name, here = step[field], inside(path, field)
        if not isinstance(name, str) or not NAME.fullmatch(name):
            self.add(wrong_value(here, Shape.NAME.value, name, kind="invalid_name"))
            return NOTHING
        if name in bound_names:
            first = self.homes.get(name, here)
            where = f" (first at {first})" if first != here else ""
            message = f"{name!r} is bound twice{where}; take another name"
            self.add(problem(here, "bound_twice", message, "a name that is not bound yet", short_json(name)))
        return frozenset({name})


def _are_steps(steps: Any) -> bool:
    """Whether the list holds known operations only, so that their order can be checked."""
    return isinstance(steps, list) and bool(steps) and all(isinstance(s, dict) and s.get("op") in OPS for s in steps)


def _binds(steps: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield every name that is bound, in bodies too, with its place."""
    for number, step in enumerate(steps if isinstance(steps, list) else ()):
        if isinstance(step, dict):
            here = inside(path, number)
            yield from ((step[field], inside(here, field)) for field in ("as", "bind") if _text(step.get(field)))
            yield from _binds(step.get("steps"), inside(here, "steps"))
            for place, plan in enumerate(step["plans"] if isinstance(step.get("plans"), list) else ()):
                whole = normalise(plan)
                if isinstance(whole, dict):
                    yield from _binds(whole.get("steps"), f"{here}.plans[{place}].steps")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _is_unicode(text: str) -> bool:
    return text.isascii() or text.encode("utf-8", "replace").decode() == text
