"""JSON Schema in plans: the schemas that a plan holds, and literal arguments checked against the schemas of tools."""

from __future__ import annotations

from typing import Any

from rlm.errors import ConfigurationError

ANYTHING = "\ufdd0 the value of an expression"
"""Stands for a value that is unknown before the plan runs. Its first character is a noncharacter, which no text holds.
"""

SECONDS = 0.25
"""The most processor time of one check, in seconds."""

OUTER_KEYWORDS = frozenset(
    "required additionalProperties type minProperties maxProperties dependentRequired minItems maxItems".split()
)
"""Keywords that depend on a list or object but not on the values in it."""

CONDITIONAL = frozenset("if then else not dependentSchemas unevaluatedProperties unevaluatedItems".split())
"""Keywords under which an unknown value may reverse the verdict."""

Violation = tuple[list[str | int], str, str]
"""The path inside the value, the keyword that fails, and its message."""


def schema_problem(schema: Any) -> str | None:
    """Return the fault of a schema itself; None where it has none."""
    from rlm.tools.schema import check_of

    if not isinstance(schema, dict):
        return "an object is wanted"
    try:
        check_of(schema, "schema")
    except ConfigurationError as problem:
        return problem.message
    return None


def mismatch(schema: dict[str, Any], value: Any, seconds: float = SECONDS) -> str | None:
    """Return the first place where a value breaks a schema; None where the value fits.

    Args:
        schema: the schema.
        value: the value.
        seconds: the most processor time of the check, in seconds.
    """
    from rlm.tools.schema import check_of

    problem = check_of(schema, "schema").problem(value, seconds)
    return None if problem is None else str(problem)


def violations(schema: dict[str, Any], value: Any) -> list[Violation]:
    """Return the violations of a schema that are certain for every value in place of ``ANYTHING``, in the order of
    paths.

    The list is empty where the schema cannot be applied. That fault is reported when a tool is registered and when it
    is called.
    """
    from rlm.tools.schema import check_of

    try:
        errors = check_of(schema, "schema").errors(value, SECONDS) or []
    except ConfigurationError:
        return []
    is_known = not _has_unknown(value)
    rows: list[Violation] = []
    for error in errors:
        if is_known or _is_certain(error):
            message = str(error.message).replace(repr(ANYTHING)[1:-1], "...")
            rows.append((list(error.absolute_path), str(error.validator), message[:200]))
    return sorted(rows, key=lambda row: [str(key) for key in row[0]])


def _is_certain(error: Any) -> bool:
    """Whether an error stands for all unknown values."""
    if error.instance == ANYTHING or CONDITIONAL & {str(key) for key in error.absolute_schema_path}:
        return False
    return error.validator in OUTER_KEYWORDS or not _has_unknown(error.instance)


def _has_unknown(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_unknown, value.values()))
    if isinstance(value, list):
        return any(map(_has_unknown, value))
    return bool(value == ANYTHING)
