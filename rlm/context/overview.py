"""The overview of a context that is too large to stand whole in a request.

It has what ``info`` and ``peek`` would show: kind and size, the documents with their sizes and first lines, the
headings, and both ends of the text.
"""

from __future__ import annotations

from typing import Any

from rlm.compiler.tokens.token_counter import TokenCounter
from rlm.context import utf8
from rlm.context.actions import Value, cut, info
from rlm.context.byte_window import ByteWindow
from rlm.context.limits import ActionLimits, Guard
from rlm.context.partition import headings

END_CHARACTERS = 240
"""Characters of each end of a text: three lines of a terminal, which show the form of a text."""

NAMES_CHARACTERS = 4_000
"""Characters of the list of documents: about 40 documents with first lines, or 120 with names and sizes."""

ROW_CHARACTERS = 20
"""Characters of a row of that list beside its values."""

HEADINGS_CHARACTERS = 2_000
"""Characters of the list of headings: about 50 headings."""

FIRST_LINE = 80
"""Characters of the first line of a document, and of a heading: a line of a terminal."""

MOST_NAMED = 1_000
"""The most documents whose first lines are read."""

MOST_SCANNED = 4 * 1024 * 1024
"""The largest text, in bytes, that is searched for headings."""


def overview(view: ByteWindow, guard: Guard, limits: ActionLimits, tokens: TokenCounter) -> Value:
    """Return the overview of a window as JSON data.

    Args:
        view: the window.
        guard: the time that it may take.
        limits: the limits of an action.
        tokens: counts tokens.

    Raises:
        OutOfTime, ContextError ``unreadable``.
    """
    value = info(view, {}, guard, limits, tokens)
    for part in ("head", "names", "truncated"):
        value.pop(part, None)
    if view.context.named:
        value["names"] = _documents(view, guard)
    if view.size <= MOST_SCANNED:
        value["headings"] = _headings(view, guard)
    head, end = cut(view, 0, view.size, 4 * END_CHARACTERS)
    value["head"] = head[:END_CHARACTERS]
    if view.size > end or len(head) > END_CHARACTERS:
        value["tail"] = tail_of(view, END_CHARACTERS)
    return value


def tail_of(view: ByteWindow, characters: int) -> str:
    """Return the last characters of a window."""
    raw = view.read(view.size - 4 * characters, view.size)
    return utf8.decode(raw[utf8.whole_start(raw) if len(raw) < view.size else 0 :])[-characters:]


def _documents(view: ByteWindow, guard: Guard) -> list[dict[str, Any]]:
    """Return name, size and first line of each document, as far as the list has room.

    First lines are left out where they would take the room of other names.
    """
    rows: list[dict[str, Any]] = []
    used = 0
    for span in view.spans[:MOST_NAMED]:
        guard.check()
        row: dict[str, Any] = {"name": span.document.name}
        if view.counted:
            row["characters"] = view.character_of_byte(span.end, guard) - view.character_of_byte(span.at, guard)
        else:
            row["bytes"] = span.end - span.at
        row["begins"] = first_line(view.read(span.at, min(span.end, span.at + 4 * FIRST_LINE)))
        rows.append(row)
        used += _shown_size(row)
    if used > NAMES_CHARACTERS or len(view.spans) > MOST_NAMED:
        for row in rows:
            del row["begins"]
    return _as_far_as(rows, NAMES_CHARACTERS)


def first_line(raw: bytes) -> str:
    """Return the first line that is not blank, shortened."""
    text = utf8.decode(raw[: utf8.whole_end(raw)])
    return next((line.strip()[:FIRST_LINE] for line in utf8.LINE_END.split(text) if line.strip()), "")


def _headings(view: ByteWindow, guard: Guard) -> list[str]:
    """Return the Markdown headings of the first two levels, as far as the list has room."""
    rows, used = [], 0
    for at in headings(view, 2, guard):
        row = first_line(view.read(at, at + 4 * FIRST_LINE))
        used += len(row)
        if used > HEADINGS_CHARACTERS:
            break
        rows.append(row)
    return rows


def _as_far_as(rows: list[dict[str, Any]], room: int) -> list[dict[str, Any]]:
    kept, used = [], 0
    for row in rows:
        used += _shown_size(row)
        if used > room:
            break
        kept.append(row)
    return kept


def _shown_size(row: dict[str, Any]) -> int:
    return ROW_CHARACTERS + sum(map(len, map(str, row.values())))
