"""Bytes that should be UTF-8, their characters and their lines.

A byte that belongs to no character counts as a character of its own, U+FFFD. So a text has the same number of
characters however it is cut, provided that no character is cut. Places in characters and bytes convert both ways.

A line ends with CR LF, LF or CR, as in Python's universal newlines. Other separators of Unicode do not end a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_ESCAPED = re.compile("[\udc80-\udcff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
LINE_END = re.compile("\r\n|\n|\r")
LINE_END_BYTES = re.compile(rb"\r\n|\n|\r")
_AFTER = 3
"""The most bytes of a character after its first."""


def decode(raw: bytes) -> str:
    """Return the text of some bytes, free of surrogates."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return _ESCAPED.sub(REPLACEMENT, escaped(raw))


def without_surrogates(text: str) -> str:
    """Return the text with U+FFFD in place of each lone surrogate."""
    return text if text.isascii() else _SURROGATE.sub(REPLACEMENT, text)


def escaped(raw: bytes) -> str:
    """Return the text with a surrogate for each byte that belongs to no character. ``encoded_size`` counts it as one
    byte.
    """
    return raw.decode("utf-8", "surrogateescape")


def encoded_size(text: str) -> int:
    """Return the bytes of an ``escaped`` text."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))


def undecodable_bytes(raw: bytes) -> int:
    """Return the number of bytes that belong to no character."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return len(_ESCAPED.findall(escaped(raw)))
    return 0


def whole_end(raw: bytes) -> int:
    """Return the number of bytes of ``raw`` before a character that may go on after it.

    For example ``whole_end("aé".encode()[:2])`` is 1, because the first byte of ``é`` is not whole.
    """
    for back in range(1, min(_AFTER, len(raw)) + 1):
        byte = raw[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(raw) - back if needed > back else len(raw)
        if byte < 0x80:
            break
    return len(raw)


def whole_start(raw: bytes) -> int:
    """Return the number of bytes at the start of ``raw`` that may belong to a character that began before it."""
    count = 0
    while count < min(_AFTER, len(raw)) and 0x80 <= raw[count] < 0xC0:
        count += 1
    return count


def line_ends(raw: bytes) -> int:
    """Return the number of line ends."""
    returns = raw.count(b"\r")
    return raw.count(b"\n") + (returns - raw.count(b"\r\n") if returns else 0)


def after_line_ends(raw: bytes) -> Iterator[int]:
    """Yield the place after each line end."""
    return (match.end() for match in LINE_END_BYTES.finditer(raw))


def ends_line(raw: bytes) -> bool:
    """Whether the last byte ends a line."""
    return raw[-1:] in (b"\n", b"\r")
