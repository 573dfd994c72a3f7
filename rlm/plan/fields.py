"""Checks of single fields of a step, one method for each shape: expressions, names, schemas, arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from rlm.errors import did_you_mean, named
from rlm.model.plan import REDUCTIONS, Frame, PlanProblem
from rlm.plan.computing import names_in, problem_of
from rlm.plan.expressions import form_of, keys_of
from rlm.plan.grammar import FAILED, FORMS, MAX_LABEL, MAX_NEED, MAX_NEEDS, Shape
from rlm.plan.problems import MAX_PROBLEMS, inside, joined, one_of, problem, short_json, unknown_name, wrong_value
from rlm.plan.schemas import ANYTHING, schema_problem, violations
from rlm.plan.sizes import size_of

Names = frozenset[str]

_HIDDEN = json.dumps(ANYTHING)[1:-1]


_PART = re.compile(r"([^:]+):\d{1,19}-\d{1,19}")
"""The id of a part of a context: its name and a range of bytes."""


MAX_SCHEMA_VALUES = 4_000
"""The most values in the schemas of one plan. The check of one value takes a tenth of a millisecond."""


class EnoughProblems(Exception):
    """The check has found ``MAX_PROBLEMS`` problems and ends."""


class FieldCheck:
    """Checks fields and collects their problems.

    ``homes`` maps each name that the plan binds to the place that binds it.
    """

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.problems: list[PlanProblem] = []
        self.tools: set[str] = set()
        self.schema_values = 0
        self.homes: dict[str, str] = {}
        self.by_shape: dict[Shape, Callable[[Any, str, Names], None]] = {
            Shape.VALUE: self.value,
            Shape.TEXT: self.text,
            Shape.HANDLE: self.handle,
            Shape.ACTION: self.action,
            Shape.TOOL: self.tool,
            Shape.SCHEMA: self.schema,
            Shape.REDUCTION: self.reduction,
            Shape.FAILED: self.failed,
            Shape.PATH: self.way,
            Shape.ATTEMPTS: self.attempts,
            Shape.LABEL: self.label,
            Shape.NOTE: self.note,
            Shape.VALUES: self.values,
            Shape.NEEDS: self.needs,
            Shape.EXPRESSION: self.expression,
            Shape.FLAG: self.flag,
        }
        self.by_form: dict[str, Callable[[dict[str, Any], str, Names], None]] = {
            "var": self._var,
            "input": self._input,
            "join": self._join,
            "handle": self._handle,
            "literal": self._literal,
        }

    def add(self, found: PlanProblem) -> None:
        """Add a problem. Raises: EnoughProblems after the last one that is collected."""
        self.problems.append(found)
        if len(self.problems) >= MAX_PROBLEMS:
            raise EnoughProblems

    # -- fields -------------------------------------------------------------------------------------

    def value(self, value: Any, path: str, names: Names) -> None:
        """Check an expression."""
        if isinstance(value, list):
            for number, item in enumerate(value):
                self.value(item, inside(path, number), names)
        elif isinstance(value, dict):
            form = form_of(value)
            if form is None:
                self._object(value, path, names)
            else:
                self.by_form[form](value, path, names)

    def text(self, value: Any, path: str, names: Names) -> None:
        """Check an expression for a text: no number, list or plain object."""
        if isinstance(value, str):
            return
        if form_of(value) is None:
            self.add(wrong_value(path, 'a string, or {"join": [...]}, or {"var": ...}', value))
        else:
            self.value(value, path, names)

    def handle(self, value: Any, path: str, names: Names) -> None:
        """Check a context: its name, or an expression for one."""
        if isinstance(value, str):
            self._handle({"handle": value}, path, names)
        elif form_of(value) in ("var", "input", "handle"):
            self.value(value, path, names)
        else:
            self.add(wrong_value(path, 'the name of a context, or {"var": ...}', value))

    def tool(self, value: Any, path: str, names: Names) -> None:
        """Check the name of a tool that this plan may call."""
        if not isinstance(value, str):
            self.add(wrong_value(path, one_of(self.frame.tools), value))
        elif value in self.frame.tools:
            self.tools.add(value)
        elif value in self.frame.known_tools:
            message = (
                f"the tool {short_json(value)} is not shown to you; "
                "end with `observe`, and say what you need in `needs`"
            )
            visible_tools = one_of(self.frame.tools, like=value)
            self.add(problem(path, "tool_not_visible", message, visible_tools, short_json(value)))
        else:
            self.add(unknown_name(path, "unknown_tool", "tool", value, self.frame.tools))

    def schema(self, value: Any, path: str, names: Names) -> None:
        """Check a JSON Schema."""
        self.schema_values += size_of(value)[0]
        if self.schema_values > MAX_SCHEMA_VALUES:
            most = f"<= {MAX_SCHEMA_VALUES} values in all schemas of the plan together"
            self.add(problem(path, "too_large", "the schemas of the plan are too large", most))
            return
        why = schema_problem(value)
        if why is not None:
            self.add(wrong_value(path, "a JSON Schema", value, kind="invalid_schema", message=f"no JSON Schema: {why}"))

    def reduction(self, value: Any, path: str, names: Names) -> None:
        """Check the name of a reduction that this frame allows."""
        known = [name for name in REDUCTIONS if name != "model" or "model" in self.frame.ops]
        self._choice(value, path, "way to reduce", known)

    def failed(self, value: Any, path: str, names: Names) -> None:
        """Check the treatment of failed items by ``reduce``."""
        self._choice(value, path, "way with failed items", FAILED)

    def way(self, value: Any, path: str, names: Names) -> None:
        """Check a path into a value."""
        if keys_of(value) is None:
            self.add(wrong_value(path, 'a path like "a.b[0]", or a list of keys', value, kind="invalid_path"))

    def attempts(self, value: Any, path: str, names: Names) -> None:
        """Check a number of attempts."""
        most = self.frame.limits.max_attempts
        if not isinstance(value, int) or isinstance(value, bool):
            self.add(wrong_value(path, f"a whole number from 1 to {most}", value))
        elif not 1 <= value <= most:
            self.add(wrong_value(path, f"1 to {most}", value, kind="out_of_range"))

    def label(self, value: Any, path: str, names: Names) -> None:
        """Check a short string."""
        if not isinstance(value, str):
            self.add(wrong_value(path, "a string", value))
        elif len(value) > MAX_LABEL:
            self.add(wrong_value(path, f"at most {MAX_LABEL} characters", value, kind="out_of_range"))

    def note(self, value: Any, path: str, names: Names) -> None:
        """Check a text of any length."""
        if not isinstance(value, str):
            self.add(wrong_value(path, "a string", value))

    def expression(self, value: Any, path: str, names: Names) -> None:
        """Check a JMESPath expression, and that the names at its beginnings are bound."""
        if not isinstance(value, str):
            self.add(wrong_value(path, Shape.EXPRESSION.value, value))
            return
        fault = problem_of(value)
        if fault is not None:
            message = f"no JMESPath: {fault}"
            self.add(wrong_value(path, Shape.EXPRESSION.value, value, kind="invalid_expression", message=message))
            return
        for name in sorted(names_in(value) - names - self.frame.inputs.keys()):
            self.add(self._unbound(name, path, names))

    def flag(self, value: Any, path: str, names: Names) -> None:
        """Check a field that is true or not there."""
        if not isinstance(value, bool):
            self.add(wrong_value(path, Shape.FLAG.value, value))

    def values(self, value: Any, path: str, names: Names) -> None:
        """Check the values to observe: expressions, with or without labels."""
        if form_of(value) is not None or not isinstance(value, dict | list) or not value:
            self.add(wrong_value(path, 'a list like [{"var": "x"}], or an object', value))
        else:
            self.value(value, path, names)

    def needs(self, value: Any, path: str, names: Names) -> None:
        """Check the words for the next compile."""
        if not isinstance(value, list) or not all(isinstance(need, str) for need in value):
            self.add(wrong_value(path, "a list of strings", value))
        elif len(value) > MAX_NEEDS or any(len(need) > MAX_NEED for need in value):
            self.add(
                wrong_value(path, f"at most {MAX_NEEDS} strings of {MAX_NEED} characters", value, kind="out_of_range")
            )

    def _choice(self, value: Any, path: str, what: str, known: Iterable[str], kind: str = "unknown_choice") -> None:
        names = list(known)
        if not isinstance(value, str):
            self.add(wrong_value(path, one_of(names), value))
        elif value not in names:
            self.add(unknown_name(path, kind, what, value, names))

    # -- forms of expressions ----------------------------------------------------------------------

    def _object(self, value: dict[str, Any], path: str, names: Names) -> None:
        marks = [key for key in FORMS if key in value]
        if marks:
            fields = FORMS[marks[0]]
            other = next(key for key in value if key not in fields)
            message = (
                f"an object with {marks[0]!r} is a reference and has no {other!r}{did_you_mean(other, fields)}; "
                'for an object as it stands write {"literal": {...}}'
            )
            self.add(
                wrong_value(path, f"only {', '.join(sorted(fields))}", value, kind="ambiguous_object", message=message)
            )
            return
        for key, item in value.items():
            self.value(item, inside(path, key), names)

    def _var(self, value: dict[str, Any], path: str, names: Names) -> None:
        name = value["var"]
        if not isinstance(name, str):
            self.add(wrong_value(inside(path, "var"), "the name of a variable", name))
        elif name not in names:
            self.add(self._unbound(name, inside(path, "var"), names))
        self._path_of(value, path)

    def _unbound(self, name: str, path: str, names: Names) -> PlanProblem:
        home = self.homes.get(name)
        hint = f"; it is bound at {home}, which cannot be seen from here" if home else did_you_mean(name, names)
        if not hint and name in self.frame.inputs:
            hint = f'; it is an input: {{"input": {short_json(name)}}}'
        return problem(
            path, "unbound", f"no variable {short_json(name)} is bound here{hint}", one_of(names), short_json(name)
        )

    def _input(self, value: dict[str, Any], path: str, names: Names) -> None:
        name = value["input"]
        if not isinstance(name, str):
            self.add(wrong_value(inside(path, "input"), "the name of an input", name))
        elif name not in self.frame.inputs:
            self.add(unknown_name(inside(path, "input"), "unknown_input", "input", name, self.frame.inputs))
        self._path_of(value, path)

    def _path_of(self, value: dict[str, Any], path: str) -> None:
        if "path" in value:
            self.way(value["path"], inside(path, "path"), frozenset())

    def _join(self, value: dict[str, Any], path: str, names: Names) -> None:
        if not isinstance(value["join"], list):
            self.add(wrong_value(inside(path, "join"), "a list of parts", value["join"]))
        else:
            self.value(value["join"], inside(path, "join"), names)

    def _handle(self, value: dict[str, Any], path: str, names: Names) -> None:
        name = value["handle"]
        if not isinstance(name, str):
            self.add(wrong_value(inside(path, "handle"), "the name of a context", name))
        elif name not in self.frame.handles and not self._is_part(name):
            self.add(unknown_name(path, "unknown_handle", "context", name, self.frame.handles))

    def _is_part(self, name: str) -> bool:
        """Whether the name is a part of an existing context. The store checks the range."""
        match = _PART.fullmatch(name)
        return match is not None and match[1] in {handle.partition(":")[0] for handle in self.frame.handles}

    def _literal(self, value: dict[str, Any], path: str, names: Names) -> None:
        """Accept any value."""

    # -- fields that depend on each other ----------------------------------------------------------

    def action(self, value: Any, path: str, names: Names) -> None:
        """Check an action of a context."""
        self._choice(value, path, "action", self.frame.actions, "unknown_action")

    def arguments(self, step: dict[str, Any], path: str, schema: dict[str, Any] | None, names: Names) -> None:
        """Check ``args``: expressions by name. Literal values among them are checked against the schema, where there is
        one.
        """
        args, path = step.get("args", {}), inside(path, "args")
        if not isinstance(args, dict):
            self.add(wrong_value(path, Shape.ARGUMENTS.value, args))
            return
        for key, item in args.items():
            self.value(item, inside(path, key), names)
        if schema is None:
            return
        literal = {key: literal_of(item) for key, item in args.items()}
        for keys, keyword, message in violations(schema, literal):
            expected = _expectation(schema, keys)
            if keyword == "additionalProperties" and keys:
                known = _part(schema, keys[:-1]).get("properties", {})
                message += did_you_mean(str(keys[-1]), known)
                expected = one_of(known, like=str(keys[-1]))
            got = short_json(_at(literal, keys)).replace(_HIDDEN, "...")
            self.add(problem(joined(path, keys), "invalid_argument", message, expected, got))


def literal_of(value: Any) -> Any:
    """Return a value with ``ANYTHING`` in place of each expression."""
    if isinstance(value, list):
        return [literal_of(item) for item in value]
    if not isinstance(value, dict):
        return value
    if form_of(value) == "literal":
        return value["literal"]
    if any(key in value for key in FORMS):
        return ANYTHING
    return {key: literal_of(item) for key, item in value.items()}


def _at(value: Any, keys: list[str | int]) -> Any:
    for key in keys:
        value = value[key]
    return value


def _part(schema: dict[str, Any], keys: list[str | int]) -> dict[str, Any]:
    """Return the part of a schema for a place; empty where simple steps into the schema do not reach it."""
    for key in keys:
        inner = schema.get("items") if isinstance(key, int) else schema.get("properties", {}).get(key)
        if not isinstance(inner, dict):
            return {}
        schema = inner
    return schema


def _expectation(schema: dict[str, Any], keys: list[str | int]) -> str:
    """Return the expectation for a place in short."""
    part = _part(schema, keys)
    if "properties" in part:
        needed = set(part.get("required", ()))
        return named(name if name in needed else f"{name}?" for name in part["properties"]) or "no arguments"
    words = {key: value for key, value in part.items() if key not in ("description", "title", "default")}
    return short_json(words) if words else ""
