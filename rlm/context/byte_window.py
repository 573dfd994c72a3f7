"""A stretch of a context as one text: its bytes, and where its characters and lines are.

Positions are bytes from the start of the stretch. Where a character or a line is, is found by counting from the last
mark before it; there is a mark for each piece that was counted, and they are kept. So whatever is asked first reads up
to there, and what is asked later reads one piece.
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
from rlm.context.guard import Guard


@dataclass(frozen=True)
class Stretch:
    """What a view has of one document: its bytes from ``start`` to before ``stop``, at ``at`` in the view."""

    document: Document
    start: int
    stop: int
    at: int

    @property
    def end(self) -> int:
        """Where it ends in the view."""
        return self.at + self.stop - self.start


class ByteWindow:
    """The bytes of a context from ``start`` to before ``stop``, or all of them. Safe in any number of threads.

    Every method that may read much takes a guard, and raises OutOfTime; all raise ContextError ``unreadable``.
    """

    def __init__(self, context: Context, start: int = 0, stop: int | None = None) -> None:
        self.context = context
        self.start, self.stop = start, context.size if stop is None else stop
        self.size = self.stop - self.start
        self.stretches = self._stretches()
        self.filled = [stretch for stretch in self.stretches if stretch.at < stretch.end]
        self._at = [stretch.at for stretch in self.stretches]
        self._bytes, self._characters, self._lines = array("q", [0]), array("q", [0]), array("q", [0])
        self.strange = context.replaced if self.size == context.size else 0
        self._lock = threading.Lock()

    def _stretches(self) -> list[Stretch]:
        """Of each document that has bytes here, or that is empty and lies here or at an end."""
        offsets = self.context.offsets
        first = bisect_left(offsets, self.start)
        if first == len(offsets) - 1 or (first and offsets[first] > self.start):
            first -= 1
        last = max(bisect_right(offsets, self.stop) - 1, bisect_left(offsets, self.stop))
        found = []
        for number in range(max(first, 0), min(last, len(offsets) - 1)):
            begins, ends = offsets[number : number + 2]
            start, stop = max(begins, self.start), min(ends, self.stop)
            found.append(Stretch(self.context.members[number], start - begins, stop - begins, start - self.start))
        return found

    # -- bytes and text -----------------------------------------------------------------------------

    def stretch_index(self, at: int) -> int:
        """The number of the stretch that holds the byte at ``at``, empty ones passed over."""
        return bisect_right(self._at, at) - 1

    def read(self, start: int, stop: int) -> bytes:
        """The bytes from ``start`` to before ``stop``, cut to the view."""
        read = list(self._read(start, stop))
        return read[0] if len(read) == 1 else b"".join(read)

    def text(self, start: int, stop: int) -> str:
        """The text of some bytes; no character reaches from one document into the next."""
        return "".join(map(utf8.decode, self._read(start, stop)))

    def _read(self, start: int, stop: int) -> Iterator[bytes]:
        start, stop = max(start, 0), min(stop, self.size)
        for stretch in islice(self.stretches, max(self.stretch_index(start), 0), None):
            if stretch.at >= stop:
                return
            begins, ends = max(start, stretch.at), min(stop, stretch.end)
            if begins < ends:
                shift = stretch.start - stretch.at
                yield stretch.document.body.read(begins + shift, ends + shift)

    def pieces(self, start: int, guard: Guard) -> Iterator[tuple[int, bytes, bool]]:
        """``(position, bytes, whether a document ends there)`` from ``start`` on, documents and characters whole.

        Neither a character nor CR LF is cut in two.
        """
        while start < self.size:
            guard.check()
            raw, ends = self.piece(start)
            yield start, raw, ends
            start += len(raw)

    def piece(self, start: int) -> tuple[bytes, bool]:
        """The bytes from ``start`` on that ``pieces`` yields at once, and whether a document ends there."""
        stretch = self.stretches[self.stretch_index(start)]
        stop = min(stretch.end, start + PIECE)
        raw = self.read(start, stop)
        if stop == stretch.end:
            return raw, True
        raw = raw[: utf8.whole_end(raw)]
        return raw[: -1 if raw.endswith(b"\r") else None], False

    # -- characters and lines -----------------------------------------------------------------------
    #
    # Three columns of marks. Threads that look without the lock go by the length of the bytes, which are written last.

    @property
    def counted(self) -> bool:
        """Whether all of it has been counted."""
        return self._bytes[-1] >= self.size

    def count(self, guard: Guard) -> tuple[int, int]:
        """Characters and lines of all of it."""
        while not self.counted:
            self.count_on(guard)
        _, characters, lines = self.so_far()
        return characters, lines

    def so_far(self) -> tuple[int, int, int]:
        """Bytes, characters and lines that have been counted."""
        last = len(self._bytes) - 1
        return self._bytes[last], self._characters[last], self._lines[last]

    def count_to(self, at: int, guard: Guard) -> None:
        """Count as far as the byte at ``at``, or all of it."""
        while self._bytes[-1] < min(at, self.size):
            self.count_on(guard)

    def byte_of_character(self, number: int, guard: Guard) -> int:
        """Where the character starts; the end of the view where there are not so many."""
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
        """How many characters start before ``at``, where one starts or the view ends."""
        mark = self._mark_of_byte(at, guard)
        rest = at - self._bytes[mark]
        if rest and not self._plain(mark):
            rest = len(utf8.escaped(self._marked(mark)[:rest]))
        return self._characters[mark] + rest

    def byte_of_line(self, number: int, guard: Guard) -> int:
        """Where the line starts; the end of the view where there are not so many."""
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
        """The number of the line, from 0, that holds the byte at ``at``."""
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
        """Count one piece more."""
        guard.check()
        with self._lock:
            if self.counted:
                return
            start = self._bytes[-1]
            raw, ends = self.piece(start)
            characters = len(raw)
            if not raw.isascii():
                characters = len(utf8.escaped(raw))
                self.strange += utf8.strange(raw)
            lines = utf8.line_ends(raw) + (ends and not utf8.ends_line(raw))
            self._characters.append(self._characters[-1] + characters)
            self._lines.append(self._lines[-1] + lines)
            self._bytes.append(start + len(raw))
