"""Recovery of unreadable messages: readable rows are kept, and the waiting request gets an error.

Some rows are not readable as JSON: for example, a row that is too deep, a number of 5,000 digits or a bare control
character. One such row would cost all other rows of its page, and the request would wait although its answer came. A
scanner without recursion finds the id of the message and the rows of its list by brackets and strings alone. Each row
is then read by itself.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter
from pydantic_core import from_json

# Codes of the errors that replace an answer. Servers use other codes.
TOO_LARGE = -32_791
UNREACHED = -32_792
"""The request was never sent, so a second request does no work twice."""

SESSION_ENDED = -32_794
"""The server no longer knows the session, and did none of the requested work."""

BROKEN_OFF = -32_793
"""The connection failed during the request; the server may have done the work."""

UNAUTHORIZED = -32_795
FORBIDDEN = -32_796
"""The server refused the credentials of the request, and did none of the requested work."""

UNREADABLE = -32_797
"""An answer came and cannot be read."""

REFUSED = -32_798
"""The server answered with an HTTP error status and without a message of the protocol."""

LISTS = frozenset({"tools", "prompts", "resources", "content", "contents", "messages"})
"""Fields of a result: their items are read one by one."""

UNREADABLE_ROW = "rlm.unreadable"
"""A field of the object that replaces an unreadable row; its value is the reason."""

MAX_REASON = 120
ENDS = 256
"""Bytes at each end of a message that are searched for its id."""

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s"\[\]{},:]+', re.DOTALL)
_NAME = re.compile(rb'"name"\s*:\s*("[^"\\]{1,80}")')
_ID_FIRST = re.compile(rb'\A\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,')
_ID_LAST = re.compile(rb',\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')
_NUMBER = re.compile(rb"-?\d{1,15}(?:\.0+)?")


@dataclass
class _Outline:
    """The id and the rows of a message, found by brackets and strings."""

    id: int | None = None
    is_request: bool = False
    rows: list[tuple[int, int]] = field(default_factory=list)


def message_of(line: bytes) -> JSONRPCMessage | None:
    """Read one message and return it, or as much of it as can be read.

    Args:
        line: the bytes of one message, valid UTF-8.

    Returns:
        The message, or the message without its unreadable rows. An unreadable answer with a known id becomes an error
        with code ``UNREADABLE``. Any other bytes give None.
    """
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError as problem:
        reason = _reason(problem)
    if not line.lstrip().startswith(b"{"):
        return None
    outline = _outline_of(line)
    if outline.rows:
        try:
            return jsonrpc_message_adapter.validate_json(_without_bad_rows(line, outline.rows), by_name=False)
        except ValueError:
            pass
    id = None if outline.is_request else id_at_the_ends(line) if outline.id is None else outline.id
    if id is None:
        return None
    error = ErrorData(code=UNREADABLE, message=f"an answer that cannot be read: {reason}")
    return JSONRPCError(jsonrpc="2.0", id=id, error=error)


def id_at_the_ends(line: bytes) -> int | None:
    """Return the id of an answer if it is near the beginning or the end of its bytes, else None."""
    match = _ID_FIRST.search(line[:ENDS]) or _ID_LAST.search(line[-ENDS:])
    return None if match is None else int(match[1])


def readable(body: bytes) -> bytes:
    """Return the JSON text of one message in a form that strict readers accept.

    That is ``body`` itself, or the text of ``message_of(body)``. If no message can be read, it is ``body``.
    """
    if not body.strip() or _is_message(body):
        return body
    message = message_of(body)
    return body if message is None else message.model_dump_json(by_alias=True, exclude_unset=True).encode()


def _is_message(body: bytes) -> bool:
    try:
        jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValueError:
        return False
    return True


def _outline_of(line: bytes) -> _Outline:
    """Return the id of a message and the places of its rows, by brackets and strings alone."""
    outline, keys, depth, begins = _Outline(), [b"", b"", b""], 0, -1
    last, key_ended = b"", False
    for found in _TOKEN.finditer(line):
        token = found[0]
        in_rows = depth >= 3 and keys[1] == b'"result"' and keys[2][1:-1].decode("latin-1") in LISTS
        if in_rows and depth == 3 and begins < 0 and token not in b"],":
            begins = found.start()
        if token in b"[{" or token in b"]}":
            depth += 1 if token in b"[{" else -1
            if depth == 3 and in_rows and token in b"]}" and begins >= 0:
                outline.rows.append((begins, found.end()))
                begins = -1
        elif token == b":" and depth in (1, 2):
            keys[depth], key_ended = last, True
            outline.is_request = outline.is_request or (depth == 1 and last == b'"method"')
            last = token
            continue
        elif in_rows and depth == 3 and begins >= 0:  # a row that is not an object
            outline.rows.append((begins, found.end()))
            begins = -1
        if key_ended and depth == 1 and keys[1] == b'"id"' and _NUMBER.fullmatch(token):
            outline.id = int(token.partition(b".")[0])
        last, key_ended = token, False
        if depth < 2:
            keys[2] = b""
    return outline


def _without_bad_rows(line: bytes, rows: list[tuple[int, int]]) -> bytes:
    """Return the message with a note in place of each unreadable row."""
    parts, end = [], 0
    for begins, ends in rows:
        row = line[begins:ends]
        try:
            from_json(b"[[[" + row + b"]]]")  # at the same depth as in the message
        except ValueError as problem:
            row = _note(row, _reason(problem))
        parts += [line[end:begins], row]
        end = ends
    return b"".join([*parts, line[end:]])


def _note(row: bytes, reason: str) -> bytes:
    name = _NAME.search(row)
    try:
        known = from_json(name[1]) if name is not None else "?"
    except ValueError:
        known = "?"
    return json.dumps({"name": known, UNREADABLE_ROW: reason}).encode()


def _reason(problem: ValueError) -> str:
    errors = getattr(problem, "errors", None)
    if errors is None:
        return _not_json(str(problem))
    first = errors(include_url=False, include_context=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return _not_json(first["msg"].removeprefix("Invalid JSON: "))
    return "it is not a message of the protocol"


def _not_json(words: str) -> str:
    return f"it is not JSON: {words.partition(' at line ')[0]}"[:MAX_REASON]
