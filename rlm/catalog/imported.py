"""The result of an import of tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

from rlm.errors import warn
from rlm.model.unit import Unit
from rlm.model.words import counted

Finding = Mapping[str, Any]


class Imported(int):
    """The revision after an import, with the tools that were registered and the problems of the others.

    - ``ids``: the ids of the tools that can be used, in the order of the file.
    - ``findings``: ``{level, kind, file, line, column, field, message}`` each; the level is ``error`` for a tool that
      was not used.

    Example:
        >>> import rlm
        >>> rlm.Catalog().add_tool_list([{"name": "a", "description": "b"}, {"name": "c", "description": "d"}])
        <Imported: 2 tools, 0 findings, revision 1>
    """

    ids: tuple[str, ...]
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, revision: int, units: Iterable[Unit], findings: Iterable[Finding]) -> Self:
        """Return the result of an import; warn if tools are not used."""
        made = cls(revision)
        made.ids, made.findings = tuple(unit.id for unit in units), tuple(findings)
        if made.unused:
            first, more = sentence(made.unused[0]), len(made.unused) - 1
            others = f" (and {counted(more, 'other finding')})" if more else ""
            warn(f"not used: {first}{others}; see findings")
        return made

    @property
    def unused(self) -> tuple[Finding, ...]:
        """The findings of tools that were not used."""
        return tuple(found for found in self.findings if found["level"] == "error")

    def __repr__(self) -> str:
        tools, findings = counted(len(self.ids), "tool"), counted(len(self.findings), "finding")
        return f"<Imported: {tools}, {findings}, revision {int(self)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restored, (int(self), self.ids, self.findings))


def _restored(revision: int, ids: tuple[str, ...], findings: tuple[Finding, ...]) -> Imported:
    made = Imported(revision)
    made.ids, made.findings = ids, findings
    return made


def sentence(found: Finding) -> str:
    """Return a finding in one line: the file, the line, the field and what to do."""
    line = f", line {found['line']}" if found["line"] else ""
    line += f", column {found['column']}" if found.get("column") else ""
    field = f", field {found['field']!r}" if found["field"] else ""
    return f"{found['file']}{line}{field}: {found['message']}"
