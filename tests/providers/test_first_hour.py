"""What a new user meets on the way to a first answer: a wrong address, a wrong model string, a class for an object."""

from __future__ import annotations

import socket
from pathlib import Path

import anyio
import pytest

from rlm.errors import ConfigurationError, ProviderError
from rlm.providers import AnthropicProvider, LocalProvider, OpenAIProvider, resolve
from tests.providers.sending import failure
from tests.support.loopback import Loopback, raw


def closed_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


def test_where_nothing_listens_the_error_names_the_address() -> None:
    url = f"http://127.0.0.1:{closed_port()}/v1"
    error = anyio.run(failure, OpenAIProvider("m", url))
    assert (error.kind, error.retryable) == ("connection", True)
    assert error.message.startswith(f"openai: no connection to {url}: ")


@pytest.mark.parametrize("status", [404, 200])
def test_a_base_url_without_its_version_is_told_what_is_missing(loopback: Loopback, status: int) -> None:
    loopback.script([raw(b"<html>page not found</html>", status=status)] * 2)
    bare = loopback.url.removesuffix("/v1")
    error = anyio.run(failure, OpenAIProvider("m", bare))
    assert error.message.endswith(f"(POST {bare}/chat/completions: the base URL of most servers ends in /v1)")
    right = anyio.run(failure, OpenAIProvider("m", loopback.url))
    assert right.message.endswith(f"(POST {loopback.url}/chat/completions)")


def test_a_version_that_stands_twice_is_told(loopback: Loopback) -> None:
    loopback.script([raw(b"page not found", status=404)])
    error = anyio.run(failure, AnthropicProvider("m", f"{loopback.anthropic_url}/v1", api_key=lambda: "a-long-key"))
    assert error.message.endswith("/v1/v1/messages: the base URL ends before /v1)")


def test_a_base_url_without_a_scheme_is_named_with_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "localhost:8000")
    with pytest.raises(ConfigurationError) as caught:
        OpenAIProvider("m")
    assert caught.value.message == (
        "OPENAI_BASE_URL: 'localhost:8000' is no http(s) URL with a host: "
        "write 'http://localhost:8000' or 'https://localhost:8000'"
    )
    with pytest.raises(ConfigurationError, match="base_url: 'gpu' is no http"):
        OpenAIProvider("m", "gpu")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("OpenAI:gpt-x", "did you mean 'openai'?"),
        ("LOCAL", "did you mean 'local'?"),
        ("claude-x", "did you mean 'anthropic:claude-x'?"),
        ("vendor/m", "did you mean 'openrouter:vendor/m'?"),
        ("localhost:8000/v1#qwen", "did you mean 'http://localhost:8000/v1#qwen'?"),
        ("localhost:8000", "did you mean 'http://localhost:8000#MODEL'?"),
        ("azure:gpt-x", "no provider for the model 'azure:gpt-x'. Known: "),
    ],
)
def test_a_model_string_that_is_none_is_answered_with_the_right_one(text: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve(text)
    assert hint in caught.value.message


def test_a_class_is_no_provider() -> None:
    with pytest.raises(ConfigurationError, match=r"OpenAIProvider is a class.*write OpenAIProvider\(\.\.\.\)"):
        resolve(OpenAIProvider)  # type: ignore[arg-type]


def test_a_local_model_that_is_a_folder_or_no_model_is_told_so(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    with pytest.raises(ProviderError, match="a folder, not a GGUF file: "):
        resolve(f"local:{tmp_path}")
    file = tmp_path / "tools.jsonl"
    file.write_text("{}")
    error = anyio.run(failure, LocalProvider(file))
    assert (error.kind, error.message) == ("model_invalid", f"local model: no GGUF file: {file}")
