"""The nouns between the runtime and providers: request, reply, usage, provider.

A request arrives finished: its ``parts`` come from the compiler's renderer and go out as they are. A provider
turns it into bytes, sends them and reads the reply, whole or as a stream; it decides nothing about the content
of a request, and it retries nothing.
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
"""The reason why a model stopped: ``refusal`` if it refused to answer, ``pause`` if it wants to go on later,
``unknown`` for a word that this library does not know, ``other`` without a reason from the provider."""

Delivery = Literal["whole", "streamed"]

_RENDERED = frozenset({"messages", "system", "tools"})
_SETTINGS = frozenset(
    {"model", "stream", "stream_options", "n", "max_tokens", "max_completion_tokens", "temperature", "seed", "stop"}
    | {"stop_sequences", "response_format"}
)


class ProviderRequest(Noun):
    """One finished request. Only ``parts`` has a provider's own form.

    ``parts`` are the renderer's, in the provider's own wire format (``{"messages": [...], "tools": [...]}`` for
    ``openai``), and are sent unchanged. ``response_format`` is a JSON Schema that the reply must follow; a provider
    that does not enforce schemas (``enforces_schema``) leaves it out. ``max_output_tokens`` is tokens. ``delivery``
    says whether the reply comes whole or as a stream; it is the same reply. ``extra`` are further top-level fields
    for one provider; it cannot replace rendered parts.
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
    """The cost of a reply: tokens in and out, USD. None stands for a figure that the provider did not report.

    ``input_tokens`` counts all input tokens. ``cached_input_tokens`` of them were read from a cache, and
    ``written_input_tokens`` were written to one; ``hour_input_tokens`` of these stay there for an hour. ``unread``
    names the fields with a reported value that is no count of tokens (for example a text, a fraction or a negative
    number) or no amount of money.
    """

    input_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)
    cached_input_tokens: int | None = Field(default=None, ge=0)
    written_input_tokens: int | None = Field(default=None, ge=0)
    hour_input_tokens: int | None = Field(default=None, ge=0)
    cost_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    unread: tuple[str, ...] = ()


class ToolCall(Noun):
    """A model's call: the wire name of the tool, and the arguments as the JSON text that the model wrote."""

    id: str
    name: str
    arguments: str


class ProviderReply(Noun):
    """A provider's reply. ``text`` may be empty, most often beside ``tool_calls``.

    ``refusal`` is the model's text in place of an answer. ``stop_word`` is the provider's own word for the end of the
    reply, if ``finish_reason`` is ``unknown``.
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
    """A provider of answers: one model at one endpoint.

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
        """Whether every reply follows ``response_format``. If not, a schema belongs into the prompt."""

    async def window(self) -> int | None:
        """Return the tokens that a request and its reply may have together; None if the number is unknown.

        Raises: ProviderError if the question to the server failed.
        """

    def encode(self, request: ProviderRequest) -> bytes:
        """Return the bytes of the request body. The same request has the same bytes.

        Raises: ConfigurationError for a request that cannot be written as JSON.
        """

    async def send(self, request: ProviderRequest, body: bytes, on_text: OnText | None = None) -> ProviderReply:
        """Send ``body``, which is ``encode(request)``, once, and read the reply.

        ``on_text`` is called with the reply's text as it arrives: in pieces if the delivery is ``streamed``. An
        exception of it ends the request.

        Raises: ProviderError for every failure of the server or the connection; ConfigurationError for missing
        credentials.
        """

    async def aclose(self) -> None:
        """Close the connections of this provider. It may be used again afterwards."""

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
    """Return ``fields`` as compact UTF-8 JSON, in their own order. Raises: ConfigurationError if they are no JSON."""
    import json

    try:
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode("utf-8")
    except UnicodeEncodeError as problem:
        reason = f"lone surrogate at character {problem.start}"
    except (TypeError, ValueError, RecursionError) as problem:
        reason = str(problem)
    raise ConfigurationError("invalid_request", f"the request cannot be written as JSON: {reason}")
