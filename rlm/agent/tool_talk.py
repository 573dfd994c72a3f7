"""The messages of a ``tools`` loop after the task, in a provider's own form. They only grow until a compaction."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rlm.providers.base import ProviderReply, ToolCall

NativeWire = Literal["openai", "anthropic"]

KEPT_EXCHANGES = 3
"""The number of newest exchanges that a compaction keeps."""

LAST_TURN = "# Last turn\nNo call can follow. Answer now, from what there is.\n"


@dataclass
class CallResult:
    """The result of one call, as the model sees it."""

    call: ToolCall
    text: str
    failed: bool = False


@dataclass
class ToolExchange:
    """One reply of the model with its calls, and their results or the runtime's answer."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    results: list[CallResult] = field(default_factory=list)
    answer: str = ""


@dataclass
class ToolTalk:
    """The conversation of one agent.

    ``opening`` is the first message after the task: inputs, the form of the answer, and the budget.
    """

    wire: NativeWire
    opening: str
    exchanges: list[ToolExchange] = field(default_factory=list)
    compacted: int = 0
    last_turn: bool = False
    _ids: set[str] = field(default_factory=set)

    def add(self, reply: ProviderReply) -> ToolExchange:
        """Add a reply. Some servers repeat the ids of calls; each call gets an id of its own."""
        calls = tuple(call.model_copy(update={"id": self._own_id(call.id)}) for call in reply.tool_calls)
        self.exchanges.append(ToolExchange(reply.text, calls))
        return self.exchanges[-1]

    def _own_id(self, id: str) -> str:
        unique, number = id, 1
        while unique in self._ids:
            number += 1
            unique = f"{id}_{number}"
        self._ids.add(unique)
        return unique

    def tail(self) -> list[dict[str, Any]]:
        """Return the messages after the task."""
        earlier = f"# Earlier\n{self.compacted} earlier turns are left out.\n" if self.compacted else ""
        opening = f"{self.opening}{earlier}"
        messages: list[dict[str, Any]] = [{"role": "user", "content": opening}] if opening else []
        for exchange in self.exchanges:
            messages += self._openai(exchange) if self.wire == "openai" else self._anthropic(exchange)
        return [*messages, {"role": "user", "content": LAST_TURN}] if self.last_turn else messages

    def _openai(self, exchange: ToolExchange) -> list[dict[str, Any]]:
        spoken: dict[str, Any] = {"role": "assistant", "content": exchange.text or None}
        if exchange.calls:
            spoken["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in exchange.calls
            ]
        else:
            spoken["content"] = exchange.text or "(empty)"
        results = [
            {"role": "tool", "tool_call_id": result.call.id, "content": result.text} for result in exchange.results
        ]
        return [spoken, *results, *([{"role": "user", "content": exchange.answer}] if exchange.answer else [])]

    def _anthropic(self, exchange: ToolExchange) -> list[dict[str, Any]]:
        text = exchange.text or ("" if exchange.calls else "(empty)")
        blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text.strip() else []
        blocks += [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": _object(call.arguments)}
            for call in exchange.calls
        ]
        results: list[dict[str, Any]] = [
            {"type": "tool_result", "tool_use_id": result.call.id, "content": result.text}
            | ({"is_error": True} if result.failed else {})
            for result in exchange.results
        ]
        if exchange.answer:
            results.append({"type": "text", "text": exchange.answer})
        return [{"role": "assistant", "content": blocks}, *([{"role": "user", "content": results}] if results else [])]

    def compact(self) -> bool:
        """Leave out the oldest exchanges; return False if nothing can be left out."""
        extra = len(self.exchanges) - KEPT_EXCHANGES
        if extra <= 0:
            if len(self.exchanges) <= 1:
                return False
            extra = 1
        self.compacted += extra
        self.exchanges = self.exchanges[extra:]
        return True


def _object(arguments: str) -> Mapping[str, Any]:
    """Return the arguments of a call as the object that the Messages API wants."""
    try:
        value = json.loads(arguments or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
