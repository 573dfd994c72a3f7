"""The one parse of a SKILL.md, from bytes to a package: name, digest, findings and text all come from it.

A field is used (``name``, ``description``) or recorded (``license``, ``compatibility``, ``metadata`` and
``allowed-tools``, which is a request and never a grant). ``disable-model-invocation`` is honoured, because it can
only narrow. Any other field is ignored and reported. No field becomes a path, a tool, a weight or a permission. This
module opens no file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm.errors import did_you_mean
from rlm.skills.findings import MOST_FINDINGS, Finding, Level, Refused, finding, quoted, reported
from rlm.skills.frontmatter import Data, FrontmatterField
from rlm.skills.limits import LONGEST_DESCRIPTION, MAX_DESCRIPTION, SkillPolicy
from rlm.skills.names import checked_name
from rlm.skills.repair import fields_or_repaired
from rlm.skills.sections import Section, sections_of
from rlm.skills.text import source_of

USED = ("name", "description")
RECORDED = ("license", "compatibility", "metadata", "allowed-tools")
NARROWING = "disable-model-invocation"
_KNOWN = (*USED, *RECORDED, NARROWING)
_FALSE = frozenset({"", "false", "no", "off", "0", "null", "~"})
_NEAR = 20
_PROMISES = re.compile(
    r"always|auto|permanen|pin(ned)?$|priority|trigger|mandatory|requires?$|suggests?$|conflicts?$|supersede|trust"
    r"|visib|activation|capabilit|permission|hooks?$|scope|enabled?$",
    re.IGNORECASE,
)
"""Words for decisions that belong to the host. Metadata with such a key is reported as inert."""


@dataclass(frozen=True)
class Package:
    """The content of a SKILL.md. ``digest`` is the SHA-256 of its bytes. ``tools`` are requested, not granted."""

    name: str
    description: str
    body: str
    digest: str
    sections: tuple[Section, ...] = ()
    license: str = ""
    compatibility: str = ""
    metadata: Mapping[str, Data] = field(default_factory=dict)
    tools: tuple[str, ...] = ()
    narrowed: bool = False


def read_package(data: bytes, folder: str, policy: SkillPolicy) -> tuple[Package | None, tuple[Finding, ...]]:
    """Return the package in the bytes of a SKILL.md, and all findings. The package is None where the file is refused.

    Args:
        data: the whole file.
        folder: the name of the folder that holds the file. It is only compared with the skill's name.
        policy: its ``max_body_bytes`` decides whether the body is offered by section.
    """
    reading = _PackageReading(folder, policy)
    package = reading.package(data)
    findings = reported(reading.findings)
    refused = any(found.level is Level.ERROR for found in findings)
    return None if refused else package, findings


class _PackageReading:
    """The reading of one file, which collects findings."""

    def __init__(self, folder: str, policy: SkillPolicy) -> None:
        self.findings: list[Finding] = []
        self._folder = folder
        self._policy = policy

    def package(self, data: bytes) -> Package | None:
        try:
            source = source_of(data)
            self.findings.extend(source.findings)
            fields, repaired = fields_or_repaired(source.frontmatter)
            self.findings.extend(repaired)
        except Refused as refused:
            self.findings.append(refused.finding)
            return None
        name, description = self._name(fields), self._description(fields)
        recorded = self._recorded(fields)
        self.findings.extend(_unused(fields))
        sections = self._sections(source.body, source.body_line)
        return Package(name, description, source.body, hashlib.sha256(data).hexdigest(), sections, **recorded)

    # -- used ---------------------------------------------------------------------------------------

    def _name(self, fields: Mapping[str, FrontmatterField]) -> str:
        name_text = self._text("name", fields)
        if not name_text:
            return ""
        place = fields["name"]
        try:
            name, findings = checked_name(name_text, self._folder, line=place.line, column=place.column)
        except Refused as refused:
            self.findings.append(refused.finding)
            return ""
        self.findings.extend(findings)
        return name

    def _description(self, fields: Mapping[str, FrontmatterField]) -> str:
        text = self._text("description", fields)
        if len(text) > MAX_DESCRIPTION:
            code = "description_long" if len(text) <= LONGEST_DESCRIPTION else "description_too_long"
            self._report(code, f"{len(text):,} characters; at most {MAX_DESCRIPTION:,}", fields["description"])
        return text

    def _text(self, name: str, fields: Mapping[str, FrontmatterField]) -> str:
        """Return the text of a required field; empty, with an error among the findings, where it is missing."""
        entry = fields.get(name)
        if entry is None:
            unknown = [key for key in fields if key not in _KNOWN and len(key) < _NEAR]
            near = next((key for key in unknown if did_you_mean(key.lower(), [name])), None)
            hint = f"; {quoted(near)} is none" if near is not None else ""
            self.findings.append(finding("missing_field", name + hint, line=1, column=1))
            return ""
        if not isinstance(entry.value, str):
            self._report("wrong_type", f"{name} is {_type(entry.value)}", entry)
            return ""
        text = entry.value.strip()
        if not text:
            self._report("missing_field", f"{name} is empty", entry)
        elif entry.tail:
            self._report("comment_in_value", f"{name} ends before {quoted(entry.tail)}", entry)
        return text

    # -- recorded -----------------------------------------------------------------------------------

    def _recorded(self, fields: Mapping[str, FrontmatterField]) -> dict[str, Any]:
        fields_of_package: dict[str, Any] = {}
        for name in ("license", "compatibility"):
            if name in fields:
                if isinstance(fields[name].value, str):
                    fields_of_package[name] = fields[name].value.strip()
                else:
                    self._report("not_recorded", f"{name} is {_type(fields[name].value)}", fields[name])
        if "metadata" in fields:
            fields_of_package["metadata"] = self._metadata(fields["metadata"])
        if "allowed-tools" in fields:
            fields_of_package["tools"] = self._tools(fields["allowed-tools"])
        if NARROWING in fields:
            fields_of_package["narrowed"] = self._narrowed(fields[NARROWING])
        return fields_of_package

    def _metadata(self, entry: FrontmatterField) -> Mapping[str, Data]:
        if entry.value == "":
            return {}
        if not isinstance(entry.value, dict):
            self._report("not_recorded", f"metadata is {_type(entry.value)}", entry)
            return {}
        if any(not isinstance(value, str) for value in entry.value.values()):
            self._report("nested_metadata", "", entry)
        promises = [key for key in _keys(entry.value) if _PROMISES.search(key)]
        if promises:
            self._report("inert_metadata", ", ".join(quoted(key, 30) for key in promises[:5]), entry)
        return entry.value

    def _tools(self, entry: FrontmatterField) -> tuple[str, ...]:
        """Return the requested tools as they are written. Text in parentheses is not split."""
        if isinstance(entry.value, str):
            tools, commas = _split(entry.value)
            if commas:
                self._report("allowed_tools_form", "commas", entry)
            return tools
        if isinstance(entry.value, list) and all(isinstance(item, str) for item in entry.value):
            self._report("allowed_tools_form", "a list", entry)
            return tuple(item.strip() for item in entry.value if item.strip())
        self._report("not_recorded", f"allowed-tools is {_type(entry.value)}", entry)
        return ()

    def _narrowed(self, entry: FrontmatterField) -> bool:
        """Whether the field narrows. Every value except a plain "no" does, because a file may only ask for less."""
        if isinstance(entry.value, str) and entry.value.strip().lower() in _FALSE:
            return False
        self._report("narrowed", "", entry)
        return True

    # -- the body -----------------------------------------------------------------------------------

    def _sections(self, body: str, line: int) -> tuple[Section, ...]:
        if not body.strip():
            self.findings.append(finding("empty_body", line=line - 1, column=1))
            return ()
        size, limit = len(body.encode()), self._policy.max_body_bytes
        if size <= limit:
            return ()
        sections = sections_of(body, limit)
        detail = f"{size:,} bytes; at most {limit:,}"
        code = "body_in_sections" if sections else "body_too_long"
        self.findings.append(finding(code, detail, line=line, column=1))
        return sections

    def _report(self, code: str, detail: str, place: FrontmatterField) -> None:
        self.findings.append(finding(code, detail, line=place.line, column=place.column))


def _unused(fields: Mapping[str, FrontmatterField]) -> Iterator[Finding]:
    unknown = [(name, place) for name, place in fields.items() if name not in _KNOWN]
    for count, (name, place) in enumerate(unknown):
        hint = did_you_mean(name, _KNOWN) if count < MOST_FINDINGS else ""
        yield finding("ignored_field", quoted(name) + hint, line=place.key_line, column=place.key_column)


def _split(text: str) -> tuple[tuple[str, ...], bool]:
    """Split a text at blanks and commas outside of parentheses. Return the words, and whether there were commas."""
    tools: list[str] = []
    word: list[str] = []
    depth, commas = 0, False
    for character in text:
        depth = max(0, depth + (character == "(") - (character == ")"))
        if depth == 0 and (character.isspace() or character == ","):
            commas = commas or character == ","
            tools.append("".join(word))
            word = []
        else:
            word.append(character)
    tools.append("".join(word))
    return tuple(tool for tool in tools if tool), commas


def _keys(value: Data) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys(inner)


def _type(value: Data) -> str:
    return "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else "text"
