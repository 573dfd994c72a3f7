"""Python functions as tools. ``@rlm.tool`` takes the name, description and JSON Schema from the function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypedDict, Unpack, overload

from rlm.errors import ConfigurationError, UnitError, did_you_mean
from rlm.model.arguments import instance
from rlm.model.unit import Provenance, Unit
from rlm.tools.signature import binder_of, schema_of
from rlm.tools.tool import Effect, Place, ResultForm, Tool, member_of

__all__ = ["Effect", "Place", "ResultForm", "Tool", "as_tool", "binder_of", "schema_of", "tool", "tool_unit"]


class ToolOptions(TypedDict, total=False):
    """The options of ``@rlm.tool``; ``rlm.Tool`` describes them."""

    name: str | None
    description: str | None
    effect: str
    schema: dict[str, Any] | None
    result_schema: Any
    capability: str
    isolated: bool | None
    time_limit: float
    max_result_bytes: int
    projection: str
    preflight: Callable[..., Any] | None
    preflight_enforces: tuple[str, ...]
    environment: tuple[str, ...]


OPTIONS = ToolOptions.__annotations__.keys()


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(function: Any = None, /, **options: Unpack[ToolOptions]) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Return a tool made of a function, for example with ``@rlm.tool`` or ``@rlm.tool(effect="read")``.

    Args:
        function: the handler.
        options: fields of ``rlm.Tool``. By default ``name`` and ``description`` are the function's own, ``schema``
            comes from its signature, and ``effect`` is ``write``. The other options are ``result_schema``,
            ``capability``, ``isolated``, ``time_limit``, ``max_result_bytes``, ``projection``, ``preflight``,
            ``preflight_enforces`` and ``environment``.

    Raises:
        ConfigurationError: ``unknown_option``, ``unknown_effect``, ``unknown_projection``, ``invalid_tool``;
            ``no_schema`` if a parameter has no JSON form.
    """
    for option in options.keys() - OPTIONS:
        raise ConfigurationError(
            "unknown_option",
            f"@rlm.tool has no option {option!r}{did_you_mean(option, OPTIONS)}",
            {"option": option},
        )
    fields: dict[str, Any] = {"effect": Effect.WRITE, **options}
    fields["effect"] = member_of(Effect, fields["effect"], "unknown_effect", "effect")

    def make(function: Callable[..., Any]) -> Tool:
        description = fields.get("description") or getattr(function, "__doc__", None) or ""
        own = {
            "name": fields.get("name") or _name_of(function),
            "description": inspect.cleandoc(instance("description", description, str)),
            "schema": fields.get("schema") or schema_of(function),
            "typed": fields.get("schema") is None,
        }
        item = Tool(handler=function, **{**fields, **own})
        if "time_limit" in options:
            item.warn_of_thread(stacklevel=2)
        return item

    if function is not None and not callable(function):
        option = "effect" if function in list(Effect) else "name"
        remedy = f"write @rlm.tool({option}={function!r})" if isinstance(function, str) else "write @rlm.tool"
        raise ConfigurationError(
            "invalid_tool", f"@rlm.tool takes its options by name, not {_short(function)}: {remedy}"
        )
    return make if function is None else make(function)


def _short(item: object) -> str:
    return repr(item)[:80]


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "")
    if not name.isidentifier():  # a lambda, a partial
        raise ConfigurationError("invalid_tool", f"{function!r} has no name: write rlm.tool(name=...)(function)")
    return str(name)


def tool_unit(item: Any, **host: Any) -> Unit:
    """Return the unit of a tool or a plain function. ``host`` holds further fields of the unit.

    Raises:
        UnitError: ``unknown_field`` for ``effect``, which the tool itself has.
    """
    if "effect" in host:
        raise UnitError(
            "unknown_field", "a tool has its effect itself: write @rlm.tool(effect=...)", {"field": "effect"}
        )
    item = as_tool(item)
    own: dict[str, Any] = {"provenance": Provenance(source="function"), "trust": item.trust, "effect": item.effect}
    if item.capability != item.id:
        own["requires_capability"] = item.capability
    return Unit(item.id, **{"description": item.description, "schema": item.schema, **own, **host})


def as_tool(item: Any) -> Tool:
    """Return the tool itself, or a tool made of a plain function.

    Raises:
        ConfigurationError: ``not_a_tool``.
    """
    if isinstance(item, Tool):
        return item
    if not callable(item):
        hint = "; use catalog.add_tool_list for JSON" if isinstance(item, Mapping) else ""
        raise ConfigurationError("not_a_tool", f"{_short(item)} is neither a function nor made with @rlm.tool{hint}")
    return tool(item)
