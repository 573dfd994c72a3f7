"""The executable tools of a catalog, apart from the units: no handler ever enters a unit.

The registry is made at its first use: reading JSON Schemas needs a library that a host
which only compiles does not have to load.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlm.tools.registry import Registry
    from rlm.tools.tool import Tool


class Executables:
    """Tools by id. Guarded by the catalog's lock."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}
        self._registry: Registry | None = None

    @property
    def registry(self) -> Registry:
        """The registry of all tools, the same one each time.

        Raises: ConfigurationError, for a tool that could never run.
        """
        if self._registry is None:
            from rlm.tools.registry import Registry

            self._registry = Registry(self._tools.values())
        return self._registry

    def put(self, tools: Iterable[Tool]) -> None:
        """Add tools, or replace the tools with their ids.

        Raises: as ``registry``; then nothing changes.
        """
        fresh = {tool.id: tool for tool in tools if self._tools.get(tool.id) is not tool}
        if self._registry is not None and fresh:
            for tool in fresh.values():
                tool.check()
            self._registry.replace(*(tool for id, tool in fresh.items() if id in self._registry))
            self._registry.add(*(tool for id, tool in fresh.items() if id not in self._registry))
        self._tools.update(fresh)

    def keep(self, ids: Container[str]) -> None:
        """Forget the tools with other ids."""
        gone = [id for id in self._tools if id not in ids]
        for id in gone:
            del self._tools[id]
        if self._registry is not None:
            self._registry.remove(*(id for id in gone if id in self._registry))
