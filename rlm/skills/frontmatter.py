"""A frontmatter as data: mappings, lists and text, and no other type of YAML.

Only PyYAML's reader, scanner and parser are used. Its composer, resolver and constructor are not, so no object can be
built here. Every scalar keeps its text, for example ``on``, ``007`` or ``1.10``. Events are read and checked one by
one before a value is made of them, so ``MAX_DEPTH`` bounds the depth of the recursion.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner

from rlm.skills.findings import Refused, quoted, refusal
from rlm.skills.limits import MAX_DEPTH
from rlm.skills.text import CONTROL

Data = Any
"""Text, or a list or mapping of it. The type is recursive, so the type checker sees ``Any``."""

FIRST_LINE = 2
"""The line of the file on which the frontmatter begins."""

_LINE_ENDS_OF_YAML = "\x85\u2028\u2029\ufeff"
"""Characters that PyYAML skips or takes for a line end. Here they are ordinary characters."""


@dataclass(frozen=True)
class FrontmatterField:
    """The value of a top-level field, with the places of its key and its value in the file."""

    value: Data
    line: int
    column: int
    key_line: int
    key_column: int
    tail: str = field(default="", compare=False)
    """The comment behind a plain value in the same line."""


class NotYaml(Exception):
    """PyYAML could not read the text, for ``reason``. The repair of ``rlm.skills.repair`` may be tried."""

    def __init__(self, reason: str, mark: Any) -> None:
        super().__init__(reason)
        self.reason = reason
        line, column = (mark.line + FIRST_LINE, mark.column + 1) if mark is not None else (FIRST_LINE, 1)
        self.refused = refusal("yaml_error", reason, line=line, column=column)


def fields_of(text: str) -> dict[str, FrontmatterField]:
    """Return the fields of a frontmatter, in the order of the file.

    Raises:
        NotYaml: the text is not YAML.
        Refused: the text is YAML that a frontmatter may not hold, for example an alias.
    """
    stand_ins = _stand_ins(text)
    for character, stand_in in stand_ins.items():
        text = text.replace(character, stand_in)
    return _FieldReader(text, {stand_in: character for character, stand_in in stand_ins.items()}).fields()


def _stand_ins(text: str) -> dict[str, str]:
    """Return a private character for each odd line end of a text. The text does not hold that character."""
    present = [character for character in _LINE_ENDS_OF_YAML if character in text]
    free = (chr(code) for code in range(0xE000, 0xF8FF) if chr(code) not in text)
    return dict(zip(present, free, strict=False))


class _YamlEvents(Reader, Scanner, Parser):
    """PyYAML up to its events, composed like PyYAML's own loaders but without a constructor."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)

    def __iter__(self) -> Iterator[Event]:
        while self.check_event():
            yield self.get_event()  # type: ignore[no-untyped-call]


