"""Removal of secrets from third-party text.

A server knows the key of a request and may repeat it. The key may appear plain, in another case, with escapes of JSON,
URLs or HTML, in hexadecimal, or inside base64. All of these are found, in whole text or in pieces of a stream. A value
shorter than 8 characters is not removed: it is too similar to ordinary words.
"""

from __future__ import annotations

import base64
import bisect
import json
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from html.entities import html5
from typing import Any

LEAST_SECRET = 8
"""Characters; a shorter value is not removed."""

REDACTED = "[redacted]"

_ESCAPE = re.compile(
    rb"""\\{1,8}(?:u(?:(?P<u>[0-9a-fA-F]{4})|\{(?P<braced>[0-9a-fA-F]{1,6})\})
              |U(?P<long>[0-9a-fA-F]{8})
              |x(?P<x>[0-9a-fA-F]{2})
              |(?P<octal>[01][0-7]{2})
              |(?P<same>[/"'])
              |(?P<line>[rn]))
      |(?P<run>\\{2,8})
      |%(?:25){0,8}(?:(?P<percent>[0-9a-fA-F]{2})|[uU](?P<percent_u>[0-9a-fA-F]{4}))
      |&\#(?:[xX]0{0,6}(?P<hexed>[0-9a-fA-F]{2})|0{0,6}(?P<decimal>[0-9]{2,3}));
      |&(?P<entity>[A-Za-z]{2,20});
      |(?P<lines>[\r\n\0\t]+[ \t]*)""",
    re.VERBOSE,
)
_BEGUN = re.compile(
    rb"""(?:\\{1,64}(?:u(?:[0-9a-fA-F]{0,3}|\{[0-9a-fA-F]{0,6})|U[0-9a-fA-F]{0,7}|x[0-9a-fA-F]?|[01][0-7]?)?
           |%[0-9a-fA-F]{0,16}(?:[uU][0-9a-fA-F]{0,3})?
           |&(?:\#[xX]?[0-9a-fA-F]{0,9}|[A-Za-z]{1,20})?)\Z""",
    re.VERBOSE,
)
_LONGEST_ESCAPE = 128
_MOST_BYTES_A_LETTER = 64
_MOST_LAYERS = 8
"""Escapes of escapes (``&amp;#115;``, ``\\\\u002573``) are decoded this many times."""
_LETTERS = ("u", "braced", "long", "hexed", "percent_u")
_ENTITIES = {
    name[:-1].encode(): sign.encode()
    for name, sign in html5.items()
    if name.endswith(";") and len(sign) == 1 and sign < "\x7f"
}
_STANDARD = bytes.maketrans(b"-_", b"+/")


