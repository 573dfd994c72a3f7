"""A message that cannot be read as a whole: its readable rows are kept, and a request that it answers is answered.

A row that no JSON reader takes (too deep, a number of 5,000 digits, a bare control character) would cost all other rows
of its page, and the request would wait for an answer that has come already. A scanner without recursion finds the id
of the message and the rows of its list by brackets and strings alone; each row is then read by itself.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter
from pydantic_core import from_json

from rlm.tools.mcp.codes import UNREADABLE

LISTS = frozenset({"tools", "prompts", "resources", "content", "contents", "messages"})
"""Fields of a result whose items are read one by one."""

UNREADABLE_ROW = "rlm.unreadable"
"""The field of the object that stands in the place of a row which cannot be read; its value is the reason."""

MAX_REASON = 120
ENDS = 256
"""Bytes at the beginning and at the end of a message that its id is looked for in."""

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s"\[\]{},:]+', re.DOTALL)
_NAME = re.compile(rb'"name"\s*:\s*("[^"\\]{1,80}")')
_ID_FIRST = re.compile(rb'\A\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,')
_ID_LAST = re.compile(rb',\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')
_NUMBER = re.compile(rb"-?\d{1,15}(?:\.0+)?")


@dataclass
class _Outline:
    """What brackets and strings tell of a message."""

    id: int | None = None
    is_request: bool = False
    rows: list[tuple[int, int]] = field(default_factory=list)


def message_of(line: bytes) -> JSONRPCMessage | None:
    """Read one message.

    Args:
        line: the bytes of one message, valid UTF-8.

    Returns: the message; what can be read of it; an error with code ``UNREADABLE`` in the place of an answer whose id
        is known; None for anything else, which answers nothing.
    """
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError as problem:
        reason = _reason(problem)
    if not line.lstrip().startswith(b"{"):
        return None
    outline = _outlined(line)
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
    """The id of an answer, where it stands at the beginning or at the end of its bytes; None elsewhere."""
    found = _ID_FIRST.search(line[:ENDS]) or _ID_LAST.search(line[-ENDS:])
    return None if found is None else int(found[1])


def readable(body: bytes) -> bytes:
    """The JSON text of one message that strict readers take: ``body``, or what ``message_of`` makes of it.

    Returns: ``body`` as it is, too, where nothing can be made of it.
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


def _outlined(line: bytes) -> _Outline:
    """The id of a message and the places of its rows, by brackets and strings alone."""
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
        elif in_rows and depth == 3 and begins >= 0:  # a row that is no object
            outline.rows.append((begins, found.end()))
            begins = -1
        if key_ended and depth == 1 and keys[1] == b'"id"' and _NUMBER.fullmatch(token):
            outline.id = int(token.partition(b".")[0])
        last, key_ended = token, False
        if depth < 2:
            keys[2] = b""
    return outline


def _without_bad_rows(line: bytes, rows: list[tuple[int, int]]) -> bytes:
    """The message with a note in the place of each row that cannot be read."""
    parts, end = [], 0
    for begins, ends in rows:
        row = line[begins:ends]
        try:
            from_json(b"[[[" + row + b"]]]")  # as deep as it stands in the message
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
