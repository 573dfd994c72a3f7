"""A long body in sections. Every character is in exactly one of them, in order, and none is over the limit.

Sections begin at headings. Text without headings, or too long between two of them, is split between lines.
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
    """A part of a body. ``title`` joins the headings in it, shortened to 200 characters."""

    title: str
    text: str


def sections_of(body: str, limit: int) -> tuple[Section, ...]:
    """Return the sections of a body, each at most ``limit`` bytes.

    The result is empty where a single line is longer, or where there are more than ``MAX_SECTIONS`` sections.
    """
    parts: list[list[_TextPiece]] = []
    free_bytes = 0
    for piece in _pieces(body, limit):
        if piece.size > limit:
            return ()
        if piece.size > free_bytes:
            parts.append([])
            free_bytes = limit
        parts[-1].append(piece)
        free_bytes -= piece.size
    if len(parts) > MAX_SECTIONS:
        return ()
    return tuple(Section(_title(part), "".join(piece.text for piece in part)) for part in parts)


@dataclass(frozen=True)
class _TextPiece:
    """The text below one heading, or a run of its lines where that text is too long."""

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
    """Yield each line with its end, and its heading where it is one. Lines in a block of code are no headings."""
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