class Secrets:
    """Secret values that are removed from third-party text. More values can be added later.

    Example:
        >>> Secrets(["sk-0123456789"]).scrub({"error": "no such key: \\\\u0073k-0123456789"})
        {'error': 'no such key: [redacted]'}
    """

    __slots__ = ("_folded", "_longest", "_packed", "_values")

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: frozenset[str] = frozenset()
        self._folded: tuple[bytes, ...] = ()
        self._packed: tuple[bytes, ...] = ()
        self._longest = 0
        self.add(values)

    def __repr__(self) -> str:
        return f"<{len(self._values)} secrets>"

    def __bool__(self) -> bool:
        return bool(self._values)

    def add(self, values: Iterable[str]) -> None:
        """Add values. Values that are too short are ignored."""
        new = {value for value in values if len(value) >= LEAST_SECRET} - self._values
        if not new:
            return
        self._values |= new
        longest_first = sorted(self._values, key=len, reverse=True)
        folded = {form.lower(): None for value in longest_first for form in _plain_forms(value)}
        self._folded = tuple(folded)
        self._packed = tuple({form: None for value in longest_first for form in _packed_forms(_bytes(value))})
        self._longest = _MOST_BYTES_A_LETTER * max(map(len, self._folded)) + _LONGEST_ESCAPE

    def scrub(self, value: Any) -> Any:
        """Return a copy of text or other JSON data without the secrets in its texts and keys."""
        if isinstance(value, str):
            return self._text(value)
        return changed(value, self._text) if self._values else value

    def held(self, text: str) -> int:
        """Return the number of characters at the end of ``text`` that may begin a secret.

        A reader of a stream keeps these characters back until the next piece arrives.
        """
        if not self._values or not text:
            return 0
        data = _bytes(text[-self._longest :])
        begun = _BEGUN.search(data, max(0, len(data) - _LONGEST_ESCAPE))
        start = begun.start() if begun else len(data)
        view: _View | None = _View(data[:start])
        while view is not None:
            overlap = max(
                max((_overlap(view.folded, form) for form in self._folded), default=0),
                max((_overlap(view.standard, form) for form in self._packed), default=0),
            )
            begun = _BEGUN.search(view.text, max(0, len(view.text) - _LONGEST_ESCAPE))
            kept_back = max(overlap, len(view.text) - begun.start() if begun else 0)
            if kept_back:
                start = min(start, view.place(len(view.text) - kept_back))
            view = view.deeper(begun.start() if begun else len(view.text))
        return len(data[start:].decode("utf-8", "surrogatepass"))

    def _text(self, text: str) -> str:
        if len(text) < LEAST_SECRET or not self._values:
            return text
        data = _bytes(text)
        view: _View | None = _View(data, is_plain=True)
        spans: list[tuple[int, int]] = []
        while view is not None:
            if self._is_in(view):
                spans += self._spans(view)
            view = view.deeper()
        return _without(data, spans) if spans else text

    def _is_in(self, view: _View) -> bool:
        folded, standard = view.folded, view.standard
        return any(form in folded for form in self._folded) or any(form in standard for form in self._packed)

    def _spans(self, view: _View) -> list[tuple[int, int]]:
        """Return the spans of secrets: start and end, in bytes."""
        spans = [span for form in self._folded for span in _occurrences(view.folded, form)]
        spans += [span for form in self._packed for span in _occurrences(view.standard, form)]
        return [(view.place(start), view.place(end - 1, after=True)) for start, end in spans]


class _View:
    """A text with decoded escapes and without line ends, and the origin of each byte.

    Args:
        data: the text.
        is_plain: whether the text is kept without decoding.
        under: the view that this one decodes; None for the original text. Places refer to the original text.
    """

    def __init__(self, data: bytes, *, is_plain: bool = False, under: _View | None = None) -> None:
        self._data, self._under = data, under
        self._layer: int = 0 if under is None else under._layer + 1
        self.text = text = data if is_plain else _ESCAPE.sub(_decoded, data)
        self._is_plain = is_plain or text == data
        self.folded = text.lower()
        self.standard = text.translate(_STANDARD)
        self._runs: tuple[list[int], list[tuple[int, int, bool]]] | None = None

    def place(self, index: int, *, after: bool = False) -> int:
        """Return the place in the original text of the byte at ``index``, or the place after that byte."""
        here = self._place(index, after)
        if self._under is None:
            return here
        return self._under.place(here - 1, after=True) if after else self._under.place(here)

    def deeper(self, end: int | None = None) -> _View | None:
        """Return a view with the next layer of escapes decoded, up to ``end``; None if there is no further layer."""
        text = self.text if end is None else self.text[:end]
        if self._layer >= _MOST_LAYERS or _ESCAPE.search(text) is None:
            return None
        view = _View(text, under=self)
        return None if view.text == text else view

    def _place(self, index: int, after: bool) -> int:
        if self._is_plain:
            return index + after
        if self._runs is None:
            self._runs = self._map_runs()
        begins, runs = self._runs
        run = bisect.bisect_right(begins, index) - 1
        start, end, is_escape = runs[run]
        if is_escape:
            return end if after else start
        return start + index - begins[run] + after

    def _map_runs(self) -> tuple[list[int], list[tuple[int, int, bool]]]:
        """Return the runs of the text: each start in the view, its span in the text, and whether it is an escape."""
        begins: list[int] = []
        runs: list[tuple[int, int, bool]] = []
        length = done = 0
        for escape in _ESCAPE.finditer(self._data):
            begins += [length, length + escape.start() - done]
            runs += [(done, escape.start(), False), (escape.start(), escape.end(), True)]
            length, done = begins[-1] + len(_decoded(escape)), escape.end()
        return [*begins, length], [*runs, (done, len(self._data), False)]


