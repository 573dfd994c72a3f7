"""Every tool that a run can execute: what the host registered, and what it bound for its own plans only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from rlm.errors import ConfigurationError, ToolError, did_you_mean
from rlm.model.wire_names import wire_name
from rlm.tools.enforced import enforced
from rlm.tools.function import as_tool
from rlm.tools.registry import Registry
from rlm.tools.tool import Tool


class Toolbox:
    """Tools by every name that a plan may call them by: the id, the wire name, and a bare name that is one tool's.

    Args:
        registered: tools that may be shown, where the catalog has their units.
        bindings: tools by name that no request ever shows.

    Raises: ConfigurationError ``not_a_tool``, ``duplicate_tool``, ``invalid_schema``, ``not_importable``.
    """

    def __init__(self, registered: Iterable[Tool], bindings: Mapping[str, Any]) -> None:
        self.registered = tuple(registered)
        self.bound = tuple(_named(name, item) for name, item in bindings.items())
        for id, times in Counter(tool.id for tool in self.all).items():
            if times > 1:
                raise ConfigurationError("duplicate_tool", f"{id} is registered or bound twice", {"tool": id})

    @property
    def all(self) -> tuple[Tool, ...]:
        """Everything that can be executed."""
        return (*self.registered, *self.bound)

    @cached_property
    def _by_name(self) -> dict[str, Tool]:
        named: dict[str, Tool] = {}
        bare: dict[str, list[Tool]] = {}
        for tool in self.all:
            named[tool.id] = named[wire_name(tool.id)] = tool
            bare.setdefault(tool.name, []).append(tool)
        for name, tools in bare.items():
            if len(tools) == 1:
                named.setdefault(name, tools[0])
        return named

    @cached_property
    def schemas(self) -> dict[str, dict[str, Any]]:
        """The JSON Schema that arguments are checked against, by every name: without what a preflight answers for."""
        return {name: enforced(tool.schema, tool.preflight_enforces, tool.id) for name, tool in self._by_name.items()}

    def checked(self, id: str, shown: dict[str, Any]) -> dict[str, Any]:
        """The schema that a plan's arguments are checked against, where a request shows ``shown``."""
        tool = self._by_name.get(id)
        return self.schemas[id] if tool is not None and tool.preflight_enforces else shown

    def called(self, name: str) -> Tool:
        """The tool of a name. Raises: ToolError ``unknown_tool``."""
        tool = self._by_name.get(name)
        if tool is None:
            hint = (
                did_you_mean(name, self._by_name)
                or "; a unit alone does nothing: the host gives its function in tools="
            )
            raise ToolError("unknown_tool", f"no tool {name!r} can be called in this run{hint}", {"name": name})
        return tool


def registered(tools: Iterable[Any], registry: Any) -> tuple[Tool, ...]:
    """The tools of ``tools`` and of a host's registry. Raises: ConfigurationError ``not_a_registry`` and others."""
    found = list(Registry(tools))
    if registry is not None:
        if not isinstance(registry, Registry):
            kind = type(registry).__name__
            raise ConfigurationError("not_a_registry", f"tool_registry: a Registry is wanted, not {kind}")
        found += list(registry)
    return tuple(found)


def _named(name: str, item: Any) -> Tool:
    tool = as_tool(item)
    tool = tool if tool.name == name else replace(tool, name=name, server="", capability="")
    tool.check()
    return tool
