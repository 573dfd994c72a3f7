"""The name of a skill: what it is compared by, and what is wrong with it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from rlm.skills.findings import Finding, Refused, finding, quoted, refusal
from rlm.skills.limits import LONGEST_NAME, MAX_NAME

RESERVED = ":/\\*"
"""What ids and the host's patterns are made of."""
_STANDARD = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {
    *(chr(code) for code in range(0x180B, 0x1810)),
    *(chr(code) for code in range(0xFE00, 0xFE10)),
    *(chr(code) for code in range(0xE0100, 0xE01F0)),
}
_ALIKE = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "CHEROKEE", "COPTIC")
"""Scripts with letters that look alike."""


def unseen(character: str) -> bool:
    """Whether people cannot see the character: controls, formats, fillers, variation selectors, what is unassigned."""
    return character in _UNSEEN or unicodedata.category(character) in _UNSEEN_CATEGORIES


def identity(name: str) -> str:
    """What names are compared by: compatibility forms, case and invisible characters make no difference."""
    if name.isascii() and name.isprintable():
        return name.lower()
    seen = "".join(c for c in unicodedata.normalize("NFKC", name) if not unseen(c))
    return unicodedata.normalize("NFKC", seen.casefold())


def checked_name(written: str, folder: str, *, line: int, column: int) -> tuple[str, list[Finding]]:
    """The name in its composed form, and what there is to say of it.

    Args:
        written: the field's text.
        folder: the name of the folder that holds the file.

    Raises:
        Refused: ``missing_field``, ``name_invisible``, ``name_reserved``, ``name_too_long``.
    """

    def refused(code: str, said: str) -> Refused:
        return refusal(code, said, line=line, column=column)

    odd = next((c for c in written if unseen(c)), None)
    if odd is not None:
        raise refused("name_invisible", f"U+{ord(odd):04X} in {written[:60]!a}")
    name = unicodedata.normalize("NFKC", written).strip()
    if not name or not identity(name):
        raise refused("missing_field", "name")
    reserved = next((c for c in name if c in RESERVED), None)
    if reserved is not None or not name.strip("."):
        raise refused("name_reserved", f"{quoted(name)} has {reserved or 'dots only'}")
    if len(name) > LONGEST_NAME:
        raise refused("name_too_long", f"{len(name)} characters")
    return name, [finding(code, said, line=line, column=column) for code, said in _oddities(name, folder)]


def _oddities(name: str, folder: str) -> Iterator[tuple[str, str]]:
    if len(name) > MAX_NAME:
        yield "name_long", f"{len(name)} characters; at most {MAX_NAME}"
    if not _standard(name):
        yield "name_form", quoted(name)
    if len(scripts := _scripts(name)) > 1:
        yield "name_mixed_scripts", f"{quoted(name)} has {' and '.join(sorted(scripts)).lower()} letters"
    if unicodedata.normalize("NFKC", folder) != name:
        yield "name_not_folder", f"{quoted(name)} in the folder {quoted(folder)}"


def _standard(name: str) -> bool:
    """Small letters and digits of any script, in words that single hyphens join."""
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
