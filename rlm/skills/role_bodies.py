"""The bodies for roles of a skill that the host pins: the files in ``roles/`` beside its SKILL.md.

``roles/leaf.md`` is the body in requests of leaf models. A role without a file has the body of the SKILL.md. Only the
bundle and a pin of the host read these files. For any other package they are resources like others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from rlm.errors import CatalogError, ConfigurationError, did_you_mean
from rlm.skills.skill import Skill

FOLDER = "roles"
ROLES = ("child", "leaf", "repair", "tools", "line")
"""The bodies that a skill may have beside its SKILL.md: of roles, and one line (``rlm.model.unit.RoleBody``)."""

RoleTexts = tuple[tuple[str, str], ...]
"""Pairs of a role and its text."""

MOST_BYTES = 64 * 1024
"""Bytes of one body."""


def role_bodies(skill: Skill) -> RoleTexts:
    """Return the bodies in a skill's folder ``roles``, in the order of ``ROLES``.

    Raises:
        ConfigurationError: ``unknown_role`` for a file that names no role; ``empty_body``; ``unreadable_body``.
    """
    return tuple(_texts(skill))


def whole_digest(skill: Skill, bodies: RoleTexts) -> str:
    """Return the SHA-256 over the SKILL.md and all bodies; that of the SKILL.md alone where there are no others."""
    if not bodies:
        return skill.digest
    rows = [f"{role} {hashlib.sha256(text.encode()).hexdigest()}" for role, text in bodies]
    return hashlib.sha256("\n".join([skill.digest, *rows]).encode()).hexdigest()


def role_files(folder: Path) -> tuple[Path, ...]:
    """Return the files that may hold bodies of the skill in a folder, whether or not they exist."""
    return tuple(folder / FOLDER / f"{role}.md" for role in ROLES)


def _texts(skill: Skill) -> Iterator[tuple[str, str]]:
    listed = [file.path for file in skill.resources().files if file.path.startswith(f"{FOLDER}/")]
    known = {f"{FOLDER}/{role}.md": role for role in ROLES}
    for path in listed:
        if path not in known:
            hint = did_you_mean(path, known)
            raise ConfigurationError(
                "unknown_role",
                f"{skill.path}: {path} names no role{hint}; a body is one of {', '.join(known)}",
                {"skill": skill.name, "path": path},
            )
    for path, role in known.items():
        if path in listed:
            yield role, _text(skill, path)


def _text(skill: Skill, path: str) -> str:
    detail = {"skill": skill.name, "path": path}
    try:
        data = skill.read(path)
        text = data.decode("utf-8")
    except (CatalogError, UnicodeDecodeError) as problem:
        raise ConfigurationError("unreadable_body", f"{skill.path}: {path} cannot be read: {problem}", detail) from None
    if not text.strip():
        message = f"{skill.path}: {path} is empty; write the body, or remove the file: the role then has the SKILL.md's"
        raise ConfigurationError("empty_body", message, detail)
    if len(data) > MOST_BYTES:
        raise ConfigurationError(
            "unreadable_body", f"{skill.path}: {path} has {len(data):,} bytes; at most {MOST_BYTES:,}", detail
        )
    return text.replace("\r\n", "\n")
