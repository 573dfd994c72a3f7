"""Both wire formats at the loopback server, and what an error can show."""

from __future__ import annotations

import json
import pickle
import traceback
from typing import Any

import pytest

from rlm.errors import ProviderError
from rlm.providers import AnthropicProvider, OnText, OpenAIProvider, ProviderReply, ProviderRequest
from rlm.providers.remote import RemoteProvider
from tests.support.loopback import Loopback

SECRET = "sk-test-0123456789abcdef"
WIRES = ("openai", "anthropic")


def provider(loopback: Loopback, wire: str = "openai", **options: Any) -> RemoteProvider:
    options = {"api_key": lambda: SECRET, **options}
    if wire == "anthropic":
        return AnthropicProvider("m", loopback.anthropic_url, **options)
    return OpenAIProvider("m", loopback.url, **options)


def a_request(text: str = "hello", **fields: Any) -> ProviderRequest:
    fields = {"parts": {"messages": [{"role": "user", "content": text}]}, "max_output_tokens": 9, **fields}
    return ProviderRequest(model="m", **fields)


async def sent(
    to: RemoteProvider, request: ProviderRequest | None = None, on_text: OnText | None = None
) -> ProviderReply:
    request = request or a_request()
    return await to.send(request, to.encode(request), on_text)


async def failure(to: RemoteProvider, request: ProviderRequest | None = None) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await sent(to, request)
    return caught.value


def everything(error: ProviderError) -> str:
    """All that an error can show: as data, as text, pickled, and with every frame's locals."""
    shown = traceback.TracebackException.from_exception(error, capture_locals=True)
    return "".join([json.dumps(error.to_dict()), repr(error), repr(pickle.dumps(error)), *shown.format()])
