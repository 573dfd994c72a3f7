"""The input of one compile: the text of this turn and all other evidence."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence, Set
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pydantic
from pydantic import Field

from rlm.errors import ConfigurationError
from rlm.model.base import Noun, digest_of, plain
from rlm.model.message import Message, conversation_of
from rlm.model.unit import Relation, checked_id, unicode
from rlm.model.wire_names import is_wire_name

MOST_TEXTS = {"needs": 256, "history": 1_000}
"""So many texts of each kind in one turn. Only the last three of the history count."""

MOST_NOTE = 200
"""Characters of a note at a tool."""


class PackingClass(enum.StrEnum):
    """The classes of units that packing respects, strongest first. For example a pinned unit is never dropped."""

    PINNED = "pinned"
    MANDATORY = "mandatory"
    PERIPHERY = "periphery"
    FRONTIER = "frontier"


class Preselected(Noun):
    """A unit that something upstream of the compiler already chose. Host only.

    ``premises`` are ids of units without which it may not be shown. ``unit`` and ``premises`` are units of
    the catalog.
    """

    unit: str
    klass: PackingClass = Field(default=PackingClass.PERIPHERY, alias="class")
    premises: Relation = ()

    model_config = pydantic.ConfigDict(populate_by_name=True)

    if TYPE_CHECKING:  # what may be given; the fields above say what is kept

        def __init__(
            self,
            *,
            unit: str,
            klass: PackingClass | Literal["pinned", "mandatory", "periphery", "frontier"] = PackingClass.PERIPHERY,
            premises: Sequence[str] | Set[str] = (),
        ) -> None: ...

    @pydantic.field_validator("unit")
    @classmethod
    def _unit(cls, value: str) -> str:
        return checked_id(value)


def _signals(value: Any) -> Any:
    value = _as_mapping(value)
    if not isinstance(value, Mapping):
        raise ValueError("signals are a mapping from a name to a string or a list of strings")
    rows = {}
    for name, values in value.items():
        listed = [values] if isinstance(values, str) else values
        if not isinstance(listed, list | tuple | set | frozenset) or not all(isinstance(v, str) for v in listed):
            raise ValueError(f"signal {str(name)!r}: a string or a list of strings is wanted")
        rows[_text(name)] = tuple(sorted({_text(item) for item in listed}))
    return tuple(sorted(rows.items()))


def _names(value: Any) -> Any:
    value = _as_mapping(value)
    if not isinstance(value, Mapping) or not all(is_wire_name(name) for name in value.values()):
        raise ValueError("names are a mapping from ids of tools to names of 1 to 64 letters, digits, _ and -")
    if len(set(value.values())) < len(value):
        raise ValueError("two tools have the same name")
    return tuple(sorted((checked_id(_text(id)), name) for id, name in value.items()))


def _scores(value: Any) -> Any:
    value = _as_mapping(value)
    if isinstance(value, dict):
        value = {name: _as_mapping(scores) for name, scores in value.items()}
    if not isinstance(value, Mapping):
        raise ValueError("sensors are a mapping from a name to {unit id: score between 0 and 1}")
    rows = []
    for name, scores in sorted(value.items(), key=lambda row: str(row[0])):
        if not isinstance(scores, Mapping):
            raise ValueError(f"sensor {str(name)!r}: a mapping from unit ids to scores is wanted")
        for unit, score in scores.items():
            if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
                raise ValueError(f"sensor {str(name)!r}, {str(unit)!r}: a score is a number between 0 and 1")
        rows.append((_text(name), tuple(sorted((checked_id(_text(u)), round(float(s), 6)) for u, s in scores.items()))))
    return tuple(rows)


def _as_mapping(value: Any) -> Any:
    """A mapping in the form in which a turn keeps it, as a mapping again."""
    pairs = isinstance(value, tuple) and all(isinstance(item, tuple) and len(item) == 2 for item in value)
    return dict(value) if pairs else value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a string is wanted, not {type(value).__name__}")
    unicode(value)
    return value


def _notes(value: Any) -> Any:
    value = _as_mapping(value)
    if not isinstance(value, Mapping):
        raise ValueError("notes are a mapping from ids of tools to sentences")
    rows = tuple(sorted((checked_id(_text(unit)), _text(note)) for unit, note in value.items()))
    for unit, note in rows:
        if len(note) > MOST_NOTE or "\n" in note:
            raise ValueError(f"the note of {unit!r}: one line of at most {MOST_NOTE} characters is wanted")
    return rows


Notes = Annotated[tuple[tuple[str, str], ...], pydantic.BeforeValidator(_notes)]
Names = Annotated[tuple[tuple[str, str], ...], pydantic.BeforeValidator(_names)]
Signals = Annotated[tuple[tuple[str, tuple[str, ...]], ...], pydantic.BeforeValidator(_signals)]
Scores = Annotated[tuple[tuple[str, tuple[tuple[str, float], ...]], ...], pydantic.BeforeValidator(_scores)]


class CompileInput(Noun):
    """The input of one compile.

    ``text`` is the user's present text; prose negation is read in it and nowhere else. ``messages`` is the
    conversation before it, or up to it where it is the last of them; ``tail`` holds the messages after it: they are
    shown, and are no evidence. ``signals``, ``sensors``, ``admitted`` and ``retained`` come from the host; ``needs``
    may come from a model: evidence, never authority. ``unused`` are ids that earlier requests showed and no call used,
    the oldest first: where room is lacking, they go in this order. ``notes`` are sentences of the host that stand at
    tools, by id. ``names`` are the wire names
    that a session or a run keeps.
    """

    text: str = ""
    messages: tuple[Message, ...] = ()
    tail: tuple[Message, ...] = ()
    history: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    signals: Signals = ()
    sensors: Scores = ()
    admitted: tuple[Preselected, ...] = ()
    retained: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    names: Names = ()
    notes: Notes = ()

    @pydantic.field_validator("needs", "history", mode="before")
    @classmethod
    def _listed(cls, value: Any, info: pydantic.ValidationInfo) -> Any:
        if isinstance(value, str):
            raise ValueError(f"a list of strings is wanted, not one string: write [{value!r}]")
        most = MOST_TEXTS[str(info.field_name)]
        if isinstance(value, list | tuple) and len(value) > most:
            raise ValueError(f"{len(value):,} texts are too many: give at most {most:,}")
        return value

    @pydantic.field_validator("text", "needs", "history", "retained", "unused")
    @classmethod
    def _unicode(cls, value: Any) -> Any:
        for text in [value] if isinstance(value, str) else value:
            _text(text)
        return value

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the turn."""
        fields = plain(self)
        if not self.names:
            del fields["names"]
        for message in (*fields["messages"], *fields["tail"]):
            if not message["body"]:
                del message["body"]
        for field in ("unused", "notes"):
            if not fields[field]:
                del fields[field]
        return digest_of(fields)


def turn_of(text: str | None, messages: Any, tail: Any = (), **evidence: Any) -> CompileInput:
    """Return the input of a compile from a text, a conversation, or both.

    Without a text, the last user message that has one is the text, and the messages behind it are the tail. Results
    of tools are never the user's text, whichever message carries them.

    Raises:
        ConfigurationError: ``no_text`` where there is neither, or no user message to take the text from.
    """
    conversation, after = conversation_of("messages", messages), conversation_of("tail", tail)
    if text is None:
        users = [place for place, message in enumerate(conversation) if message.role == "user"]
        places = [place for place in users if conversation[place].content] or users
        if not places:
            raise ConfigurationError("no_text", "a compile needs a text, or messages with a user message")
        *earlier, last = places
        text = conversation[last].content
        last_ones = earlier[-MOST_TEXTS["history"] :]
        evidence.setdefault("history", tuple(conversation[place].content for place in reversed(last_ones)))
        conversation, after = conversation[: last + 1], conversation[last + 1 :] + after
    return CompileInput(text=text, messages=conversation, tail=after, **evidence)
