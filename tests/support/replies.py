"""Replies by hand: any bytes, any fault, and errors in the shapes that providers give them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tests.support.wires import Answer, Reply, completion


def says(
    text: str | None = "ok",
    *,
    tool_calls: Iterable[tuple[str, Any]] = (),
    usage: dict[str, Any] | None = None,
    finish_reason: str | None = None,
    model: str = "loopback",
) -> Reply:
    """A chat completion. ``tool_calls`` are names and arguments (JSON text, or a value that is dumped)."""
    value = completion(Answer(text or "", tuple(tool_calls), finish=finish_reason, model=model), usage)
    value["choices"][0]["message"]["content"] = text
    return replies_json(value)


def replies_json(value: Any, status: int = 200, **headers: str) -> Reply:
    """Any JSON value. Headers are written with underscores: ``retry_after="2"``."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Reply(status, json.dumps(value).encode(), {"Content-Type": "application/json", **named})


def fails(status: int, message: str = "", code: str | None = None, **headers: str) -> Reply:
    """An error in the shape of OpenAI's."""
    return replies_json({"error": {"message": message or f"status {status}", "code": code}}, status, **headers)


def anthropic_fails(status: int, kind: str, message: str = "", **headers: str) -> Reply:
    """An error in the shape of Anthropic's: ``anthropic_fails(529, "overloaded_error")``."""
    error = {"type": kind, "message": message or f"status {status}"}
    return replies_json({"type": "error", "error": error, "request_id": "req_1"}, status, **headers)


def raw(body: bytes, status: int = 200, *, sized: bool = True) -> Reply:
    """Any bytes, with or without a Content-Length."""
    return Reply(status, body, {"Content-Type": "application/json"}, "finish" if sized else "close")


def stalls(after: bytes = b"", status: int = 0) -> Reply:
    """Nothing (or a beginning), and then silence."""
    return Reply(status, after, then="stall")


def drops(after: bytes = b"", status: int = 0) -> Reply:
    """Nothing (or a beginning), and then the end of the connection."""
    return Reply(status, after, then="drop")


def resets(after: bytes = b"", status: int = 0) -> Reply:
    """Nothing (or a beginning), and then the connection is torn down (RST)."""
    return Reply(status, after, then="reset")


def sse(*chunks: bytes, **fields: Any) -> Reply:
    """Any bytes as a stream of events, in these pieces."""
    return Reply(200, b"", {"Content-Type": "text/event-stream; charset=utf-8"}, chunks=chunks, **fields)
