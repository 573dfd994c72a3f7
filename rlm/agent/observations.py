"""Observed values in a request: whole where they have room, else in part, with the way to read on.

Characters are those of texts, not of their JSON. Totals stand first. Cuts fall between lines of a text and between
items of a list. No word of a value stands outside of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rlm.fencing import (
    SHORT,
    FencedRow,
    FencedText,
    blocks_of,
    json_text,
    message,
    row,
    row_label,
    rows_block,
    text_block,
)
from rlm.plan import is_failure, is_handle
from rlm.plan.problems import inside

OBSERVED_LIMIT = 10_000
"""Characters of all values that one turn shows: about 2,500 tokens. Other runtimes for long inputs show 10,000 or
20,000 characters of an output; the lower number leaves room for several turns.
"""

LEAST_ROOM = 200
"""Characters that each value has at least, however many there are."""

OWN_BLOCK = 1_000
"""Characters of a text inside a value from which on it has a block of its own; shorter ones stand in JSON."""

HEAD_SHARE = 2 / 3
"""The part of the room that the beginning of a cut value has; the end has the rest."""

FIRST_LINE = 80
"""Characters of the first line of a value that is told in short."""

MOST_LEVELS = 4
"""The most levels of lists and objects that are laid out one by one."""

SHAPE_LEVELS, SHAPE_FIELDS, SHAPE_NAME = 3, 12, 40
"""The most levels, fields of an object, and characters of a field's name in the shape of a result."""

Part = str | FencedText | FencedRow
Keep = Callable[[str, str], str | None]
"""Keeps a text under a name as a context, and returns the context's name; None where no action could read it."""


@dataclass(frozen=True)
class Observation:
    """Values as a message shows them, and the same in short.

    ``sizes`` has the characters that are shown of each value, by label.
    """

    text: str
    short: str
    sizes: Mapping[str, int]


def observe(values: Mapping[str, Any], room: int, keep: Keep, *more: FencedText) -> Observation:
    """Return values as they stand in a request.

    Args:
        values: the values by label.
        room: characters of all values together.
        keep: makes a text that is too long readable by actions.
        more: blocks that stand after the values.
    """
    rooms = shares({label: characters_of(value) for label, value in values.items()}, room)
    parts: list[Part] = []
    for label, value in values.items():
        parts += _Layout(label, keep).parts(value, rooms[label])
    sizes = {label: min(rooms[label], characters_of(value)) for label, value in values.items()}
    return Observation(message(*_blocks(parts), *more) or "(nothing)\n", message(*in_short(values)), sizes)


def in_short(values: Mapping[str, Any]) -> list[FencedText]:
    """Return a block with a line for each value: its kind, its size and its first line; nothing without values."""
    rows = [row(row_label(label), f"{describe(value)}: {_first_line(value)}") for label, value in values.items()]
    return [rows_block("in-short", rows)] if rows else []


