"""The split of a SKILL.md's bytes into frontmatter and body. This module knows no YAML and no Markdown.

Only LF, CR LF and CR end a line. The fence is a whole line ``---`` at column 0, and blanks may follow it. The first
line of the file opens it. U+0085, U+2028, U+2029 and form feed are ordinary characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rlm.skills.findings import Finding, Refused, finding, quoted, refusal
from rlm.skills.limits import MAX_FRONTMATTER_BYTES

BOM = b"\xef\xbb\xbf"
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
"""Characters that a frontmatter may not hold: controls other than tab, line ends and U+0085, and code points that are
no characters.
"""

_IN_BODY = re.compile("[\x01-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f]")
_HIDDEN = re.compile("[\u200b\u2060-\u2064\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
_FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)
_UNMARKED = (
    (re.compile(rb"\A(?:\x00{3}[\t\n\r -~]){2}|\A(?:[\t\n\r -~]\x00{3}){2}"), "UTF-32"),
    (re.compile(rb"\A(?:\x00[\t\n\r -~]){2}|\A(?:[\t\n\r -~]\x00){2}"), "UTF-16"),
)
_SOME_UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_NOT_CP1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
_ENCODINGS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)


@dataclass(frozen=True)
class Source:
    """The two halves of a file, with LF as the only line end, and the findings about its bytes."""

    frontmatter: str
    body: str
    body_line: int
    findings: tuple[Finding, ...]


def source_of(data: bytes) -> Source:
    """Return the halves of a file.

    Raises:
        Refused: ``not_utf8``, ``control_character``, ``no_frontmatter``, ``unclosed_frontmatter``,
            ``frontmatter_too_big``.
    """
    findings = []
    if data.startswith(BOM):
        findings.append(finding("bom", line=1, column=1))
    text = _decoded(data)
    nul = text.find("\0")
    if nul >= 0:
        raise _at(text, nul, "control_character", "NUL: this is no text file")
    opening = _FENCE.match(text)
    if opening is None:
        raise _no_fence(text)
    closing = _FENCE.search(text, opening.end() + 1)
    if closing is None:
        raise refusal("unclosed_frontmatter", line=1, column=1)
    frontmatter = text[opening.end() + 1 : closing.start()]
    size = len(frontmatter.encode())
    if size > MAX_FRONTMATTER_BYTES:
        raise refusal("frontmatter_too_big", f"{size:,} bytes; at most {MAX_FRONTMATTER_BYTES:,}", line=1, column=1)
    control = CONTROL.search(frontmatter)
    if control is not None:
        raise _at(text, opening.end() + 1 + control.start(), "control_character", _code_point(control[0]))
    findings.extend(_odd_characters(text, closing.end()))
    body_line = text.count("\n", 0, closing.end()) + 2
    return Source(frontmatter, text[closing.end() + 1 :], body_line, tuple(findings))


def _decoded(data: bytes) -> str:
    """Return the text after one byte order mark, with LF as the only line end."""
    start = len(BOM) if data.startswith(BOM) else 0
    for mark, encoding in _ENCODINGS:
        if data.startswith(mark):
            raise refusal("not_utf8", f"{encoding}, by the byte order mark at offset 0", line=1, column=1)
    for pattern, encoding in _UNMARKED:
        if pattern.match(data):
            raise refusal("not_utf8", f"{encoding} without a byte order mark, from offset 0", line=1, column=1)
    try:
        text = data[start:].decode("utf-8")
    except UnicodeDecodeError as problem:
        raise _undecodable(data, start + problem.start) from None
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _undecodable(data: bytes, offset: int) -> Refused:
    before = data[:offset].decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    guess = "; it looks like Windows-1252 (cp1252)" if _is_cp1252(data) else ""
    detail = f"byte 0x{data[offset]:02x} at offset {offset}{guess}"
    line = before.count("\n") + 1
    return refusal("not_utf8", detail, line=line, column=len(before) - before.rfind("\n"))


def _is_cp1252(data: bytes) -> bool:
    """Whether the bytes hold letters of Windows-1252, and no letter beyond ASCII that is UTF-8."""
    return _SOME_UTF8.search(data) is None and _NOT_CP1252.search(data) is None


def _no_fence(text: str) -> Refused:
    """Return the refusal for a first line that is no fence. Frontmatter that begins later is never taken for a body."""
    first = text.split("\n", 1)[0]
    if not first.strip():
        detail = "the first line is blank"
    elif first.startswith("\ufeff"):
        detail = "there is a second byte order mark"
    elif first.strip() == "---":
        detail = "blanks stand before ---"
    elif re.fullmatch(r"-{2,}\s*", first):
        detail = f"{first.strip()} has {len(first.strip())} hyphens, not 3"
    else:
        detail = f"it is {quoted(first, 40)}"
    return refusal("no_frontmatter", detail, line=1, column=1)


def _odd_characters(text: str, body: int) -> Iterator[Finding]:
    """Yield a finding for the first control character of the body, and for the first hidden one of the file."""
    control = _IN_BODY.search(text, body)
    if control is not None:
        yield _at(text, control.start(), "control_in_body", _code_point(control[0])).finding
    hidden = _HIDDEN.search(text)
    if hidden is not None:
        yield _at(text, hidden.start(), "hidden_text", _code_point(hidden[0])).finding


def _at(text: str, place: int, code: str, detail: str) -> Refused:
    line = text.count("\n", 0, place) + 1
    return refusal(code, detail, line=line, column=place - text.rfind("\n", 0, place))


def _code_point(character: str) -> str:
    return f"U+{ord(character):04X}"
