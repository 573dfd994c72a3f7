"""The actions that find text in a context: search, count and verify.

A literal is found across line ends: each run of white space inside it stands for any white space. Characters are
counted from 0, as in Python. Lines are counted from 1 in their document, as editors do.
"""

from __future__ import annotations

import heapq
import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rlm.context import find, utf8
from rlm.context.actions import MOST_NAMES, Arguments, Value
from rlm.context.arguments import invalid
from rlm.context.byte_window import ByteWindow, DocumentSpan
from rlm.context.limits import ActionLimits, Guard, OutOfTime
from rlm.errors import did_you_mean

LINE_CHARACTERS = 400
"""The most characters of a line that a match shows."""

LINES_AROUND = 2
"""Lines before and after a match by default: enough for a sentence that is broken over lines."""

FEW_RESULTS = 20
"""Up to so many results have lines around them by default; longer lists are read by a plan, line by line."""

COUNTED_ON = 32 * 1024 * 1024
"""Bytes behind the last match of the results in which further matches are counted: 0.1 s of work."""

MOST_SCANNED = 4 * 1024 * 1024
"""The largest text, in bytes, in which the headings of matches are looked up."""

TITLE_CHARACTERS = 80

_SECTION = re.compile(
    rb"^[ \t]{0,3}(?:#{1,6}[ \t]+\S"
    rb"|(?i:section|article|chapter|part|appendix)[ \t]+[0-9IVXLA-Z]{1,6}\b"
    rb"|\xc2\xa7[ \t]*[0-9]"
    rb"|[0-9]{1,3}(?:\.[0-9]{1,3})*[.)][ \t]+[A-Z\xc3])[^\r\n]{0,120}\r?$",
    re.MULTILINE,
)
"""A Markdown heading, or the first line of a numbered section such as ``4. Redistribution``."""

Hit = tuple[int, int, int]
"""Start and stop of a match in bytes, and the number of its needle."""


def needles(arguments: Arguments) -> list[tuple[str, find.Needle]]:
    """Return the needles of a search with their texts. Raises: ContextError ``invalid_pattern``."""
    case = arguments["case"]
    literals, patterns = _several(arguments.get("literal")), _several(arguments.get("pattern"))
    made = [(text, find.needle(text, None, case)) for text in literals]
    return [*made, *((text, find.needle(None, text, case)) for text in patterns)]


def _several(value: Any) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def search(view: ByteWindow, arguments: Arguments, guard: Guard, limits: ActionLimits) -> Value:
    """Return the matches in order.

    ``total`` is the number of all matches, and ``counts`` that of each document, if all of them could be counted. If
    the matches are truncated, ``stopped_by`` is the reason, and ``next`` the place to go on.
    """
    finder = _Finder(view, arguments, guard)
    most = min(arguments["max_results"], limits.results)
    around = arguments.get("around", LINES_AROUND if most <= FEW_RESULTS else 0)
    rows: list[Value] = []
    guard.partial = {"matches": rows, "truncated": True, "stopped_by": "time"}
    used, rest = 0, dict[str, Any]()
    try:
        for hit in finder.hits(arguments["start"]):
            if rest:
                continue  # counted only
            match = finder.match(hit, around)
            used += _size(match)
            if used > limits.bytes and not rows:  # so that going on at ``next`` always goes on
                match = finder.match(hit, 0)
            elif len(rows) == most or used > limits.bytes:
                rest = {"stopped_by": "results" if len(rows) == most else "bytes", "next": match["start"]}
                if view.size - hit[0] > COUNTED_ON:
                    return {"matches": rows, "truncated": True, **rest}
                guard.partial = {"matches": rows, "truncated": True, **rest}
                continue
            rows.append(match)
    except OutOfTime:
        return {**guard.partial, **({"next": rows[-1]["stop"]} if rows and not rest else {})}
    return {**finder.totals(arguments["start"]), "matches": rows, "truncated": bool(rest), **rest}


