"""Assembly of a streamed chat completion: the result equals a completion that was not streamed. Pure."""

from __future__ import annotations

from typing import Any

from rlm.providers.openai_wire import content_text, refusal_text
from rlm.providers.stream_calls import CallPieces
from rlm.providers.wire import NotAReply

SUMMED_PIECES = 3
"""From so many pieces on, a last chunk that repeats the whole text is no part of the text."""


class ChatAssembly:
    """The first choice of a streamed chat completion."""

    ended = False  # the usage follows the last choice, and ``[DONE]`` follows both

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        self._texts: list[str] = []
        self._calls = CallPieces()
        self._refusals: list[str] = []
        self._finish: Any = None
        self._error: Any = None
        self._usage: Any = None
        self._begun = False

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._texts)

    @property
    def usage(self) -> Any:
        """The usage so far."""
        return self._usage

    @property
    def whole(self) -> bool:
        """Whether the finish reason or an error has arrived."""
        return self._finish is not None or self._error is not None

    def take(self, value: Any) -> str:
        """Add one chunk and return its text. Raises: NotAReply."""
        if not isinstance(value, dict):
            raise NotAReply("a chunk of the stream: expected an object")
        self._named.update({name: value[name] for name in ("id", "model") if value.get(name)})
        self._usage = value.get("usage") or self._usage
        choices = value.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict) or choice.get("index") not in (None, 0):
            return ""
        self._begun = True
        self._finish = choice.get("finish_reason") or self._finish
        self._error = choice.get("error") or self._error
        delta = choice.get("delta")
        if not isinstance(delta, dict) and not self._texts and not self._calls:
            delta = choice.get("message")  # a server that does not cut this reply
        return self._take_delta(delta) if isinstance(delta, dict) else ""

    def value(self) -> dict[str, Any]:
        """Return the completion. Raises: NotAReply if no chunk had a choice."""
        if not self._begun:
            raise NotAReply("the stream: no chunk with a choice")
        message: dict[str, Any] = {"content": self.text}
        if self._calls:
            message["tool_calls"] = self._calls.values()
        if self._refusals:
            message["refusal"] = "".join(self._refusals)
        choice = {"message": message, "finish_reason": self._finish, "error": self._error}
        return {**self._named, "choices": [choice], "usage": self._usage}

    def _take_delta(self, delta: dict[str, Any]) -> str:
        calls = delta.get("tool_calls") or []
        if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
            raise NotAReply("choices[0].delta.tool_calls: expected a list of objects")
        for call in calls:
            self._calls.add(call)
        self._refusals += [refusal] if (refusal := refusal_text(delta)) else []
        text = content_text(delta.get("content"))
        if self._finish is not None and len(self._texts) >= SUMMED_PIECES and text == self.text:
            return ""  # the last chunk repeats the text
        if text:
            self._texts.append(text)
        return text
