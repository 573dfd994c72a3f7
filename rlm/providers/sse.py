"""Server-sent events: bytes in, the data of each event out. Pure; pieces may be cut anywhere.

https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream, of which names, ids, retry
times and comments are passed over: the replies that are read here say everything in their data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINE_END = re.compile(rb"\r\n|\r|\n")


class EventStream:
    """The events of one stream. An event that the end of the stream cuts off is none."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[bytes] = []
        self._after_return = False

    def feed(self, piece: bytes) -> Iterator[str]:
        """The data of the events that ``piece`` completes, in order. Costs time linear in ``piece``."""
        if self._after_return and piece[:1] == b"\n":
            piece = piece[1:]  # a line end that was cut in two
            self._after_return = False
        if not piece:
            return
        self._after_return = piece[-1:] == b"\r"
        *lines, rest = _LINE_END.split(piece)
        for line in lines:
            self._line += line
            yield from self._ended_line()
        self._line += rest

    def _ended_line(self) -> Iterator[str]:
        line = bytes(self._line)
        self._line.clear()
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
        elif not line and self._data:
            data = b"\n".join(self._data)
            self._data = []
            yield data.decode("utf-8", "replace")
