"""The places of a literal or a pattern in a byte window, found piece by piece.

Patterns are RE2 patterns: linear time for any pattern, no look-around, no back-references. ``^`` and ``$`` match at
the ends of lines (LF). A match lies within one document. It may reach over the ends of many pieces. Its bytes more
than ``REACH`` after its start are found only up to ``PIECE + REACH`` bytes, for example of a pattern ``a+``.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, Protocol

from rlm.context import utf8
from rlm.context.bodies import PIECE
from rlm.context.byte_window import ByteWindow, DocumentSpan
from rlm.context.limits import Guard
from rlm.errors import ContextError

Each = Literal["occurrence", "line"]

REACH = 16 * 1024
MOST_INSTRUCTIONS = 50_000
"""The longest program that RE2 may compile a pattern to."""

_OPTIONS = {"log_errors": False, "never_capture": True, "max_mem": 8 * 1024 * 1024}
_NARROW = 4 * 1024
_SLOW, _QUICK = 0.05, 0.01
"""Seconds for one piece. Over ``_SLOW`` the next piece is smaller, below ``_QUICK`` it is bigger."""

_AROUND = 8
"""Bytes beside a piece that a pattern may look at but not match: two characters or more."""

_INNER_SPACE = re.compile("(?<=\\S)[ \t\n\f\r\u00a0]+(?=\\S)")
_QUOTED = re.compile(r"[!-/:-@\[-^`{-~]")
"""Characters that may have a meaning in a pattern; those above ASCII have none."""

_ANY_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")


class Needle(Protocol):
    """A literal or a pattern to search for."""

    @property
    def reach(self) -> int:
        """Bytes after the start of a match that are read to find it whole."""
        ...

    def find(self, text: bytes, start: int, stop: int) -> tuple[int, int] | None:
        r"""Return the first match between ``start`` and ``stop``. The bytes around them are context for ``^``, ``$``
        and ``\b``.
        """
        ...

    def readable(self, raw: bytes) -> bytes:
        """Return the bytes in the form that ``find`` takes."""
        ...


@dataclass(frozen=True)
class LiteralNeedle:
    """A literal, compared byte for byte."""

    data: bytes

    @property
    def reach(self) -> int:
        return len(self.data)

    @property
    def overlaps_itself(self) -> bool:
        """Whether one occurrence may begin inside another, for example of ``aa`` or ``abab``."""
        return any(self.data.startswith(self.data[shift:]) for shift in range(1, len(self.data)))

    def find(self, text: bytes, start: int, stop: int) -> tuple[int, int] | None:
        at = text.find(self.data, start, stop)
        return None if at < 0 else (at, at + len(self.data))

    def readable(self, raw: bytes) -> bytes:
        return raw  # a literal that is UTF-8 is found in any bytes where it would be found in their text


@dataclass(frozen=True)
class PatternNeedle:
    """A pattern that RE2 has compiled. ``source`` is its text where it may have groups."""

    regexp: Any
    reach: int = REACH
    source: str = ""
    case: str = "exact"

    def find(self, text: bytes, start: int, stop: int) -> tuple[int, int] | None:
        match = self.regexp.search(text, start, stop)
        return None if match is None else match.span()

    def readable(self, raw: bytes) -> bytes:
        if raw.isascii() or not utf8.undecodable_bytes(raw):
            return raw
        return utf8.decode(raw).encode("utf-8")


def needle(literal: str | None, pattern: str | None, case: str) -> Needle:
    """Return the needle of a search, from either ``literal`` or ``pattern``.

    Args:
        literal: the text to find. Each run of white space inside it stands for any white space.
        pattern: an RE2 pattern, where ``literal`` is None.
        case: ``exact`` or ``fold``.

    Raises:
        ContextError: ``invalid_pattern``.
    """
    needle_text = utf8.without_surrogates(pattern or "" if literal is None else literal)
    if literal is not None and _INNER_SPACE.search(needle_text):
        needle_text, literal = _INNER_SPACE.sub(r"[\\s\\x{a0}]+", _QUOTED.sub(r"\\\g<0>", needle_text)), None
    if literal is not None and case == "exact" and utf8.REPLACEMENT not in needle_text:
        return LiteralNeedle(needle_text.encode("utf-8"))
    import re2

    options = re2.Options()
    options_by_name = {"case_sensitive": case == "exact", "literal": literal is not None, **_OPTIONS}
    for option, value in options_by_name.items():
        setattr(options, option, value)
    if literal is None and _ANY_BYTE.search(needle_text):
        raise _invalid(needle_text, r"\C, a single byte, is not to be had: characters are matched")
    try:
        regexp = re2.compile(needle_text if literal is not None else f"(?m){needle_text}", options)
    except re2.error as problem:
        reason = problem.args[0] if problem.args else str(problem)
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise _invalid(needle_text, reason.replace("(?m)", "", 1)) from None
    re2.purge()  # re2 would keep up to 128 compiled patterns, each with its memory
    if regexp.programsize > MOST_INSTRUCTIONS:
        raise _invalid(needle_text, "it is too big: repeat less, or narrower classes")
    return PatternNeedle(regexp, source=needle_text if pattern is not None and "(" in needle_text else "", case=case)


def groups(
    view: ByteWindow, needle: Needle, span: DocumentSpan, start: int, stop: int
) -> list[str | None] | dict[str, str | None]:
    """Return the texts of a pattern's groups in a match: by name where groups have names, else in order.

    For example, ``(\\d+) of (\\d+)`` in ``3 of 7`` gives ``["3", "7"]``. Empty for a literal or a pattern without
    groups.
    """
    if not isinstance(needle, PatternNeedle) or not needle.source:
        return []
    regexp = _capturing(needle.source, needle.case)
    if not regexp.groups:
        return []
    low, high = max(span.at, start - _AROUND), min(span.end, stop + _AROUND)
    match = regexp.match(needle.readable(view.read(low, high)), start - low)
    if match is None:
        return []
    texts = [None if each is None else utf8.decode(each) for each in match.groups()]
    names = {number: name for name, number in regexp.groupindex.items()}
    named = {names[number]: text for number, text in enumerate(texts, 1) if number in names}
    return named or texts


@lru_cache(maxsize=32)
def _capturing(pattern: str, case: str) -> Any:
    """Return a pattern that keeps its groups."""
    import re2

    options = re2.Options()
    for option, value in {"case_sensitive": case == "exact", **_OPTIONS, "never_capture": False}.items():
        setattr(options, option, value)
    regexp = re2.compile(f"(?m){pattern}", options)
    re2.purge()
    return regexp


def matches(
    view: ByteWindow,
    needle: Needle,
    start: int,
    guard: Guard,
    each: Each = "occurrence",
    *,
    spans: Sequence[DocumentSpan] | None = None,
) -> Iterator[tuple[int, int]]:
    """Yield ``(start, stop)`` of each match from ``start`` on, in bytes of the window. Matches do not overlap.

    With ``spans``, only these documents are searched.
    With ``each="line"``, only the first of the matches that start in one line is yielded.
    Raises: OutOfTime, ContextError ``unreadable``.
    """
    step = _NARROW if isinstance(needle, PatternNeedle) else PIECE
    for span in view.spans if spans is None else spans:
        if span.end < start or span.at == span.end:
            continue
        at, skipping = max(start, span.at), False
        while at < span.end:
            guard.check()
            began = time.monotonic()
            window = _Window(view, span, at, step, needle)
            yield from window.matches(guard, each, skipping)
            at, skipping = window.next, window.skipping
            step = PIECE if window.again else _next_step(step, time.monotonic() - began)


def occurrences(view: ByteWindow, literal: LiteralNeedle, guard: Guard) -> Iterator[int]:
    """Yield the number of occurrences so far, piece by piece, of a literal that does not overlap itself.

    Raises: OutOfTime, ContextError ``unreadable``.
    """
    total, more = 0, len(literal.data) - 1
    for span in view.spans:
        for at in range(span.at, span.end, PIECE):
            guard.check()
            total += view.read(at, min(at + PIECE + more, span.end)).count(literal.data)
            yield total


class _Window:
    """The ``step`` bytes of a span from ``at`` on, in which matches may start, and the bytes after them.

    After ``matches``, ``next`` is the start of the next piece. ``skipping`` is whether the rest of a line is to be
    skipped there. ``again`` is whether a match starts there that may be longer than this piece showed.
    """

    def __init__(self, view: ByteWindow, span: DocumentSpan, at: int, step: int, needle: Needle) -> None:
        low, high = max(span.at, at - _AROUND), min(span.end, at + step + needle.reach + _AROUND)
        raw = view.read(low, high)
        before = utf8.whole_start(raw) if low > span.at else 0
        self._final = high == span.end
        raw = raw[before : None if self._final else utf8.whole_end(raw)]
        self._raw, self._low, self._needle = raw, low + before, needle
        self._text = needle.readable(raw)
        self._begin = self._inside(at - self._low)
        self._stop = len(self._text) if self._final else _last_character(self._text)
        edge = len(raw) if self._final else utf8.whole_end(raw[: at - self._low + step])
        self._edge = self._inside(edge)
        self.next, self.skipping, self.again = span.end, False, False

    def matches(self, guard: Guard, each: Each, skipping: bool) -> Iterator[tuple[int, int]]:
        """Yield the matches that start in this piece."""
        at: int | None = self._begin
        if skipping:
            at = self._after_line(self._begin)
        while at is not None and at <= self._stop:
            guard.check()
            match = self._needle.find(self._text, at, self._stop)
            if match is None or (match[0] >= self._edge and not self._final):
                break
            start, stop = match
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
        """Return the place after the end of the line at ``at``; None where the piece does not hold that end."""
        end = utf8.LINE_END_BYTES.search(self._text, at)
        return None if end is None or (end.end() == len(self._text) and not self._final) else end.end()

    def _inside(self, raw: int) -> int:
        """Return the place in the readable text of a place in the raw bytes."""
        return raw if self._text is self._raw else len(utf8.decode(self._raw[:raw]).encode("utf-8"))

    def _outside(self, at: int) -> int:
        """Return the place in the byte window of a place in the readable text."""
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
