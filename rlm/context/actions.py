"""The actions that read a context without showing all of it: info, peek, slice, search and count.

Each action works on one ``ByteWindow``, within the time of its guard. It returns JSON data with ``truncated``.
Characters and lines are counted from 0, as in Python.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rlm.compiler.tokens.token_counter import TokenCounter
from rlm.context import find, utf8
from rlm.context.arguments import DEFAULT_PEEK, invalid
from rlm.context.byte_window import ByteWindow
from rlm.context.limits import ActionLimits, Guard, OutOfTime
from rlm.errors import did_you_mean

EXACT_BYTES = 4 * 1024 * 1024
"""The largest text, in bytes, whose characters and lines ``info`` counts. For a larger text that was not counted yet,
it estimates them from samples.
"""

HEAD_CHARACTERS = 200
MOST_NAMES = 20
"""The most documents that an action's value names."""
LINE_CHARACTERS = 400
"""The most characters of a line that a match shows."""

_SAMPLES, _SAMPLE = 16, 4 * 1024

Arguments = Mapping[str, Any]
Value = dict[str, Any]


# -- info and peek ------------------------------------------------------------------------------------


def info(view: ByteWindow, _arguments: Arguments, guard: Guard, _limits: ActionLimits, tokens: TokenCounter) -> Value:
    """Return kind, sizes, documents and head of a context. ``estimated`` names the fields that were not counted.

    ``tokens`` counts tokens. The tokens of a text above 64 KiB are estimated from samples.
    """
    value: Value = {"kind": view.context.kind.value, "bytes": view.size}
    sample = _Sample(view, guard, tokens)
    if view.size <= EXACT_BYTES or view.counted:
        value["characters"], value["lines"] = view.count(guard)
        estimated = [] if sample.whole and tokens.exact else ["tokens"]
    else:
        value["characters"], value["lines"] = sample.scaled(sample.characters), max(1, sample.scaled(sample.lines))
        estimated = ["characters", "lines", "tokens"]
    value["tokens"] = sample.scaled(sample.tokens)
    if view.context.named:
        value["documents"] = len(view.spans)
        value["names"] = [{"name": span.document.name, "bytes": span.end - span.at} for span in view.spans[:MOST_NAMES]]
    undecodable = view.undecodable if view.counted else sample.undecodable
    if undecodable:
        value["not_utf8"] = undecodable
    text, _ = cut(view, 0, view.size, 4 * HEAD_CHARACTERS)
    unnamed = view.context.named and len(view.spans) > MOST_NAMES
    return {**value, "head": text[:HEAD_CHARACTERS], "estimated": estimated, "truncated": unnamed}


