"""Commands of the host: records of the role and the skills that a delegated task carries.

A delegation refers to a record by id and fingerprint. The record is looked up each time. An unknown, changed or
incomplete record delegates nothing. The data of a delegation grants no right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import pydantic
from pydantic import Field

from rlm.errors import DelegationError, did_you_mean, named
from rlm.model.arguments import instance, several
from rlm.model.base import Noun, digest_of, plain

FINGERPRINT = 64
"""Hexadecimal digits of a SHA-256."""


class Command(Noun):
    """One command of the host.

    ``id`` is its name in references, for example ``review/v1``. ``text`` is the request in the host's words.
    ``trigger`` is the word that a user types (``/review``). ``role`` is the role of the delegated task. ``skills`` are
    ids of skills, each once.
    """

    id: str = Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_./:-]+$")
    text: str = Field(max_length=65_536)
    trigger: str = Field(default="", max_length=128)
    role: str = Field(default="", max_length=128)
    skills: tuple[str, ...] = ()

    @pydantic.field_validator("skills")
    @classmethod
    def _unique(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for skill in value:
            if value.count(skill) > 1:
                raise ValueError(f"{skill!r} stands twice")
            if not skill.startswith("skill:"):
                raise ValueError(f"{skill!r} is no id of a skill: write 'skill:{skill}'")
        return value

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over all fields."""
        return digest_of(plain(self))


class Delegation(Noun):
    """The data of a delegated task, which is inert. Only ``Commands.delegation`` makes one."""

    command: str
    fingerprint: str
    trigger: str
    role: str
    skills: tuple[str, ...]


class Commands:
    """The host's commands. The collection never changes.

    Raises: DelegationError ``ambiguous_command`` for two records with one id.
    """

    def __init__(self, records: Iterable[Command] = ()) -> None:
        self._records: dict[str, Command] = {}
        for record in several("records", records):
            instance("records", record, Command)
            if record.id in self._records:
                raise DelegationError("ambiguous_command", f"two commands have the id {record.id!r}", {"id": record.id})
            self._records[record.id] = record

    def __iter__(self) -> Iterator[Command]:
        return iter(self._records.values())

    def __len__(self) -> int:
        return len(self._records)

    def triggered(self, text: str) -> Command:
        """Return the command with the first word of a text as its trigger.

        Raises: DelegationError ``unknown_command``, ``ambiguous_command``.
        """
        word = next(iter(instance("text", text, str).split(maxsplit=1)), "")
        found = [record for record in self if record.trigger and record.trigger == word]
        if not found:
            known = [record.trigger for record in self if record.trigger]
            raise DelegationError("unknown_command", f"no command is triggered by {word!r}{did_you_mean(word, known)}")
        if len(found) > 1:
            ids = [record.id for record in found]
            raise DelegationError(
                "ambiguous_command", f"{word!r} triggers {named(ids, joined=' and ')}", {"commands": ids}
            )
        return found[0]

    def delegation(self, id: Any, fingerprint: Any) -> Delegation:
        """Return the data of the command with this id, if its fingerprint is equal.

        Raises: DelegationError ``unknown_command``, ``changed_command``; ``incomplete_command`` for a reference or a
        record with a missing part.
        """
        if not isinstance(id, str) or not isinstance(fingerprint, str) or not id or len(fingerprint) != FINGERPRINT:
            raise DelegationError("incomplete_command", "a reference needs a command's id and its whole fingerprint")
        record = self._records.get(id)
        if record is None:
            raise DelegationError("unknown_command", f"no command {id!r}{did_you_mean(id, self._records)}", {"id": id})
        if record.fingerprint != fingerprint:
            raise DelegationError("changed_command", f"command {id!r} is not the one that was meant", {"id": id})
        if not record.text.strip() or not record.role.strip():
            raise DelegationError("incomplete_command", f"command {id!r} has no text or no role", {"id": id})
        return Delegation(
            command=record.id,
            fingerprint=record.fingerprint,
            trigger=record.trigger,
            role=record.role,
            skills=record.skills,
        )
