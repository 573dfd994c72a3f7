"""JSON in a reply, and the choice of the model's own answer in it. Pure, and linear in the length of the reply.

A candidate is a whole, outermost JSON object or list outside of the model's thinking. Brackets in prose are no
candidates. The parts of a broken or cut object are none either. A candidate is a quotation where its text occurs word
for word in the material of the request, unless it is the whole reply. Of the others that fit, the last one is the
value.

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
"""The most candidates of one reply that are read, from the last one on."""

MOST_DECODED = 400
"""The most levels of lists and objects that are decoded, because the decoder is recursive."""

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
    """A JSON object or list in a reply: ``text[start:end]``.

    ``alone`` is whether the reply holds nothing else but thinking and a code fence.
    """

    start: int
    end: int
    alone: bool = False


@dataclass
class ScanResult:
    """The candidates of a reply, and its broken JSON.

    ``broken`` has the start of each broken value and the end of its readable part. ``levels`` is the depth of the
    deepest value that was read.
    """

    candidates: list[JsonCandidate] = field(default_factory=list)
    broken: list[tuple[int, int]] = field(default_factory=list)
    thoughts: list[tuple[int, int]] = field(default_factory=list)
    levels: int = 0


def without_thoughts(text: str) -> str:
    """Return the text after the thinking that it begins with; empty where the thinking has no end.

    A closing tag without an opening one also ends thinking, because the chat templates of some models write the
    opening one. For example ``"so 4</think> 4"`` gives ``"4"``.
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


def scan(text: str) -> ScanResult:
    """Return the candidates of a reply, from the first to the last."""
    scan_result, at = ScanResult(), 0
    while (event := _NEXT.search(text, at)) is not None:
        at = event.end()
        if event["open"]:
            closed = _CLOSES.search(text, at)
            at = closed.end() if closed is not None else len(text)
            scan_result.thoughts.append((event.start(), at))
        elif event["close"]:
            scan_result = ScanResult(thoughts=[(0, at)], levels=scan_result.levels)
        else:
            at = _ValueReader(text, event.start(), scan_result).read()
    if len(scan_result.candidates) == 1:
        only = scan_result.candidates[0]
        if _FENCE.fullmatch(_outside(text, [*scan_result.thoughts, (only.start, only.end)])):
            scan_result.candidates = [JsonCandidate(only.start, only.end, alone=True)]
    return scan_result


def is_quoted(candidate: str, material: str) -> bool:
    """Whether a text occurs word for word in a material, which is ``squeezed``.

    White space makes no difference. Escapes of JSON, and of JSON inside JSON strings, make none either.
    """
    return squeezed(candidate) in material


def material_of(parts: Mapping[str, Any]) -> str:
    """Return the texts of a request (its rendered ``parts``) that a reply may quote: all but the model's own."""
    theirs = [message for message in parts.get("messages", ()) if message.get("role") != "assistant"]
    return "\n".join(_texts([parts.get("system"), *(message.get("content") for message in theirs)]))


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a content, which may be a list of blocks."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def squeezed(text: str) -> str:
    r"""Return a text without its white space and without the escapes of JSON strings, however often they are escaped.

    ``\u00e9`` becomes ``é``, and ``\\n`` becomes empty. Two spellings of one JSON text have one squeezed form.
    """
    return "".join(_ESCAPED.sub(_unescaped, text).split())


def _unescaped(match: re.Match[str]) -> str:
    if match["pair"]:
        high, low = int(match["high"], 16), int(match["low"], 16)
        return chr(0x10000 + ((high - 0xD800) << 10) + low - 0xDC00)
    if match["code"]:
        return chr(int(match["code"], 16))
    return "" if match["sign"] in _BLANK_SIGNS else match["sign"] or ""


def read_value(text: str, check: Callable[[Any], str | None], material: str = "") -> tuple[Any, str | None]:
    """Return the value in a reply, and the reason where there is none.

    Args:
        text: the reply.
        check: returns the fault of a value; None where the value fits.
        material: the texts of the request, which a candidate may be quoted from.
    """
    scan_result = scan(text)
    if not scan_result.candidates:
        return _scalar(text, check, "it holds no JSON" + (" that is whole" if scan_result.broken else ""))
    problem, quotation, source, tried_texts = "", "", squeezed(material), set[str]()
    for candidate in reversed(scan_result.candidates):
        candidate_text = text[candidate.start : candidate.end]
        if candidate_text in tried_texts:
            continue
        if len(tried_texts) >= MOST_TRIED:
            problem = problem or f"none of its last {MOST_TRIED} JSON values fits"
            break
        tried_texts.add(candidate_text)
        try:
            value = json.loads(candidate_text, strict=False)
        except (ValueError, RecursionError) as reason:
            problem = problem or f"its JSON cannot be read: {reason}"
            continue
        fault = check(value)
        if fault is not None:
            problem = problem or fault
        elif not candidate.alone and is_quoted(candidate_text, source):
            quotation = quotation or candidate_text
        else:
            return value, None
    if quotation:
        short_text = quotation if len(quotation) <= 120 else f"{quotation[:120]}..."
        problem = (
            f"{short_text} stands word for word in the request, so that it counts as a quotation; as an answer, it must"
        )
        problem += " be the whole reply"
    return None, problem


