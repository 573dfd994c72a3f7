"""The servers' words for the end of a reply, in one vocabulary for all wire formats. Pure.

The words are those of the vendors' documentation and of servers that speak their formats (vLLM, Ollama, Gemini,
Cohere, Mistral, DeepSeek, OpenRouter); upper and lower case mean the same.
"""

from __future__ import annotations

from typing import Any

from rlm.errors import valid_text
from rlm.providers.base import FinishReason
from rlm.providers.wire import FailedReply

_WORDS: dict[FinishReason, str] = {
    "stop": "stop end_turn stop_sequence eos eos_token stop_token complete completed end finish finished",
    "length": "length max_tokens max_output_tokens max_completion_tokens model_length model_context_window_exceeded",
    "tool_calls": "tool_calls function_call tool_use tool_call",
    "content_filter": "content_filter content_filtered safety sensitive recitation blocklist prohibited_content spii "
    "guardrail_intervened error_toxic",
    "refusal": "refusal refused",
    "pause": "pause_turn pause",
}
_REASONS = {word: reason for reason, words in _WORDS.items() for word in words.split()}
_FAILED = frozenset(
    "error abort aborted cancelled canceled timeout network_error server_error internal_error overloaded "
    "insufficient_system_resource malformed_function_call".split()
)
"""Words for a reply that broke off at the server: the same request may succeed later."""

MOST_WORD = 60
"""Characters of an unknown word that are kept."""


def ending(word: Any, *, failure: Any = None, text: str = "", usage: Any = None) -> tuple[FinishReason, str]:
    """Return the reason in the one vocabulary, and the server's own word if it is unknown.

    Args:
        word: the value of ``finish_reason`` or ``stop_reason``, or None.
        failure: the value of ``error`` beside it.
        text: the received text of the reply.
        usage: its ``usage``, as the server wrote it.

    Raises: FailedReply if the reply broke off at the server.
    """
    if failure:
        raise FailedReply(failure, text, usage)
    if word is None or word == "":
        return "other", ""
    plain = str(word).strip().lower()
    if plain in _FAILED:
        raise FailedReply({"message": f"the reply ended with {plain!r}"}, text, usage)
    reason = _REASONS.get(plain)
    return (reason, "") if reason is not None else ("unknown", valid_text(str(word))[:MOST_WORD])