def shares(sizes: Mapping[str, int], room: int) -> dict[str, int]:
    """Return the room of each value: small ones have their size, the others share the rest equally.

    For example ``shares({"a": 10, "b": 900, "c": 900}, 1_010)`` is ``{"a": 10, "b": 500, "c": 500}``.
    """
    rooms: dict[str, int] = {}
    for number, (label, size) in enumerate(sorted(sizes.items(), key=lambda pair: pair[1])):
        rooms[label] = min(size, max(LEAST_ROOM, room // (len(sizes) - number)))
        room -= rooms[label]
    return rooms


def characters_of(value: Any) -> int:
    """Return the characters of a value: those of its texts and numbers, and two for each item or key."""
    total, stack = 0, [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, dict):
            total += sum(map(len, item)) + 2 * len(item)
            stack += item.values()
        elif isinstance(item, list):
            total += 2 * len(item)
            stack += item
        else:
            total += len(json_text(item))
    return total


def describe(value: Any) -> str:
    """Return kind and size of a value, for example ``a list of 300 items, 45,210 characters``."""
    if isinstance(value, str):
        lines = value.count("\n") + (not value.endswith("\n")) if value else 0
        return f"a text of {len(value):,} characters, {lines:,} lines"
    if not isinstance(value, list | dict):
        return "a value"
    kind = f"a list of {len(value):,} items" if isinstance(value, list) else f"an object of {len(value):,} fields"
    failed = [f"[{number}]" for number, item in enumerate(value) if is_failure(item)] if isinstance(value, list) else []
    failures = f", {len(failed):,} of them failed steps ({', '.join(failed[:5])})" if failed else ""
    return f"{kind}, {characters_of(value):,} characters{failures}"


def shape_of(value: Any, level: int = 0) -> str:
    """Return the shape of a result in short, for example ``{projects: [{key, name}]}``.

    A field that holds no object and no list stands there by its name alone.
    """
    if isinstance(value, list):
        return f"[{shape_of(value[0], level)}]" if value else "[]"
    if not isinstance(value, dict):
        return "text" if isinstance(value, str) else "null" if value is None else "value"
    if level >= SHAPE_LEVELS:
        return "{...}"
    fields = []
    for key, item in list(value.items())[:SHAPE_FIELDS]:
        name = str(key)[:SHAPE_NAME]
        fields.append(f"{name}: {shape_of(item, level + 1)}" if isinstance(item, list | dict) else name)
    return "{" + ", ".join([*fields, *(["..."] if len(value) > SHAPE_FIELDS else [])]) + "}"


def _first_line(value: Any) -> str:
    text = value.lstrip().split("\n", 1)[0] if isinstance(value, str) else json_text(_beginning(value))
    return text[:FIRST_LINE]


def _beginning(value: Any) -> Any:
    """Return a value with few of its members, so that a large one is not written out."""
    if isinstance(value, list):
        return [_beginning(item) for item in value[:2]]
    if isinstance(value, dict):
        return {key: _beginning(item) for key, item in list(value.items())[:4]}
    return value[:FIRST_LINE] if isinstance(value, str) else value


class _Layout:
    """The layout of one observed value."""

    def __init__(self, label: str, keep: Keep) -> None:
        self.label = label
        self.keep = keep
        self.handles: dict[str, str] = {}

    def parts(self, value: Any, room: int) -> list[Part]:
        """Return the parts of a message that show the value within ``room`` characters."""
        own_error = isinstance(value, dict) and "error" in value and not is_failure(value)
        made: list[Part] = []
        if characters_of(value) > room:
            made.append(f"{row_label(self.label)}: {describe(value)}, shown in part:\n")
        elif isinstance(value, list) and any(map(is_failure, value)):
            made.append(f"{row_label(self.label)}: {describe(value)}\n")
        made += self._shown(value, self.label, room, 0)
        return (
            [*made, f"({row_label(self.label)} is the result; its `error` is no failed step)\n"] if own_error else made
        )

    def _shown(self, value: Any, path: str, room: int, level: int) -> Iterator[Part]:
        fits = characters_of(value) <= room
        if isinstance(value, str):
            yield from [self._row(path, value)] if fits else self._cut_text(value, path, room)
        elif not isinstance(value, list | dict) or (fits and len(json_text(value)) <= SHORT):
            yield self._row(path, value)
        elif level >= MOST_LEVELS:
            yield _cut_json(path, value, room)
        elif isinstance(value, dict):
            yield from self._object(value, path, room, level)
        else:
            yield from self._list(value, path, room, level)

    def _row(self, path: str, value: Any) -> FencedRow:
        return FencedRow(path, row_label(path), "text", value)

    # -- texts --------------------------------------------------------------------------------------

    def _cut_text(self, value: str, path: str, room: int) -> Iterator[Part]:
        """Yield the beginning and the end of a text, and between them the way to read on."""
        stop = _break_before(value, int(room * HEAD_SHARE))
        start = _break_after(value, len(value) - max(0, room - stop))
        yield _part_of_text(path, value, 0, stop)
        yield f"({start - stop:,} characters left out{self._read_on_text(value, path, stop)})\n"
        if start < len(value):
            yield _part_of_text(f"{path}:end", value, start, len(value))

    def _read_on_text(self, value: str, path: str, stop: int) -> str:
        if path in self.handles:
            return f"; read on: `slice` of context `{self.handles[path]}`, start={stop}"
        if path != self.label:
            return "; to read on, observe the path of this text alone"
        handle = self.keep(_name(self.label), value)
        return "" if handle is None else f"; read on: `slice` of context `{handle}`, start={stop}"

    # -- objects and lists --------------------------------------------------------------------------

    def _object(self, value: dict[str, Any], path: str, room: int, level: int) -> Iterator[Part]:
        """Yield an object: as JSON where it is whole and has no long text, else field by field."""
        fits = characters_of(value) <= room
        if fits and not _has_long_text(value):
            yield FencedRow(path, row_label(path), "object", value)
            return
        if is_handle(value.get("part")):  # a slice, whose text can be read on
            self.handles[inside(path, "text")] = value["part"]["handle"]
        rooms = {key: characters_of(item) for key, item in value.items()}
        rooms = rooms if fits else shares(rooms, room)
        for number, (key, item) in enumerate(value.items()):
            if not fits and room < LEAST_ROOM * number:
                yield f"({len(value) - number:,} fields left out)\n"
                return
            yield from self._shown(item, inside(path, key), rooms[key], level + 1)

    def _list(self, value: list[Any], path: str, room: int, level: int) -> Iterator[Part]:
        """Yield the first and the last items of a list; an item is never cut beside other items."""
        head = self._fitting(value, room if characters_of(value) <= room else int(room * HEAD_SHARE))
        if head == 0 and value:
            yield from self._shown(value[0], inside(path, 0), int(room * HEAD_SHARE), level + 1)
            head = 1
        else:
            yield from self._items(value, path, range(head), room, level)
        if head == len(value):
            return
        tail = self._fitting(value[:head:-1], room - int(room * HEAD_SHARE))
        last = len(value) - tail
        where = f"path [{head}]" if path == self.label else f"[{head}] of this list"
        yield f"(items {head:,} to {last - 1:,} of {len(value):,} left out; read on: {where})\n"
        yield from self._items(value, path, range(last, len(value)), room, level)

    def _fitting(self, items: Iterable[Any], room: int) -> int:
        """Return the number of items that fit into the room one after the other."""
        number = 0
        for item in items:
            room -= 2 + characters_of(item)
            if room < 0:
                break
            number += 1
        return number

    def _items(self, value: list[Any], path: str, numbers: range, room: int, level: int) -> Iterator[Part]:
        """Yield items, one line of JSON for each; an item with a long text has blocks of its own."""
        lines: list[str] = []
        first = numbers.start
        for number in numbers:
            if not _has_long_text(value[number]):
                lines.append(json_text(value[number]))
                continue
            if lines:
                yield _lines_block(path, first, len(value), lines)
            yield from self._shown(value[number], inside(path, number), room, level + 1)
            lines, first = [], number + 1
        if lines:
            yield _lines_block(path, first, len(value), lines)


def _lines_block(path: str, first: int, total: int, lines: list[str]) -> FencedText:
    """Return a block with one item of a list in each line."""
    body = "\n".join(lines)
    name = path if first == 0 else inside(path, first)
    return FencedText(name, f"list of {total}", len(body), body)


def _part_of_text(name: str, value: str, start: int, stop: int) -> FencedText:
    block = text_block(name, value[start:stop])
    return replace(block, size=len(value), shown=stop - start)


def _cut_json(path: str, value: Any, room: int) -> FencedText:
    text = json_text(value)
    return FencedText(path, "value", len(text), text[:room], shown=min(len(text), room))


def _break_before(text: str, stop: int) -> int:
    """Return the end of the last line before a place, or of the last word, within a fifth of the way to it."""
    least = stop - stop // 5
    for mark in ("\n", " "):
        at = text.rfind(mark, least, stop)
        if at >= 0:
            return at + 1
    return stop


def _break_after(text: str, start: int) -> int:
    """Return the start of the next line after a place, or of the next word, within a fifth of the rest."""
    most = start + (len(text) - start) // 5
    for mark in ("\n", " "):
        at = text.find(mark, start, most)
        if at >= 0:
            return at + 1
    return start


def _has_long_text(value: Any) -> bool:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if len(item) > OWN_BLOCK:
                return True
        elif isinstance(item, list | dict):
            stack += item.values() if isinstance(item, dict) else item
    return False


def _name(label: str) -> str:
    """Return the name of a context for a label, for example ``report_text`` for ``report.text``."""
    name = "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in label).strip("_")[:64]
    return name if name[:1].isalpha() else f"value_{name}"[:64]


def _blocks(parts: Iterable[Part]) -> Iterator[str | FencedText]:
    """Yield the parts with rows as blocks; neighbours that are short share one."""
    rows: list[FencedRow] = []
    for part in parts:
        if isinstance(part, FencedRow):
            rows.append(part)
            continue
        yield from (block for block, _ in blocks_of(rows))
        rows = []
        yield part
    yield from (block for block, _ in blocks_of(rows))
