"""The names of skills: the form in which they are compared, and the checks on them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from rlm.skills.findings import Finding, Refused, finding, quoted, refusal
from rlm.skills.limits import LONGEST_NAME, MAX_NAME

RESERVED = ":/\\*"
"""The characters that ids and the host's patterns use as marks."""
_STANDARD = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {
    *(chr(code) for code in range(0x180B, 0x1810)),
    *(chr(code) for code in range(0xFE00, 0xFE10)),
    *(chr(code) for code in range(0xE0100, 0xE01F0)),
}
_ALIKE = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "CHEROKEE", "COPTIC")
"""Scripts with letters that look alike."""


def is_invisible(character: str) -> bool:
    """Whether a character is invisible: controls, formats, fillers, variation selectors and unassigned characters."""
    return character in _UNSEEN or unicodedata.category(character) in _UNSEEN_CATEGORIES


def identity(name: str) -> str:
    r"""Return the form in which names are compared. Compatibility forms, case and invisible characters make no
    difference.

    For example ``identity("PDF")`` and ``identity("p\u200bdf")``, with a zero-width space, are both ``"pdf"``.
    """
    if name.isascii() and name.isprintable():
        return name.lower()
    visible = "".join(c for c in unicodedata.normalize("NFKC", name) if not is_invisible(c))
    return unicodedata.normalize("NFKC", visible.casefold())


def checked_name(name_text: str, folder: str, *, line: int, column: int) -> tuple[str, list[Finding]]:
    """Return the name in its composed form, and the findings about it.

    Args:
        name_text: the field's text.
        folder: the name of the folder that holds the file.
        line: the line of the field's value, from 1.
        column: the column of the field's value, from 1.

    Raises:
        Refused: ``missing_field``, ``name_invisible``, ``name_reserved``, ``name_too_long``.
    """

    def refused(code: str, detail: str) -> Refused:
        return refusal(code, detail, line=line, column=column)

    invisible = next((c for c in name_text if is_invisible(c)), None)
    if invisible is not None:
        raise refused("name_invisible", f"U+{ord(invisible):04X} in {name_text[:60]!a}")
    name = unicodedata.normalize("NFKC", name_text).strip()
    if not name or not identity(name):
        raise refused("missing_field", "name")
    reserved = next((c for c in name if c in RESERVED), None)
    if reserved is not None or not name.strip("."):
        raise refused("name_reserved", f"{quoted(name)} has {reserved or 'dots only'}")
    if len(name) > LONGEST_NAME:
        raise refused("name_too_long", f"{len(name)} characters")
    return name, [finding(code, detail, line=line, column=column) for code, detail in _oddities(name, folder)]


def _oddities(name: str, folder: str) -> Iterator[tuple[str, str]]:
    if len(name) > MAX_NAME:
        yield "name_long", f"{len(name)} characters; at most {MAX_NAME}"
    if not _is_standard(name):
        yield "name_form", quoted(name)
    if len(scripts := _scripts(name)) > 1:
        yield "name_mixed_scripts", f"{quoted(name)} has {' and '.join(sorted(scripts)).lower()} letters"
    if unicodedata.normalize("NFKC", folder) != name:
        yield "name_not_folder", f"{quoted(name)} in the folder {quoted(folder)}"


def _is_standard(name: str) -> bool:
    """Whether a name is small letters and digits of any script, in words that single hyphens join."""
    if name.isascii():
        return _STANDARD.fullmatch(name) is not None
    words = name.split("-")
    return name == name.lower() and all(
        word and all(c.isalnum() or unicodedata.category(c)[0] == "M" for c in word) for word in words
    )


def _scripts(name: str) -> set[str]:
    if name.isascii():
        return set()
    names = {unicodedata.name(c, "").partition(" ")[0] for c in name if c.isalpha()}
    return {script for script in names if script in _ALIKE}
