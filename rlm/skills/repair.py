"""The one repair: a plain top-level name or description that is not YAML, put in quotes.

People write ``description: Use when: ...`` and begin descriptions with a backtick, ``@`` or ``[``. Where the
frontmatter is no YAML, such a value is quoted and the same parser reads the text again. Nothing else is guessed,
and what does not come out as exactly the text that was quoted is not accepted.
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
class _Quoted:
    """A value that was put in quotes: its field, place and the text that must come out."""

    key: str
    line: int
    column: int
    text: str


def fields_or_repaired(text: str) -> tuple[dict[str, FrontmatterField], tuple[Finding, ...]]:
    """The fields of a frontmatter, repaired where that helps, and what was repaired.

    Raises:
        Refused: it is not YAML and the repair does not help, or it is YAML that has no place here.
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
        if not all(_came_out(fields, value) for value in quoted):
            raise problem.refused from None
        return fields, tuple(
            finding("repaired", problem.said, line=value.line, column=value.column) for value in quoted
        )


def _with_quotes(lines: list[str]) -> tuple[list[str], list[_Quoted]]:
    """The lines with such values in single quotes, and what was quoted."""
    quoted: list[_Quoted] = []
    out = list(lines)
    for number, end, match in _plain_values(lines):
        value = [match["value"], *lines[number + 1 : end]]
        if not _needs_quotes("\n".join(value)):
            continue
        column = match.start("value") + 1
        quoted.append(_Quoted(match["key"], number + FIRST_LINE, column, _folded(value)))
        inside = [part.replace("'", "''") for part in value]
        inside[-1] = inside[-1].rstrip(" \t") + "'"
        out[number:end] = [f"{match['key']}:{match['gap']}'{inside[0]}", *inside[1:]]
    return out, quoted


def _plain_values(lines: list[str]) -> Iterator[tuple[int, int, re.Match[str]]]:
    """First line, line after the last, and match of each top-level name or description."""
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


def _came_out(fields: Mapping[str, FrontmatterField], value: _Quoted) -> bool:
    found = fields.get(value.key)
    return found is not None and found.value == value.text and (found.line, found.column) == (value.line, value.column)
