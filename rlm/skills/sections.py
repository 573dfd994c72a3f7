"""A long body in parts: every character of it in exactly one, in order, none over the limit.

Parts begin at headings; what has none, or is too long between two of them, is parted between lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_HEADING = re.compile(r" {0,3}#{1,6}(?=[ \t]|$)")
_AFTER_LINE = re.compile(r"(?<=\n)")
_CODE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})")
MAX_SECTIONS = 256
_TITLES = 200


@dataclass(frozen=True)
class Section:
    """A part of a body; ``title`` holds the headings in it, most of them where they are many."""

    title: str
    text: str


def sections_of(body: str, limit: int) -> tuple[Section, ...]:
    """The parts of a body, each at most ``limit`` bytes; none where a single line is longer, or they are too many."""
    parts: list[list[_TextPiece]] = []
    room = 0
    for piece in _pieces(body, limit):
        if piece.size > limit:
            return ()
        if piece.size > room:
            parts.append([])
            room = limit
        parts[-1].append(piece)
        room -= piece.size
    if len(parts) > MAX_SECTIONS:
        return ()
    return tuple(Section(_title(part), "".join(piece.text for piece in part)) for part in parts)


@dataclass(frozen=True)
class _TextPiece:
    """What stands below one heading, or a run of its lines where that is too long."""

    title: str
    text: str
    size: int


def _pieces(body: str, limit: int) -> Iterator[_TextPiece]:
    title, lines, size = "", list[str](), 0
    for line, heading in _lines(body):
        length = len(line.encode())
        if lines and (heading is not None or size + length > limit):
            yield _TextPiece(title, "".join(lines), size)
            lines, size = [], 0
        if heading is not None:
            title = heading
        lines.append(line)
        size += length
    if lines:
        yield _TextPiece(title, "".join(lines), size)


def _lines(body: str) -> Iterator[tuple[str, str | None]]:
    """Each line with its end, and its heading where it is one; in a block of code nothing is."""
    code = ""
    for line in filter(None, _AFTER_LINE.split(body)):
        fence = _CODE.match(line)
        if code:
            if fence and fence["fence"].startswith(code) and not line[fence.end() :].strip():
                code = ""
            yield line, None
            continue
        if fence:
            code = fence["fence"]
        heading = _HEADING.match(line.rstrip("\n"))
        yield line, line[heading.end() :].strip().rstrip("#").rstrip() if heading else None


def _title(part: list[_TextPiece]) -> str:
    titles = "; ".join(dict.fromkeys(piece.title for piece in part if piece.title))
    return titles if len(titles) <= _TITLES else titles[: _TITLES - 1] + "…"
