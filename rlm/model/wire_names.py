"""Wire names: the name of a tool in a request.

Providers accept function names of 1 to 64 letters, digits, ``_`` and ``-``. A tool has three possible names: the bare
one (``git_status``), the one with its server (``git_git_status``), and a stem with a digest of its id. It gets the
first that no other tool of the catalog could have. A tool of the host without a server always keeps a legal name of
its own. The order of registration plays no part.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

from rlm.model.unit import Kind

MAX_WIRE_NAME = 64
_DIGEST = 12
_LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DIGESTED = re.compile(r"-[0-9a-f]{12}$")
_SAFE = re.compile(r"[^A-Za-z0-9_./:-]")
_OTHER_ASCII = re.compile(r"[^A-Za-z0-9_-]+")
_SEPARATORS = re.compile(r"[^a-z0-9]+")
_TOOLS = (f"{Kind.TOOL.value}:", f"{Kind.MCP_TOOL.value}:")


class WireNames:
    """The wire names of a catalog's tools at one revision.

    For example ``WireNames(["mcp_tool:git/git_status"]).of("mcp_tool:git/git_status")`` is ``"git_status"``.

    Args:
        ids: the ids of all tools; other units are skipped.
        below: the names of further tools.
    """

    def __init__(self, ids: Iterable[str], below: WireNames | None = None) -> None:
        self._counts = Counter(name for id in ids if id.startswith(_TOOLS) for name in possible_names(id))
        self._below = below
        self._kept: Mapping[str, str] = {}
        self._taken: frozenset[str] = frozenset()

    def keeping(self, kept: Mapping[str, str]) -> WireNames:
        """Return these names with those by id that a session or a run keeps; no other tool gets one of them."""
        if not kept:
            return self
        names = WireNames((), self)
        names._kept, names._taken = dict(kept), frozenset(kept.values())
        return names

    def of(self, id: str) -> str:
        """Return the name of a tool."""
        if id in self._kept:
            return self._kept[id]
        fixed = own_name(id)
        if fixed and fixed not in self._taken:
            return fixed
        for name in possible_names(id):
            if name not in self._taken and self._count(name) == 1:
                return name
        return digested_name(id)

    def _count(self, name: str) -> int:
        return self._counts[name] + (0 if self._below is None else self._below._count(name))


class StoredWireNames(WireNames):
    """The wire names of tools that are known to be there, from the names that several of them could have.

    Args:
        shared: the names that more than one tool could have, each with the number of these tools.
    """

    def __init__(self, shared: Mapping[str, int]) -> None:
        super().__init__(())
        self._shared = shared

    def _count(self, name: str) -> int:
        return self._shared.get(name, 1)


def shared_names(ids: Iterable[str]) -> dict[str, int]:
    """Return the names that more than one of these tools could have, each with the number of these tools."""
    return {name: count for name, count in WireNames(ids)._counts.items() if count > 1}


def own_name(id: str) -> str:
    """Return the name that a tool without a server always keeps, or an empty text."""
    kind, _, path = id.partition(":")
    return path if kind == Kind.TOOL and _is_name(path) else ""


@lru_cache(maxsize=262_144)
def possible_names(id: str) -> tuple[str, ...]:
    """Return the names without a digest that a tool could have, the shortest first."""
    kind, _, path = id.partition(":")
    if kind == Kind.TOOL and _is_name(path):
        return (path,)
    server, _, bare = path.rpartition("/")
    names = (_legible(bare), _legible(f"{server}_{bare}") if server else "")
    return tuple(dict.fromkeys(name for name in names if name))


@lru_cache(maxsize=65_536)
def digested_name(id: str) -> str:
    """Return a legible stem with a digest of the id: the name of a tool whose other names are taken."""
    kind, _, path = id.partition(":")
    stem = re.sub(r"[^A-Za-z0-9]+", "_", path.encode("ascii", "ignore").decode()).strip("_") or kind
    digest = hashlib.sha256(id.encode()).hexdigest()[:_DIGEST]
    return f"{stem[: MAX_WIRE_NAME - _DIGEST - 1]}-{digest}"


def matching_name(name: str, names: Iterable[str]) -> str | None:
    """Return the one of ``names`` that a model means: the same, or the only one but for case and separators.

    For example ``"gitStatus"`` means ``"git_status"``.
    """
    known = tuple(names)
    if name in known:
        return name
    folded = _folded(name)
    alike = [each for each in known if _folded(each) == folded] if folded else []
    return alike[0] if len(alike) == 1 else None


def is_wire_name(name: object) -> bool:
    """Whether providers accept the name of a function."""
    return isinstance(name, str) and _LEGAL.fullmatch(name) is not None


def safe_name(text: str) -> str:
    """A name as it may stand in the label of a data block."""
    return _SAFE.sub("_", text)


def _folded(name: str) -> str:
    return _SEPARATORS.sub("", name.lower())


def _is_name(text: str) -> bool:
    return bool(_LEGAL.fullmatch(text)) and not _DIGESTED.search(text)


def _legible(text: str) -> str:
    """Return a text as a legal name, or an empty text if letters would be lost or it would look like a digest."""
    name = _OTHER_ASCII.sub("_", text).strip("_") if text.isascii() else ""
    return name if _is_name(name) else ""
