"""The tools of a run: the registered tools of the host, and the tools bound for its own plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from rlm.errors import ConfigurationError, ToolError, did_you_mean
from rlm.model.wire_names import WireNames, digested_name
from rlm.tools.enforced import enforced
from rlm.tools.function import as_tool
from rlm.tools.registry import Registry
from rlm.tools.tool import Effect, Tool


class Toolbox:
    """Tools by every name that a plan may use: the id, the wire name, and the bare name if only one tool has it.

    Args:
        registered: tools that requests may show, if the catalog has their units.
        bindings: tools by name that no request shows.

    Raises: ConfigurationError ``not_a_tool``, ``duplicate_tool``, ``invalid_schema``, ``not_importable``.
    """

    def __init__(self, registered: Iterable[Tool], bindings: Mapping[str, Any]) -> None:
        self.registered = tuple(registered)
        self.bound = tuple(_bound_tool(name, item) for name, item in bindings.items())
        for id, times in Counter(tool.id for tool in self.all).items():
            if times > 1:
                raise ConfigurationError("duplicate_tool", f"{id} is registered or bound twice", {"tool": id})

    @property
    def all(self) -> tuple[Tool, ...]:
        """All tools that can be executed."""
        return (*self.registered, *self.bound)

    @cached_property
    def may_write(self) -> bool:
        """Whether any registered tool may change something."""
        return any(tool.effect is not Effect.READ for tool in self.registered)

    @cached_property
    def _by_name(self) -> dict[str, Tool]:
        named: dict[str, Tool] = {}
        names = WireNames(tool.id for tool in self.all)
        bare: dict[str, list[Tool]] = {}
        for tool in self.all:
            named[tool.id] = named[names.of(tool.id)] = tool
            named.setdefault(digested_name(tool.id), tool)
            bare.setdefault(tool.name, []).append(tool)
        for name, tools in bare.items():
            if len(tools) == 1:
                named.setdefault(name, tools[0])
        return named

    @cached_property
    def schemas(self) -> dict[str, dict[str, Any]]:
        """The JSON Schema for the arguments, by every name, without the keywords that a preflight enforces."""
        return {name: enforced(tool.schema, tool.preflight_enforces, tool.id) for name, tool in self._by_name.items()}

    def checked(self, id: str, shown: dict[str, Any]) -> dict[str, Any]:
        """Return the schema for a plan's arguments; ``shown`` is the schema in the request."""
        tool = self._by_name.get(id)
        return self.schemas[id] if tool is not None and tool.preflight_enforces else shown

    def find(self, name: str, used: Mapping[str, str] | None = None) -> Tool:
        """Return the tool of a name; ``used`` are the names of the run's requests, by id.

        Raises: ToolError ``unknown_tool``.
        """
        id = next((id for id, each in (used or {}).items() if each == name and id in self._by_name), name)
        tool = self._by_name.get(id)
        if tool is None:
            hint = (
                did_you_mean(name, self._by_name)
                or "; a unit alone does nothing: the host gives its function in tools="
            )
            raise ToolError("unknown_tool", f"no tool {name!r} can be called in this run{hint}", {"name": name})
        return tool


def registered(tools: Iterable[Any], registry: Any) -> tuple[Tool, ...]:
    """Return the tools of ``tools`` and of a host's registry. Raises: ConfigurationError ``not_a_registry`` and
    others."""
    found = list(Registry(tools))
    if registry is not None:
        if not isinstance(registry, Registry):
            kind = type(registry).__name__
            raise ConfigurationError("not_a_registry", f"tool_registry: a Registry is wanted, not {kind}")
        found += list(registry)
    return tuple(found)


def _bound_tool(name: str, item: Any) -> Tool:
    tool = as_tool(item)
    tool = tool if tool.name == name else replace(tool, name=name, server="", capability="")
    tool.check()
    return tool
