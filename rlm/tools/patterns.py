"""Regular expressions of third parties, matched by RE2 in time linear in the text for every pattern.

JSON Schema patterns are written for ECMA 262. Escapes that RE2 spells differently are translated: for example,
``\\u0041`` becomes ``\\x{41}``. RE2 has no look-around and no backreferences; a schema with them is refused when it
is read.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

MAX_PATTERN = 4096
MAX_PROGRAM_BYTES = 1 << 20

Search = Callable[[str], bool]

# Escapes of ECMA 262 that RE2 spells differently: \u0041 \u{1F600} \cA (a pair of surrogates is one character),
# \p{Letter}, and \s, which means every white space there.
_ESCAPE = re.compile(
    r"\\(?:u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|u(?P<four>[0-9a-fA-F]{4})|u\{(?P<any>[0-9a-fA-F]{1,6})\}|c(?P<control>[A-Za-z])"
    r"|(?P<sign>[pP])\{(?:gc=|General_Category=|sc=|Script=)?(?P<class>[A-Za-z_]+)\}|(?P<other>.))|(?P<bracket>[\[\]])",
    re.DOTALL,
)
_SPACE = r"\s\v\x{A0}\x{FEFF}\x{2028}\x{2029}\p{Zs}"
_CLASSES = dict(
    pair.split("=")
    for pair in (
        "Letter=L Lowercase_Letter=Ll Uppercase_Letter=Lu Titlecase_Letter=Lt Number=N Decimal_Number=Nd digit=Nd "
        "Mark=M Symbol=S Punctuation=P punct=P Separator=Z Space_Separator=Zs Other=C"
    ).split()
)


class BadPattern(ValueError):
    """RE2 does not accept the pattern; the message is its reason."""


@functools.lru_cache(maxsize=4096)
def search(pattern: str) -> Search:
    """Return a predicate: whether the pattern occurs in a text.

    Raises:
        BadPattern: RE2 does not accept the pattern.
    """
    import re2

    if len(pattern) > MAX_PATTERN:
        raise BadPattern(f"a pattern of {len(pattern)} characters; at most {MAX_PATTERN}")
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = MAX_PROGRAM_BYTES
    try:
        compiled = re2.compile(_in_re2(pattern), options)
    except re2.error as problem:
        reason = problem.args[0] if problem.args else "refused"
        raise BadPattern(reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)) from None
    except UnicodeEncodeError:
        raise BadPattern("not valid Unicode") from None

    def occurs(text: str) -> bool:
        try:
            return compiled.search(text) is not None
        except UnicodeEncodeError:  # a lone surrogate is no character
            return False

    return occurs


def _in_re2(pattern: str) -> str:
    inside = False

    def translate(part: re.Match[str]) -> str:
        nonlocal inside
        if part["bracket"]:
            inside = part["bracket"] == "[" or (inside and part["bracket"] != "]")
            return part[0]
        if part["class"]:
            return f"\\{part['sign']}{{{_CLASSES.get(part['class'], part['class'])}}}"
        if part["other"]:
            spaces = {"s": _SPACE if inside else f"[{_SPACE}]", "S": part[0] if inside else f"[^{_SPACE}]"}
            return spaces.get(part["other"], part[0])
        return f"\\x{{{_code(part):x}}}"

    return _ESCAPE.sub(translate, pattern)


def _code(escape: re.Match[str]) -> int:
    if escape["high"]:
        return 0x10000 + ((int(escape["high"], 16) - 0xD800) << 10) + int(escape["low"], 16) - 0xDC00
    if escape["control"]:
        return ord(escape["control"]) % 32
    return int(escape["four"] or escape["any"], 16)
