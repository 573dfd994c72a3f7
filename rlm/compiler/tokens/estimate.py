"""An estimate of the most tokens that a text has, for machines without a vocabulary.

The estimate is on the high side for any text in any script: a text should not have more tokens under
``cl100k_base`` or ``o200k_base``. It rests on the end state of byte-pair encoding: no two neighbours remain that
would be one token together. Nearly every pair of small letters is a token, so single letters do not stand side by
side, and a word of n letters has at most some 2n/3 tokens. Common words and runs of marks are known to be one. Three
digits are one, other marks and capitals count one each, and anything else its UTF-8 bytes, less what a few scripts
are known to save.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rlm.compiler.tokens.common_words import STEMS, SUFFIXES, WORDS

_PIECES = re.compile(r"([A-Za-z]+)|([0-9]+)|([ \t-\r]+)|([!-/:-@\[-`{-~]+)|([^\x00-\x7f]+)|(.)", re.S)
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_BLANKS = re.compile(r" +|\n+|\t+|(?:\r\n)+|.", re.S)
_PER_TOKEN = {" ": 64, "\n": 8, "\t": 16}

_SURE = 4
"""Letters from which on a common word is one token even as a part of ``camelCase``."""

_APART = frozenset(
    """
    bq fj fz gj gk gq hj jg jv jw jx jy jz kq kx kz lq mz nq oq qf qg qj qk qo qv qy qz rj tj tq uq vq vz wq wv wz xg
    xh xj xk xq xu xv xw yf yj yq yv zg zj zq zr zv
    """.split()
)
"""Pairs of small letters that are no token."""

_RUNS = frozenset(
    r"""
    ", "," ": ":" ":[ ":{" "} "}, "}} "], "] {" [" {{ }} {} [] [{ }] }, }; ], ]; }} }) }); () (" (' ") ') ") ("' )) ),
    ). ): ); '] [' ',' ', ': == === != => -> <= >= && || ++ += -- --- ---- ## ### ** *** // /* */ :: .. ... `` ``` </ />
    ="
    """.split()
)
"""Runs of marks that are one token."""

_SAVED = (
    (re.compile("[\xa0-\xb7\xdf-\xf6\u0430-\u044f\u0451]"), 1),
    (re.compile("[\u2013\u2014\u2018\u2019\u201c\u201d\u2022\u2026\u3001\u3002\u300c\u300d\uff0c\uff1a]"), 2),
    (re.compile("[\u3041-\u3096\u30a1-\u30fa\U0001f000-\U0001ffff]"), 1),
)
"""Characters that take fewer tokens than bytes, and how many fewer."""


_SHORT = 24
"""Characters of a piece whose count is remembered: texts are made of few different words."""


def estimate(text: str) -> int:
    """At most how many tokens a text has; see the module."""
    total = 0
    spaced = False
    kind: int | None = None
    for match in _PIECES.finditer(text):
        piece, before, kind = match[0], kind, match.lastindex
        if kind == 1:
            alone = before != 5 and text[match.end() : match.end() + 1] < "\x80"
            total += (_known_word if len(piece) <= _SHORT else _word)(piece, spaced, alone)
        elif kind == 2:
            total += (len(piece) + 2) // 3 + spaced
        elif kind == 3:
            total += 0 if piece == " " else (_known_blank if len(piece) <= _SHORT else _blank)(piece)
        elif kind == 4:
            total += 1 + spaced if piece in _RUNS else len(piece)
        elif kind == 5:
            total += _bytes(piece) + spaced
        else:
            total += 1 + spaced
        spaced = kind == 3 and piece[-1] == " "
    return total + spaced


def _blank(blank: str) -> int:
    """A run of white space, but for a space at its end: that one goes with what follows."""
    last = blank[-1]
    if last not in "\r\n":
        blank = blank[:-1]
    runs = _BLANKS.findall(blank)
    return sum(1 + (len(run) - 1) // _PER_TOKEN.get(run[0], 2) for run in runs) + (last not in " \r\n")


def _word(letters: str, spaced: bool, alone: bool) -> int:
    """A run of ASCII letters, with a space before it or not, alone or next to letters of another kind."""
    small = letters.lower()
    if alone and letters[1:] == small[1:]:
        if len(small) == 1 or small in STEMS or small in WORDS:
            return 1
        for suffix in SUFFIXES:
            if small.endswith(suffix) and small[: -len(suffix)] in STEMS:
                return 2
    total = 0
    for part in _PARTS.findall(letters):
        total += _part(part, spaced, alone)
        spaced = False
    return total


_known_blank = lru_cache(maxsize=256)(_blank)
_known_word = lru_cache(maxsize=4096)(_word)


def _part(part: str, spaced: bool, alone: bool) -> int:
    """A part of a word in ``camelCase``: all capitals, or small letters with or without a capital."""
    if part[-1].isupper():
        return len(part)
    small = part.lower()
    if alone and len(small) >= _SURE and (small in STEMS or small in WORDS):
        return 1
    capital = part[0].isupper()
    small = part[capital:]
    apart = sum(1 for at in range(len(small) - 1) if small[at : at + 2] in _APART)
    return capital + (2 * (len(small) + spaced) + 1) // 3 + apart


def _bytes(text: str) -> int:
    """Text outside ASCII."""
    size = len(text.encode("utf-8", "surrogatepass"))
    for characters, saved in _SAVED:
        size -= saved * len(characters.findall(text))
    return size
