"""Foreign text in a request: text that neither the host nor the requesting model wrote.

Such text is the result of a tool, a part of a context, the answer of a child or of another model, an item that is
reduced, an error. It stands in a block of its own::

    <data-482913 name="page" kind="text" size="1204">
    ...
    </data-482913>

Four rules keep the blocks of a text apart:

1. The digits of the fence come from a digest of the blocks, and occur nowhere else in the text.
2. A label holds names from a safe alphabet, a kind from a fixed list, and numbers.
3. Characters that hide text or look like line ends are written as ``\\u{2028}``, inside JSON as ``\\u2028``.
4. The first character of what looks like a fence, or like a marker of turns (``<|im_start|>``), is written likewise.

All of this can be undone: ``\\u{5c}`` stands for a backslash before ``u{...}`` in the original.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from rlm.model.wire_names import safe_name

MAX_NAME = 80
"""Characters of a name in a label; the last ones, which hold the name of a file."""

SHORT = 200
"""Characters of JSON up to which a value is written as one row of a block, not as a block of its own."""

_HIDDEN = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls without line feed and tab; U+0085 is among them
    r"\u2028\u2029"  # line and paragraph separators
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction of writing
    r"\u180e\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"  # without width or glyph
    r"\U000e0000-\U000e0fff"  # tags and further variation selectors
    r"\ud800-\udfff"  # lone surrogates
)
"""Joiners (U+200C, U+200D), soft hyphens and variation selectors of emoji stay: scripts and signs need them."""

_MARKS = (
    r"<(?=/?data-[0-9])"  # a fence
    r"|<(?=[|\uff5c][^<>\n]{1,60}[|\uff5c]>|(?:start|end)_of_turn>)|\[(?=/?INST\])"  # a turn in a chat template
)
"""The first characters of what has a meaning of its own: a local model's server may read a marker of turns as one."""

_IN_UNIT = re.compile(rf"[{_HIDDEN}]|\\(?=u\{{[0-9a-f]{{1,6}}\}})")
_IN_TEXT = re.compile(rf"{_IN_UNIT.pattern}|{_MARKS}")
_IN_JSON = re.compile(rf"[{_HIDDEN}]|{_MARKS}")
_IN_ROW = re.compile(rf"{_IN_TEXT.pattern}|\n")
_NO_LABEL = re.compile(r"[^\w./:\[\]\"-]")

_DIGITS = {16: 8, 10: 6}
"""Digits of a fence at first, by base. Decimal digits cost fewer tokens: three of them are one."""


def fence_of(label: str, *bodies: str, base: Literal[10, 16] = 16) -> str:
    """Return digits of the digest of a text that do not occur in the text, so that the text cannot close its fence.

    Args:
        label: of the block, or of all blocks that have this fence.
        bodies: every text in which the digits must not occur.
        base: hexadecimal digits, or decimal ones.
    """
    digest = hashlib.sha256("\n".join((label, *bodies)).encode("utf-8", "surrogatepass")).hexdigest()
    size = _DIGITS[base]
    fence = _digits(digest, base)[:size]
    while any(fence in body for body in bodies):
        digest = hashlib.sha256(digest.encode()).hexdigest()
        size += 4
        fence = _digits(digest, base)[:size]
    return fence


def _digits(digest: str, base: int) -> str:
    return digest if base == 16 else f"{int(digest, 16):078d}"[::-1]


def visible(text: str) -> str:
    """The text with characters that hide something written out, as ``\\u{2028}``."""
    return _IN_UNIT.sub(_escape, text)


def words(text: str) -> str:
    """The same for text outside of blocks, in which nothing looks like a fence."""
    return _IN_TEXT.sub(_escape, text)


def json_text(value: Any, *, compact: bool = False) -> str:
    """A value as one line of JSON, with characters that hide something written as JSON writes them: ``\\u2028``."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":") if compact else None)
    return _IN_JSON.sub(_json_escape, text)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{{{ord(match[0]):x}}}"


def _json_escape(match: re.Match[str]) -> str:
    escaped = json.dumps(match[0])[1:-1]
    return escaped if escaped.startswith("\\") else f"\\u{ord(match[0]):04x}"


@dataclass(frozen=True, slots=True)
class FencedText:
    """One block of a third party's text, before it has its fence.

    ``body`` is the text that is shown, ``size`` the characters of the original, ``shown`` the number of them that are
    shown where some are left out. ``crlf``: every line of the original ends with CR LF.
    """

    name: str
    kind: str
    size: int
    body: str
    shown: int | None = None
    crlf: bool = False

    @property
    def label(self) -> str:
        """The attributes of the block's first line."""
        parts = [f'name="{safe_name(self.name)[-MAX_NAME:]}" kind="{self.kind}" size="{self.size}"']
        parts += [] if self.shown is None else [f'shown="{self.shown}"']
        parts += ['lines="crlf"'] if self.crlf else []
        return " ".join(parts)


