"""A frontmatter as data: mappings, lists and text, and nothing that YAML could make of them.

Only PyYAML's reader, scanner and parser are used, never its composer, resolver or constructor: there is nothing
here that could build an object. Every scalar stays the text that was written (``on``, ``007``, ``1.10``). Events are
read one by one and refused before anything is made of them, so the depth of this module is bounded by ``MAX_DEPTH``.
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
"""Text, or a list or mapping of it; a recursive type that the checker need not follow."""

FIRST_LINE = 2
"""The line of the file on which a frontmatter begins."""

_LINE_ENDS_OF_YAML = "\x85\u2028\u2029\ufeff"
"""What PyYAML takes for a line end or skips; here they are characters like others."""


@dataclass(frozen=True)
class FrontmatterField:
    """The value of a top-level field, with the places of its key and its value in the file."""

    value: Data
    line: int
    column: int
    key_line: int
    key_column: int
    tail: str = field(default="", compare=False)
    """What stands in the same line behind a plain value: a comment."""


class NotYaml(Exception):
    """PyYAML could not read the text, for the reason ``said``; a narrow repair may be tried."""

    def __init__(self, said: str, mark: Any) -> None:
        super().__init__(said)
        self.said = said
        line, column = (mark.line + FIRST_LINE, mark.column + 1) if mark is not None else (FIRST_LINE, 1)
        self.refused = refusal("yaml_error", said, line=line, column=column)


def fields_of(text: str) -> dict[str, FrontmatterField]:
    """The fields of a frontmatter, in the order in which they stand.

    Raises:
        NotYaml: it is no YAML at all.
        Refused: it is YAML that has no place in a frontmatter.
    """
    stand_ins = _stand_ins(text)
    for character, stand_in in stand_ins.items():
        text = text.replace(character, stand_in)
    return _Walk(text, {stand_in: character for character, stand_in in stand_ins.items()}).fields()


def _stand_ins(text: str) -> dict[str, str]:
    """For each odd line end of a text, a private character that it does not hold."""
    present = [character for character in _LINE_ENDS_OF_YAML if character in text]
    free = (chr(code) for code in range(0xE000, 0xF8FF) if chr(code) not in text)
    return dict(zip(present, free, strict=False))


class _YamlEvents(Reader, Scanner, Parser):
    """PyYAML up to its events: made as its loaders are, without what constructs."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)

    def __iter__(self) -> Iterator[Event]:
        while self.check_event():
            yield self.get_event()  # type: ignore[no-untyped-call]


class _Walk:
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
            raise NotYaml(self._said(problem), place) from None
        except (yaml.YAMLError, ValueError, ArithmeticError, LookupError, RecursionError) as problem:
            place = self._source.get_mark() if self._source is not None else None
            raise NotYaml(type(problem).__name__, place) from None

    def _said(self, problem: yaml.MarkedYAMLError) -> str:
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
        found: dict[str, FrontmatterField] = {}
        while not isinstance(event := next(self._events), MappingEndEvent):
            key = self._key(event, found)
            start = next(self._events)
            value = self._node(start, 1)
            tail = self._tail(start) if isinstance(start, ScalarEvent) and start.style is None else ""
            found[key] = FrontmatterField(value, *_place(start), *_place(event), tail)
        return found

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
        found: dict[str, Data] = {}
        while not isinstance(event := next(self._events), MappingEndEvent):
            key = self._key(event, found)
            found[key] = self._node(next(self._events), depth + 1)
        return found

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
        """Refuse what could make more, or something else, of a text than what is written."""
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

    def _refused(self, code: str, event: Event, said: str = "") -> Refused:
        line, column = _place(event)
        return refusal(code, said, line=line, column=column)


def _mark(mark: Any) -> Any:
    """A mark of an event that PyYAML's parser made: it always has one."""
    return mark


def _place(event: Event) -> tuple[int, int]:
    mark = _mark(event.start_mark)
    return mark.line + FIRST_LINE, mark.column + 1
