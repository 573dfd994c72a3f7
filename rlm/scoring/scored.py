"""The scores of the words of one text over all units, computed with numpy in the rules' own integers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEAST_RARITY = 150
"""As ``rlm_index:least_rarity/1``; a test compares this and all the following numbers with the rules."""

SYNONYM_FACTORS = {"known": 350, "unknown": 550}
"""As ``rlm_index:synonym_factor/2``."""

KNOWN_LEAST = 2
"""As ``rlm_index:known_least/1``."""

NEED_SHARE = 400
"""As ``rlm_evidence:need_share/1``."""

SYNONYM_RARITY = 400
"""As ``rlm_index:synonym_rarity/1``."""

INTENT_LEAST = 2_000
"""As ``rlm_evidence:intent_least/1``."""


class PostedTerms(Protocol):
    """The units of each term."""

    @property
    def size(self) -> int: ...

    def posted(self, term: str) -> tuple[NDArray[np.int32], NDArray[np.int32]] | None: ...


class Scored:
    """The scores of one text over all units."""

    def __init__(
        self, postings: PostedTerms, terms: list[list[Any]], alive: NDArray[np.bool_] | None, shown: NDArray[np.bool_]
    ) -> None:
        import numpy as np

        self.terms: list[str] = []
        self.rarities: list[int] = []
        self.words: list[str] = []
        self.scores = np.zeros(postings.size, dtype=np.int64)
        self._shares: dict[str, list[tuple[NDArray[np.int32], NDArray[np.int64]]]] = {}
        self._best: dict[str, NDArray[np.int64]] = {}
        self._size = int(np.count_nonzero(shown))
        self._alive, self._shown = alive, shown
        for word, factor, synonyms in zip(*terms, strict=True):
            units = self._count(postings, word, word, 1000 * factor, LEAST_RARITY)
            share = SYNONYM_FACTORS["known" if units >= KNOWN_LEAST else "unknown"]
            for term in synonyms:
                self._count(postings, word, term, share * factor, SYNONYM_RARITY)
            self._add(self.scores, word)

    def _count(self, postings: PostedTerms, word: str, term: str, factor: int, least: int) -> int:
        """Add the score of one term for a word in each unit; return the number of these units that can be shown."""
        import numpy as np

        posted = postings.posted(term)
        if posted is None:
            return 0
        units, weights = posted
        if self._alive is not None:
            alive = self._alive[units]
            units, weights = units[alive], weights[alive]
        if not len(units):
            return 0
        known = int(np.count_nonzero(self._shown[units]))
        rare = rarity(self._size, max(1, known))
        if rare < least:
            return known
        weight = rare * factor // 1_000_000
        self.terms.append(term)
        self.rarities.append(weight)
        self.words.append(word)
        self._shares.setdefault(word, []).append((units, weight * weights.astype(np.int64) // 1000))
        return known

    def _add(self, scores: NDArray[np.int64], word: str) -> None:
        """Add the scores of a word. Of several terms for it in a unit only the best counts."""
        import numpy as np

        shares = self._shares.get(word, ())
        if len(shares) == 1:
            units, share = shares[0]
            scores[units] += share
        elif shares:
            best = self._best.get(word)
            if best is None:
                best = self._best[word] = np.zeros_like(scores)
                for units, share in shares:
                    best[units] = np.maximum(best[units], share)
            scores += best

    def intent(self, part: str, words: list[str], floor: int) -> Intent:
        """Return the scores of the words of one part of the text."""
        import numpy as np

        scores = np.zeros_like(self.scores)
        for word in words:
            self._add(scores, word)
        scores[scores < max(INTENT_LEAST, floor)] = 0
        return Intent(part, scores)

    def plain(self, kept: NDArray[np.bool_]) -> dict[str, Any]:
        import numpy as np

        numbers = np.nonzero(kept & (self.scores > 0))[0]
        return {
            "terms": self.terms,
            "rarities": self.rarities,
            "words": self.words,
            "numbers": numbers.tolist(),
            "scores": self.scores[numbers].tolist(),
        }


class Intent:
    """The scores of one part of a text in the units with enough of them."""

    def __init__(self, part: str, scores: NDArray[np.int64]) -> None:
        self._part = part
        self._scores = scores

    def first(self, most: int) -> NDArray[np.bool_]:
        """Return the mask of the best units, and of those that tie with the last of them."""
        import numpy as np

        some = self._scores[self._scores > 0]
        last = int(np.partition(some, -most)[-most]) if len(some) > most else 1
        mask: NDArray[np.bool_] = self._scores >= last
        return mask

    def plain(self, kept: NDArray[np.bool_]) -> dict[str, Any]:
        import numpy as np

        numbers = np.nonzero(kept & (self._scores > 0))[0]
        left_out = self._scores[~kept]
        return {
            "part": self._part,
            "rest": int(left_out.max()) if len(left_out) else 0,
            "numbers": numbers.tolist(),
            "scores": self._scores[numbers].tolist(),
        }


def rarity(size: int, frequency: int) -> int:
    """Return the rarity of a term in thousandths, as ``rlm_index:rarity/3``; a test compares the two."""
    rare = math.log(1 + (size - frequency + 0.5) / (frequency + 0.5)) / math.log(1 + (size - 0.5) / 1.5)
    return math.floor(1000 * rare + 0.5)
