"""A plan read straight through, one thing after the other: what the machine must agree with.

Short, slow and obvious. It shares the value of a form and nothing of the machine, its states or its scopes.
"""

from __future__ import annotations

import json
import math
from typing import Any


class Broke(Exception):
    """A step has no value."""


def value_of(expression: Any, names: dict[str, Any], inputs: dict[str, Any]) -> Any:
    if isinstance(expression, list):
        return [value_of(item, names, inputs) for item in expression]
    if not isinstance(expression, dict):
        return expression
    if "literal" in expression:
        return expression["literal"]
    if "join" in expression:
        return "".join(said(value_of(part, names, inputs)) for part in expression["join"])
    for form, values in (("var", names), ("input", inputs)):
        if form in expression:
            value = values[expression[form]]
            for key in expression.get("path", []):
                try:
                    value = value[key] if not isinstance(value, str) else broke()
                except (IndexError, KeyError, TypeError):
                    raise Broke from None
            return value
    return {key: value_of(item, names, inputs) for key, item in expression.items()}


def broke() -> Any:
    raise Broke


def said(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def tool(arguments: dict[str, Any]) -> Any:
    """Gives its arguments back; breaks where ``a`` is one of a few values."""
    if arguments["a"] in ("ax", "x{y}", None, 1):
        raise Broke
    return arguments


def run(steps: list[Any], names: dict[str, Any], inputs: dict[str, Any]) -> Any:
    """The value of a body."""
    names = dict(names)
    value: Any = None
    for step in steps:
        value = result(step, names, inputs)
        if "bind" in step:
            names[step["bind"]] = value
    return value


def result(step: dict[str, Any], names: dict[str, Any], inputs: dict[str, Any]) -> Any:
    def of(field: str) -> Any:
        return value_of(step[field], names, inputs)

    match step["op"]:
        case "final":
            return of("value")
        case "tool":
            return tool({name: value_of(item, names, inputs) for name, item in step["args"].items()})
        case "model":
            return f"<{said(of('prompt'))}>"
        case "map":
            over = of("over")
            if not isinstance(over, list):
                raise Broke
            return [item(step["steps"], {**names, step["as"]: one}, inputs) for one in over]
        case "parallel":
            return [item(plan["steps"], names, inputs) for plan in step["plans"]]
        case "retry":
            return run(step["steps"], names, inputs)  # nothing here changes its mind
        case "reduce":
            return reduced(step, of("over"))
        case "checkpoint":
            return None
    raise AssertionError(step)


def item(steps: list[Any], names: dict[str, Any], inputs: dict[str, Any]) -> Any:
    try:
        return run(steps, names, inputs)
    except Broke:
        return "BROKE"


def reduced(step: dict[str, Any], over: Any) -> Any:
    if not isinstance(over, list):
        raise Broke
    if "BROKE" in over:
        if step.get("failed") != "skip":
            raise Broke
        over = [one for one in over if one != "BROKE"]
    match step["with"]:
        case "count":
            return len(over)
        case "concat":
            if over and all(isinstance(one, list) for one in over):
                return [inner for one in over for inner in one]
            return "\n".join(map(said, over))
        case "sum":
            over = [number(one) for one in over]
            return sum(over) if all(isinstance(one, int) for one in over) else math.fsum(over)
        case "vote":
            if not over:
                raise Broke
            return max(over, key=lambda one: (sum(same(one, two) for two in over), -over.index(one)))
    raise AssertionError(step)


def number(value: Any) -> int | float:
    try:
        value = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        raise Broke from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Broke
    return value


def same(one: Any, two: Any) -> bool:
    return said(one) == said(two)
