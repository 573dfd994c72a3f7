"""One SKILL.md, from its bytes to a package: the one parse that name, digest, findings and text come from.

A field is used (``name``, ``description``), recorded (``license``, ``compatibility``, ``metadata``,
``allowed-tools``: a request, never a grant), honoured where it only narrows (``disable-model-invocation``), or
ignored and reported. Nothing of it is ever a path, a tool, a weight or a permission. This module opens nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm.errors import did_you_mean
from rlm.skills.findings import MOST_FINDINGS, Finding, Level, Refused, finding, quoted, told
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
"""Words for what only a host can say; metadata with such a key is reported as inert."""


@dataclass(frozen=True)
class Package:
    """What a SKILL.md says. ``digest`` is the SHA-256 of its bytes; ``tools`` are requested, not granted."""

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
    """The package in the bytes of a SKILL.md, or None where it is refused, and all findings.

    Args:
        data: the whole file.
        folder: the name of the folder that holds it; only compared with the skill's name.
        policy: ``max_body_bytes`` decides whether the body is offered by section.
    """
    reading = _PackageReading(folder, policy)
    package = reading.package(data)
    findings = told(reading.findings)
    refused = any(found.level is Level.ERROR for found in findings)
    return None if refused else package, findings


class _PackageReading:
    """Reads one file and collects what there is to say."""

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
        written = self._text("name", fields)
        if not written:
            return ""
        place = fields["name"]
        try:
            name, findings = checked_name(written, self._folder, line=place.line, column=place.column)
        except Refused as refused:
            self.findings.append(refused.finding)
            return ""
        self.findings.extend(findings)
        return name

    def _description(self, fields: Mapping[str, FrontmatterField]) -> str:
        text = self._text("description", fields)
        if len(text) > MAX_DESCRIPTION:
            code = "description_long" if len(text) <= LONGEST_DESCRIPTION else "description_too_long"
            self._say(code, f"{len(text):,} characters; at most {MAX_DESCRIPTION:,}", fields["description"])
        return text

    def _text(self, name: str, fields: Mapping[str, FrontmatterField]) -> str:
        """The text of a field that must be there; empty, with an error among the findings, where it is not."""
        given = fields.get(name)
        if given is None:
            unknown = [key for key in fields if key not in _KNOWN and len(key) < _NEAR]
            near = next((key for key in unknown if did_you_mean(key.lower(), [name])), None)
            hint = f"; {quoted(near)} is none" if near is not None else ""
            self.findings.append(finding("missing_field", name + hint, line=1, column=1))
            return ""
        if not isinstance(given.value, str):
            self._say("wrong_type", f"{name} is {_type(given.value)}", given)
            return ""
        text = given.value.strip()
        if not text:
            self._say("missing_field", f"{name} is empty", given)
        elif given.tail:
            self._say("comment_in_value", f"{name} ends before {quoted(given.tail)}", given)
        return text

    # -- recorded -----------------------------------------------------------------------------------

    def _recorded(self, fields: Mapping[str, FrontmatterField]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in ("license", "compatibility"):
            if name in fields:
                if isinstance(fields[name].value, str):
                    found[name] = fields[name].value.strip()
                else:
                    self._say("not_recorded", f"{name} is {_type(fields[name].value)}", fields[name])
        if "metadata" in fields:
            found["metadata"] = self._metadata(fields["metadata"])
        if "allowed-tools" in fields:
            found["tools"] = self._tools(fields["allowed-tools"])
        if NARROWING in fields:
            found["narrowed"] = self._narrowed(fields[NARROWING])
        return found

    def _metadata(self, given: FrontmatterField) -> Mapping[str, Data]:
        if given.value == "":
            return {}
        if not isinstance(given.value, dict):
            self._say("not_recorded", f"metadata is {_type(given.value)}", given)
            return {}
        if any(not isinstance(value, str) for value in given.value.values()):
            self._say("nested_metadata", "", given)
        promises = [key for key in _keys(given.value) if _PROMISES.search(key)]
        if promises:
            self._say("inert_metadata", ", ".join(quoted(key, 30) for key in promises[:5]), given)
        return given.value

    def _tools(self, given: FrontmatterField) -> tuple[str, ...]:
        """The tools that are asked for, as they are written; what stands in parentheses is not taken apart."""
        if isinstance(given.value, str):
            tools, commas = _apart(given.value)
            if commas:
                self._say("allowed_tools_form", "commas", given)
            return tools
        if isinstance(given.value, list) and all(isinstance(item, str) for item in given.value):
            self._say("allowed_tools_form", "a list", given)
            return tuple(item.strip() for item in given.value if item.strip())
        self._say("not_recorded", f"allowed-tools is {_type(given.value)}", given)
        return ()

    def _narrowed(self, given: FrontmatterField) -> bool:
        """Anything but a plain no narrows: of all that a file can ask for, only less is ever given."""
        if isinstance(given.value, str) and given.value.strip().lower() in _FALSE:
            return False
        self._say("narrowed", "", given)
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
        said = f"{size:,} bytes; at most {limit:,}"
        code = "body_in_sections" if sections else "body_too_long"
        self.findings.append(finding(code, said, line=line, column=1))
        return sections

    def _say(self, code: str, said: str, place: FrontmatterField) -> None:
        self.findings.append(finding(code, said, line=place.line, column=place.column))


def _unused(fields: Mapping[str, FrontmatterField]) -> Iterator[Finding]:
    unknown = [(name, place) for name, place in fields.items() if name not in _KNOWN]
    for count, (name, place) in enumerate(unknown):
        hint = did_you_mean(name, _KNOWN) if count < MOST_FINDINGS else ""
        yield finding("ignored_field", quoted(name) + hint, line=place.key_line, column=place.key_column)


def _apart(text: str) -> tuple[tuple[str, ...], bool]:
    """Words apart by blanks or commas outside of parentheses, and whether there were commas."""
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
