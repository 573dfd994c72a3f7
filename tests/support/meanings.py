"""An embedder that knows what a few words mean, and remembers what it was asked: a sensor without a download."""

from __future__ import annotations

import re
import threading
import zlib
from collections.abc import Sequence

MEANINGS = (
    {"zamboni", "skating", "hockey", "rink"},
    {"ledger", "bookkeeping", "debit", "creditor"},
    {"telescope", "nebula", "astronomy", "comet"},
    {"loom", "weaving", "tapestry", "yarn"},
)
"""Words of one line mean the same, and share no stem and no synonym of the rules."""

OTHERS = 56
LOUD = 4.0


class Meanings:
    """Vectors of texts: one direction for each meaning, loud, and others for the words that it does not know.

    Args:
        gate: where given, the first texts are answered when it is set; ``entered`` says that somebody waits for it.
    """

    def __init__(self, gate: threading.Event | None = None) -> None:
        self.asked: list[str] = []
        self.entered = threading.Event()
        self._gate = gate
        self._lock = threading.Lock()

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        with self._lock:
            self.asked += texts
        if self._gate is not None:
            self.entered.set()
            assert self._gate.wait(60)
        return [_vector(text) for text in texts]


def _vector(text: str) -> list[float]:
    vector = [0.0] * (len(MEANINGS) + OTHERS)
    for word in re.findall(r"[a-z]+", text.lower()):
        known = [place for place, words in enumerate(MEANINGS) if word in words]
        for place in known:
            vector[place] += LOUD
        if not known:
            vector[len(MEANINGS) + zlib.crc32(word.encode()) % OTHERS] += 1
    return vector
