"""Providers of answers: wire formats over httpx. A provider decides nothing about the content of a request.

``resolve("openai:NAME")``, for example, returns an OpenAIProvider. Each module is loaded at its first use.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rlm.errors import ConfigurationError, did_you_mean

if TYPE_CHECKING:
    from rlm.providers.anthropic import AnthropicProvider
    from rlm.providers.base import Delivery, Provider, ProviderReply, ProviderRequest, ToolCall, Usage, Wire
    from rlm.providers.local import LocalProvider
    from rlm.providers.openai import OpenAIProvider
    from rlm.providers.prices import Price
    from rlm.providers.retry import Retry
    from rlm.providers.scripted import ScriptedProvider
    from rlm.providers.wire import OnText

__all__ = [
    "AnthropicProvider",
    "Delivery",
    "LocalProvider",
    "OnText",
    "OpenAIProvider",
    "Price",
    "Provider",
    "ProviderReply",
    "ProviderRequest",
    "Retry",
    "ScriptedProvider",
    "ToolCall",
    "Usage",
    "Wire",
    "resolve",
]

FORMS = (
    "'openai:MODEL', 'anthropic:MODEL', 'openrouter:VENDOR/MODEL', 'local', 'local:FILE.gguf', "
    "'http://HOST:PORT/v1#MODEL', or a provider object"
)
_HOMES = {
    "AnthropicProvider": "rlm.providers.anthropic",
    "LocalProvider": "rlm.providers.local",
    "OnText": "rlm.providers.wire",
    "OpenAIProvider": "rlm.providers.openai",
    "Price": "rlm.providers.prices",
    "Retry": "rlm.providers.retry",
    "ScriptedProvider": "rlm.providers.scripted",
}
KEY_HINT = (
    "key comes from the environment (OPENAI_API_KEY), or from the provider: model=OpenAIProvider(..., api_key=function)"
)
"""The right place for a key, for an error about an option of that name."""
_HOST = re.compile(r"[\w.-]+:\d+(/|#|$)")
"""The beginning of a URL without its scheme."""
_NAMED = ("openai", "anthropic", "openrouter")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    from rlm.imports import whole

    with whole():
        return getattr(importlib.import_module(_HOMES.get(name, "rlm.providers.base")), name)


def resolve(model: str | Provider) -> Provider:
    """Return the provider that a model string names, for example ``"anthropic:NAME"``. A provider is returned as it is.

    Raises: ConfigurationError ``unknown_model`` with the known forms; ProviderError ``local_missing`` or
    ``model_missing`` for a local model without llama.cpp or without its file.
    """
    if not isinstance(model, str):
        return _checked(model)
    scheme, _, name = model.partition(":")
    if scheme in ("http", "https"):
        return _at_url(model)
    if scheme == "openai" and name:
        from rlm.providers.openai import OpenAIProvider

        return OpenAIProvider(name)
    if scheme == "anthropic" and name:
        from rlm.providers.anthropic import AnthropicProvider

        return AnthropicProvider(name)
    if scheme == "openrouter" and name:
        from rlm.providers.openai import openrouter

        return openrouter(name)
    if scheme == "local":
        from rlm.providers.local import LocalProvider

        return LocalProvider(name or None)
    raise _unknown(model, scheme)


def _at_url(model: str) -> Provider:
    from rlm.providers.openai import OpenAIProvider

    base_url, _, name = model.partition("#")
    provider = OpenAIProvider(name, base_url, name="endpoint")
    if not name:
        raise ConfigurationError("unknown_model", f"{base_url!r} names no model: write '{base_url}#MODEL'")
    return provider


def _checked(provider: Provider) -> Provider:
    members = "name model wire enforces_schema window encode send aclose __aenter__ __aexit__".split()
    if isinstance(provider, type):
        name = provider.__name__
        raise ConfigurationError("unknown_model", f"{name} is a class, and a provider is an object: write {name}(...)")
    missing = [member for member in members if not hasattr(provider, member)]
    if missing:
        raise ConfigurationError(
            "unknown_model",
            f"{type(provider).__name__} is no provider: it has no {missing[0]!r}. Known: {FORMS}",
            {"missing": missing},
        )
    return provider


def _unknown(model: str, scheme: str) -> ConfigurationError:
    if model.rstrip(":") in _NAMED:
        hint = f"; which one? Write '{model.rstrip(':')}:MODEL'"
    elif scheme == "scripted":
        hint = "; a script is an object: ScriptedProvider([...])."
    elif _HOST.match(model):
        hint = f"; did you mean 'http://{model if '#' in model else f'{model}#MODEL'}'?"
    elif ":" in model:
        hint = did_you_mean(scheme, (*_NAMED, "local", "http", "https"))
    else:
        vendor = "anthropic" if "claude" in model.lower() else "openrouter" if "/" in model else "openai"
        hint = did_you_mean(model, ("local",)) or (f"; did you mean '{vendor}:{model}'?" if model else "")
    end = "" if hint.endswith(("?", ".")) else "."
    return ConfigurationError("unknown_model", f"no provider for the model {model!r}{hint}{end} Known: {FORMS}")
