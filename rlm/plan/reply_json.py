"""JSON in a reply: which of it is the model's own answer. Pure, and linear in the length of the reply.

A candidate is a whole JSON object or list, the outermost one, that stands outside the model's thinking. Brackets in
prose are no candidates, and neither are the parts of an object that is broken or cut. A candidate whose text occurs
word for word in the material of the request is a quotation, unless it is the whole reply. Of the rest that fit, the
last one is the value.

    >>> reply = 'See [1]. The file says {"n": 1}; my answer: {"n": 4}'
    >>> read_value(reply, lambda value: None if "n" in value else "no n", material='{"n": 1}')
    ({'n': 4}, None)
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

MOST_TRIED = 32
"""Candidates of one reply that are looked at, from the last one."""

MOST_DECODED = 400
"""Levels of lists and objects that are decoded; the decoder is recursive."""

_NAMES = "think|thinking|thought|thoughts|reasoning|reflection"
_OPEN = rf"<(?:antml:)?(?:{_NAMES})(?:\s[^<>]*)?>|\[THINK\]|◁think▷"
_CLOSE = rf"(?<![`'\"])(?:</(?:antml:)?(?:{_NAMES})\s*>|\[/THINK\]|◁/think▷)"
_CLOSES = re.compile(_CLOSE, re.IGNORECASE)
_CLOSING_MARKS = ("</", "[/", "◁/")
"""Every closing tag begins with one of these."""

_LEADS = re.compile(rf"\s*(?:{_OPEN})", re.IGNORECASE)
_OPENS = re.compile(_OPEN, re.IGNORECASE)
_BEGINS = r"""\{(?=\s*(?:["'}]|(?:steps|op)\s*:))|\[(?=\s*(?:[\[\]"0-9tfn-]|\{\s*["}]))"""
_NEXT = re.compile(rf"(?P<start>{_BEGINS})|(?P<open>{_OPEN})|(?P<close>{_CLOSE})", re.IGNORECASE)
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_SCALAR = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null|NaN|-?Infinity"
_TOKEN = re.compile(rf"\s*(?:(?P<string>{_STRING})|(?P<scalar>{_SCALAR})|(?P<mark>[{{}}\[\]:,]))", re.DOTALL)
_BLANK = re.compile(r"\s*")
_BRACKET = re.compile(r'["{}\[\]]')
_WHOLE_STRING = re.compile(_STRING, re.DOTALL)
_ESCAPED = re.compile(
    r"(?P<pair>\\+u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\+u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2}))"
    r"|\\+(?:u(?P<code>[0-9a-fA-F]{4})|(?P<sign>[\"/bfnrt])|(?P<run>))"
)
_BLANK_SIGNS = frozenset("bfnrt")
_FENCE = re.compile(r"\s*(?:```[A-Za-z0-9_-]*\s*(?:```)?)?\s*")


@dataclass(frozen=True)
class JsonCandidate:
    """A JSON object or list in a reply: ``text[start:end]``. ``alone`` says that the reply is it and nothing else but
    thinking and a code fence."""

    start: int
    end: int
    alone: bool = False


@dataclass
class Scan:
    """The candidates of a reply, and what begins like JSON and is none: where it starts, and how far it can be read.
    ``levels`` are those of the deepest that was read."""

    candidates: list[JsonCandidate] = field(default_factory=list)
    broken: list[tuple[int, int]] = field(default_factory=list)
    thoughts: list[tuple[int, int]] = field(default_factory=list)
    levels: int = 0


def without_thoughts(text: str) -> str:
    """The text after the thinking that it begins with; empty where the thinking has no end.

    A closing tag that nothing opened ends thinking as well: chat templates of some models write the opening one.
    """
    if not any(mark in text for mark in _CLOSING_MARKS):  # the search for tags takes 0.3 s of a text of 5 MB
        return "" if _LEADS.match(text) else text
    at, first = 0, _OPENS.search(text)
    while True:
        opened = _LEADS.match(text, at)
        closed = _CLOSES.search(text, opened.end() if opened is not None else at)
        if opened is None:
            if first is not None and first.start() < at:
                first = _OPENS.search(text, at)
            if closed is None or (first is not None and first.start() < closed.start()):
                return text[at:].lstrip() if at else text
        if closed is None:
            return ""
        at = closed.end()


def scan(text: str) -> Scan:
    """The candidates of a reply, from the first to the last."""
    found, at = Scan(), 0
    while (event := _NEXT.search(text, at)) is not None:
        at = event.end()
        if event["open"]:
            closed = _CLOSES.search(text, at)
            at = closed.end() if closed is not None else len(text)
            found.thoughts.append((event.start(), at))
        elif event["close"]:
            found = Scan(thoughts=[(0, at)], levels=found.levels)
        else:
            at = _ReplyReading(text, event.start(), found).read()
    if len(found.candidates) == 1:
        only = found.candidates[0]
        if _FENCE.fullmatch(_outside(text, [*found.thoughts, (only.start, only.end)])):
            found.candidates = [JsonCandidate(only.start, only.end, alone=True)]
    return found


def is_quoted(candidate: str, material: str) -> bool:
    """Whether a text occurs word for word in a material, however either is spaced and with whatever escapes JSON, or
    JSON inside of JSON strings, writes it. ``material`` is ``squeezed``."""
    return squeezed(candidate) in material


def material_of(parts: Mapping[str, Any]) -> str:
    """The texts of a request (its rendered ``parts``) that a reply may quote: all but the model's own."""
    theirs = [message for message in parts.get("messages", ()) if message.get("role") != "assistant"]
    return "\n".join(_texts([parts.get("system"), *(message.get("content") for message in theirs)]))


def _texts(value: Any) -> Iterator[str]:
    """The texts in a content, which may be a list of blocks."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def squeezed(text: str) -> str:
    """A text without its white space and without the escapes of JSON strings, however often they are escaped.

    ``\\u00e9`` becomes ``é``, and ``\\\\n`` nothing: two spellings of one JSON text have one squeezed form.
    """
    return "".join(_ESCAPED.sub(_unescaped, text).split())


def _unescaped(found: re.Match[str]) -> str:
    if found["pair"]:
        high, low = int(found["high"], 16), int(found["low"], 16)
        return chr(0x10000 + ((high - 0xD800) << 10) + low - 0xDC00)
    if found["code"]:
        return chr(int(found["code"], 16))
    return "" if found["sign"] in _BLANK_SIGNS else found["sign"] or ""


def read_value(text: str, check: Callable[[Any], str | None], material: str = "") -> tuple[Any, str | None]:
    """The value in a reply, and why there is none.

    Args:
        text: the reply.
        check: says what is wrong with a value, None where it fits.
        material: the texts of the request, which a candidate may be quoted from.
    """
    found = scan(text)
    if not found.candidates:
        return _scalar(text, check, "it holds no JSON" + (" that is whole" if found.broken else ""))
    problem, quoted, source, tried = "", "", squeezed(material), set[str]()
    for candidate in reversed(found.candidates):
        written = text[candidate.start : candidate.end]
        if written in tried:
            continue
        if len(tried) >= MOST_TRIED:
            problem = problem or f"none of its last {MOST_TRIED} JSON values fits"
            break
        tried.add(written)
        try:
            value = json.loads(written, strict=False)
        except (ValueError, RecursionError) as reason:
            problem = problem or f"its JSON cannot be read: {reason}"
            continue
        wrong = check(value)
        if wrong is not None:
            problem = problem or wrong
        elif not candidate.alone and is_quoted(written, source):
            quoted = quoted or written
        else:
            return value, None
    if quoted:
        shown = quoted if len(quoted) <= 120 else f"{quoted[:120]}..."
        problem = (
            f"{shown} stands word for word in the request, so that it counts as a quotation; as an answer, it must"
        )
        problem += " be the whole reply"
    return None, problem


def _scalar(text: str, check: Callable[[Any], str | None], otherwise: str) -> tuple[Any, str | None]:
    """A reply that is a JSON text, number or word and nothing else."""
    bare = without_thoughts(text).strip()
    if bare.startswith("```"):
        bare = bare.strip("`").removeprefix("json").strip()
    try:
        value = json.loads(bare, strict=False)
    except (ValueError, RecursionError):
        return None, otherwise
    wrong = check(value)
    return (value, None) if wrong is None else (None, wrong)


def _outside(text: str, spans: list[tuple[int, int]]) -> str:
    pieces, at = [], 0
    for start, end in sorted(spans):
        pieces.append(text[at:start])
        at = end
    return "".join([*pieces, text[at:]])


class _ReplyReading:
    """Reads one value from its first bracket, without recursion, and notes in ``found`` what it was."""

    __slots__ = ("found", "keyed", "listed", "objects", "parts", "stack", "start", "text")

    def __init__(self, text: str, start: int, found: Scan) -> None:
        self.text, self.start, self.found = text, start, found
        self.stack: list[tuple[str, int]] = []
        self.keyed: list[bool] = []
        self.objects = 0
        self.listed = False
        self.parts: list[tuple[int, int]] = []

    def read(self) -> int:
        """Where to go on: after the value, after what is broken, or within brackets of prose."""
        at, wants, text, match = self.start, "value", self.text, _TOKEN.match
        while True:
            token = match(text, at)
            if token is None or not (wants := self._next(token, wants)):
                return self._failed(at)
            at = token.end()
            if not self.stack:
                if self.found.levels <= MOST_DECODED:
                    self.found.candidates.append(JsonCandidate(self.start, at))
                else:
                    self.found.broken.append((self.start, at))
                return at

    def _next(self, token: re.Match[str], wants: str) -> str:
        """What may follow a token; nothing where it may not stand there."""
        mark = token["mark"]
        if mark is None:
            if token["string"] and "key" in wants:
                return ":"
            return ",]}" if "value" in wants else ""
        if mark in "{[" and "value" in wants:
            self.stack.append((mark, token.end() - 1))
            self.keyed.append(False)
            self.objects += mark == "{"
            self.found.levels = max(self.found.levels, len(self.stack))
            return "key or }" if mark == "{" else "value or ]"
        if mark in "}]" and mark in wants and (mark == "}") == (self.stack[-1][0] == "{"):
            self._close(token.end())
            return ",]}"
        if mark == ":" and wants == ":":
            self.keyed[-1] = True
            return "value"
        if mark == "," and wants == ",]}":
            self.listed = self.listed or len(self.stack) == 1
            return "key" if self.stack[-1][0] == "{" else "value"
        return ""

    def _close(self, end: int) -> None:
        mark, start = self.stack.pop()
        self.keyed.pop()
        self.objects -= mark == "{"
        if self.objects == 0:
            while self.parts and self.parts[-1][0] > start:
                self.parts.pop()
            self.parts.append((start, end))

    def _failed(self, at: int) -> int:
        """What is no JSON at ``at``. Brackets of prose have parts that count. JSON that is broken (a list with a second
        item, an object with a key) has none, and neither has what follows within its brackets."""
        blank = _BLANK.match(self.text, at)
        at = max(at if blank is None else blank.end(), self.start + 1)
        self.found.broken.append((self.start, at))
        if not self.listed and not any(self.keyed):
            self.found.candidates += [JsonCandidate(*part) for part in self.parts]
            return at
        end = self._balance(at)
        closed = _CLOSES.search(self.text, self.start, end)
        return end if closed is None else closed.start()

    def _balance(self, at: int) -> int:
        """Where the brackets that are open at ``at`` are closed; the end of the text where they are not."""
        level, strings = len(self.stack), True
        while level > 0:
            found = _BRACKET.search(self.text, at)
            if found is None:
                return len(self.text)
            at = found.end()
            if found[0] == '"':
                string = _WHOLE_STRING.match(self.text, found.start()) if strings else None
                strings = string is not None
                at = at if string is None else string.end()
            else:
                level += 1 if found[0] in "{[" else -1
        return at