class _Sample:
    """Counts over 16 evenly spread samples of a window, or over all of it where it is smaller than the samples
    together.
    """

    def __init__(self, view: ByteWindow, guard: Guard, tokens: TokenCounter) -> None:
        self._view = view
        self.whole = whole = view.size <= _SAMPLES * _SAMPLE
        starts = [0] if whole else [number * (view.size - _SAMPLE) // (_SAMPLES - 1) for number in range(_SAMPLES)]
        self.bytes = self.characters = self.lines = self.tokens = self.undecodable = 0
        for start in starts:
            guard.check()
            raw = view.read(start, start + (view.size if whole else _SAMPLE))
            if not whole:
                raw = raw[utf8.whole_start(raw) if start else 0 : utf8.whole_end(raw)]
            text = utf8.decode(raw)
            self.bytes += len(raw)
            self.characters += len(text)
            self.lines += utf8.line_ends(raw)
            self.tokens += tokens.count(text)
            self.undecodable += utf8.undecodable_bytes(raw)

    def scaled(self, count: int) -> int:
        """Return the estimate for the whole window from a count in the samples, rounded up."""
        return -(-count * self._view.size // self.bytes) if self.bytes else 0


def peek(view: ByteWindow, arguments: Arguments, guard: Guard, limits: ActionLimits) -> Value:
    """Return the first characters or lines. ``more`` says whether the text goes on after them."""
    size = arguments.get("size", DEFAULT_PEEK[arguments["by"]])
    if arguments["by"] == "characters":
        stop = view.byte_of_character(size, guard)
    else:
        view.count_to(limits.bytes, guard)  # where the lines are longer than can be shown, no need to find them
        stop = view.byte_of_line(size, guard) if view.counted or view.so_far()[2] >= size else view.size
    text, end = cut(view, 0, stop, limits.bytes)
    return {"text": text, "more": stop < view.size, "truncated": end < stop}


def cut(view: ByteWindow, start: int, stop: int, most: int) -> tuple[str, int]:
    """Return the text of some bytes, at most ``most`` bytes as UTF-8, and the position of its end."""
    raw = view.read(start, min(stop, start + most))
    if utf8.undecodable_bytes(raw):
        raw = raw[: most // 3]  # each byte may become U+FFFD
    end = start + len(raw)
    if end < stop:
        end = start + utf8.whole_end(raw)
    return view.text(start, end), end


def named_texts(view: ByteWindow, guard: Guard) -> list[tuple[str | None, str]]:
    """Return ``(name, text)`` for each document. A context without documents gives one text with the name None."""
    if not view.context.named:
        return [(None, view.text(0, view.size))]
    texts: list[tuple[str | None, str]] = []
    for span in view.spans:
        guard.check()
        texts.append((span.document.name, view.text(span.at, span.end)))
    return texts


def whole_text(view: ByteWindow, guard: Guard) -> str:
    """Return the whole text. Where there are several documents, each stands under a line ``=== name ===``."""
    if not view.context.named or len(view.spans) < 2:
        return view.text(0, view.size)
    texts = []
    for span in view.spans:
        guard.check()
        text = view.text(span.at, span.end)
        texts.append(f"=== {span.document.name} ===\n{text}" + ("" if text.endswith(("\n", "\r")) else "\n"))
    return "".join(texts)


# -- slice --------------------------------------------------------------------------------------------


def bounds(view: ByteWindow, arguments: Arguments, guard: Guard) -> tuple[int, int]:
    """Return start and stop, in bytes, of the part that a slice's arguments name."""
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


def part(view: ByteWindow, start: int, stop: int, limits: ActionLimits) -> Value:
    """Return the value of a slice: its text, and ``documents`` where the text is of several."""
    text, end = cut(view, start, stop, limits.bytes)
    value: Value = {"text": text}
    names = [span.document.name for span in view.spans if span.at < end and span.end > start]
    if view.context.named and len(names) > 1:
        value["documents"] = names[:MOST_NAMES]
    return {**value, "truncated": end < stop}


def _python(start: int | None, stop: int | None, size: int) -> tuple[int, int]:
    begin, end, _ = slice(start, stop).indices(size)
    return begin, max(begin, end)


def _named_or(view: ByteWindow, arguments: Arguments) -> tuple[int, int]:
    if "name" not in arguments:
        return _python(arguments.get("start"), arguments.get("stop"), len(view.spans))
    names = [span.document.name or "" for span in view.spans]
    if arguments["name"] not in names:
        hint = did_you_mean(arguments["name"], names[:1000])
        raise invalid("slice", "name", f"the name of a document{hint}", arguments["name"])
    number = names.index(arguments["name"])
    return number, number + 1


def _documents(view: ByteWindow, first: int, last: int) -> tuple[int, int]:
    if first >= last:
        end = view.spans[first].at if first < len(view.spans) else view.size
        return end, end
    return view.spans[first].at, view.spans[last - 1].end


# -- search and count ---------------------------------------------------------------------------------


def search(view: ByteWindow, arguments: Arguments, guard: Guard, limits: ActionLimits) -> Value:
    """Return the matches in order. Where they are truncated, ``stopped_by`` is the reason, and ``next`` the place to go
    on.
    """
    needle = find.needle(arguments.get("literal"), arguments.get("pattern"), arguments["case"])
    most = min(arguments["max_results"], limits.results)
    rows: list[Value] = []
    guard.partial = {"matches": rows, "truncated": True, "stopped_by": "time"}
    used = 0
    try:
        begin = view.byte_of_character(arguments["start"], guard)
        for start, stop in find.matches(view, needle, begin, guard):
            match = _match(view, start, stop, arguments["around"], guard)
            used += _size(match)
            if used > limits.bytes and not rows:  # so that going on at ``next`` always goes on
                match = _match(view, start, stop, 0, guard)
            elif len(rows) == most or used > limits.bytes:
                why = "results" if len(rows) == most else "bytes"
                return {"matches": rows, "truncated": True, "stopped_by": why, "next": match["start"]}
            rows.append(match)
    except OutOfTime:
        return {**guard.partial, **({"next": rows[-1]["stop"]} if rows else {})}
    return {"matches": rows, "truncated": False}


def _size(value: Value) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def _match(view: ByteWindow, start: int, stop: int, around: int, guard: Guard) -> Value:
    line = view.line_of_byte(start, guard)
    characters = {"start": view.character_of_byte(start, guard), "stop": view.character_of_byte(stop, guard)}
    span = view.spans[view.span_index(min(start, view.size - 1))]
    value: Value = {**characters, "line": line, "line_number": line - view.line_of_byte(span.at, guard) + 1}
    if view.context.named:
        value["document"] = span.document.name
    reach = 4 * LINE_CHARACTERS * (1 + around)
    match_end = min(stop, start + reach)
    low, high = max(span.at, start - reach), min(span.end, match_end + reach)
    before, behind = view.read(low, start), view.read(start, high)
    before = before[utf8.whole_start(before) if low > span.at else 0 :]
    behind = behind[: utf8.whole_end(behind) if high < span.end else None]
    text, above, below = _lines_around(before, behind, match_end - start)
    value["text"] = text
    if around:
        value["before"], value["after"] = above[-around:], below[:around]
    return value


def _lines_around(before: bytes, behind: bytes, size: int) -> tuple[str, list[str], list[str]]:
    """Return the line of a match, the lines before it and the lines after it.

    The match is the first ``size`` bytes of ``behind``; it may reach over several lines.
    """
    if before.endswith(b"\r") and behind.startswith(b"\n"):
        before = before[:-1]
    *above, line_start = utf8.LINE_END.split(utf8.decode(before))
    text = utf8.decode(behind)
    end = utf8.LINE_END.search(text, max(0, len(utf8.decode(behind[:size])) - 1))
    rest = text[: end.start()] if end else text
    below = utf8.LINE_END.split(text[end.end() :]) if end else []
    if below and not below[-1]:
        below.pop()
    near = [[_shortened(line, 0) for line in lines] for lines in (above, below)]
    return _shortened(line_start + rest, len(line_start)), near[0], near[1]


def _shortened(line: str, at: int) -> str:
    """Return the part of a long line around the character at ``at``."""
    start = max(0, min(at - LINE_CHARACTERS // 4, len(line) - LINE_CHARACTERS))
    return line[start : start + LINE_CHARACTERS]


def count(view: ByteWindow, arguments: Arguments, guard: Guard, _limits: ActionLimits) -> Value:
    """Return the number of matches or lines; where the time is over, the number until then, as truncated."""
    value: Value = {"count": 0, "truncated": True, "stopped_by": "time"}
    guard.partial = value
    try:
        for number in _counting(view, arguments, guard):
            value["count"] = number
    except OutOfTime:
        return dict(value)
    return {"count": value["count"], "truncated": False}


def _counting(view: ByteWindow, arguments: Arguments, guard: Guard) -> Iterator[int]:
    """Yield the count as it rises."""
    if "literal" not in arguments and "pattern" not in arguments:
        while not view.counted:
            view.count_on(guard)
            yield view.so_far()[2]
        yield view.so_far()[2]
        return
    needle = find.needle(arguments.get("literal"), arguments.get("pattern"), arguments["case"])
    if arguments["by"] == "lines":
        yield from (number for number, _ in enumerate(find.matches(view, needle, 0, guard, "line"), 1))
    elif isinstance(needle, find.LiteralNeedle) and not needle.overlaps_itself:
        yield from find.occurrences(view, needle, guard)
    else:
        yield from (number for number, _ in enumerate(find.matches(view, needle, 0, guard), 1))
