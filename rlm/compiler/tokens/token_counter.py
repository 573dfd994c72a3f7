"""Counts of tokens.

Counts are a tokenizer's own where its vocabulary is on this machine, and otherwise an estimate on the high side:
``TokenCounter.exact`` says which. Nothing is loaded before the first call of ``counter``.

Blocks that are ``additive`` have, one after the other, as many tokens as one by one.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable

from rlm.errors import ConfigurationError, did_you_mean
from rlm.forks import ForkLock

ESTIMATE = "estimate"
"""The name of a tokenizer that always estimates: for models with a vocabulary of their own."""

CACHE_BYTES = 32 * 1024 * 1024
"""Bytes of text that a counter remembers the counts of."""

_WHOLE = 64 * 1024
_ENTRY = 120

_counters: dict[str, TokenCounter] = {}
_lock = ForkLock()


class TokenCounter:
    """Counts tokens, and remembers the counts of the texts it saw last. Safe in any number of threads.

    ``name`` is the tokenizer's; ``exact`` is false where counts are estimated; ``source`` says where its
    vocabulary was found.
    """

    def __init__(self, name: str, measure: Callable[[str], int], *, exact: bool, source: str) -> None:
        self.name, self.exact, self.source = name, exact, source
        self._measure = measure
        # Two generations make a cheap LRU: what is used moves to the young one, and when that is full the
        # old one is forgotten. Single dict operations need no lock.
        self._young: dict[str | bytes, int] = {}
        self._old: dict[str | bytes, int] = {}
        self._bytes = 0

    def __repr__(self) -> str:
        return f"<TokenCounter {self.name!r}, {'exact' if self.exact else 'estimated'}, from {self.source}>"

    def count(self, text: str) -> int:
        """Tokens of ``text``. Names of special tokens in it are counted as the text that they are."""
        key = text if len(text) <= _WHOLE else _digest(text)
        known = self._young.get(key)
        if known is None:
            known = self._old.get(key)
            if known is None:
                known = self._measure(text)
            self._remember(key, known)
        return known

    def _remember(self, key: str | bytes, count: int) -> None:
        self._young[key] = count
        self._bytes += sys.getsizeof(key) + _ENTRY
        if self._bytes > CACHE_BYTES // 2:
            with _lock:
                if self._bytes > CACHE_BYTES // 2:
                    self._young, self._old, self._bytes = {}, self._young, 0


def counter(name: str = "o200k_base") -> TokenCounter:
    """The counter of a tokenizer, one per process.

    Raises:
        ConfigurationError: ``unknown_tokenizer``.
    """
    known = _counters.get(name)
    if known is None:
        with _lock:
            known = _counters.get(name)
            if known is None:
                known = _counters[name] = _made(name)
    return known


def additive(block: str) -> bool:
    """Whether a block adds up with any others of its kind, for ``o200k_base`` and ``cl100k_base``.

    It begins with ``#`` or ``<`` and ends with a line end. Both tokenizers first cut a text by a pattern, in which
    a line end takes white space and marks before it along, and slashes and line ends after it, but never one of
    these two characters: so there is a cut wherever two blocks meet, and neither side looks at the other. The text
    in between, white space before the line end included, does not matter.
    """
    return block[:1] in ("#", "<") and block[-1:] == "\n"


def _made(name: str) -> TokenCounter:
    from rlm.compiler.tokens.estimate import estimate
    from rlm.compiler.tokens.vocabulary import VOCABULARIES, exact

    if name in VOCABULARIES:
        found = exact(VOCABULARIES[name])
        if found is not None:
            return TokenCounter(name, found.count, exact=True, source=found.source)
    elif name != ESTIMATE:
        known = [*VOCABULARIES, ESTIMATE]
        raise ConfigurationError(
            "unknown_tokenizer",
            f"no tokenizer is called {name!r}: one of {', '.join(known)}{did_you_mean(name, known)}",
            {"field": "tokenizer", "given": name, "known": known},
        )
    return TokenCounter(name, estimate, exact=False, source=ESTIMATE)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).digest()
