"""Where a literal or a pattern stands in a view, found window by window.

Patterns are RE2's: linear time whatever the pattern, no look-around, no back-references. ``^`` and ``$`` stand at
the ends of lines (LF). A match lies within one document. It may reach over many windows' ends, but what stands more
than ``REACH`` bytes after its start is seen only as far as the window goes, ``PIECE`` bytes and ``REACH``.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from rlm.context import utf8
from rlm.context.bodies import PIECE
from rlm.context.byte_window import ByteWindow, Stretch
from rlm.context.guard import Guard
from rlm.errors import ContextError

Each = Literal["occurrence", "line"]

REACH = 16 * 1024
MOST_INSTRUCTIONS = 50_000
"""The longest program that RE2 may make of a pattern."""

_OPTIONS = {"log_errors": False, "never_capture": True, "max_mem": 8 * 1024 * 1024}
_NARROW = 4 * 1024
_SLOW, _QUICK = 0.05, 0.01
"""Seconds for a window: from when on the next one is smaller, until when it is bigger."""

_AROUND = 8
"""Bytes beside a window that are seen, not matched: two characters, or more."""

_ANY_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")


class Needle(Protocol):
    """What is looked for."""

    @property
    def reach(self) -> int:
        """Bytes after the start of a match that it takes to find it whole."""
        ...

    def find(self, text: bytes, start: int, stop: int) -> tuple[int, int] | None:
        """The first match between ``start`` and ``stop``; what is around them is seen, not matched."""
        ...

    def readable(self, raw: bytes) -> bytes:
        """The bytes as ``find`` wants them."""
        ...


@dataclass(frozen=True)
class Exactly:
    """A literal, as it is written."""

    data: bytes

    @property
    def reach(self) -> int:
        return len(self.data)

    @property
    def overlaps_itself(self) -> bool:
        """Whether one occurrence may begin inside another: ``aa``, ``abab``."""
        return any(self.data.startswith(self.data[shift:]) for shift in range(1, len(self.data)))

    def find(self, text: bytes, start: int, stop: int) -> tuple[int, int] | None:
        at = text.find(self.data, start, stop)
        return None if at < 0 else (at, at + len(self.data))

    def readable(self, raw: bytes) -> bytes:
        return raw  # a literal that is UTF-8 is found in any bytes where it would be found in their text


@dataclass(frozen=True)
class Matching:
    """A pattern that RE2 has compiled."""

    regexp: Any
    reach: int = REACH

    def find(self, text: bytes, start: int, stop: int) -> tuple[int, int] | None:
        match = self.regexp.search(text, start, stop)
        return None if match is None else match.span()

    def readable(self, raw: bytes) -> bytes:
        if raw.isascii() or not utf8.strange(raw):
            return raw
        return utf8.decode(raw).encode("utf-8")


def needle(literal: str | None, pattern: str | None, case: str) -> Needle:
    """The needle of a search: one of ``literal`` and ``pattern`` is given; ``case`` is ``exact`` or ``fold``.

    Raises: ContextError ``invalid_pattern``.
    """
    wanted = utf8.without_surrogates(pattern or "" if literal is None else literal)
    if literal is not None and case == "exact" and utf8.REPLACEMENT not in wanted:
        return Exactly(wanted.encode("utf-8"))
    import re2

    options = re2.Options()
    chosen = {"case_sensitive": case == "exact", "literal": literal is not None, **_OPTIONS}
    for option, value in chosen.items():
        setattr(options, option, value)
    if literal is None and _ANY_BYTE.search(wanted):
        raise _invalid(wanted, r"\C, a single byte, is not to be had: characters are matched")
    try:
        regexp = re2.compile(wanted if literal is not None else f"(?m){wanted}", options)
    except re2.error as problem:
        said = problem.args[0] if problem.args else str(problem)
        said = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        raise _invalid(wanted, said.replace("(?m)", "", 1)) from None
    re2.purge()  # it would keep up to 128 of them, each with its memory
    if regexp.programsize > MOST_INSTRUCTIONS:
        raise _invalid(wanted, "it is too big: repeat less, or narrower classes")
    return Matching(regexp)


def matches(
    view: ByteWindow, needle: Needle, start: int, guard: Guard, each: Each = "occurrence"
) -> Iterator[tuple[int, int]]:
    """``(start, stop)`` of each match from ``start`` on, in bytes of the view, none over another.

    With ``each="line"`` it is only the first of the matches that start in one line.
    Raises: OutOfTime, ContextError ``unreadable``.
    """
    step = _NARROW if isinstance(needle, Matching) else PIECE
    for stretch in view.stretches:
        if stretch.end < start or stretch.at == stretch.end:
            continue
        at, skipping = max(start, stretch.at), False
        while at < stretch.end:
            guard.check()
            began = time.monotonic()
            window = _Window(view, stretch, at, step, needle)
            yield from window.matches(guard, each, skipping)
            at, skipping = window.next, window.skipping
            step = PIECE if window.again else _next_step(step, time.monotonic() - began)


def occurrences(view: ByteWindow, literal: Exactly, guard: Guard) -> Iterator[int]:
    """How often a literal that does not overlap itself is found, rising window by window.

    Raises: OutOfTime, ContextError ``unreadable``.
    """
    total, more = 0, len(literal.data) - 1
    for stretch in view.stretches:
        for at in range(stretch.at, stretch.end, PIECE):
            guard.check()
            total += view.read(at, min(at + PIECE + more, stretch.end)).count(literal.data)
            yield total


class _Window:
    """The bytes of a stretch in which matches may start (``step`` of them from ``at`` on), and those after it.

    Afterwards ``next`` is where the next window starts, ``skipping`` whether the rest of a line is to be passed over
    there, and ``again`` whether that is a match which may be longer than this window showed.
    """

    def __init__(self, view: ByteWindow, stretch: Stretch, at: int, step: int, needle: Needle) -> None:
        low, high = max(stretch.at, at - _AROUND), min(stretch.end, at + step + needle.reach + _AROUND)
        raw = view.read(low, high)
        before = utf8.whole_start(raw) if low > stretch.at else 0
        self._final = high == stretch.end
        raw = raw[before : None if self._final else utf8.whole_end(raw)]
        self._raw, self._low, self._needle = raw, low + before, needle
        self._text = needle.readable(raw)
        self._begin = self._inside(at - self._low)
        self._stop = len(self._text) if self._final else _last_character(self._text)
        edge = len(raw) if self._final else utf8.whole_end(raw[: at - self._low + step])
        self._edge = self._inside(edge)
        self.next, self.skipping, self.again = stretch.end, False, False

    def matches(self, guard: Guard, each: Each, skipping: bool) -> Iterator[tuple[int, int]]:
        """The matches that start in this window."""
        at: int | None = self._begin
        if skipping:
            at = self._after_line(self._begin)
        while at is not None and at <= self._stop:
            guard.check()
            found = self._needle.find(self._text, at, self._stop)
            if found is None or (found[0] >= self._edge and not self._final):
                break
            start, stop = found
            if stop == self._stop and not self._final and start > self._begin:
                self.next, self.again = self._outside(start), True
                return
            yield self._outside(start), self._outside(stop)
            if each == "line":
                at = self._after_line(start)
            else:
                at = stop if stop > start else _next_character(self._text, stop)
        if not self._final:
            self.skipping = at is None
            self.next = self._outside(max(self._edge, at or 0))

    def _after_line(self, at: int) -> int | None:
        """Where the line of ``at`` is over; None where that is not in sight."""
        end = utf8.LINE_END_BYTES.search(self._text, at)
        return None if end is None or (end.end() == len(self._text) and not self._final) else end.end()

    def _inside(self, raw: int) -> int:
        """The place in the text of a place in the raw bytes."""
        return raw if self._text is self._raw else len(utf8.decode(self._raw[:raw]).encode("utf-8"))

    def _outside(self, at: int) -> int:
        """The place in the view of a place in the text."""
        if self._text is self._raw:
            return self._low + at
        characters = len(self._text[:at].decode("utf-8"))
        return self._low + utf8.encoded_size(utf8.escaped(self._raw)[:characters])


def _last_character(text: bytes) -> int:
    at = len(text) - 1
    while at > 0 and 0x80 <= text[at] < 0xC0 and len(text) - at < _AROUND // 2:
        at -= 1
    return at


def _next_character(text: bytes, at: int) -> int:
    return at + 1 + utf8.whole_start(text[at + 1 : at + 4])


def _invalid(pattern: str, why: str) -> ContextError:
    return ContextError(
        "invalid_pattern",
        f"pattern {pattern[:100]!r}: {why}",
        {"path": "pattern", "pattern": pattern[:500], "why": why},
    )


def _next_step(step: int, seconds: float) -> int:
    if seconds > _SLOW:
        return max(_NARROW, step // 4)
    return min(PIECE, step * 4) if seconds < _QUICK else step