NO_SECRETS = Secrets()


def changed(value: Any, change: Callable[[str], str]) -> Any:
    """Return a copy of JSON data with every text and key changed. Deep data uses no recursion."""
    top: list[Any] = [value]
    work: list[Any] = [top]
    while work:
        holder = work.pop()
        for key, item in list(enumerate(holder)) if isinstance(holder, list) else list(holder.items()):
            if isinstance(item, str):
                holder[key] = change(item)
            elif isinstance(item, list | tuple):
                holder[key] = list(item)
                work.append(holder[key])
            elif isinstance(item, dict):
                holder[key] = {change(name) if isinstance(name, str) else name: part for name, part in item.items()}
                work.append(holder[key])
    return top[0]


def _plain_forms(value: str) -> list[bytes]:
    """Return a value in its forms: plain, in hexadecimal, as JSON text, and with its own escapes decoded."""
    data = _bytes(value)
    forms = [data, data.hex().encode(), json.dumps(value)[1:-1].encode()]
    for _ in range(_MOST_LAYERS):
        forms.append(_ESCAPE.sub(_decoded, forms[-1] if len(forms) > 3 else data))
    return [form for form in forms if len(form) >= LEAST_SECRET]


def _packed_forms(data: bytes) -> list[bytes]:
    """Return the letters of a value in base64 that do not depend on its neighbours, at each of the three alignments."""
    forms = []
    for shift in range(3):
        letters = base64.b64encode(b"\0" * shift + data)
        forms.append(letters[-(-8 * shift // 6) : 8 * (shift + len(data)) // 6])
    return forms


def _decoded(escape: re.Match[bytes]) -> bytes:
    return _meaning(escape[0])


@lru_cache(4096)  # a long text has few different escapes, and their lookup is most of the cost of scrubbing
def _meaning(escape: bytes) -> bytes:
    """Return the bytes that an escape stands for; empty for the end of a line."""
    match = _ESCAPE.fullmatch(escape)
    assert match is not None
    name = match.lastgroup
    letters = match[name] if name else b""
    if name in _LETTERS:
        return chr(number).encode("utf-8", "surrogatepass") if (number := int(letters, 16)) < 0x110000 else escape
    if name in ("x", "percent"):
        return bytes([int(letters, 16)])
    if name == "octal":
        return bytes([int(letters, 8)])
    if name == "decimal":
        return bytes([number]) if (number := int(letters)) < 128 else escape
    if name == "entity":
        return _ENTITIES.get(letters, escape)
    return b"\\" if name == "run" else letters if name == "same" else b""


def _occurrences(data: bytes, form: bytes) -> list[tuple[int, int]]:
    spans = []
    start = data.find(form)
    while start >= 0:
        spans.append((start, start + len(form)))
        start = data.find(form, start + len(form))
    return spans


def _overlap(data: bytes, form: bytes) -> int:
    """Return the length of the longest end of ``data`` that is a proper beginning of ``form``."""
    return next((size for size in range(min(len(data), len(form) - 1), 0, -1) if data.endswith(form[:size])), 0)


def _without(data: bytes, spans: list[tuple[int, int]]) -> str:
    """Return the text with each span replaced. Spans that overlap are merged."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    parts, done = [], 0
    for start, end in merged:
        parts += [data[done:start], REDACTED.encode()]
        done = end
    return b"".join([*parts, data[done:]]).decode("utf-8", "surrogatepass")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
