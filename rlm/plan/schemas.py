"""JSON Schema for plans: the schemas that a plan gives, and literal arguments against the schemas of tools."""

from __future__ import annotations

from typing import Any

from rlm.errors import ConfigurationError

ANYTHING = "\ufdd0 the value of an expression"
"""Stands for a value that nobody knows before the plan runs. Its first character is no character of any text."""

SECONDS = 0.25
"""Processor time, in seconds, that one check may take."""

WITHOUT_LOOKING = frozenset(
    "required additionalProperties type minProperties maxProperties dependentRequired minItems maxItems".split()
)
"""Keywords that speak of a list or object whatever stands in it."""

CONDITIONAL = frozenset("if then else not dependentSchemas unevaluatedProperties unevaluatedItems".split())
"""Keywords under which an unknown value may turn the verdict round."""

Found = tuple[list[str | int], str, str]
"""Path inside the value, the keyword that fails, and what it says."""


def schema_problem(schema: Any) -> str | None:
    """What is wrong with a schema itself, None where nothing is."""
    from rlm.tools.schema import check_of

    if not isinstance(schema, dict):
        return "an object is wanted"
    try:
        check_of(schema, "schema")
    except ConfigurationError as problem:
        return problem.message
    return None


def mismatch(schema: dict[str, Any], value: Any, seconds: float = SECONDS) -> str | None:
    """Where a value breaks a schema first, None where it does not. The check takes so much processor time at most."""
    from rlm.tools.schema import check_of

    problem = check_of(schema, "schema").problem(value, seconds)
    return None if problem is None else str(problem)


def violations(schema: dict[str, Any], value: Any) -> list[Found]:
    """Where a value breaks a schema whatever stands for each ``ANYTHING`` in it, in the order of paths.

    Nothing, where the schema is none that can be applied: that was said when it was registered, and is said again
    when the tool is called.
    """
    from rlm.tools.schema import check_of

    try:
        errors = check_of(schema, "schema").errors(value, SECONDS) or []
    except ConfigurationError:
        return []
    whole = not _unknown(value)
    found: list[Found] = []
    for error in errors:
        if whole or _is_certain(error):
            said = str(error.message).replace(repr(ANYTHING)[1:-1], "...")
            found.append((list(error.absolute_path), str(error.validator), said[:200]))
    return sorted(found, key=lambda row: [str(key) for key in row[0]])


def _is_certain(error: Any) -> bool:
    """Whether an error stands whatever the unknown values turn out to be."""
    if error.instance == ANYTHING or CONDITIONAL & {str(key) for key in error.absolute_schema_path}:
        return False
    return error.validator in WITHOUT_LOOKING or not _unknown(error.instance)


def _unknown(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_unknown, value.values()))
    if isinstance(value, list):
        return any(map(_unknown, value))
    return bool(value == ANYTHING)
