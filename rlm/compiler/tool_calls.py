"""The name and the arguments of a model's tool call, in the form of a provider, of its SDK, or of ``rlm``. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rlm.errors import ToolError, did_you_mean
from rlm.model.wire_names import matching_name

SHOWN_NAMES = 12
"""The number of visible names that an error lists if none is close."""


def name_of(call: Any) -> str:
    """Return the name in a tool call.

    Args:
        call: a name; a mapping or an object with ``function`` (OpenAI chat completions), or with ``name`` (Anthropic
            ``tool_use``, OpenAI Responses ``function_call``, ``rlm.providers`` ``ToolCall``).

    Raises:
        ToolError: ``tool_not_visible`` for a call without a name.
    """
    if isinstance(call, str):
        return call
    function = _field(call, "function")
    name = _field(call, "name") if function is None else _field(function, "name")
    if not isinstance(name, str):
        raise ToolError("tool_not_visible", f"a tool call without a name: {repr(call)[:80]}", {"name": None})
    return name


def arguments_of(call: Any) -> dict[str, Any]:
    """Return the arguments of a tool call; they may be JSON text. Raises: ToolError ``invalid_arguments``."""
    function = _field(call, "function")
    value = _field(function, "arguments") if function is not None else _first(call, ("input", "arguments"))
    name = name_of(call)
    if isinstance(value, str):
        try:
            value = json.loads(value or "{}")
        except (ValueError, RecursionError) as problem:
            detail = {"tool": name, "arguments": str(value)[:500]}
            raise ToolError("invalid_arguments", f"{name}: {problem}", detail) from None
    if not isinstance(value, dict):
        reason = f"expected an object, got {type(value).__name__}"
        raise ToolError("invalid_arguments", f"{name}: {reason}", {"tool": name, "arguments": str(value)[:500]})
    return value


def resolved(name: str, visible: Mapping[str, str]) -> str:
    """Return the id behind a name, without regard to case and separators where that is unique.

    Raises:
        ToolError: ``tool_not_visible``, with the closest visible name, or with some of the visible names.
    """
    match = matching_name(name, visible)
    if match is None:
        raise ToolError(
            "tool_not_visible",
            f"no visible tool is called {name!r}{suggested(name, visible)}",
            {"name": name, "visible": sorted(visible)},
        )
    return visible[match]


def suggested(name: str, visible: Iterable[str]) -> str:
    """Return the end of an error about an unknown name: the closest visible name, or some visible names."""
    names = sorted(visible)
    hint = did_you_mean(name, names)
    if hint or not names:
        return hint or "; no tool is visible"
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return f"; visible: {', '.join(names[:SHOWN_NAMES])}{more}"


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _first(value: Any, names: Iterable[str]) -> Any:
    return next((found for name in names if (found := _field(value, name)) is not None), None)
