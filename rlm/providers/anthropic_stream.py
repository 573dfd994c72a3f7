"""Assembly of a streamed message: the result equals a message that was not streamed. Pure."""

from __future__ import annotations

import json
from typing import Any

from rlm.providers.stream_calls import joined_arguments
from rlm.providers.wire import NotAReply


class MessageAssembly:
    """A message with blocks that arrive one after the other, each in pieces."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: list[_Block] = []
        self._open: dict[int, _Block] = {}
        self._texts: list[str] = []
        self._stop: Any = None
        self._usage: dict[str, Any] = {}
        self.ended = False

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._texts)

    @property
    def usage(self) -> Any:
        """The usage so far."""
        return self._usage or None

    @property
    def whole(self) -> bool:
        """Whether the stop reason has arrived."""
        return self._stop is not None

    def take(self, value: Any) -> str:
        """Add one event and return its text. Unknown kinds of events are skipped. Raises: NotAReply."""
        if not isinstance(value, dict):
            raise NotAReply("an event of the stream: expected an object")
        kind = value.get("type")
        if kind == "message_start":
            self._message = _object(value, "message")
            # output tokens of the first event are no count of the whole: a later event has it, or it is unknown
            self._count({**_object(self._message, "usage", {}), "output_tokens": None})
        elif kind == "content_block_start":
            return self._add_text(self._begun(_index(value), _object(value, "content_block")).beginning)
        elif kind == "content_block_delta":
            return self._take_delta(value)
        elif kind == "message_delta":
            self._stop = _object(value, "delta").get("stop_reason") or self._stop
            self._count(_object(value, "usage", {}))
        self.ended = kind == "message_stop"
        return ""

    def value(self) -> dict[str, Any]:
        """Return the message. Raises: NotAReply if none began."""
        if not self._message:
            raise NotAReply("the stream: no message_start")
        blocks = [block.value() for block in self._blocks]
        return {**self._message, "content": blocks, "stop_reason": self._stop, "usage": self._usage}

    def _take_delta(self, event: dict[str, Any]) -> str:
        block, delta = self._open.get(_index(event)), _object(event, "delta")
        if block is None and self._message and delta.get("type") == "text_delta":
            block = self._begun(_index(event), {"type": "text", "text": ""})
        if block is None:
            raise NotAReply("content_block_delta: for a block that has not begun")
        if delta.get("type") == "text_delta":
            block.texts.append(self._add_text(delta.get("text")))
            return block.texts[-1]
        if delta.get("type") == "input_json_delta":
            block.inputs.append(str(delta.get("partial_json") or ""))
        return ""

    def _begun(self, index: int, start: dict[str, Any]) -> _Block:
        """Return a new block. A second block with the same index does not replace the first."""
        block = self._open[index] = _Block(start)
        self._blocks.append(block)
        return block

    def _add_text(self, text: Any) -> str:
        if text:
            self._texts.append(str(text))
        return str(text or "")

    def _count(self, usage: dict[str, Any]) -> None:
        self._usage.update({name: tokens for name, tokens in usage.items() if tokens is not None})


class _Block:
    def __init__(self, start: dict[str, Any]) -> None:
        self._start = start
        self.texts: list[str] = []
        self.inputs: list[str] = []

    @property
    def beginning(self) -> str:
        return str(self._start.get("text") or "") if self._start.get("type") == "text" else ""

    def value(self) -> dict[str, Any]:
        if self._start.get("type") == "text":
            return {**self._start, "text": self.beginning + "".join(self.texts)}
        arguments = joined_arguments(self.inputs)
        return {**self._start, "input": _parsed(arguments)} if arguments else self._start


def _parsed(text: str) -> Any:
    """Return the input of a call, or the text itself if the stream ended within it."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _index(event: dict[str, Any]) -> int:
    index = event.get("index")
    if not isinstance(index, int):
        raise NotAReply(f"{event.get('type')}.index: expected a number")
    return index


def _object(value: dict[str, Any], name: str, default: dict[str, Any] | None = None) -> dict[str, Any]:
    found = value.get(name)
    if found is None and default is not None:
        return default
    if not isinstance(found, dict):
        raise NotAReply(f"{value.get('type', 'the stream')}.{name}: expected an object")
    return found
