"""Conversations as a host's own loop holds them."""

from __future__ import annotations

from typing import Any


def answered_call(result: str) -> list[dict[str, Any]]:
    """A call of a tool and its result, in the form of OpenAI."""
    call = {"id": "call_1", "type": "function", "function": {"name": "git_diff", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": result},
    ]
