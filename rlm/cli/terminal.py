"""Text on its way to a terminal: a model, a stranger or a file may have written it, and a terminal obeys."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, TextIO

MOST_FINDINGS = 20
"""Findings that are printed where not all are asked for."""

_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters, and those that turn the direction of writing; as ``rlm_explain:visible/2``, but that lines
and tabs stay."""


def visible(text: str) -> str:
    """``text`` with what a terminal would obey as escapes."""
    return _OBEYED.sub(lambda found: f"\\x{ord(found[0]):x}\\", text.replace("\r\n", "\n"))


def one_object(value: Mapping[str, Any], stream: TextIO) -> str:
    """One JSON object, in letters that ``stream`` can write and no terminal obeys."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, default=str)
    return json.dumps(value, default=str) if _OBEYED.search(text) else text