def text_block(name: str, text: str, *, kind: str = "text") -> FencedText:
    """A block with a whole text."""
    ends = text.count("\r\n")
    crlf = ends > 0 and ends == text.count("\n") == text.count("\r")
    return FencedText(name, kind, len(text), words(text.replace("\r\n", "\n") if crlf else text), crlf=crlf)


def value_block(name: str, value: Any, most: int | None = None) -> FencedText:
    """A block with a value as JSON, of which at most ``most`` characters are shown."""
    text = json_text(value)
    if most is None or len(text) <= most:
        return FencedText(name, kind_of(value), len(text), text)
    return FencedText(name, kind_of(value), len(text), text[:most], shown=most)


def rows_block(name: str, rows: Sequence[str]) -> FencedText:
    """A block with one row for each of several small things."""
    body = "\n".join(rows)
    return FencedText(name, "1 row" if len(rows) == 1 else f"{len(rows)} rows", len(body), body)


def row(label: str, value: Any, most: int | None = None) -> str:
    """Return a value in one row. It cannot leave the row, because JSON text has no line ends.

    Args:
        label: the name of the value, one line.
        most: characters of the value's JSON that are shown; where some are left out, a note before them says so.
    """
    text = json_text(value)
    if most is None or len(text) <= most:
        return f"{label} = {text}"
    items = f"{len(value)} items, " if isinstance(value, list | dict) else ""
    return f"{label} ({items}{len(text)} characters, shown: the first {most}) = {text[:most]}"


def row_label(text: str) -> str:
    """A name that a plan gave, as it may stand before a row: letters of any script, digits and a few signs."""
    return _NO_LABEL.sub("_", text)[:MAX_NAME]


def text_row(text: str) -> str:
    """A text in one row: its line ends are written out too."""
    return _IN_ROW.sub(_escape, text)


@dataclass(frozen=True, slots=True)
class FencedRow:
    """One of several values: the ``name`` of its own block, its ``label`` in a shared one, its ``kind`` if a text."""

    name: str
    label: str
    kind: str
    value: Any


def blocks_of(rows: Iterable[FencedRow]) -> Iterator[tuple[FencedText, list[FencedRow]]]:
    """Blocks of several values in order, with the rows in each. Neighbours that are short share one: it costs less."""
    lines = ((each, row(each.label, each.value)) for each in rows)
    for short, run in groupby(lines, lambda pair: len(pair[1]) <= SHORT):
        if short:
            pairs = list(run)
            yield _shared(pairs), [each for each, _ in pairs]
        else:
            for each, _ in run:
                yield _own_block(each), [each]


def _shared(pairs: list[tuple[FencedRow, str]]) -> FencedText:
    first, last = pairs[0][0].name, pairs[-1][0].name
    name = first if first == last else f"{first}-to-{last}"
    return rows_block(name, [line for _, line in pairs])


def _own_block(each: FencedRow) -> FencedText:
    if isinstance(each.value, str):
        return text_block(each.name, each.value, kind=each.kind)
    return value_block(each.name, each.value)


def kind_of(value: Any) -> str:
    """Return the kind of a value for a label, for example ``list of 3``."""
    if isinstance(value, list):
        return f"list of {len(value)}"
    if isinstance(value, dict):
        return "object"
    return "text" if isinstance(value, str) else "value"


def message(*parts: str | FencedText) -> str:
    """The text of one message: words as they are, and blocks, all in one fence that occurs in none of them."""
    shown: list[str | FencedText] = []
    for part in parts:
        if isinstance(part, str) and shown and isinstance(shown[-1], str):
            shown[-1] += part
        else:
            shown.append(part)
    shown = [part if isinstance(part, FencedText) else words(part) for part in shown]
    labels = [part.label for part in shown if isinstance(part, FencedText)]
    if not labels:
        return "".join(map(str, shown))
    bodies = [part.body if isinstance(part, FencedText) else part for part in shown]
    fence = fence_of("\n".join(labels), *labels, *bodies, base=10)
    text = ""
    for part in shown:
        text += part if isinstance(part, str) else _in_fence(part, fence, text[-1:])
    return text


def _in_fence(block: FencedText, fence: str, before: str) -> str:
    start = "" if before in ("", "\n") else "\n"
    return f"{start}<data-{fence} {block.label}>\n{block.body}\n</data-{fence}>\n"
