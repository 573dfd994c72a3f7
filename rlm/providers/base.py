"""The words between the runtime and whoever answers: request, reply, usage, provider.

A request arrives finished: its ``parts`` come from the compiler's renderer and go out as they are. A provider
turns it into bytes, sends them and reads the reply, whole or as a stream; it decides nothing about what is in a
request, and it retries nothing.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Literal, Protocol, Self

import pydantic
from pydantic import Field

from rlm.errors import ConfigurationError
from rlm.model.base import Noun
from rlm.providers.wire import OnText

Wire = Literal["openai", "anthropic", "text"]
FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "refusal", "pause", "unknown", "other"]
"""Why a model stopped: ``refusal`` where it would not answer, ``pause`` where it wants to go on later, ``unknown`` for
a word that this library does not know, ``other`` where the provider does not say."""

Delivery = Literal["whole", "streamed"]

_RENDERED = frozenset({"messages", "system", "tools"})
_SETTINGS = frozenset(
    {"model", "stream", "stream_options", "n", "max_tokens", "max_completion_tokens", "temperature", "seed", "stop"}
    | {"stop_sequences", "response_format"}
)


class ProviderRequest(Noun):
    """One finished request, in the words of no particular provider but for ``parts``.

    ``parts`` are the renderer's, in the provider's own wire format (``{"messages": [...], "tools": [...]}`` for
    ``openai``), and are sent unchanged. ``response_format`` is a JSON Schema that the reply must follow; a provider
    that does not enforce schemas (``enforces_schema``) leaves it out. ``max_output_tokens`` is tokens. ``delivery``
    says whether the reply comes whole or as a stream; it is the same reply. ``extra`` are further top-level fields
    for one provider; it cannot replace what the compiler rendered.
    """

    model: str = Field(min_length=1, max_length=512)
    parts: dict[str, Any]
    max_output_tokens: int = Field(gt=0)
    temperature: float | None = Field(default=None, ge=0, le=2)
    seed: int | None = None
    stop: tuple[str, ...] = Field(default=(), max_length=16)
    response_format: dict[str, Any] | None = None
    delivery: Delivery = "whole"
    extra: dict[str, Any] = {}

    @pydantic.field_validator("parts", "extra")
    @classmethod
    def _one_place_for_each(cls, value: dict[str, Any], info: pydantic.ValidationInfo) -> dict[str, Any]:
        elsewhere = _SETTINGS | _RENDERED if info.field_name == "extra" else _SETTINGS
        taken = sorted(elsewhere & value.keys())
        if taken:
            raise ValueError(f"{', '.join(taken)} cannot be set here: it has a place of its own")
        return value


class Usage(Noun):
    """What a reply cost: tokens in and out, USD. None where the provider did not say.

    ``input_tokens`` are all of them; among them ``cached_input_tokens`` were read from a cache, and
    ``written_input_tokens`` written to one, of which ``hour_input_tokens`` are to stay there for an hour. ``unread``
    names the fields for which the provider gave something that is no count of tokens (a text, a fraction, a negative
    number), or no amount of money.
    """

    input_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)
    cached_input_tokens: int | None = Field(default=None, ge=0)
    written_input_tokens: int | None = Field(default=None, ge=0)
    hour_input_tokens: int | None = Field(default=None, ge=0)
    cost_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    unread: tuple[str, ...] = ()


class ToolCall(Noun):
    """A call that a model asked for: the wire name, and the arguments as the JSON text that it wrote."""

    id: str
    name: str
    arguments: str


class ProviderReply(Noun):
    """What a provider answered. ``text`` may be empty, most often where there are ``tool_calls``.

    ``refusal`` is what the model said instead of an answer. ``stop_word`` is the provider's own word for the end of the
    reply where ``finish_reason`` is ``unknown``.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: FinishReason = "other"
    refusal: str = ""
    stop_word: str = ""
    usage: Usage = Usage()
    model: str = ""
    request_id: str | None = None


class Provider(Protocol):
    """Somebody who answers requests: one model at one endpoint.

    Only ``rlm.sending.gate`` calls ``send``. As an async context manager a provider keeps connections open from
    one request to the next; outside of one, nothing stays open after a reply.
    """

    @property
    def name(self) -> str:
        """A short name for records and errors."""

    @property
    def model(self) -> str:
        """The model's name on the wire."""

    @property
    def wire(self) -> Wire:
        """The form in which ``parts`` must be rendered; a provider takes those of ``text`` as well."""

    @property
    def enforces_schema(self) -> bool:
        """Whether a reply cannot but follow ``response_format``. Where not, a schema belongs into the prompt."""

    async def window(self) -> int | None:
        """Tokens that a request and its reply may hold together; None where nobody knows.

        Raises: ProviderError where finding out failed.
        """

    def encode(self, request: ProviderRequest) -> bytes:
        """The very bytes of the request body: the same request gives the same bytes.

        Raises: ConfigurationError for a request that cannot be written as JSON.
        """

    async def send(self, request: ProviderRequest, body: bytes, on_text: OnText | None = None) -> ProviderReply:
        """Send ``body``, which is ``encode(request)``, once, and read the reply.

        ``on_text`` is told the reply's text as it arrives: in pieces where the delivery is ``streamed``. What it
        raises ends the request.

        Raises: ProviderError for everything that the other side or the line did wrong; ConfigurationError
        where credentials are wanted and missing.
        """

    async def aclose(self) -> None:
        """Close what this provider holds open. It may be used again afterwards."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class NothingOpen:
    """The life of a provider that answers in this process."""

    async def aclose(self) -> None:
        """Nothing is open."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


def encoded(fields: dict[str, Any]) -> bytes:
    """``fields`` as compact UTF-8 JSON, in their own order; ConfigurationError where they are no JSON."""
    import json

    try:
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode("utf-8")
    except UnicodeEncodeError as problem:
        reason = f"lone surrogate at character {problem.start}"
    except (TypeError, ValueError, RecursionError) as problem:
        reason = str(problem)
    raise ConfigurationError("invalid_request", f"the request cannot be written as JSON: {reason}")
