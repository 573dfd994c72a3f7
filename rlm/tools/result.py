"""Results: JSON that is valid by the tool's schema and within its size limit.

A larger result is refused, or reduced to a marked part: its beginning, its count, or its shape.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from rlm.errors import ToolError, exception_name, exception_words
from rlm.tools.tool import ResultForm, Tool

RESULT_SECONDS = 2.0
MAX_SHAPE_DEPTH = 6
MAX_SHAPE_PROPERTIES = 64
MARK_BYTES = 160


class Finished(NamedTuple):
    """A checked result. ``size`` is the bytes of the whole; ``projection`` is its form if it was too large."""

    value: Any
    size: int
    projection: ResultForm | None


def finish(tool: Tool, raw: Any) -> Finished:
    """Check a handler's value and return it as the result of the call.

    Raises:
        ToolError: ``invalid_result``, ``result_too_large``.
    """
    value, size = as_json(tool.id, raw)
    problem = tool.result_check.problem(value, RESULT_SECONDS) if tool.result_check is not None else None
    if problem is not None:
        raise ToolError("invalid_result", f"{tool.id}: result, {problem}", {"tool": tool.id, **problem.to_dict()})
    if size <= tool.max_result_bytes:
        return Finished(value, size, None)
    if tool.projection is ResultForm.FULL:
        raise too_large(tool, size)
    return Finished(project(value, size, tool.projection, tool.max_result_bytes), size, tool.projection)


def as_json(subject: str, raw: Any) -> tuple[Any, int]:
    """Return a value as JSON data, and its size in bytes.

    Pydantic converts models, dataclasses, paths, dates and enums. For example, ``datetime.date(2024, 1, 2)`` becomes
    ``"2024-01-02"``.

    Raises:
        ToolError: ``invalid_result``.
    """
    from pydantic_core import to_jsonable_python

    try:
        text = json.dumps(to_jsonable_python(raw), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return json.loads(text), len(text.encode("utf-8"))
    except Exception as problem:  # noqa: BLE001 - a value's own methods may raise anything
        lines = exception_words(problem).splitlines()
        reason = lines[0][:200] if lines else exception_name(problem)
        raise ToolError(
            "invalid_result",
            f"{subject}: the result is no JSON value: {reason}",
            {"tool": subject, "got": type(raw).__name__},
        ) from None


def too_large(tool: Tool, size: int | None) -> ToolError:
    """Return the error of a result over its limit; ``size`` is None if the end was not read."""
    size_text = "more" if size is None else f"{size:,}"
    return ToolError(
        "result_too_large",
        f"{tool.id}: the result has {size_text} bytes; at most {tool.max_result_bytes:,} are allowed",
        {"tool": tool.id, "bytes": size, "limit": tool.max_result_bytes},
    )


def project(value: Any, size: int, projection: ResultForm, limit: int) -> dict[str, Any]:
    """Return a part of a large value, marked with ``projection``, ``truncated`` and ``bytes`` of the whole."""
    marks = {"projection": projection.value, "truncated": True, "bytes": size}
    if projection is ResultForm.COUNT:
        return {**marks, **_count(value)}
    if projection is ResultForm.SCHEMA:
        return {**marks, "schema": _deepest_shape(lambda depth: _shape([value], depth), limit - MARK_BYTES)}
    return {**marks, "head": _head(value, limit - MARK_BYTES)}


def _count(value: Any) -> dict[str, Any]:
    return {"type": _type(value), "count": len(value) if isinstance(value, str | list | dict) else 1}


# -- the beginning ----------------------------------------------------------------------------------


def _bytes(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8"))


def _head(value: Any, limit: int) -> Any:
    """Return as much of the beginning as fits into ``limit`` bytes of JSON."""
    if isinstance(value, str):
        return _head_of_text(value, limit)
    if isinstance(value, list):
        return _head_of_list(value, limit)
    if isinstance(value, dict):
        return _head_of_object(value, limit)
    return value


def _head_of_text(text: str, limit: int) -> str:
    low, high = 0, min(len(text), max(limit, 0))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _bytes(text[:middle]) <= limit else (low, middle - 1)
    return text[:low]


def _head_of_list(items: list[Any], limit: int) -> list[Any]:
    head: list[Any] = []
    used = 2
    for item in items:
        size = _bytes(item) + 1
        if used + size > limit:
            return head or [_head(item, limit - used - 1)]
        head.append(item)
        used += size
    return head


def _head_of_object(value: dict[str, Any], limit: int) -> dict[str, Any]:
    """Keep small values whole, and share the remaining bytes among the large ones."""
    sizes = {name: _bytes(item) for name, item in value.items()}
    names: list[str] = []
    limit -= 2
    for name in value:
        limit -= _bytes(name) + 2
        if limit < 16:
            break
        names.append(name)
    kept: dict[str, Any] = {}
    for place, name in enumerate(sorted(names, key=sizes.__getitem__)):
        share = limit // (len(names) - place)
        kept[name] = value[name] if sizes[name] <= share else _head(value[name], share)
        limit -= _bytes(kept[name])
    return {name: kept[name] for name in names}


# -- the shape --------------------------------------------------------------------------------------


def _deepest_shape(shape: Callable[[int], Any], limit: int) -> Any:
    """Return the deepest shape that fits into ``limit`` bytes."""
    for depth in range(MAX_SHAPE_DEPTH, 0, -1):
        candidate = shape(depth)
        if _bytes(candidate) <= limit:
            return candidate
    return shape(0)


def _shape(values: list[Any], depth: int) -> dict[str, Any]:
    """Return a JSON Schema that describes all the values, down to a depth."""
    types = sorted({_type(value) for value in values})
    shape: dict[str, Any] = {"type": types[0] if len(types) == 1 else types}
    objects = [value for value in values if isinstance(value, dict)]
    arrays = [value for value in values if isinstance(value, list)]
    if arrays:
        shape["minItems"], shape["maxItems"] = min(map(len, arrays)), max(map(len, arrays))
    if depth == 0:
        return shape
    if objects:
        values_by_name: dict[str, list[Any]] = {}
        for value in objects:
            for name, item in value.items():
                values_by_name.setdefault(name, []).append(item)
        names = list(values_by_name)[:MAX_SHAPE_PROPERTIES]
        shape["properties"] = {name: _shape(values_by_name[name], depth - 1) for name in names}
    items = [item for array in arrays for item in array]
    if items:
        shape["items"] = _shape(items, depth - 1)
    return shape


def _type(value: Any) -> str:
    if value is None:
        return "null"
    names: tuple[tuple[type, str], ...] = (
        *((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string")),
        *((list, "array"), (dict, "object")),
    )
    return next(name for kind, name in names if isinstance(value, kind))
