"""TEMPORARY, by the lead, so that others can work: the token helper replaces this whole file."""

from __future__ import annotations

from functools import lru_cache


class TokenCounter:
    name = "o200k_base"
    exact = True

    def __init__(self) -> None:
        import bpe_openai

        self._encoder = bpe_openai.get_encoding("o200k_base")
        self._count = lru_cache(maxsize=100_000)(lambda text: len(self._encoder.encode(text)))

    def count(self, text: str) -> int:
        return self._count(text)


@lru_cache(maxsize=1)
def _one() -> TokenCounter:
    return TokenCounter()


def counter(name: str = "o200k_base") -> TokenCounter:
    return _one()