class _FieldReader:
    """One pass over the events of a text."""

    def __init__(self, text: str, real: dict[str, str]) -> None:
        self._text = text
        self._real = real
        self._source: _YamlEvents | None = None

    def fields(self) -> dict[str, FrontmatterField]:
        try:
            self._source = _YamlEvents(self._text)
            self._events = iter(self._source)
            return self._document()
        except yaml.MarkedYAMLError as problem:
            place = problem.problem_mark or problem.context_mark
            raise NotYaml(self._reason(problem), place) from None
        except (yaml.YAMLError, ValueError, ArithmeticError, LookupError, RecursionError) as problem:
            place = self._source.get_mark() if self._source is not None else None
            raise NotYaml(type(problem).__name__, place) from None

    def _reason(self, problem: yaml.MarkedYAMLError) -> str:
        return " ".join(self._as_written(part) for part in (problem.context, problem.problem) if part)

    def _as_written(self, text: str) -> str:
        for stand_in, character in self._real.items():
            text = text.replace(stand_in, character)
        return text if text.isprintable() else ascii(text)[1:-1]

    # -- events -------------------------------------------------------------------------------------

    def _document(self) -> dict[str, FrontmatterField]:
        next(self._events)  # the stream's start
        event = next(self._events)
        if isinstance(event, StreamEndEvent):
            return {}
        if isinstance(event, DocumentStartEvent) and event.explicit:
            raise self._refused("several_documents", event, "a line of its own starts a document")
        event = next(self._events)
        self._check(event)
        if isinstance(event, ScalarEvent) and not event.value:
            fields: dict[str, FrontmatterField] = {}
        elif isinstance(event, MappingStartEvent):
            fields = self._fields()
        else:
            raise self._refused("not_a_mapping", event)
        next(self._events)  # the document's end
        event = next(self._events)
        if not isinstance(event, StreamEndEvent):
            raise self._refused("several_documents", event)
        return fields

    def _fields(self) -> dict[str, FrontmatterField]:
        fields: dict[str, FrontmatterField] = {}
        while not isinstance(event := next(self._events), MappingEndEvent):
            key = self._key(event, fields)
            start = next(self._events)
            value = self._node(start, 1)
            tail = self._tail(start) if isinstance(start, ScalarEvent) and start.style is None else ""
            fields[key] = FrontmatterField(value, *_place(start), *_place(event), tail)
        return fields

    def _node(self, event: Event, depth: int) -> Data:
        self._check(event)
        if isinstance(event, ScalarEvent):
            return self._scalar(event)
        if depth >= MAX_DEPTH:
            raise self._refused("nested_too_deep", event, f"more than {MAX_DEPTH} levels")
        if isinstance(event, SequenceStartEvent):
            items: list[Data] = []
            while not isinstance(event := next(self._events), SequenceEndEvent):
                items.append(self._node(event, depth + 1))
            return items
        mapping: dict[str, Data] = {}
        while not isinstance(event := next(self._events), MappingEndEvent):
            key = self._key(event, mapping)
            mapping[key] = self._node(next(self._events), depth + 1)
        return mapping

    def _key(self, event: Event, known: dict[str, Any]) -> str:
        self._check(event)
        if not isinstance(event, ScalarEvent):
            raise self._refused("bad_key", event)
        key = self._scalar(event)
        if key == "<<":
            raise self._refused("merge_key", event)
        if key in known:
            raise self._refused("duplicate_key", event, quoted(key))
        return key

    def _scalar(self, event: ScalarEvent) -> str:
        text: str = event.value
        for stand_in, character in self._real.items():
            text = text.replace(stand_in, character)
        control = CONTROL.search(text)
        if control is not None:
            raise self._refused("control_character", event, f"U+{ord(control[0]):04X}, written as an escape")
        return text

    def _check(self, event: Event) -> None:
        """Refuse each event that could add to the text as it is written, or change it."""
        if isinstance(event, AliasEvent):
            raise self._refused("alias", event, f"*{self._as_written(event.anchor or '')}")
        if isinstance(event, NodeEvent) and event.anchor is not None:
            raise self._refused("anchor", event, f"&{self._as_written(event.anchor)}")
        tag: str | None = getattr(event, "tag", None)
        if tag is not None:
            raise self._refused("tag", event, quoted(self._as_written(tag)))

    def _tail(self, event: ScalarEvent) -> str:
        start = _mark(event.end_mark).index
        end = self._text.find("\n", start)
        rest = self._text[start : end if end >= 0 else None].strip(" \t")
        return self._as_written(rest) if rest.startswith("#") else ""

    def _refused(self, code: str, event: Event, detail: str = "") -> Refused:
        line, column = _place(event)
        return refusal(code, detail, line=line, column=column)


def _mark(mark: Any) -> Any:
    """Return a mark of an event. Every event of PyYAML's parser has one."""
    return mark


def _place(event: Event) -> tuple[int, int]:
    mark = _mark(event.start_mark)
    return mark.line + FIRST_LINE, mark.column + 1
