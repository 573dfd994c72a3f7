"""The worst case of a plan's cost, computed before any step runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from rlm.errors import ConfigurationError, did_you_mean
from rlm.model.budget import Budget
from rlm.model.plan import Estimate, Frame, PlanProblem, Prices, ValidPlan
from rlm.plan.expressions import form_of
from rlm.plan.machine import UNITS_PER_STEP
from rlm.plan.parse import normalise
from rlm.plan.problems import inside, problem
from rlm.plan.sizes import size_of, units_of

MEASURES: Mapping[str, tuple[str, str]] = {
    "max_model_calls": ("model_calls", "requests to a model"),
    "max_tool_calls": ("tool_calls", "calls of tools"),
    "max_context_ops": ("context_ops", "actions on contexts"),
    "max_iterations": ("iterations", "planner turns"),
    "max_recursion_depth": ("depth", "levels of children"),
    "max_total_tokens": ("tokens", "tokens"),
    "max_cost_usd": ("cost_usd", "USD"),
}
"""For each budget field, the field of an estimate that it limits, and the counted things in words."""

ITEMS_PER_REQUEST = 16
"""The most items of a map with ``pack`` in one request. Answers of more items would crowd the room of a reply."""

REPEATED_BY: Mapping[str, str] = {"map": ".over", "parallel": ".plans", "retry": ".attempts"}
"""For each operation that repeats steps, the field that says how often."""

Lengths = dict[str, int | None]


def worst_case(plan: ValidPlan, frame: Frame, prices: Prices | None = None) -> Estimate:
    """Return the most that a plan may cost; ``Estimate`` says how each quantity is counted.

    Args:
        plan: a plan that was validated.
        frame: the frame that the plan was validated with.
        prices: the most that one request may take; None leaves out tokens and USD.
    """
    count = _StepCount(frame)
    lengths: Lengths = {**frame.variables}
    rows = [(path, count.step(step, path, lengths)) for path, step in _with_paths(plan.data["steps"], "steps")]
    total = sum((cost for _, cost in rows), Counter())
    dearest = {}
    for name in [name for name in total if total[name]]:
        dearest[name] = max(rows, key=lambda row: row[1][name])[0]
    del total["steps"], dearest["steps"]
    calls = total["model_calls"]
    if prices is not None and "model_calls" in dearest:
        dearest |= {"tokens": dearest["model_calls"], "cost_usd": dearest["model_calls"]}
    return Estimate(
        **total,
        depth=count.depth,
        tokens=None if prices is None else calls * prices.tokens_per_call,
        cost_usd=None if prices is None else calls * prices.usd_per_call,
        unbounded=tuple(count.unbounded),
        dearest={**dearest, "depth": count.deepest} if count.depth else dearest,
    )


def most_steps(plan: ValidPlan, frame: Frame) -> tuple[int, str]:
    """Return the most steps that a plan may take, as ``Budget.max_steps`` counts them, and the costliest step.

    The step's path ends with the field that says how often it repeats, for example ``steps[0].over``. A list of
    unknown length counts as one item.
    """
    count, lengths = _StepCount(frame), {**frame.variables}
    rows = []
    for path, step in _with_paths(plan.data["steps"], "steps"):
        rows.append((count.step(step, path, lengths)["steps"], path + REPEATED_BY.get(step["op"], "")))
    return sum(steps for steps, _ in rows), max(rows, key=lambda row: row[0])[1]


def step_problems(plan: ValidPlan, frame: Frame, left: int | None) -> tuple[PlanProblem, ...]:
    """Return the problem ``over_budget`` of a plan that may take more steps than are left; empty where it fits.

    Args:
        plan: a plan that was validated.
        frame: the frame that the plan was validated with.
        left: steps that may still be taken; None for any number.
    """
    steps, path = most_steps(plan, frame)
    if left is None or steps <= left:
        return ()
    message = (
        f"the plan may take {steps:,} steps, and {left:,} are left of the budget's max_steps; this step takes most of "
        "them: make its lists shorter"
    )
    return (problem(path, "over_budget", message, f"<= {left}", str(steps)),)


def preflight(estimate: Estimate, left: Mapping[str, float | None]) -> tuple[PlanProblem, ...]:
    """Return a problem ``over_budget`` for each quantity that may exceed the rest of a budget; empty where all fits.

    A quantity without a bound is counted once. The run's budget stops it while the plan runs.

    Args:
        estimate: the worst case of the plan.
        left: the rest of the budget by field; a field that is missing or None sets no limit.

    Raises:
        ConfigurationError: ``unknown_field`` for a name that is no budget field.
    """
    for name in left:
        if name not in Budget.model_fields:
            hint = did_you_mean(name, Budget.model_fields)
            raise ConfigurationError("unknown_field", f"there is no budget field {name!r}{hint}", {"field": name})
    problems = [_excess(estimate, name, most) for name, most in left.items()]
    return tuple(each for each in problems if each is not None)


def _excess(estimate: Estimate, name: str, most: float | None) -> PlanProblem | None:
    measure, words = MEASURES.get(name, ("", ""))
    amount = getattr(estimate, measure) if measure else None
    if most is None or amount is None or amount <= most:
        return None
    message = f"the plan may take {amount:,} {words}, and {most:,} are left; this step takes most of them"
    return problem(estimate.dearest.get(measure, "steps"), "over_budget", message, f"<= {most}", str(amount))


class _StepCount:
    """One count. ``depth`` is the depth of the deepest child, which is at ``deepest``."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.depth = 0
        self.deepest = ""
        self.unbounded: list[str] = []

    def body(self, steps: list[Any], path: str, lengths: Lengths) -> Counter[str]:
        """Return the cost of steps one after the other."""
        own = dict(lengths)
        return sum((self.step(step, place, own) for place, step in _with_paths(steps, path)), Counter())

    def step(self, step: dict[str, Any], path: str, lengths: Lengths) -> Counter[str]:
        """Return the cost of a step, and add the length of its bound value to ``lengths``."""
        length: int | None = None
        match step["op"]:
            case "context":
                cost = Counter(context_ops=1)
            case "tool":
                cost = Counter(tool_calls=1)
            case "model":
                cost = Counter(model_calls=1)
            case "reduce":
                cost = Counter(model_calls=int(step["with"] == "model"))
            case "rlm":
                cost = self._child(step, path)
            case "map":
                length = self._length(step["over"], lengths)
                times = self._times(length, path)
                inner = {**lengths, step["as"]: None}
                cost = _scaled(self.body(step["steps"], inside(path, "steps"), inner), times)
                if step.get("pack") is True:  # items that are asked again alone are not counted
                    cost["model_calls"] = -(-times // ITEMS_PER_REQUEST)
            case "retry":
                cost = _scaled(self.body(step["steps"], inside(path, "steps"), lengths), step["attempts"])
            case "parallel":
                bodies = [(f"{path}.plans[{n}].steps", normalise(plan)) for n, plan in enumerate(step["plans"])]
                length = len(bodies)
                cost = sum((self.body(plan["steps"], place, lengths) for place, plan in bodies), Counter())
            case "observe":
                cost = Counter(iterations=1, model_calls=1)
            case _:
                cost = Counter()
        if "bind" in step:
            lengths[step["bind"]] = length
        own = {name: value for name, value in step.items() if name not in ("steps", "plans", "plan")}
        units = 2 * (units_of(*size_of(own)) + (length or 0))  # the parts are made, and the whole is read
        return cost + Counter(steps=1 + units // UNITS_PER_STEP)

    def _child(self, step: dict[str, Any], path: str) -> Counter[str]:
        if "plan" not in step or self.frame.child is None:
            self._reach(1, path)
            return Counter(children=1, iterations=1, model_calls=1)
        child = _StepCount(self.frame.child)
        plan = normalise(step["plan"])
        cost = child.body(plan["steps"], f"{path}.plan.steps", {**self.frame.child.variables})
        self.unbounded += child.unbounded
        self._reach(1 + child.depth, path)
        return cost + Counter(children=1)

    def _reach(self, depth: int, path: str) -> None:
        if depth > self.depth:
            self.depth, self.deepest = depth, path[: path.index("]") + 1]

    def _times(self, length: int | None, path: str) -> int:
        most = self.frame.limits.max_items
        if length is not None:
            return length
        if most is None:
            self.unbounded.append(path)
        return 1 if most is None else most

    def _length(self, value: Any, lengths: Lengths) -> int | None:
        """Return the length of the list that an expression gives; None where it is unknown before the run."""
        if isinstance(value, list):
            return len(value)
        form = form_of(value)
        if form == "literal" and isinstance(value["literal"], list):
            return len(value["literal"])
        if form in ("var", "input") and not value.get("path"):
            return (lengths if form == "var" else self.frame.inputs).get(value[form])
        return None


def _scaled(cost: Counter[str], times: int) -> Counter[str]:
    return Counter({name: number * times for name, number in cost.items()})


def _with_paths(steps: list[Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, step in enumerate(steps):
        yield inside(path, number), step
