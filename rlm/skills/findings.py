"""The findings about a SKILL.md: a closed list of codes, each with a remedy.

An ``error`` refuses the file. A ``warning`` is reported, and refuses the file where the host is strict. A ``note`` is
reported and never refuses. The level belongs to the code. So strictness changes verdicts and never parsed values.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple


class Level(enum.StrEnum):
    """The weight of a finding."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class SkillVerdict(enum.StrEnum):
    """The result for one file or folder."""

    LOADED = "loaded"
    LOADED_WITH_FINDINGS = "loaded_with_findings"
    REFUSED = "refused"


class Meaning(NamedTuple):
    """A row of the table: level, problem and remedy."""

    level: Level
    problem: str
    fix: str


_E, _W, _N = Level.ERROR, Level.WARNING, Level.NOTE

FINDINGS: Mapping[str, Meaning] = {
    # files and folders
    "no_skill": Meaning(_E, "there is no SKILL.md in this folder or below it", "name a folder that holds a SKILL.md"),
    "wrong_file_name": Meaning(_E, "the file is not called SKILL.md", "rename it to SKILL.md"),
    "file_beside": Meaning(
        _N, "a file that is nearly called SKILL.md stands beside it", "remove it: only SKILL.md is read"
    ),
    "group_folder": Meaning(
        _N,
        "the skill stands in a folder that groups skills; many programs look one level deep only",
        "move it up, or add the group as a folder of its own",
    ),
    "hidden_folder": Meaning(
        _E, "a folder whose name begins with a dot holds a SKILL.md", "rename the folder, or add it as its own"
    ),
    "folder_too_deep": Meaning(_E, "the folder lies too deep to be looked into", "add it as a folder of its own"),
    "too_many": Meaning(_E, "there are more names than a loader looks at", "add its parts as folders of their own"),
    "unreadable": Meaning(_E, "it cannot be read", "let this user read it"),
    "not_a_file": Meaning(
        _E, "it is no regular file (a folder, FIFO, socket or device)", "put an ordinary file in its place"
    ),
    "link_out": Meaning(
        _E, "a link leads out of the folder that may be read", "copy the files in, or add the link's target by itself"
    ),
    "hard_link": Meaning(
        _E,
        "the file has another name outside the folder that may be read (a hard link)",
        "copy the file; or SkillPolicy(hard_links='allow') where an installer linked it from its cache",
    ),
    "link_broken": Meaning(_E, "a link leads nowhere or in a circle", "mend or remove the link"),
    "swapped": Meaning(_E, "it was exchanged while it was being opened", "load again when nothing writes there"),
    "file_too_big": Meaning(_E, "the file is over the size limit; it was not read", "move text into other files"),
    # bytes
    "bom": Meaning(_N, "a byte order mark stands before the text", "save it as UTF-8 without one"),
    "not_utf8": Meaning(_E, "the file is not UTF-8", "save it as UTF-8"),
    "control_character": Meaning(_E, "a control character", "remove it"),
    "control_in_body": Meaning(_W, "a control character in the body", "remove it"),
    "hidden_text": Meaning(
        _W, "a character that people do not see and models read, or that turns text round", "remove it"
    ),
    # the fence
    "no_frontmatter": Meaning(_E, "the first line is not ---", "begin the file with a line --- and fields below it"),
    "unclosed_frontmatter": Meaning(_E, "no second line --- ends the frontmatter", "put a line --- below the fields"),
    "frontmatter_too_big": Meaning(_E, "the frontmatter is over the size limit", "move text into the body"),
    # YAML
    "yaml_error": Meaning(_E, "the frontmatter is not YAML", "put the value in quotes"),
    "repaired": Meaning(_W, "the value is not YAML and was read as text", "put the value in quotes"),
    "several_documents": Meaning(_E, "the frontmatter holds more than one YAML document", "keep one"),
    "not_a_mapping": Meaning(_E, "the frontmatter is no list of fields", "write name: ... and description: ..."),
    "bad_key": Meaning(_E, "a key is no text", "use a plain word as the key"),
    "duplicate_key": Meaning(_E, "a key stands twice", "keep one of them"),
    "anchor": Meaning(_E, "a YAML anchor", "put the value in quotes, or remove the &name"),
    "alias": Meaning(_E, "a YAML alias", "put the value in quotes, or write it out"),
    "merge_key": Meaning(_E, "a YAML merge key", "write the fields out"),
    "tag": Meaning(_E, "a YAML tag", "put the value in quotes, or remove the tag"),
    "nested_too_deep": Meaning(_E, "values are nested too deep", "flatten them"),
    "comment_in_value": Meaning(
        _W, "YAML takes the rest of the line for a comment", "put the value in quotes if the rest belongs to it"
    ),
    # fields
    "missing_field": Meaning(_E, "a field that every skill needs is missing or empty", "write it"),
    "wrong_type": Meaning(_E, "a field that must be text is something else", "write it as text"),
    "not_recorded": Meaning(_W, "a field has another form than the standard's and was left out", "write it as text"),
    "ignored_field": Meaning(
        _W, "the field has no effect: what is shown, allowed or run is the host's to say", "remove it"
    ),
    "inert_metadata": Meaning(_N, "metadata is recorded and has no effect", "remove it if it was meant to have one"),
    "nested_metadata": Meaning(_N, "metadata holds more than text; it is recorded as it is", "write text values only"),
    "allowed_tools_form": Meaning(
        _N, "allowed-tools is not separated by spaces; it is recorded as it was meant", "separate tools by spaces"
    ),
    "narrowed": Meaning(
        _N, "the skill asks not to be brought in by a model; it is not available until the host says so", ""
    ),
    # the name
    "name_reserved": Meaning(_E, "the name has a character that belongs to the host", "use letters, digits and -"),
    "name_invisible": Meaning(_E, "the name has a character that cannot be seen", "remove it"),
    "name_too_long": Meaning(_E, "the name is too long", "use at most 64 characters"),
    "name_long": Meaning(_W, "the name is longer than the standard allows", "use at most 64 characters"),
    "name_form": Meaning(
        _W,
        "the name is not made of small letters, digits and single hyphens",
        "write it in small letters, digits and single hyphens",
    ),
    "name_mixed_scripts": Meaning(
        _W, "the name mixes scripts whose letters look alike", "use the letters of one script"
    ),
    "name_not_folder": Meaning(_W, "the name is not the folder's", "give the folder the skill's name"),
    # the text
    "description_long": Meaning(
        _W, "the description is longer than the standard allows", "use at most 1,024 characters"
    ),
    "description_too_long": Meaning(_E, "the description is too long", "use at most 1,024 characters"),
    "empty_body": Meaning(_W, "there is nothing below the frontmatter", "write the instructions there"),
    "body_in_sections": Meaning(
        _N, "the body is over the limit and is offered by section", "shorten it, or move parts into other files"
    ),
    "body_too_long": Meaning(_E, "the body is over the limit and cannot be parted", "break it into lines and sections"),
    # registration
    "same_name": Meaning(_N, "another skill has this name", "use its qualified id, or rename it"),
    "reserved_prefix": Meaning(_N, "names that begin with rlm- are the library's own", "use its qualified id"),
    "identical": Meaning(_N, "the same bytes are loaded already; they count once", "remove one of them"),
    "changed": Meaning(
        _E, "the file is not the one that was catalogued", "read it again, then load it with replace=True"
    ),
    "not_a_unit": Meaning(_E, "it cannot be registered", "mend what the message says"),
    "more_findings": Meaning(_N, "there are more findings than are told", "mend these first"),
}
"""Every code with its level, its problem and its remedy; ``docs/skills.md`` holds the same table."""

