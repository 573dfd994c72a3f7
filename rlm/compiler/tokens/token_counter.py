"""Counts of tokens.

Counts are a tokenizer's own where its vocabulary is on this machine, and otherwise an estimate on the high side:
``TokenCounter.exact`` says which. A vocabulary takes about 0.2 s to load, so it is loaded at the first text whose count
is not known from a frozen catalog.

Blocks that are ``additive`` have, one after the other, as many tokens as one by one.
"""

from __future__ import annotations

import hashlib
import sys
import weakref
from collections.abc import Callable
from typing import Protocol

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


class Known(Protocol):
    """Counts of known texts (``rlm.compiler.tokens.known_counts``)."""

    name: str
    exact: bool

    def find(self, text: str) -> int | None: ...


class TokenCounter:
    """Counts tokens, and remembers the counts of the texts it saw last. Safe in any number of threads.

    ``name`` is the tokenizer's; ``exact`` is false where counts are estimated; ``source`` says where its
    vocabulary was found.

    Args:
        measure: counts the tokens of a text; None if ``load`` brings it.
        load: loads the vocabulary, and returns ``measure``, ``exact`` and ``source``. It is called once.
    """

    def __init__(
        self,
        name: str,
        measure: Callable[[str], int] | None,
        *,
        exact: bool,
        source: str,
        load: Callable[[], tuple[Callable[[str], int], bool, str]] | None = None,
    ) -> None:
        self.name, self.exact, self.source = name, exact, source
        self._measure = measure
        self._load = load
        self._loading = ForkLock()
        self._known: weakref.WeakSet[Known] = weakref.WeakSet()
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
                known = self._found(text)
                if known is None:
                    known = self.load()(text)
            self._remember(key, known)
        return known

    @property
    def loaded(self) -> bool:
        """Whether any text can be counted without loading a vocabulary first."""
        return self._measure is not None

    def load(self) -> Callable[[str], int]:
        """Load the vocabulary, unless it is loaded, and return what counts a text."""
        with self._loading:
            if self._measure is None:
                assert self._load is not None
                measure, self.exact, self.source = self._load()
                self._measure = measure
            return self._measure

    def learn(self, known: Known) -> None:
        """Take the counts of known texts from ``known`` for as long as it lives, if they are counts of this kind."""
        if (known.name, known.exact) == (self.name, self.exact):
            self._known.add(known)

    def bound(self, text: str) -> tuple[int, bool]:
        """Return the tokens of a text, or the most that it can have, and whether it is the count.

        Without the vocabulary, the most is the number of bytes: a token has at least one.
        """
        if self.loaded:
            return self.count(text), True
        known = self._found(text)
        return (len(text.encode("utf-8", "surrogatepass")), False) if known is None else (known, True)

    def _found(self, text: str) -> int | None:
        return next((count for known in self._known if (count := known.find(text)) is not None), None)

    def _remember(self, key: str | bytes, count: int) -> None:
        self._young[key] = count
        self._bytes += sys.getsizeof(key) + _ENTRY
        if self._bytes > CACHE_BYTES // 2:
            with _lock:
                if self._bytes > CACHE_BYTES // 2:
                    self._young, self._old, self._bytes = {}, self._young, 0


def counter(name: str = "o200k_base") -> TokenCounter:
    """The counter of a tokenizer, one per process, with its vocabulary loaded.

    Raises:
        ConfigurationError: ``unknown_tokenizer``.
    """
    known = counter_for_later(name)
    if not known.loaded:
        known.load()
    return known


def counter_for_later(name: str) -> TokenCounter:
    """The counter of a tokenizer, whose vocabulary is loaded at the first text with an unknown count.

    Until then ``exact`` rests on the names of files: whether the vocabulary is sound is only known when it is loaded.

    Raises:
        ConfigurationError: ``unknown_tokenizer``.
    """
    known = _counters.get(name)
    if known is None:
        with _lock:
            known = _counters.get(name)
            if known is None:
                known = _counters[name] = _later(name)
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
    made = _later(name)
    made.load()
    return made


def _later(name: str) -> TokenCounter:
    from rlm.compiler.tokens.vocabulary import VOCABULARIES, likely_source

    if name in VOCABULARIES:
        source = likely_source(VOCABULARIES[name])
        if source is not None:
            return TokenCounter(name, None, exact=True, source=source, load=lambda: _loaded(name))
    elif name != ESTIMATE:
        known = [*VOCABULARIES, ESTIMATE]
        raise ConfigurationError(
            "unknown_tokenizer",
            f"no tokenizer is called {name!r}: one of {', '.join(known)}{did_you_mean(name, known)}",
            {"field": "tokenizer", "given": name, "known": known},
        )
    from rlm.compiler.tokens.estimate import estimate

    return TokenCounter(name, estimate, exact=False, source=ESTIMATE)


def _loaded(name: str) -> tuple[Callable[[str], int], bool, str]:
    """Load a vocabulary; where its file turns out to be damaged, counts are estimates."""
    from rlm.compiler.tokens.estimate import estimate
    from rlm.compiler.tokens.vocabulary import VOCABULARIES, exact

    found = exact(VOCABULARIES[name])
    return (estimate, False, ESTIMATE) if found is None else (found.count, True, found.source)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).digest()
