"""What can be asked of a text without showing all of it: info, peek, slice, search, count.

Each works on one view, within the time of its guard, and returns JSON data that says whether it is ``truncated``.
Characters and lines are counted from 0, as in Python.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rlm.context import find, utf8
from rlm.context.arguments import DEFAULT_PEEK, invalid
from rlm.context.byte_window import ByteWindow
from rlm.context.guard import Guard, OutOfTime
from rlm.context.limits import Limits
from rlm.errors import did_you_mean
from rlm.tokens.estimate import estimate

EXACT_BYTES = 4 * 1024 * 1024
"""Up to here ``info`` counts characters and lines; beyond, it estimates them from samples, unless they are known."""

HEAD_CHARACTERS = 200
MOST_NAMES = 20
LINE_CHARACTERS = 400
"""Characters of a line that a search shows."""

_SAMPLES, _SAMPLE = 16, 4 * 1024

Arguments = Mapping[str, Any]
Value = dict[str, Any]


# -- info and peek ------------------------------------------------------------------------------------


def info(view: ByteWindow, _arguments: Arguments, guard: Guard, _limits: Limits) -> Value:
    """Kind, size, documents and head. ``estimated`` names the fields that were not counted."""
    found: Value = {"kind": view.context.kind.value, "bytes": view.size}
    sample = _Sample(view, guard)
    if view.size <= EXACT_BYTES or view.counted:
        found["characters"], found["lines"] = view.count(guard)
        estimated = ["tokens"]
    else:
        found["characters"], found["lines"] = sample.scaled(sample.characters), max(1, sample.scaled(sample.lines))
        estimated = ["characters", "lines", "tokens"]
    found["tokens"] = sample.scaled(sample.tokens)
    if view.context.named:
        found["documents"] = len(view.stretches)
        found["names"] = [
            {"name": stretch.document.name, "bytes": stretch.end - stretch.at}
            for stretch in view.stretches[:MOST_NAMES]
        ]
    strange = view.strange if view.counted else sample.strange
    if strange:
        found["not_utf8"] = strange
    text, _ = cut(view, 0, view.size, 4 * HEAD_CHARACTERS)
    unnamed = view.context.named and len(view.stretches) > MOST_NAMES
    return {**found, "head": text[:HEAD_CHARACTERS], "estimated": estimated, "truncated": unnamed}


class _Sample:
    """What some pieces of a view, evenly spread, are like; all of it where it is small."""

    def __init__(self, view: ByteWindow, guard: Guard) -> None:
        self._view = view
        whole = view.size <= _SAMPLES * _SAMPLE
        starts = [0] if whole else [number * (view.size - _SAMPLE) // (_SAMPLES - 1) for number in range(_SAMPLES)]
        self.bytes = self.characters = self.lines = self.tokens = self.strange = 0
        for start in starts:
            guard.check()
            raw = view.read(start, start + (view.size if whole else _SAMPLE))
            if not whole:
                raw = raw[utf8.whole_start(raw) if start else 0 : utf8.whole_end(raw)]
            text = utf8.decode(raw)
            self.bytes += len(raw)
            self.characters += len(text)
            self.lines += utf8.line_ends(raw)
            self.tokens += estimate(text)
            self.strange += utf8.strange(raw)

    def scaled(self, count: int) -> int:
        """What the whole would have, rounded up."""
        return -(-count * self._view.size // self.bytes) if self.bytes else 0


def peek(view: ByteWindow, arguments: Arguments, guard: Guard, limits: Limits) -> Value:
    """The first characters or lines; ``more`` says whether the text goes on after what was asked for."""
    size = arguments.get("size", DEFAULT_PEEK[arguments["by"]])
    if arguments["by"] == "characters":
        stop = view.byte_of_character(size, guard)
    else:
        view.count_to(limits.bytes, guard)  # where the lines are longer than can be shown, no need to find them
        stop = view.byte_of_line(size, guard) if view.counted or view.so_far()[2] >= size else view.size
    text, end = cut(view, 0, stop, limits.bytes)
    return {"text": text, "more": stop < view.size, "truncated": end < stop}


def cut(view: ByteWindow, start: int, stop: int, most: int) -> tuple[str, int]:
    """The text of some bytes, but not over ``most`` bytes as UTF-8, and where it ends."""
    raw = view.read(start, min(stop, start + most))
    if utf8.strange(raw):
        raw = raw[: most // 3]  # each byte may become U+FFFD
    end = start + len(raw)
    if end < stop:
        end = start + utf8.whole_end(raw)
    return view.text(start, end), end


def named_texts(view: ByteWindow, guard: Guard) -> list[tuple[str | None, str]]:
    """The text of each document with its name; of what has none, one text without a name."""
    if not view.context.named:
        return [(None, view.text(0, view.size))]
    texts: list[tuple[str | None, str]] = []
    for stretch in view.stretches:
        guard.check()
        texts.append((stretch.document.name, view.text(stretch.at, stretch.end)))
    return texts


def whole_text(view: ByteWindow, guard: Guard) -> str:
    """All of it; where there are several documents, each under a line with its name."""
    if not view.context.named or len(view.stretches) < 2:
        return view.text(0, view.size)
    texts = []
    for stretch in view.stretches:
        guard.check()
        text = view.text(stretch.at, stretch.end)
        texts.append(f"=== {stretch.document.name} ===\n{text}" + ("" if text.endswith(("\n", "\r")) else "\n"))
    return "".join(texts)


# -- slice --------------------------------------------------------------------------------------------


def bounds(view: ByteWindow, arguments: Arguments, guard: Guard) -> tuple[int, int]:
    """The bytes that a slice means."""
    by, start, stop = arguments["by"], arguments.get("start"), arguments.get("stop")
    if by == "bytes":
        return _python(start, stop, view.size)
    if by == "documents":
        return _documents(view, *_named_or(view, arguments))
    if (start or 0) < 0 or (stop or 0) < 0:
        start, stop = _python(start, stop, view.count(guard)[0 if by == "characters" else 1])
    place = view.byte_of_character if by == "characters" else view.byte_of_line
    begin = place(start or 0, guard)
    return begin, max(begin, view.size if stop is None else place(stop, guard))


def part(view: ByteWindow, start: int, stop: int, limits: Limits) -> Value:
    """What a slice shows of the bytes that it means; ``documents`` where they are of several."""
    text, end = cut(view, start, stop, limits.bytes)
    found: Value = {"text": text}
    names = [stretch.document.name for stretch in view.stretches if stretch.at < end and stretch.end > start]
    if view.context.named and len(names) > 1:
        found["documents"] = names[:MOST_NAMES]
    return {**found, "truncated": end < stop}


def _python(start: int | None, stop: int | None, size: int) -> tuple[int, int]:
    begin, end, _ = slice(start, stop).indices(size)
    return begin, max(begin, end)


def _named_or(view: ByteWindow, arguments: Arguments) -> tuple[int, int]:
    if "name" not in arguments:
        return _python(arguments.get("start"), arguments.get("stop"), len(view.stretches))
    names = [stretch.document.name or "" for stretch in view.stretches]
    if arguments["name"] not in names:
        hint = did_you_mean(arguments["name"], names[:1000])
        raise invalid("slice", "name", f"the name of a document{hint}", arguments["name"])
    number = names.index(arguments["name"])
    return number, number + 1


def _documents(view: ByteWindow, first: int, last: int) -> tuple[int, int]:
    if first >= last:
        end = view.stretches[first].at if first < len(view.stretches) else view.size
        return end, end
    return view.stretches[first].at, view.stretches[last - 1].end


# -- search and count ---------------------------------------------------------------------------------


def search(view: ByteWindow, arguments: Arguments, guard: Guard, limits: Limits) -> Value:
    """Matches in order. Where it is truncated, ``stopped_by`` says why, and ``next`` where to go on."""
    needle = find.needle(arguments.get("literal"), arguments.get("pattern"), arguments["case"])
    most = min(arguments["max_results"], limits.results)
    found: list[Value] = []
    guard.partial = {"matches": found, "truncated": True, "stopped_by": "time"}
    used = 0
    try:
        begin = view.byte_of_character(arguments["start"], guard)
        for start, stop in find.matches(view, needle, begin, guard):
            match = _match(view, start, stop, arguments["around"], guard)
            used += _size(match)
            if used > limits.bytes and not found:  # so that going on at ``next`` always goes on
                match = _match(view, start, stop, 0, guard)
            elif len(found) == most or used > limits.bytes:
                why = "results" if len(found) == most else "bytes"
                return {"matches": found, "truncated": True, "stopped_by": why, "next": match["start"]}
            found.append(match)
    except OutOfTime:
        return {**guard.partial, **({"next": found[-1]["stop"]} if found else {})}
    return {"matches": found, "truncated": False}


def _size(value: Value) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def _match(view: ByteWindow, start: int, stop: int, around: int, guard: Guard) -> Value:
    line = view.line_of_byte(start, guard)
    characters = {"start": view.character_of_byte(start, guard), "stop": view.character_of_byte(stop, guard)}
    stretch = view.stretches[view.stretch_index(min(start, view.size - 1))]
    found: Value = {**characters, "line": line, "line_number": line - view.line_of_byte(stretch.at, guard) + 1}
    if view.context.named:
        found["document"] = stretch.document.name
    reach = 4 * LINE_CHARACTERS * (1 + around)
    seen = min(stop, start + reach)
    low, high = max(stretch.at, start - reach), min(stretch.end, seen + reach)
    before, behind = view.read(low, start), view.read(start, high)
    before = before[utf8.whole_start(before) if low > stretch.at else 0 :]
    behind = behind[: utf8.whole_end(behind) if high < stretch.end else None]
    text, above, below = _lines_around(before, behind, seen - start)
    found["text"] = text
    if around:
        found["before"], found["after"] = above[-around:], below[:around]
    return found


def _lines_around(before: bytes, behind: bytes, size: int) -> tuple[str, list[str], list[str]]:
    """The line, or lines, of a match of ``size`` bytes at the start of ``behind``; those before it and after it."""
    if before.endswith(b"\r") and behind.startswith(b"\n"):
        before = before[:-1]
    *above, begun = utf8.LINE_END.split(utf8.decode(before))
    text = utf8.decode(behind)
    end = utf8.LINE_END.search(text, max(0, len(utf8.decode(behind[:size])) - 1))
    rest = text[: end.start()] if end else text
    below = utf8.LINE_END.split(text[end.end() :]) if end else []
    if below and not below[-1]:
        below.pop()
    near = [[_shortened(line, 0) for line in lines] for lines in (above, below)]
    return _shortened(begun + rest, len(begun)), near[0], near[1]


def _shortened(line: str, at: int) -> str:
    """The part of a long line around a place in it."""
    start = max(0, min(at - LINE_CHARACTERS // 4, len(line) - LINE_CHARACTERS))
    return line[start : start + LINE_CHARACTERS]


def count(view: ByteWindow, arguments: Arguments, guard: Guard, _limits: Limits) -> Value:
    """How many; out of time, how many until then."""
    found: Value = {"count": 0, "truncated": True, "stopped_by": "time"}
    guard.partial = found
    try:
        for number in _counting(view, arguments, guard):
            found["count"] = number
    except OutOfTime:
        return dict(found)
    return {"count": found["count"], "truncated": False}


def _counting(view: ByteWindow, arguments: Arguments, guard: Guard) -> Iterator[int]:
    """The count as it rises."""
    if "literal" not in arguments and "pattern" not in arguments:
        while not view.counted:
            view.count_on(guard)
            yield view.so_far()[2]
        yield view.so_far()[2]
        return
    needle = find.needle(arguments.get("literal"), arguments.get("pattern"), arguments["case"])
    if arguments["by"] == "lines":
        yield from (number for number, _ in enumerate(find.matches(view, needle, 0, guard, "line"), 1))
    elif isinstance(needle, find.Exactly) and not needle.overlaps_itself:
        yield from find.occurrences(view, needle, guard)
    else:
        yield from (number for number, _ in enumerate(find.matches(view, needle, 0, guard), 1))
