"""Server-sent events: bytes in, the data of each event out. Pure; pieces may be cut anywhere.

https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream. Names, ids, retry times and
comments are skipped: the replies of providers have everything in their data.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

_LINE_END = re.compile(rb"\r\n|\r|\n")
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")


class EventStream:
    """The events of one stream."""

    def __init__(self) -> None:
        self._begun = False
        self._line = bytearray()
        self._data: list[bytes] = []
        self._after_return = False

    def feed(self, piece: bytes) -> Iterator[str]:
        """Yield the data of the events that ``piece`` completes, in order, in time linear in ``piece``."""
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

    def end(self) -> Iterator[str]:
        """Yield the data of a last event without its blank line: whole, or cut off.

        The specification discards it. Some servers forget the blank line, and the reply was paid for.
        """
        if self._line:
            yield from self._ended_line()
        yield from self._ended_line()

    def _ended_line(self) -> Iterator[str]:
        line = bytes(self._line)
        self._line.clear()
        if not self._begun:
            line, self._begun = line.removeprefix(codecs.BOM_UTF8), True
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
        elif not line and self._data:
            data = b"\n".join(self._data)
            self._data = []
            yield data.decode("utf-8", "replace")


def looks_like_events(body: bytes) -> bool:
    """Whether a body is a stream of events, even if its content type is another."""
    return body.removeprefix(codecs.BOM_UTF8).lstrip().startswith(_FIELDS)
