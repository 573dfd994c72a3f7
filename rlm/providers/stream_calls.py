"""The tool calls of a streamed reply, assembled from pieces in the dialects of many servers. Pure.

In the format, a piece names its call by ``index``; id and name come once; arguments come in parts to be joined.
Servers differ. They repeat the arguments so far, or the whole at the end. They send a name in parts or with every
piece. They give every piece a new id, or all calls one index. Only the later pieces show which dialect it is, so all
pieces are kept until the end. Joined parts that are a JSON object are the arguments. Other readings count only if the
joined parts are no object.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

_MARKS = re.compile(r'\\.|["{}\[\]]', re.DOTALL)


class CallPieces:
    """Collects the pieces of all calls of one reply, in the order in which they came."""

    def __init__(self) -> None:
        self._pieces: list[_CallPiece] = []

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def add(self, value: dict[str, Any]) -> None:
        """Add one member of ``delta.tool_calls``."""
        self._pieces.append(_CallPiece(value))

    def values(self) -> list[dict[str, Any]]:
        """Return the calls in the form of a reply that was not streamed."""
        calls = _Calls({piece.id: place for place, piece in enumerate(self._pieces) if piece.id})
        for place, piece in enumerate(self._pieces):
            calls.take(piece, place)
        return [call.value() for call in calls.all if not call.is_noise]


def joined_arguments(parts: Sequence[str]) -> str:
    """Return the arguments in a stream's parts, joined. A last part that repeats the earlier ones counts alone.

    Example:
        >>> joined_arguments(['{"q":', '1}'])
        '{"q":1}'
        >>> joined_arguments(['{"q":', '{"q":1', '{"q":1}'])
        '{"q":1}'
        >>> joined_arguments(['{"q":', '1}', '{"q": 1}'])
        '{"q": 1}'
    """
    parts = [part for part in parts if part]
    whole = "".join(parts)
    if len(parts) < 2 or _object(whole) is not None:
        return whole
    last = parts[-1]
    value = _object(last)
    if value is not None:
        while len(parts) > 1 and parts[-1] == last:
            parts = parts[:-1]
        if parts[-1] == last or _grows([*parts, last]) or _object("".join(parts)) == value:
            return last
        return last if _grows(parts) and _object(parts[-1]) == value else whole
    return last if _grows(parts) else whole


class _CallPiece:
    """One member of ``delta.tool_calls``."""

    def __init__(self, value: dict[str, Any]) -> None:
        function = value.get("function")
        function = function if isinstance(function, dict) else {}
        name, arguments = function.get("name"), function.get("arguments")
        self.index = repr(value["index"]) if value.get("index") is not None else None
        self.own_id = value.get("id") or None
        self.id = self.own_id if isinstance(self.own_id, str) else None
        self.name = name if isinstance(name, str) else ""
        self.text = arguments if isinstance(arguments, str) else ""
        self.parsed = None if isinstance(arguments, str) else arguments


class _Calls:
    """The calls so far; ``take`` finds the call of each piece."""

    def __init__(self, last_places: dict[str, int]) -> None:
        self.all: list[_StreamedCall] = []
        self._by_index: defaultdict[str | None, list[_StreamedCall]] = defaultdict(list)
        self._last_places = last_places

    def take(self, piece: _CallPiece, place: int) -> None:
        same = self.all if piece.index is None else self._by_index[piece.index]
        call = self._owner(same, piece, place)
        if call is None:
            call = _StreamedCall(same[-1] if same else None)
            self.all.append(call)
            self._by_index[piece.index].append(call)
        call.take(piece)

    def _owner(self, same: list[_StreamedCall], piece: _CallPiece, place: int) -> _StreamedCall | None:
        """Return the call that a piece continues; None if it begins a call."""
        if not same:
            return None
        last = same[-1]
        known = next((call for call in reversed(same) if piece.id and call.id == piece.id), None)
        if known is not None:
            return None if known.is_followed_by(piece) else known
        if piece.id is None or last.id is None:
            return None if last.is_followed_by(piece) else last
        if self._last_places.get(last.id, -1) > place:
            return None  # the last call goes on later, under its own id
        if not piece.name:
            return last  # a server that draws a new id for each piece
        return last if piece.name == last.name and last.has_begun and not last.is_complete else None


class _StreamedCall:
    """One call as its pieces arrive."""

    def __init__(self, before: _StreamedCall | None) -> None:
        self.id: str | None = None
        self.name = ""
        self._before = before
        self._parsed: Any = None
        self._texts: list[str] = []
        self._scan = _Scan()
        self._was_whole = False

    @property
    def has_begun(self) -> bool:
        """Whether there are arguments."""
        return bool(self._texts) or self._parsed is not None

    @property
    def is_complete(self) -> bool:
        """Whether the arguments are closed."""
        if self._parsed is not None or self._scan.is_closed(self._texts):
            return True
        return self._was_whole and _grows(self._texts)

    @property
    def is_noise(self) -> bool:
        """Whether it is no call: it only repeats the name of the call before."""
        before = self._before
        return before is not None and self.id is None and not self.has_begun and self.name in ("", before.name)

    def is_followed_by(self, piece: _CallPiece) -> bool:
        """Whether a piece with a name begins another call: this one is complete, and the piece does not repeat it."""
        if not piece.name or not self.is_complete:
            return False
        if piece.name != self.name and not (piece.name.startswith(self.name) and not piece.text):
            return True
        if piece.parsed is not None:
            return bool(piece.parsed != self._parsed)
        if not piece.text:
            return piece.id is None or piece.id != self.id
        if self._texts and piece.text.startswith(self._texts[-1]):
            return False  # it repeats the earlier pieces
        value = _object(piece.text)
        return value is not None and value != _object(joined_arguments(self._texts))

    def take(self, piece: _CallPiece) -> None:
        """Add one piece."""
        self.id = self.id or piece.id
        self.name = _joined_name(self.name, piece.name, is_done=self.has_begun)
        if piece.parsed is not None:  # parsed by the server, so that it comes whole
            self._parsed = piece.parsed
        if piece.text:
            self._texts.append(piece.text)
            self._was_whole = piece.text.startswith("{") and _object(piece.text) is not None

    def value(self) -> dict[str, Any]:
        arguments = self._parsed if self._parsed is not None else joined_arguments(self._texts)
        return {"id": self.id, "function": {"name": self.name, "arguments": arguments}}


class _Scan:
    """A scan of a JSON text in parts for open brackets and strings; each part is read once."""

    def __init__(self) -> None:
        self._read = 0
        self._rest = ""
        self._depth = 0
        self._in_string = False
        self._opened = False

    def is_closed(self, parts: list[str]) -> bool:
        text = self._rest + "".join(parts[self._read :])
        self._read = len(parts)
        self._rest = "\\" if (len(text) - len(text.rstrip("\\"))) % 2 else ""
        for mark in _MARKS.findall(text[: len(text) - len(self._rest)]):
            if mark == '"':
                self._in_string = not self._in_string
            elif not self._in_string and mark in "{[":
                self._depth += 1
                self._opened = True
            elif not self._in_string and mark in "}]":
                self._depth -= 1
        return self._opened and self._depth <= 0 and not self._in_string


def _joined_name(name: str, piece: str, *, is_done: bool) -> str:
    """Return a name with its next part, which repeats the name (the same, or longer) or continues it."""
    if not piece or piece == name or (is_done and name):
        return name
    return piece if piece.startswith(name) else name + piece


def _grows(parts: Sequence[str]) -> bool:
    """Whether each part is a beginning of the next one."""
    return len(parts) > 1 and all(after.startswith(before) for before, after in pairwise(parts))


def _object(text: str) -> dict[str, Any] | None:
    """Return the JSON object in a text, or None."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
