"""The one repair: a plain top-level name or description that is not YAML is put in quotes.

Authors write ``description: Use when: ...``, and begin descriptions with a backtick, ``@`` or ``[``. Where the
frontmatter is not YAML, such a value is quoted and the same parser reads the text again. No other guess is made. A
value that the second parse does not return exactly as it was quoted is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rlm.skills.findings import Finding, finding
from rlm.skills.frontmatter import FIRST_LINE, FrontmatterField, NotYaml, fields_of

_LINE = re.compile(r"(?P<key>name|description):(?P<gap> +)(?P<value>\S.*)")
_COLON = re.compile(r":(?:[ \t]|$)", re.MULTILINE)


@dataclass(frozen=True)
class _QuotedValue:
    """A value that was put in quotes: its field, its place, and the text that the parse must return."""

    key: str
    line: int
    column: int
    text: str


def fields_or_repaired(text: str) -> tuple[dict[str, FrontmatterField], tuple[Finding, ...]]:
    """Return the fields of a frontmatter, repaired where that helps, and a finding for each repair.

    Raises:
        Refused: the text is not YAML and the repair does not help, or it is YAML that a frontmatter may not hold.
    """
    try:
        return fields_of(text), ()
    except NotYaml as problem:
        lines, quoted = _with_quotes(text.split("\n"))
        if not quoted:
            raise problem.refused from None
        try:
            fields = fields_of("\n".join(lines))
        except NotYaml:
            raise problem.refused from None
        if not all(_is_unchanged(fields, value) for value in quoted):
            raise problem.refused from None
        return fields, tuple(
            finding("repaired", problem.reason, line=value.line, column=value.column) for value in quoted
        )


def _with_quotes(lines: list[str]) -> tuple[list[str], list[_QuotedValue]]:
    """Return the lines with such values in single quotes, and the values that were quoted."""
    quoted: list[_QuotedValue] = []
    out = list(lines)
    for number, end, match in _plain_values(lines):
        value = [match["value"], *lines[number + 1 : end]]
        if not _needs_quotes("\n".join(value)):
            continue
        column = match.start("value") + 1
        quoted.append(_QuotedValue(match["key"], number + FIRST_LINE, column, _folded(value)))
        inside = [part.replace("'", "''") for part in value]
        inside[-1] = inside[-1].rstrip(" \t") + "'"
        out[number:end] = [f"{match['key']}:{match['gap']}'{inside[0]}", *inside[1:]]
    return out, quoted


def _plain_values(lines: list[str]) -> Iterator[tuple[int, int, re.Match[str]]]:
    """Yield first line, line after the last, and match of each top-level name or description."""
    for number, line in enumerate(lines):
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        end = number + 1
        while end < len(lines) and lines[end][:1] == " " and lines[end].strip():
            end += 1
        yield number, end, match


def _needs_quotes(value: str) -> bool:
    first = value[0]
    if first in "`@[":
        return True
    return first not in "'\"|>{}&*!%#]," and not re.match(r"[-?](?:\s|$)", value) and bool(_COLON.search(value))


def _folded(lines: list[str]) -> str:
    return " ".join(line.strip(" \t") for line in lines)


def _is_unchanged(fields: Mapping[str, FrontmatterField], value: _QuotedValue) -> bool:
    parsed = fields.get(value.key)
    return (
        parsed is not None and parsed.value == value.text and (parsed.line, parsed.column) == (value.line, value.column)
    )
