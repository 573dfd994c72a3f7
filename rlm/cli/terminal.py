"""Escapes for text on a terminal: a model, a third party or a file may have written control characters into it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, TextIO

MOST_FINDINGS = 20
"""Findings that are printed without ``--json``."""

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters, and characters that turn the direction of writing. ``rlm_explain:visible/2`` has the same set,
and line ends and tabs too, which stay here."""


def visible(text: str) -> str:
    """Return ``text`` with control characters as escapes: ``visible("a\\x1b[2J")`` is, for example, ``a\\x1b\\[2J``."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):x}\\", text.replace("\r\n", "\n"))


def one_object(value: Mapping[str, Any], stream: TextIO) -> str:
    """Return one JSON object in characters that ``stream`` can write and that control no terminal."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, default=str)
    return json.dumps(value, default=str) if _CONTROL.search(text) else text
