"""A provider with written replies, for tests, examples and replay. It runs in this process."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import anyio.lowlevel

from rlm.compiler.tokens.token_counter import counter
from rlm.errors import ConfigurationError, ProviderError
from rlm.providers import anthropic_wire, openai_wire
from rlm.providers.base import NothingOpen, ProviderReply, ProviderRequest, Usage, Wire
from rlm.providers.prices import FREE
from rlm.providers.wire import OnText, TextSink

Line = str | ProviderReply | Exception
"""A text, a whole reply, or an exception, which is raised as it is."""

Script = Iterable[Line] | Callable[[ProviderRequest], Line | Awaitable[Line]]
UsageSource = Usage | Callable[[ProviderRequest, str], Usage]


def _checked_line(line: Any, place: int) -> Line:
    """Check a line of a script and return it. Raises: ConfigurationError ``invalid_script``."""
    if isinstance(line, str | ProviderReply | Exception):
        return line
    hint = ": write json.dumps(...)" if isinstance(line, dict | list) else ""
    kinds = "a text, a ProviderReply or an exception"
    what = f"reply {place} of the script is {kinds}, not {type(line).__name__}{hint}"
    raise ConfigurationError("invalid_script", what, {"reply": place})


class ScriptedProvider(NothingOpen):
    """A provider that answers from a script. It records its requests in ``requests``, and their bytes in ``bodies``.

    Args:
        replies: lines, used in order, or a function from a request to a line (or an awaitable of one).
        usage: the usage of a reply that is a text, or a function of the request and the text. Without it, the reply
            counts its own tokens as output, and has no count of the request's.
        wire: the wire format of its requests.
        window: tokens of its context window.
        model: its model's name.
        enforces_schema: the value of ``enforces_schema``; replies are not checked.
    """

    name = "scripted"
    price = FREE

    def __init__(
        self,
        replies: Script,
        *,
        usage: UsageSource | None = None,
        wire: Wire = "openai",
        window: int | None = None,
        model: str = "scripted",
        enforces_schema: bool = True,
    ) -> None:
        if isinstance(replies, str) or not (callable(replies) or isinstance(replies, Iterable)):
            raise ConfigurationError("invalid_script", "replies are a list or a function; for one reply write [text]")
        if isinstance(replies, list | tuple):
            for place, line in enumerate(replies, 1):
                _checked_line(line, place)
        self.model = model
        self.wire: Wire = wire
        self.enforces_schema = enforces_schema
        self.requests: list[ProviderRequest] = []
        self.bodies: list[bytes] = []
        self._script = replies if callable(replies) else iter(replies)
        self._usage = usage
        self._window = window

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.model!r}, asked {len(self.requests)} times>"

    async def window(self) -> int | None:
        """Return the tokens of the context window, or None."""
        return self._window

    def encode(self, request: ProviderRequest) -> bytes:
        """Return the bytes that a provider with this wire would send. Raises: ConfigurationError."""
        if self.wire == "anthropic":
            return anthropic_wire.encode_request(request, enforces_schema=self.enforces_schema)
        return openai_wire.encode_request(request, enforces_schema=self.enforces_schema)

    async def send(self, request: ProviderRequest, body: bytes, on_text: OnText | None = None) -> ProviderReply:
        """Return the next reply.

        Raises: ProviderError ``script_ended`` after the last one; the exceptions of the script.
        """
        self.requests.append(request)
        self.bodies.append(body)
        await anyio.lowlevel.checkpoint()
        line = _checked_line(await self._line(request), len(self.requests))
        if isinstance(line, Exception):
            raise line
        reply = line if isinstance(line, ProviderReply) else self._reply(request, line)
        TextSink(on_text).rest(reply.text)
        return reply

    async def _line(self, request: ProviderRequest) -> Line:
        if callable(self._script):
            line = self._script(request)
            return await line if inspect.isawaitable(line) else line
        for line in self._script:
            return line
        place = len(self.requests)
        detail = {"provider": self.name, "unsent": True}
        messages = request.parts.get("messages") or [{}]
        last = messages[-1].get("content") if isinstance(messages[-1], Mapping) else None
        heading = last.split("\n", 1)[0][:80] if isinstance(last, str) and last.startswith("# ") else ""
        about = f", whose last message begins {heading!r}" if heading else ""
        raise ProviderError("script_ended", f"the script has no reply for request {place}{about}", detail)

    def _reply(self, request: ProviderRequest, text: str) -> ProviderReply:
        usage = self._usage(request, text) if callable(self._usage) else self._usage
        usage = usage or Usage(output_tokens=counter().count(text))
        return ProviderReply(text=text, finish_reason="stop", usage=usage, model=self.model)
