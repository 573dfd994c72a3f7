"""Bytes that should be UTF-8, characters, and lines.

A byte that belongs to no character is a character of its own, U+FFFD. So every text has as many characters however
it is cut, as long as no character is cut, and characters and bytes can be counted from each other both ways.

A line ends with CR LF, LF or CR, as in Python's universal newlines; other separators of Unicode end none.
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
"""Bytes of a character after its first, at most."""


def decode(raw: bytes) -> str:
    """The text of some bytes, free of surrogates."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return _ESCAPED.sub(REPLACEMENT, escaped(raw))


def without_surrogates(text: str) -> str:
    """The text with U+FFFD for each lone surrogate."""
    return text if text.isascii() else _SURROGATE.sub(REPLACEMENT, text)


def escaped(raw: bytes) -> str:
    """The text with a surrogate for each byte that is none: ``encoded_size`` gives its bytes back."""
    return raw.decode("utf-8", "surrogateescape")


def encoded_size(text: str) -> int:
    """Bytes of an ``escaped`` text."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))


def strange(raw: bytes) -> int:
    """How many bytes belong to no character."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return len(_ESCAPED.findall(escaped(raw)))
    return 0


def whole_end(raw: bytes) -> int:
    """How many bytes of ``raw`` come before a character that may go on after it."""
    for back in range(1, min(_AFTER, len(raw)) + 1):
        byte = raw[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(raw) - back if needed > back else len(raw)
        if byte < 0x80:
            break
    return len(raw)


def whole_start(raw: bytes) -> int:
    """How many bytes at the start of ``raw`` may belong to a character that began before it."""
    count = 0
    while count < min(_AFTER, len(raw)) and 0x80 <= raw[count] < 0xC0:
        count += 1
    return count


def line_ends(raw: bytes) -> int:
    """How many line ends there are."""
    returns = raw.count(b"\r")
    return raw.count(b"\n") + (returns - raw.count(b"\r\n") if returns else 0)


def after_line_ends(raw: bytes) -> Iterator[int]:
    """Where each line end is over."""
    return (match.end() for match in LINE_END_BYTES.finditer(raw))


def ends_line(raw: bytes) -> bool:
    """Whether the last byte ends a line."""
    return raw[-1:] in (b"\n", b"\r")