def _scalar(text: str, check: Callable[[Any], str | None], otherwise: str) -> tuple[Any, str | None]:
    """Return the value of a reply that is a JSON text, number or word and nothing else."""
    bare = without_thoughts(text).strip()
    if bare.startswith("```"):
        bare = bare.strip("`").removeprefix("json").strip()
    try:
        value = json.loads(bare, strict=False)
    except (ValueError, RecursionError):
        return None, otherwise
    fault = check(value)
    return (value, None) if fault is None else (None, fault)


def _outside(text: str, spans: list[tuple[int, int]]) -> str:
    pieces, at = [], 0
    for start, end in sorted(spans):
        pieces.append(text[at:start])
        at = end
    return "".join([*pieces, text[at:]])


class _ValueReader:
    """Reads one value from its first bracket, without recursion, and adds it to ``scan_result``."""

    __slots__ = ("has_second_item", "keyed", "objects", "parts", "scan_result", "stack", "start", "text")

    def __init__(self, text: str, start: int, scan_result: ScanResult) -> None:
        self.text, self.start, self.scan_result = text, start, scan_result
        self.stack: list[tuple[str, int]] = []
        self.keyed: list[bool] = []
        self.objects = 0
        self.has_second_item = False
        self.parts: list[tuple[int, int]] = []

    def read(self) -> int:
        """Return the place to go on: after the value, after broken JSON, or within brackets of prose."""
        at, expected, text, match = self.start, "value", self.text, _TOKEN.match
        while True:
            token = match(text, at)
            if token is None or not (expected := self._next(token, expected)):
                return self._failed(at)
            at = token.end()
            if not self.stack:
                if self.scan_result.levels <= MOST_DECODED:
                    self.scan_result.candidates.append(JsonCandidate(self.start, at))
                else:
                    self.scan_result.broken.append((self.start, at))
                return at

    def _next(self, token: re.Match[str], expected: str) -> str:
        """Return the tokens that may follow a token; empty where the token itself may not stand here."""
        mark = token["mark"]
        if mark is None:
            if token["string"] and "key" in expected:
                return ":"
            return ",]}" if "value" in expected else ""
        if mark in "{[" and "value" in expected:
            self.stack.append((mark, token.end() - 1))
            self.keyed.append(False)
            self.objects += mark == "{"
            self.scan_result.levels = max(self.scan_result.levels, len(self.stack))
            return "key or }" if mark == "{" else "value or ]"
        if mark in "}]" and mark in expected and (mark == "}") == (self.stack[-1][0] == "{"):
            self._close(token.end())
            return ",]}"
        if mark == ":" and expected == ":":
            self.keyed[-1] = True
            return "value"
        if mark == "," and expected == ",]}":
            self.has_second_item = self.has_second_item or len(self.stack) == 1
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
        """Record that the JSON is broken at ``at``, and return the place to go on.

        Brackets of prose have parts that count. Broken JSON (a list with a second item, an object with a key) has
        none, and the text within its brackets does not count either.
        """
        blank = _BLANK.match(self.text, at)
        at = max(at if blank is None else blank.end(), self.start + 1)
        self.scan_result.broken.append((self.start, at))
        if not self.has_second_item and not any(self.keyed):
            self.scan_result.candidates += [JsonCandidate(*part) for part in self.parts]
            return at
        end = self._balance(at)
        closed = _CLOSES.search(self.text, self.start, end)
        return end if closed is None else closed.start()

    def _balance(self, at: int) -> int:
        """Return the place where the brackets that are open at ``at`` are closed; the end of the text where they are
        not.
        """
        level, strings = len(self.stack), True
        while level > 0:
            bracket = _BRACKET.search(self.text, at)
            if bracket is None:
                return len(self.text)
            at = bracket.end()
            if bracket[0] == '"':
                string = _WHOLE_STRING.match(self.text, bracket.start()) if strings else None
                strings = string is not None
                at = at if string is None else string.end()
            else:
                level += 1 if bracket[0] in "{[" else -1
        return at
