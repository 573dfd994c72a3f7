"""The actions that read a context without showing all of it: info, peek and slice.

Each action works on one ``ByteWindow``, within the time of its guard. It returns JSON data with ``truncated``.
Characters and lines are counted from 0, as in Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlm.compiler.tokens.token_counter import TokenCounter
from rlm.context import utf8
from rlm.context.arguments import DEFAULT_PEEK, invalid
from rlm.context.byte_window import ByteWindow
from rlm.context.limits import ActionLimits, Guard
from rlm.errors import did_you_mean

EXACT_BYTES = 4 * 1024 * 1024
"""The largest text, in bytes, whose characters and lines ``info`` counts. For a larger text that was not counted yet,
it estimates them from samples.
"""

HEAD_CHARACTERS = 200
MOST_NAMES = 20
"""The most documents that an action's value names."""
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
    """Return the value of a slice: its text. If it is of several documents, ``documents`` has the character of the
    text at which each begins.
    """
    text, end = cut(view, start, stop, limits.bytes)
    value: Value = {"text": text}
    spans = [span for span in view.spans if span.at < end and span.end > start]
    if view.context.named and len(spans) > 1:
        at = [(span.document.name, max(span.at, start)) for span in spans[:MOST_NAMES]]
        value["documents"] = [{"name": name, "at": len(view.text(start, place))} for name, place in at]
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