class _Finder:
    """Finds the matches of one search, counts them by document, and shows them."""

    def __init__(self, view: ByteWindow, arguments: Arguments, guard: Guard) -> None:
        self.view = view
        self.guard = guard
        self.needles = needles(arguments)
        self.span = _document(view, arguments)
        self.counts: Counter[str] = Counter()
        self._titles: list[tuple[int, str]] | None = None
        self._last_shown = -1

    def hits(self, start: int) -> Iterator[Hit]:
        """Yield the matches from a character on, in order, and count them."""
        begin = self.view.byte_of_character(start, self.guard)
        if self.span is not None:
            begin = max(begin, self.span.at)
        found = [self._of(number, begin) for number in range(len(self.needles))]
        for hit in heapq.merge(*found) if len(found) > 1 else found[0]:
            if self.span is not None and hit[0] >= self.span.end:
                return
            self.counts[self._span_of(hit[0]).document.name or ""] += 1
            yield hit

    def _of(self, number: int, begin: int) -> Iterator[Hit]:
        spans = None if self.span is None else [self.span]
        found = find.matches(self.view, self.needles[number][1], begin, self.guard, spans=spans)
        return ((start, stop, number) for start, stop in found)

    def totals(self, start: int) -> Value:
        """Return the number of matches; by document too, if the context has several."""
        if start:
            return {}  # a search that goes on has counted a part only
        value: Value = {"total": sum(self.counts.values())}
        if self.view.context.named and len(self.view.spans) > 1 and self.counts:
            value["counts"] = dict(self.counts.most_common(MOST_NAMES))
        return value

    def _span_of(self, at: int) -> DocumentSpan:
        return self.view.spans[self.view.span_index(min(at, self.view.size - 1))]

    def match(self, hit: Hit, around: int) -> Value:
        """Return a match with its place, the lines around it, and the heading that it stands under."""
        start, stop, number = hit
        view, guard, span = self.view, self.guard, self._span_of(hit[0])
        line = view.line_of_byte(start, guard)
        value: Value = {"start": view.character_of_byte(start, guard), "stop": view.character_of_byte(stop, guard)}
        if view.context.named:
            value["document"] = span.document.name
        value["line"] = line - view.line_of_byte(span.at, guard) + 1
        heading = self._heading(span, start)
        if heading:
            value["heading"] = heading
        if len(self.needles) > 1:
            value["of"] = self.needles[number][0]
        groups = find.groups(view, self.needles[number][1], span, start, stop)
        if groups:
            value["groups"] = groups
        text, above, below = _lines_of(view, span, start, stop, around)
        value["text"] = text
        if around:
            fresh = line - 1 - self._last_shown  # lines that the match before has shown are not shown again
            above = above[-around:]
            value["before"] = above[max(0, len(above) - fresh) :] if self._last_shown >= 0 else above
            value["after"] = below[:around]
            self._last_shown = line + len(value["after"])
        return value

    def _heading(self, span: DocumentSpan, start: int) -> str:
        """Return the last heading before a place in its document; empty where there is none."""
        if self._titles is None:
            self._titles = list(_titles(self.view, self.guard)) if self.view.size <= MOST_SCANNED else []
        at = bisect_right(self._titles, (start, "\U0010ffff")) - 1
        return self._titles[at][1] if at >= 0 and self._titles[at][0] >= span.at else ""


def _titles(view: ByteWindow, guard: Guard) -> Iterator[tuple[int, str]]:
    """Yield place and text of each heading."""
    for span in view.filled:
        guard.check()
        for match in _SECTION.finditer(view.read(span.at, span.end)):
            yield span.at + match.start(), utf8.decode(match[0]).strip()[:TITLE_CHARACTERS]


def _document(view: ByteWindow, arguments: Arguments) -> DocumentSpan | None:
    """Return the span of the document that the arguments name. Raises: ContextError ``invalid_arguments``."""
    for argument in ("name", "document"):
        if argument in arguments:
            names = [span.document.name or "" for span in view.spans]
            if arguments[argument] not in names:
                hint = did_you_mean(arguments[argument], names[:1000])
                raise invalid("search", argument, f"the name of a document{hint}", arguments[argument])
            return view.spans[names.index(arguments[argument])]
    return None


