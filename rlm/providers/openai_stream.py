"""Chunks of a streamed chat completion, put together again as the completion that was not streamed. Pure."""

from __future__ import annotations

from typing import Any

from rlm.providers.openai_wire import content_text
from rlm.providers.wire import NotAReply


class ChatAssembly:
    """The first choice of a streamed chat completion."""

    ended = False  # the usage follows the last choice, and ``[DONE]`` follows both

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        self._texts: list[str] = []
        self._calls: list[_Call] = []
        self._finish: Any = None
        self._usage: Any = None
        self._begun = False

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._texts)

    @property
    def whole(self) -> bool:
        """Whether the model said why it stopped."""
        return self._finish is not None

    def take(self, value: Any) -> str:
        """Add one chunk; returns its text. Raises: NotAReply."""
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
        delta = choice.get("delta")
        return self._take_delta(delta) if isinstance(delta, dict) else ""

    def value(self) -> dict[str, Any]:
        """The completion. Raises: NotAReply where no chunk held a choice."""
        if not self._begun:
            raise NotAReply("the stream: no chunk with a choice")
        message: dict[str, Any] = {"content": self.text}
        if self._calls:
            message["tool_calls"] = [call.value() for call in self._calls]
        choice = {"message": message, "finish_reason": self._finish}
        return {**self._named, "choices": [choice], "usage": self._usage}

    def _take_delta(self, delta: dict[str, Any]) -> str:
        calls = delta.get("tool_calls") or []
        if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
            raise NotAReply("choices[0].delta.tool_calls: expected a list of objects")
        for call in calls:
            self._call(call).take(call)
        text = content_text(delta.get("content"))
        if text:
            self._texts.append(text)
        return text

    def _call(self, piece: dict[str, Any]) -> _Call:
        """The call that a piece belongs to. Some servers give no index, or the same one to different calls."""
        index, own_id = piece.get("index"), piece.get("id")
        same = [call for call in self._calls if index is None or call.index == index]
        if same and (not own_id or same[-1].id in (None, own_id)):
            return same[-1]
        self._calls.append(_Call(index))
        return self._calls[-1]


class _Call:
    """One tool call: an id and a name, which come once, and arguments, which come in pieces."""

    def __init__(self, index: Any) -> None:
        self.index = index
        self.id: Any = None
        self._name: Any = None
        self._arguments: Any = None
        self._pieces: list[str] = []

    def take(self, piece: dict[str, Any]) -> None:
        self.id = self.id or piece.get("id")
        function = piece.get("function")
        if not isinstance(function, dict):
            return
        self._name = self._name or function.get("name")
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            self._pieces.append(arguments)
        elif arguments is not None:  # parsed by the server, so that it comes whole
            self._arguments = arguments

    def value(self) -> dict[str, Any]:
        arguments = self._arguments if self._arguments is not None else "".join(self._pieces)
        return {"id": self.id, "function": {"name": self._name, "arguments": arguments}}
