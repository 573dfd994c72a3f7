"""The registry: every tool that a host can execute, by id. It does not decide which tools a model sees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rlm.errors import ConfigurationError, ToolError, did_you_mean, named
from rlm.forks import ForkLock
from rlm.model.arguments import instance, several
from rlm.model.unit import Unit
from rlm.tools.function import as_tool, tool_unit
from rlm.tools.tool import DEFAULT_TIME_LIMIT, Tool


class Registry:
    """Tools by id, in the order of their addition. It is thread-safe. A batch is added whole or not at all.

    Args:
        tools: functions made with ``@rlm.tool``, or plain functions.
    """

    def __init__(self, tools: Iterable[Any] = ()) -> None:
        self._guard = ForkLock()
        self._tools: dict[str, Tool] = {}
        self._revision = 0
        self.add(*several("tools", tools))

    def __repr__(self) -> str:
        return f"<Registry of {len(self)} tools, revision {self.revision}>"

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        with self._guard:
            return iter(list(self._tools.values()))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and len(self._matches(name)) == 1

    def __getitem__(self, name: str) -> Tool:
        return self.lookup(name)

    @property
    def revision(self) -> int:
        """Return a number that grows with every change."""
        return self._revision

    def add(self, *tools: Any) -> None:
        """Add tools.

        Raises:
            ConfigurationError: ``duplicate_tool``; ``invalid_schema`` and ``not_importable`` for a tool that cannot
                run; ``not_a_tool``.
        """
        items = _checked_tools(tools)
        with self._guard:
            for item in items:
                if item.id in self._tools:
                    raise ConfigurationError(
                        "duplicate_tool", f"{item.id} is registered; to change it, call replace", {"tool": item.id}
                    )
            self._put(items)

    def replace(self, *tools: Any) -> None:
        """Replace registered tools with the same ids.

        Raises:
            ConfigurationError: as ``add``.
            ToolError: ``unknown_tool``, if an id is not registered.
        """
        items = _checked_tools(tools)
        with self._guard:
            for item in items:
                if item.id not in self._tools:
                    raise self._unknown(item.id)
            self._put(items)

    def remove(self, *names: str) -> None:
        """Remove tools, by id or bare name.

        Raises:
            ToolError: a name is unknown or ambiguous; then nothing is removed.
        """
        with self._guard:
            ids = [self.lookup(name).id for name in names]
            for id in dict.fromkeys(ids):
                del self._tools[id]
            self._revision += 1

    def lookup(self, name: str) -> Tool:
        """Return the tool with an id, such as ``tool:name`` or ``mcp_tool:server/name``, or with a unique bare name.

        Raises:
            ToolError: ``unknown_tool``, ``ambiguous_tool``.
        """
        matches = self._matches(instance("name", name, str))
        if len(matches) > 1:
            ids = [item.id for item in matches]
            may_be = named(ids, joined=" or ")
            raise ToolError("ambiguous_tool", f"{name!r} may be {may_be}: write the id", {"name": name, "tools": ids})
        if not matches:
            raise self._unknown(name)
        return matches[0]

    def units(self, **host: Any) -> list[Unit]:
        """Return the units of all tools, without handlers, for a catalog. ``host`` are further fields of each unit."""
        return [tool_unit(item, **host) for item in self]

    def _put(self, tools: list[Tool]) -> None:
        self._tools.update((item.id, item) for item in tools)
        self._revision += 1

    def _matches(self, name: str) -> list[Tool]:
        with self._guard:
            if name in self._tools:
                return [self._tools[name]]
            return [item for item in self._tools.values() if name in (item.name, f"{item.server}/{item.name}")]

    def _unknown(self, name: str) -> ToolError:
        known = [*self._tools, *(item.name for item in self._tools.values())]
        return ToolError("unknown_tool", f"no tool {name!r} is registered{did_you_mean(name, known)}", {"name": name})


def _checked_tools(tools: Iterable[Any]) -> list[Tool]:
    items = [as_tool(item) for item in tools]
    ids: set[str] = set()
    for item in items:
        if item.id in ids:
            raise ConfigurationError("duplicate_tool", f"{item.id} occurs twice in one batch", {"tool": item.id})
        ids.add(item.id)
        item.check()
        if item.time_limit != DEFAULT_TIME_LIMIT:
            item.warn_of_thread(stacklevel=3)
    return items
