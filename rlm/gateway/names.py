"""ToolNames of tools: ``server/tool``, or the bare name where only one tool of the profile has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rlm.errors import ToolError, did_you_mean

MOST_CANDIDATES = 8


def long_name(id: str) -> str:
    """Return the name with its server: ``git/status`` of ``mcp_tool:git/status``, ``add`` of ``tool:add``."""
    return id.partition(":")[2]


def bare_name(id: str) -> str:
    """Return the name without its server."""
    return long_name(id).rpartition("/")[2] if id.startswith("mcp_tool:") else long_name(id)


class ToolNames:
    """The names of the tools of one profile.

    Args:
        ids: the ids of the tools.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self.ids = tuple(sorted(ids))
        self._by_long = {long_name(id): id for id in self.ids}
        self._counts = Counter(bare_name(id) for id in self.ids)
        self._by_plain: dict[str, list[str]] = {}
        self._by_name: dict[str, list[str]] = {}
        for id in self.ids:
            for name in {long_name(id), bare_name(id)}:
                self._by_name.setdefault(name, []).append(id)
            for name in {_plain(long_name(id)), _plain(bare_name(id))}:
                self._by_plain.setdefault(name, []).append(id)

    def shortest(self, id: str) -> str:
        """Return the bare name if it is unique, else ``server/tool``."""
        bare = bare_name(id)
        return bare if self._counts[bare] == 1 and bare not in self._by_long.keys() - {long_name(id)} else long_name(id)

    def id_of(self, name: str) -> str:
        """Return the id of the tool with a name.

        Raises:
            ToolError: ``ambiguous_name`` with the candidates; ``unknown_tool`` with the closest name.
        """
        exact = self._by_long.get(name) or self._by_long.get(name.removeprefix("mcp_tool:").removeprefix("tool:"))
        if exact is not None:
            return exact
        found = self._by_name.get(name) or self._by_plain.get(_plain(name), [])
        if len(found) == 1:
            return found[0]
        if found:
            candidates = [long_name(id) for id in found[:MOST_CANDIDATES]]
            message = f"{name!r} is the name of several tools: {', '.join(candidates)}"
            raise ToolError("ambiguous_name", message, {"name": name, "candidates": candidates})
        hint = did_you_mean(name, [*self._by_long, *self._counts])
        raise ToolError("unknown_tool", f"there is no tool {name[:100]!r}{hint}", {"name": name[:100]})

    def named_in(self, text: str) -> list[str]:
        """Return the ids of the tools whose whole name stands in a text."""
        words = {word.strip(".,:;!?()[]{}'\"`") for word in text.split()}
        return sorted({id for word in words for id in self._by_name.get(word, ())})


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum() or letter == "/")
