"""Any endpoint that speaks Anthropic's Messages API."""

from __future__ import annotations

from typing import Any

from rlm.providers.anthropic_stream import MessageAssembly
from rlm.providers.anthropic_wire import decode_reply, encode_request
from rlm.providers.base import ProviderReply, ProviderRequest, Usage, Wire
from rlm.providers.credentials import SecretSource
from rlm.providers.http import MAX_REPLY_BYTES, Endpoint
from rlm.providers.remote import RemoteProvider, signed_in
from rlm.providers.usage import anthropic_usage

ANTHROPIC_URL = "https://api.anthropic.com"
VERSION = "2023-06-01"


class AnthropicProvider(RemoteProvider):
    """One model at an endpoint of the Messages API.

    ``ANTHROPIC_API_KEY`` goes to Anthropic or to the host's ``ANTHROPIC_BASE_URL``, which are used without a
    ``base_url``. Any other endpoint gets the key that ``api_key`` or ``api_key_variable`` names, or none.

    Args:
        model: the model's name there.
        base_url: the URL before ``/v1/messages``; default ``ANTHROPIC_BASE_URL``, else Anthropic's.
        api_key: a callable that returns the key (or an awaitable of it), called before every request.
        api_key_variable: the environment variable that holds the key, if ``api_key`` is None.
        name: the name of this provider in errors and records.
        window: tokens of the model's context window, if the host knows them.
        enforces_schema: whether the model holds replies to a schema in ``output_config``. Older models do not, and
            newer ones take only a part of JSON Schema, so the host decides. If false, no schema is sent: a forced
            call would show the schema in the prompt and enforce nothing.
        max_reply_bytes: a longer reply is refused.

    Raises: ConfigurationError if ``base_url`` is no valid URL, or if ``api_key`` is a text.
    """

    wire: Wire = "anthropic"
    path = "/v1/messages"
    reply_is = "message"

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        *,
        api_key: SecretSource | None = None,
        api_key_variable: str | None = None,
        name: str = "anthropic",
        window: int | None = None,
        enforces_schema: bool = False,
        max_reply_bytes: int = MAX_REPLY_BYTES,
    ) -> None:
        own = {"home": ANTHROPIC_URL, "url_variable": "ANTHROPIC_BASE_URL", "key_variable": "ANTHROPIC_API_KEY"}
        url, credentials = signed_in(base_url, api_key, api_key_variable, **own)
        endpoint = Endpoint(
            name,
            url,
            credentials,
            header=("x-api-key", ""),
            headers={"anthropic-version": VERSION},
            max_reply_bytes=max_reply_bytes,
        )
        super().__init__(model, endpoint, window=window, enforces_schema=enforces_schema)

    def encode(self, request: ProviderRequest) -> bytes:
        """Return the body of the request. Raises: ConfigurationError ``invalid_request``, ``unsupported_setting``."""
        return encode_request(request, enforces_schema=self.enforces_schema)

    def _assembly(self) -> MessageAssembly:
        return MessageAssembly()

    def _decoded(self, value: Any, request_id: str | None) -> ProviderReply:
        return decode_reply(value, request_id)

    @staticmethod
    def _usage(usage: Any) -> Usage:
        return anthropic_usage(usage)
