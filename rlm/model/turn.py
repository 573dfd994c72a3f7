"""What one compile is about: the text of this turn and everything else that is evidence."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any

import pydantic
from pydantic import Field

from rlm.errors import ConfigurationError
from rlm.model.base import Noun, digest_of, plain
from rlm.model.unit import Relation, checked_id

ROLES = ("system", "developer", "user", "assistant", "tool")


class Class(enum.StrEnum):
    """What packing must respect, strongest first."""

    PINNED = "pinned"
    MANDATORY = "mandatory"
    PERIPHERY = "periphery"
    FRONTIER = "frontier"


class Admitted(Noun):
    """A unit that something upstream of the compiler already chose. Host only.

    ``premises`` are ids of units without which it may not be shown. ``unit`` and ``premises`` are units of
    the catalog.
    """

    unit: str
    klass: Class = Field(default=Class.PERIPHERY, alias="class")
    premises: Relation = ()

    model_config = pydantic.ConfigDict(populate_by_name=True)

    @pydantic.field_validator("unit")
    @classmethod
    def _unit(cls, value: str) -> str:
        return checked_id(value)


def _signals(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise ValueError("signals are a mapping from a name to a value or a list of values")
    rows = {}
    for name, values in value.items():
        listed = [values] if isinstance(values, str) else list(values)
        rows[str(name)] = tuple(sorted({str(item) for item in listed}))
    return tuple(sorted(rows.items()))


def _scores(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise ValueError("sensors are a mapping from a name to {unit id: score between 0 and 1}")
    rows = []
    for name, scores in sorted(value.items()):
        row = tuple(sorted((checked_id(str(unit)), round(float(score), 6)) for unit, score in scores.items()))
        if any(not 0 <= score <= 1 for _, score in row):
            raise ValueError(f"sensor {name!r}: scores lie between 0 and 1")
        rows.append((str(name), row))
    return tuple(rows)


Signals = Annotated[tuple[tuple[str, tuple[str, ...]], ...], pydantic.BeforeValidator(_signals)]
Scores = Annotated[tuple[tuple[str, tuple[tuple[str, float], ...]], ...], pydantic.BeforeValidator(_scores)]


class Message(Noun):
    """One message of a conversation, as the host holds it."""

    role: str
    content: str

    @pydantic.field_validator("role")
    @classmethod
    def _role(cls, value: str) -> str:
        if value not in ROLES:
            raise ValueError(f"role {value!r} is none of {', '.join(ROLES)}")
        return value


class Turn(Noun):
    """The input of one compile.

    ``text`` is what the user says now; prose negation is read in it and nowhere else. ``messages`` is the
    conversation so far (its last user message is the text where none is given). ``signals``, ``sensors``,
    ``admitted`` and ``retained`` come from the host; ``needs`` may come from a model: evidence, never authority.
    """

    text: str = ""
    messages: tuple[Message, ...] = ()
    history: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    signals: Signals = ()
    sensors: Scores = ()
    admitted: tuple[Admitted, ...] = ()
    retained: tuple[str, ...] = ()

    @pydantic.field_validator("needs", "history", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        if isinstance(value, str):
            raise ValueError(f"a list of strings is wanted, not one string: write [{value!r}]")
        return value

    @pydantic.field_validator("text", "needs", "history")
    @classmethod
    def _unicode(cls, value: Any) -> Any:
        for text in [value] if isinstance(value, str) else value:
            try:
                text.encode("utf-8")
            except UnicodeEncodeError as problem:
                raise ValueError(f"not valid Unicode: lone surrogate at character {problem.start}") from None
        return value

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the turn."""
        return digest_of(plain(self))


def turn_of(text: str | None, messages: Any, **evidence: Any) -> Turn:
    """A turn from what a caller wrote: a text, a conversation, or both.

    Raises:
        ConfigurationError: ``no_text`` where there is neither, or no user message to take the text from.
    """
    conversation = tuple(_message(index, message) for index, message in enumerate(messages or ()))
    if text is None:
        said = [message.content for message in conversation if message.role == "user"]
        if not said:
            raise ConfigurationError("no_text", "a compile needs a text, or messages with a user message")
        text = said[-1]
        evidence.setdefault("history", tuple(reversed(said[:-1])))
    return Turn(text=text, messages=conversation, **evidence)


def _message(index: int, message: Any) -> Message:
    if isinstance(message, Message):
        return message
    if not isinstance(message, Mapping):
        raise ConfigurationError("invalid_message", f"message {index} is no mapping with role and content")
    content = message.get("content")
    if isinstance(content, list):
        content = "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    extra = sorted(set(message) - {"role", "content", "name"})
    if content is None or extra:
        what = f"has fields that are not understood here: {', '.join(extra)}" if extra else "has no content"
        raise ConfigurationError("invalid_message", f"message {index} {what}", {"index": index, "fields": extra})
    return Message(role=str(message.get("role")), content=str(content))
