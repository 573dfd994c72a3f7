"""A window of a context as one text: its bytes, and the places of its characters and lines.

Positions are bytes from the start of the window. The place of a character or a line is found by counting from the
last mark before it. Each piece that was counted leaves a mark, and marks are kept. So the first look-up reads up to
its place, and a later one reads one piece.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from rlm.context import utf8
from rlm.context.bodies import PIECE
from rlm.context.context import Context, Document
from rlm.context.limits import Guard


@dataclass(frozen=True)
class DocumentSpan:
    """The part of one document in a window: its bytes from ``start`` to before ``stop``, at ``at`` in the window."""

    document: Document
    start: int
    stop: int
    at: int

    @property
    def end(self) -> int:
        """The end of the span in the window, in bytes."""
        return self.at + self.stop - self.start


class ByteWindow:
    """The bytes of a context from ``start`` to before ``stop``, by default all of them. Safe in any number of threads.

    Methods that may read much take a guard and raise OutOfTime. All raise ContextError ``unreadable``.
    """

    def __init__(self, context: Context, start: int = 0, stop: int | None = None) -> None:
        self.context = context
        self.start, self.stop = start, context.size if stop is None else stop
        self.size = self.stop - self.start
        self.spans = self._spans()
        self.filled = [span for span in self.spans if span.at < span.end]
        self._at = [span.at for span in self.spans]
        self._bytes, self._characters, self._lines = array("q", [0]), array("q", [0]), array("q", [0])
        self.undecodable = context.replaced if self.size == context.size else 0
        self._lock = threading.Lock()

    def _spans(self) -> list[DocumentSpan]:
        """Return the span of each document that has bytes here, or that is empty and lies here or at an end."""
        offsets = self.context.offsets
        first = bisect_left(offsets, self.start)
        if first == len(offsets) - 1 or (first and offsets[first] > self.start):
            first -= 1
        last = max(bisect_right(offsets, self.stop) - 1, bisect_left(offsets, self.stop))
        spans = []
        for number in range(max(first, 0), min(last, len(offsets) - 1)):
            begins, ends = offsets[number : number + 2]
            start, stop = max(begins, self.start), min(ends, self.stop)
            spans.append(DocumentSpan(self.context.members[number], start - begins, stop - begins, start - self.start))
        return spans

    # -- bytes and text -----------------------------------------------------------------------------

    def span_index(self, at: int) -> int:
        """Return the index of the span that holds the byte at ``at``; empty spans are passed over."""
        return bisect_right(self._at, at) - 1

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes from ``start`` to before ``stop``, clipped to the window."""
        parts = list(self._read(start, stop))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def text(self, start: int, stop: int) -> str:
        """Return the text of some bytes. No character reaches from one document into the next."""
        return "".join(map(utf8.decode, self._read(start, stop)))

    def _read(self, start: int, stop: int) -> Iterator[bytes]:
        start, stop = max(start, 0), min(stop, self.size)
        for span in islice(self.spans, max(self.span_index(start), 0), None):
            if span.at >= stop:
                return
            begins, ends = max(start, span.at), min(stop, span.end)
            if begins < ends:
                shift = span.start - span.at
                yield span.document.body.read(begins + shift, ends + shift)

    def pieces(self, start: int, guard: Guard) -> Iterator[tuple[int, bytes, bool]]:
        """Yield ``(position, bytes, whether a document ends there)`` from ``start`` on.

        A piece never cuts a character or a CR LF in two.
        """
        while start < self.size:
            guard.check()
            raw, ends = self.piece(start)
            yield start, raw, ends
            start += len(raw)

    def piece(self, start: int) -> tuple[bytes, bool]:
        """Return the bytes of the piece that starts at ``start``, and whether a document ends with it."""
        span = self.spans[self.span_index(start)]
        stop = min(span.end, start + PIECE)
        raw = self.read(start, stop)
        if stop == span.end:
            return raw, True
        raw = raw[: utf8.whole_end(raw)]
        return raw[: -1 if raw.endswith(b"\r") else None], False

    # -- characters and lines -----------------------------------------------------------------------
    #
    # Marks are three columns. A thread that reads without the lock uses the length of `_bytes`, which is written last.

    @property
    def counted(self) -> bool:
        """Whether all of the window has been counted."""
        return self._bytes[-1] >= self.size

    def count(self, guard: Guard) -> tuple[int, int]:
        """Return the numbers of characters and lines of the window."""
        while not self.counted:
            self.count_on(guard)
        _, characters, lines = self.so_far()
        return characters, lines

    def so_far(self) -> tuple[int, int, int]:
        """Return the bytes, characters and lines that have been counted."""
        last = len(self._bytes) - 1
        return self._bytes[last], self._characters[last], self._lines[last]

    def count_to(self, at: int, guard: Guard) -> None:
        """Count as far as the byte at ``at``, or to the end of the window."""
        while self._bytes[-1] < min(at, self.size):
            self.count_on(guard)

    def byte_of_character(self, number: int, guard: Guard) -> int:
        """Return the place where a character starts; the end of the window where it has fewer characters."""
        while self.so_far()[1] < number and not self.counted:
            self.count_on(guard)
        marks = len(self._bytes)
        mark = bisect_right(self._characters, number, 0, marks) - 1
        start, rest = self._bytes[mark], number - self._characters[mark]
        if rest == 0 or mark + 1 == marks:
            return start
        if self._plain(mark):
            return start + rest
        return start + utf8.encoded_size(utf8.escaped(self._marked(mark))[:rest])

    def character_of_byte(self, at: int, guard: Guard) -> int:
        """Return the number of characters that start before ``at``. A character starts at ``at``, or the window ends
        there.
        """
        mark = self._mark_of_byte(at, guard)
        rest = at - self._bytes[mark]
        if rest and not self._plain(mark):
            rest = len(utf8.escaped(self._marked(mark)[:rest]))
        return self._characters[mark] + rest

    def byte_of_line(self, number: int, guard: Guard) -> int:
        """Return the place where a line starts; the end of the window where it has fewer lines."""
        while self.so_far()[2] < number and not self.counted:
            self.count_on(guard)
        if number <= 0:
            return 0
        if number > self.so_far()[2]:
            return self.size
        mark = bisect_left(self._lines, number, 0, len(self._bytes)) - 1
        raw = self._marked(mark)
        start = next(islice(utf8.after_line_ends(raw), number - self._lines[mark] - 1, None), len(raw))
        return self._bytes[mark] + start

    def line_of_byte(self, at: int, guard: Guard) -> int:
        """Return the number, from 0, of the line that holds the byte at ``at``."""
        mark = self._mark_of_byte(at, guard)
        rest = at - self._bytes[mark]
        if not rest:
            return self._lines[mark]
        raw = self._marked(mark)
        return self._lines[mark] + utf8.line_ends(raw[:rest]) - (raw[rest - 1 : rest + 1] == b"\r\n")

    def _mark_of_byte(self, at: int, guard: Guard) -> int:
        self.count_to(at, guard)
        return bisect_right(self._bytes, at) - 1

    def _plain(self, mark: int) -> bool:
        """Whether every character of a marked piece is one byte."""
        size = self._bytes[mark + 1] - self._bytes[mark]
        return size == self._characters[mark + 1] - self._characters[mark]

    def _marked(self, mark: int) -> bytes:
        return self.read(self._bytes[mark], self._bytes[mark + 1])

    def count_on(self, guard: Guard) -> None:
        """Count the next piece."""
        guard.check()
        with self._lock:
            if self.counted:
                return
            start = self._bytes[-1]
            raw, ends = self.piece(start)
            characters = len(raw)
            if not raw.isascii():
                characters = len(utf8.escaped(raw))
                self.undecodable += utf8.undecodable_bytes(raw)
            lines = utf8.line_ends(raw) + (ends and not utf8.ends_line(raw))
            self._characters.append(self._characters[-1] + characters)
            self._lines.append(self._lines[-1] + lines)
            self._bytes.append(start + len(raw))