MOST_FINDINGS = 100


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding about a file. ``line`` and ``column`` count from 1, and are 0 where the finding has no place."""

    code: str
    line: int = 0
    column: int = 0
    message: str = ""
    fix: str = ""

    @property
    def level(self) -> Level:
        return FINDINGS[self.code].level

    def to_dict(self) -> dict[str, Any]:
        """Return ``code``, ``line``, ``column``, ``message`` and ``fix``."""
        return {
            "code": self.code,
            "line": self.line,
            "column": self.column,
            "message": self.message,
            "fix": self.fix,
        }


class Refused(Exception):
    """An error that ends the reading of one file. Callers turn it into a finding, so it never leaves this package."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def finding(code: str, detail: str = "", *, line: int = 0, column: int = 0, fix: str = "") -> Finding:
    """Return a finding. ``detail`` is the particular value, which is added to the table's sentence.

    For example ``finding("unreadable", "permission denied").message`` is ``"it cannot be read: permission denied"``.
    """
    meaning = FINDINGS[code]
    message = f"{meaning.problem}: {detail}" if detail else meaning.problem
    return Finding(code, line, column, message, fix or meaning.fix)


def refusal(code: str, detail: str = "", *, line: int = 0, column: int = 0, fix: str = "") -> Refused:
    """Return the error that ends the reading of one file with this finding."""
    return Refused(finding(code, detail, line=line, column=column, fix=fix))


def verdict(findings: Iterable[Finding], *, strict: bool) -> SkillVerdict:
    """Return the verdict for some findings. ``strict`` refuses warnings too."""
    levels = {found.level for found in findings}
    if Level.ERROR in levels or (strict and Level.WARNING in levels):
        return SkillVerdict.REFUSED
    return SkillVerdict.LOADED_WITH_FINDINGS if levels else SkillVerdict.LOADED


def reported(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings in the order of the file, at most ``MOST_FINDINGS``. Errors are kept first."""
    ordered = sorted(findings, key=lambda found: (found.line, found.column, found.code))
    if len(ordered) <= MOST_FINDINGS:
        return tuple(ordered)
    by_weight = sorted(ordered, key=lambda found: list(Level).index(found.level))
    kept = set(by_weight[: MOST_FINDINGS - 1])
    more = finding("more_findings", f"{len(ordered) - len(kept)} more")
    return (*(found for found in ordered if found in kept), more)


def quoted(text: str, limit: int = 60) -> str:
    """Return third-party text as it may stand in a message: one short line with every unprintable character escaped."""
    short_text = text if len(text) <= limit else text[: limit - 1] + "…"
    return ascii(short_text) if not short_text.isprintable() else repr(short_text)
