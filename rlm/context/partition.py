"""The cuts of a text into parts: by characters, tokens, lines, headings or documents.

Without overlap, the parts one after the other are the text. A part is a pair of byte positions, so no text is copied.
No part is empty: a document without text gives no part.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from rlm.compiler.tokens.token_counter import TokenCounter
from rlm.context import utf8
from rlm.context.actions import Arguments
from rlm.context.arguments import DEFAULT_SIZES
from rlm.context.byte_window import ByteWindow
from rlm.context.limits import Guard

Part = tuple[int, int]

TITLE_CHARACTERS = 80

_HEADING = re.compile(rb"\n {0,3}(?:(#{1,6})(?=[ \t\n]|\Z)|(`{3,}|~{3,}))([^\n]*)")
"""The pattern starts with the end of the line before, because a search for one byte is quick."""
_BREAK = re.compile(r"(?P<line>[\r\n]+)|[^\S\r\n]+")
_LOOK_BACK = 5
"""A part by tokens ends at a line end, or else at a space, where its last fifth holds one."""

_TOKENIZED_AT_ONCE = 32 * 1024
"""Characters that are counted in one call of the tokenizer."""

_FULL, _CAREFUL = 0.95, 0.98
"""A part is full from ``_FULL`` of its tokens on. A guess from the last count is multiplied by ``_CAREFUL``."""


def parts(view: ByteWindow, arguments: Arguments, guard: Guard, counter: Callable[[], TokenCounter]) -> Iterator[Part]:
    """Yield the parts in order. Raises: OutOfTime, ContextError ``unreadable``."""
    by = arguments["by"]
    size, overlap = arguments.get("size", DEFAULT_SIZES.get(by, 1)), arguments["overlap"]
    if by == "headings":
        return _between(headings(view, arguments["level"], guard), view.size)
    if by == "tokens":
        return _by_tokens(view, size, overlap, guard, counter())
    if by == "characters":
        return _by_characters(view, size, overlap, guard)
    if by == "documents":
        return _grouped([span.at for span in view.filled], size, overlap, view.size)
    return _grouped(line_starts(view, guard), size, overlap, view.size)


def _by_characters(view: ByteWindow, size: int, overlap: int, guard: Guard) -> Iterator[Part]:
    number = 0
    start = 0
    while start < view.size:
        stop = view.byte_of_character(number + size, guard)
        yield start, stop
        if stop >= view.size:
            return
        number += size - overlap
        start = view.byte_of_character(number, guard) if overlap else stop


def _between(starts: Iterator[int], end: int) -> Iterator[Part]:
    """Yield the text from each start to the next; the text before the first start is a part too."""
    begin = 0
    for start in starts:
        if start > begin:
            yield begin, start
        begin = start
    if begin < end:
        yield begin, end


def _grouped(starts: Any, size: int, overlap: int, end: int) -> Iterator[Part]:
    """Yield groups of ``size`` items that start at ``starts``; each shares ``overlap`` items with the group before."""
    remaining = iter(starts)
    group: deque[int] = deque(islice(remaining, size))
    while group:
        following = list(islice(remaining, size - overlap))
        yield group[0], following[0] if following else end
        if not following:
            return
        group = deque([*islice(group, size - overlap, None), *following])


# -- lines and headings -------------------------------------------------------------------------------


def line_starts(view: ByteWindow, guard: Guard) -> Iterator[int]:
    """Yield the place where each line starts."""
    fresh = True
    for at, raw, ends in view.pieces(0, guard):
        if fresh:
            yield at
        for place in utf8.after_line_ends(raw):
            if place < len(raw):
                yield at + place
        fresh = ends or utf8.ends_line(raw)


def headings(view: ByteWindow, level: int, guard: Guard) -> Iterator[int]:
    """Yield the places of Markdown headings (``#`` to ``######``) up to a level, except those in fenced code."""
    fence = b""
    for at, raw, first in _whole_lines(view, guard):
        fence = b"" if first else fence
        for match in _HEADING.finditer(b"\n" + raw.replace(b"\r", b"\n")):
            marks, ticks, rest = match.groups()
            if fence:
                if ticks and ticks.startswith(fence) and not rest.strip():
                    fence = b""
            elif ticks:
                fence = b"" if ticks[:1] == b"`" and b"`" in rest else ticks
            elif len(marks) <= level:
                yield at + match.start()


def _whole_lines(view: ByteWindow, guard: Guard) -> Iterator[tuple[int, bytes, bool]]:
    """Yield ``(position, lines, whether they begin a document)``; the first piece of a line that is longer."""
    at, first = 0, True
    while at < view.size:
        guard.check()
        raw, ends = view.piece(at)
        used = len(raw) if ends else max(raw.rfind(b"\n"), raw.rfind(b"\r")) + 1
        yield at, raw[: used or None], first
        at, first = (at + used, ends) if used else _next_line(view, at + len(raw), guard)


def _next_line(view: ByteWindow, at: int, guard: Guard) -> tuple[int, bool]:
    """Return the place after a line that is longer than a piece, and whether a document starts there."""
    for start, raw, ends in view.pieces(at, guard):
        after = next(utf8.after_line_ends(raw), len(raw) if ends else None)
        if after is not None:
            return start + after, ends and after == len(raw)
    return view.size, True


def named_part(view: ByteWindow, arguments: Arguments, number: int, start: int, stop: int) -> dict[str, str]:
    """Return ``name`` and ``begins`` of a part.

    The name is that of its first document or its heading; of other parts it is ``part-1``, ``part-2`` and so on, after
    the name of the document where there is one. ``begins`` is its first line that is not blank, shortened.
    """
    text = utf8.decode(view.read(start, min(stop, start + 4 * TITLE_CHARACTERS)))
    begins = next((line.strip()[:TITLE_CHARACTERS] for line in utf8.LINE_END.split(text) if line.strip()), "")
    document = view.spans[view.span_index(start)].document.name
    if arguments["by"] == "documents" and document is not None:
        return {"name": document[:TITLE_CHARACTERS], "begins": begins}
    if arguments["by"] == "headings":
        return {"name": begins, "begins": _second_line(text)}
    name = f"part-{number + 1}" if document is None else f"{document[:TITLE_CHARACTERS]} part-{number + 1}"
    return {"name": name, "begins": begins}


def _second_line(text: str) -> str:
    lines = [line.strip() for line in utf8.LINE_END.split(text) if line.strip()]
    return lines[1][:TITLE_CHARACTERS] if len(lines) > 1 else ""


# -- tokens -------------------------------------------------------------------------------------------


def _by_tokens(view: ByteWindow, size: int, overlap: int, guard: Guard, counter: TokenCounter) -> Iterator[Part]:
    """Yield parts of at most ``size`` counted tokens; a single character may have more."""
    start, done, per_token = 0, 0, 4.0
    while done < view.size:
        guard.check()
        text = _text_from(view, start, int(size * per_token * 2) + 8)
        length = _fitting_length(text, size, per_token, counter, guard)
        if start + utf8.encoded_size(text[:length]) < view.size:
            length = _natural_end(text, length)
        stop = start + utf8.encoded_size(text[:length])
        if stop <= done:  # the part is all overlap: cut again without it
            start = done
            continue
        yield start, stop
        per_token, done = max(0.5, length / size), stop
        start = stop - _overlap_bytes(text[:length], overlap, counter, guard)


def _text_from(view: ByteWindow, start: int, characters: int) -> str:
    """Return some characters from a place on, in the form of ``utf8.escaped``."""
    raw = view.read(start, start + 4 * characters)
    if start + len(raw) < view.size:
        raw = raw[: utf8.whole_end(raw)]
    return utf8.escaped(raw)[:characters]


def _tokens(text: str, counter: TokenCounter, guard: Guard) -> int:
    """Return the tokens of a text. A long text is counted in pieces, because a running tokenizer cannot be stopped."""
    total = 0
    for start in range(0, len(text), _TOKENIZED_AT_ONCE):
        guard.check()
        total += counter.count(utf8.without_surrogates(text[start : start + _TOKENIZED_AT_ONCE]))
    return total


def _fitting_length(text: str, most: int, per_token: float, counter: TokenCounter, guard: Guard) -> int:
    """Return the length of the longest beginning with at most ``most`` tokens, nearly; at least 1 character."""
    fits, over = 0, len(text) + 1
    length = min(len(text), max(1, int(most * per_token)))
    while fits < length < over:
        tokens = _tokens(text[:length], counter, guard)
        if tokens > most:
            over = length
        else:
            fits = length
            if tokens >= most * _FULL:
                break
        guess = int(length * most / max(tokens, 1) * _CAREFUL)
        length = min(over - 1, max(fits + 1, guess))
    return max(fits, 1)


def _natural_end(text: str, length: int) -> int:
    """Return the last line end in the last fifth, or else the last white space there, or else ``length``."""
    best, at_line = length, False
    for match in _BREAK.finditer(text, length - length // _LOOK_BACK, length):
        if match["line"] or not at_line:
            best, at_line = match.end(), bool(match["line"])
    return best


def _overlap_bytes(text: str, overlap: int, counter: TokenCounter, guard: Guard) -> int:
    """Return the bytes at the end of a part that hold at most ``overlap`` tokens; fewer than the whole part."""
    if not overlap:
        return 0
    length = min(len(text) - 1, len(text) * overlap // max(1, _tokens(text, counter, guard)))
    while length and _tokens(text[-length:], counter, guard) > overlap:
        length = length * 9 // 10
    return utf8.encoded_size(text[-length:]) if length else 0
