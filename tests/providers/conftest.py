"""A fresh loopback server per test, and an environment without anybody's keys."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.loopback import Loopback

SECRETS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENROUTER_API_KEY",
    "RLM_LOCAL_MODEL",
)


@pytest.fixture(autouse=True)
def no_foreign_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    with Loopback() as server:
        yield server
