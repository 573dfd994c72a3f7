"""Any endpoint that speaks OpenAI chat completions: OpenAI, OpenRouter, vLLM, Ollama, llama.cpp."""

from __future__ import annotations

from typing import Any

from rlm.providers.base import ProviderReply, ProviderRequest, Usage, Wire
from rlm.providers.credentials import SecretSource
from rlm.providers.http import MAX_REPLY_BYTES, Endpoint
from rlm.providers.openai_stream import ChatAssembly
from rlm.providers.openai_wire import OutputLimit, decode_reply, encode_request
from rlm.providers.remote import RemoteProvider, signed_in
from rlm.providers.usage import openai_usage

OPENAI_URL = "https://api.openai.com/v1"
OPENROUTER_URL = "https://openrouter.ai/api/v1"


class OpenAIProvider(RemoteProvider):
    """One model at an OpenAI-compatible endpoint.

    ``OPENAI_API_KEY`` goes only to OpenAI or to the host's ``OPENAI_BASE_URL``, which are used without a
    ``base_url``. Any other endpoint gets the key that ``api_key`` or ``api_key_variable``
    names, or none.

    Args:
        model: the model's name there.
        base_url: the URL before ``/chat/completions``; default ``OPENAI_BASE_URL``, else OpenAI's.
        api_key: a callable that returns the key (or an awaitable of it), called before every request.
        api_key_variable: the environment variable that holds the key, if ``api_key`` is None.
        name: the name of this provider in errors and records.
        window: tokens of the model's context window, if the host knows them.
        output_limit: the endpoint's name for the limit on output tokens; by default OpenAI's own endpoint gets
            ``max_completion_tokens`` and every other one ``max_tokens``.
        enforces_schema: whether the endpoint holds replies to a ``json_schema`` response format. If false, no
            schema is sent.
        max_reply_bytes: a longer reply is refused.

    Raises: ConfigurationError if ``base_url`` is no valid URL, or if ``api_key`` is a text.
    """

    wire: Wire = "openai"
    path = "/chat/completions"
    reply_is = "chat completion"

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        *,
        api_key: SecretSource | None = None,
        api_key_variable: str | None = None,
        name: str = "openai",
        window: int | None = None,
        output_limit: OutputLimit | None = None,
        enforces_schema: bool = True,
        max_reply_bytes: int = MAX_REPLY_BYTES,
    ) -> None:
        own = {"home": OPENAI_URL, "url_variable": "OPENAI_BASE_URL", "key_variable": "OPENAI_API_KEY"}
        url, credentials = signed_in(base_url, api_key, api_key_variable, **own)
        endpoint = Endpoint(name, url, credentials, max_reply_bytes=max_reply_bytes)
        super().__init__(model, endpoint, window=window, enforces_schema=enforces_schema)
        modern = endpoint.host == "api.openai.com"
        self._output_limit: OutputLimit = output_limit or ("max_completion_tokens" if modern else "max_tokens")

    def encode(self, request: ProviderRequest) -> bytes:
        """Return the body of the request. Raises: ConfigurationError ``invalid_request``."""
        return encode_request(request, self._output_limit, enforces_schema=self.enforces_schema)

    def _assembly(self) -> ChatAssembly:
        return ChatAssembly()

    def _decoded(self, value: Any, request_id: str | None) -> ProviderReply:
        return decode_reply(value, request_id)

    @staticmethod
    def _usage(usage: Any) -> Usage:
        return openai_usage(usage)


def openrouter(model: str) -> OpenAIProvider:
    """Return a model at OpenRouter (``vendor/model``), with the key in ``OPENROUTER_API_KEY``."""
    return OpenAIProvider(model, OPENROUTER_URL, api_key_variable="OPENROUTER_API_KEY", name="openrouter")
