"""What the actions should say, said the slow way: the whole text in memory, Python's own slicing and ``re``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from hypothesis import strategies as st

from rlm.context.bodies import MemoryBody
from rlm.context.context import Context, ContextKind, Document

PIECES = (
    "a",
    "b",
    "ab",
    "aab",
    " ",
    "\n",
    "\r\n",
    "\r",
    "\n\n",
    "é",
    "漢字",
    "🙂",
    "x" * 30,
    "# H\n",
    "## h\n",
    "```\n",
)

texts = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)
"""Texts with line ends of all three kinds, characters of one to four bytes, and a few words."""

broken = st.lists(
    st.one_of(
        st.sampled_from(PIECES).map(str.encode), st.sampled_from([b"\x80", b"\xff", b"\xe2", b"\xf0\x9f", b"\xc3"])
    ),
    max_size=40,
).map(b"".join)
"""Bytes that are not always UTF-8."""

raws = st.one_of(texts.map(str.encode), broken)
documents = st.lists(raws, min_size=1, max_size=4)


@dataclass(frozen=True)
class Naive:
    """Some documents, each of bytes."""

    raws: list[bytes]

    @property
    def context(self) -> Context:
        members = (Document(f"d{number}", MemoryBody(raw)) for number, raw in enumerate(self.raws))
        return Context(ContextKind.DOCUMENTS, tuple(members))

    @cached_property
    def texts(self) -> list[str]:
        return [decoded(raw) for raw in self.raws]

    @cached_property
    def text(self) -> str:
        return "".join(self.texts)

    @cached_property
    def lines(self) -> list[str]:
        return [line for text in self.texts for line in lines(text)]

    def found(self, pattern: str, flags: int = 0) -> list[tuple[int, int]]:
        """Matches that do not overlap, each within one document."""
        spans, before = [], 0
        for text in self.texts:
            spans += [(before + match.start(), before + match.end()) for match in re.finditer(pattern, text, flags)]
            before += len(text)
        return spans

    def sections(self, level: int) -> list[str]:
        """What begins at Markdown headings up to a level, those in fenced code left out."""
        found = [""]
        for text in self.texts:
            fence = ""
            for line in lines(text):
                mark = re.match(r" {0,3}(`{3,}|~{3,})", line)
                if fence:
                    fence = "" if mark and line.strip() == mark[1] and mark[1].startswith(fence) else fence
                elif mark:
                    fence = mark[1]
                elif re.match(rf" {{0,3}}#{{1,{level}}}(?:[ \t\r\n]|\Z)", line):
                    found.append("")
                found[-1] += line
        return [section for section in found if section]

    def line_of(self, character: int) -> int:
        """The number, from 0, of the line that holds a character."""
        for number, line in enumerate(self.lines):
            if character < len(line):
                return number
            character -= len(line)
        return len(self.lines)


def decoded(raw: bytes) -> str:
    """Each byte that belongs to no character is U+FFFD."""
    return re.sub("[\udc80-\udcff]", "\N{REPLACEMENT CHARACTER}", raw.decode("utf-8", "surrogateescape"))


def lines(text: str) -> list[str]:
    """Lines with their ends: CR LF, LF or CR."""
    return re.findall(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z", text)
