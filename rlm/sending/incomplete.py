"""Check that a reply is complete: a reply that is cut, filtered, refused or empty is never a value. Pure functions."""

from __future__ import annotations

from typing import Any, Literal

from rlm.errors import ProviderError
from rlm.plan.reply_json import without_thoughts
from rlm.providers.base import FinishReason, ProviderReply
from rlm.providers.faults import shown

Kind = Literal["reply_cut", "reply_filtered", "reply_refused", "reply_unfinished", "reply_empty"]

_KINDS: dict[FinishReason, Kind] = {
    "length": "reply_cut",
    "content_filter": "reply_filtered",
    "refusal": "reply_refused",
    "pause": "reply_unfinished",
    "tool_calls": "reply_unfinished",
    "unknown": "reply_unfinished",
}

_MESSAGES: dict[Kind, str] = {
    "reply_cut": "the reply was cut at its limit of output tokens",
    "reply_filtered": "the provider's filter held the reply back",
    "reply_refused": "the model refused to answer",
    "reply_unfinished": "the model stopped before its answer was done",
    "reply_empty": "the reply holds no answer",
}


def unfinished(reply: ProviderReply) -> ProviderError | None:
    """Return the error of an incomplete reply; None for a complete one.

    A reply without a known reason for its end (``finish_reason`` ``other``) counts as complete. For example, a reply
    with ``finish_reason`` ``length`` gives an error of kind ``reply_cut``.
    """
    kind = _KINDS.get(reply.finish_reason)
    if kind is None and not without_thoughts(reply.text).strip():
        kind = "reply_empty"
    if kind is None:
        return None
    message = _MESSAGES[kind] + _reason(reply, kind)
    detail: dict[str, Any] = {"finish_reason": reply.finish_reason}
    if reply.stop_word:
        detail["stop_word"] = reply.stop_word
    if reply.text:
        detail["partial_text"] = shown(reply.text)
    return ProviderError(kind, message, detail)


def _reason(reply: ProviderReply, kind: Kind) -> str:
    if kind == "reply_refused" and reply.refusal:
        return f": {shown(reply.refusal)}"
    if kind == "reply_empty" and reply.text.strip():
        return ": it is all reasoning"
    if reply.finish_reason == "tool_calls":
        return ": it calls a tool, and none can be called here"
    if reply.finish_reason == "unknown":
        return f": the reason {shown(reply.stop_word)!r} is not known here"
    return ""