def _size(value: Value) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def _lines_of(
    view: ByteWindow, span: DocumentSpan, start: int, stop: int, around: int
) -> tuple[str, list[str], list[str]]:
    """Return the line of a match, the lines before it and the lines after it."""
    reach = 4 * LINE_CHARACTERS * (1 + around)
    match_end = min(stop, start + reach)
    low, high = max(span.at, start - reach), min(span.end, match_end + reach)
    before, behind = view.read(low, start), view.read(start, high)
    before = before[utf8.whole_start(before) if low > span.at else 0 :]
    behind = behind[: utf8.whole_end(behind) if high < span.end else None]
    return _lines_around(before, behind, match_end - start)


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


# -- count --------------------------------------------------------------------------------------------


def count(view: ByteWindow, arguments: Arguments, guard: Guard, _limits: ActionLimits) -> Value:
    """Return the number of matches or lines; where the time is over, the number until then, as truncated."""
    value: Value = {"count": 0, "truncated": True, "stopped_by": "time"}
    guard.partial = value
    counts: Counter[str] = Counter()
    try:
        for number in _counting(view, arguments, guard, counts):
            value["count"] = number
    except OutOfTime:
        return dict(value)
    found: Value = {"count": value["count"]}
    if counts and len(view.spans) > 1:
        found["counts"] = dict(counts.most_common(MOST_NAMES))
    return {**found, "truncated": False}


def _counting(view: ByteWindow, arguments: Arguments, guard: Guard, counts: Counter[str]) -> Iterator[int]:
    """Yield the count as it rises, and count by document."""
    if "literal" not in arguments and "pattern" not in arguments:
        while not view.counted:
            view.count_on(guard)
            yield view.so_far()[2]
        yield view.so_far()[2]
        return
    named = view.context.named
    chosen = [needle for _, needle in needles(arguments)]
    only = _document(view, arguments)
    spans: Sequence[DocumentSpan] = view.spans if only is None else [only]
    total = 0
    for needle in chosen:
        quick = isinstance(needle, find.LiteralNeedle) and not needle.overlaps_itself and arguments["by"] != "lines"
        if quick and not named:
            for number in find.occurrences(view, needle, guard):  # type: ignore[arg-type]
                yield total + number
            total = total if not view.size else total + number
            continue
        each: find.Each = "line" if arguments["by"] == "lines" else "occurrence"
        for start, _ in find.matches(view, needle, 0, guard, each, spans=spans):
            total += 1
            if named:
                counts[view.spans[view.span_index(min(start, view.size - 1))].document.name or ""] += 1
            yield total


# -- verify -------------------------------------------------------------------------------------------


def verify(view: ByteWindow, arguments: Arguments, guard: Guard, _limits: ActionLimits) -> Value:
    """Return whether a quotation stands in the text, and where.

    White space makes no difference. ``exact`` is false where only upper and lower case differ. Of a quotation that is
    not there, ``found_until`` has the longest beginning that is.
    """
    quote, span = arguments["quote"], _document(view, arguments)
    for case in ("exact", "fold"):
        hit = _first(view, quote, case, span, guard)
        if hit is not None:
            finder = _Finder(view, {**arguments, "literal": quote, "case": case}, guard)
            match = finder.match((*hit, 0), 0)
            kept: Value = {name: match[name] for name in ("document", "line", "heading") if name in match}
            return {"found": True, "exact": case == "exact", **kept, "start": match["start"], "truncated": False}
    words = quote.split()
    low, high = 0, len(words)
    while low < high - 1:  # the longest beginning that stands there
        middle = (low + high) // 2
        there = _first(view, " ".join(words[:middle]), "fold", span, guard)
        low, high = (middle, high) if there is not None else (low, middle)
    return {"found": False, "found_until": " ".join(words[:low]), "truncated": False}


def _first(view: ByteWindow, text: str, case: str, span: DocumentSpan | None, guard: Guard) -> tuple[int, int] | None:
    spans = None if span is None else [span]
    begin = 0 if span is None else span.at
    return next(find.matches(view, find.needle(text.strip(), None, case), begin, guard, spans=spans), None)
