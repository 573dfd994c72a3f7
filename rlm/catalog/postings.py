"""Word scores of large catalogs, counted with numpy from the rules' own vectors.

The rules say what a word weighs in a unit and which words a text has; here the sums are made, in the same
integers, for the units that could be candidates. Which of them are is for the rules to say.
"""

from __future__ import annotations

import importlib.util
import math
from array import array
from typing import TYPE_CHECKING, Any

from rlm.catalog.snapshot import Snapshot
from rlm.symbolic.engine import engine

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEAST_RARITY = 150
"""As ``rlm_index:least_rarity/1``; tested to be the same, like all these."""

SYNONYM_FACTOR = 500
"""As ``rlm_index:synonym_factor/1``."""

SYNONYM_RARITY = 400
"""As ``rlm_index:synonym_rarity/1``."""

INTENT_LEAST = 2_000
"""As ``rlm_evidence:intent_least/1``."""

_INTENTS_TOLD = 8

_CHUNK = 2_000


def numpy_is_there() -> bool:
    """Whether numpy can be imported (extra ``semantic``); it is not imported here."""
    return importlib.util.find_spec("numpy") is not None


class Postings:
    """For each term the units that have it, with weights, by the rules' numbers for units."""

    def __init__(self) -> None:
        self._seen: Snapshot | None = None
        self._start()

    def _start(self) -> None:
        self._units: dict[str, array[int]] = {}
        self._weights: dict[str, array[int]] = {}
        self._numbers: dict[str, int] = {}
        self._dead: list[int] = []
        self._next = 1

    def follow(self, handle: int | None, snapshot: Snapshot) -> None:
        """Come up to date with the rules, which have just been told of ``snapshot``."""
        if self._seen is snapshot:
            return
        if len(self._dead) > len(self._numbers) + _CHUNK:  # mostly units that went: ask for the others again
            self._start()
        while True:
            reply = engine().call(
                "catalog_vectors", {"catalog": handle, "first": self._next, "last": self._next + _CHUNK - 1}
            )
            self._add(reply)
            self._next = min(self._next + _CHUNK, reply["next"])
            if self._next >= reply["next"]:
                break
        gone = [id for id in self._numbers if id not in snapshot.units]
        self._dead.extend(self._numbers.pop(id) for id in gone)
        self._seen = snapshot

    def _add(self, reply: dict[str, Any]) -> None:
        rows = zip(reply["numbers"], reply["ids"], reply["terms"], reply["weights"], strict=True)
        for number, id, terms, weights in rows:
            old = self._numbers.get(id)
            if old is not None:
                self._dead.append(old)
            self._numbers[id] = number
            for term, weight in zip(terms.split(), weights, strict=True):
                units = self._units.get(term)
                if units is None:
                    units = self._units[term] = array("i")
                    self._weights[term] = array("i")
                units.append(number)
                self._weights[term].append(weight)

    def scored(self, analysis: dict[str, Any]) -> Words:
        """The words of one question, counted in every unit; ``analysis`` is the reply of ``analyse``."""
        import numpy as np

        dead = np.array(self._dead, dtype=np.int64)
        alive = np.ones(self._next, dtype=bool)
        alive[dead] = False
        return Words(self, analysis, alive)


class Words:
    """What the words of one question count in every unit of a catalog."""

    def __init__(self, postings: Postings, analysis: dict[str, Any], alive: NDArray[np.bool_]) -> None:
        holes = not alive.all()
        self._watch = analysis["watch"]
        self._text = _Scored(postings, analysis["text"], alive, holes)
        self._needs = [_Scored(postings, terms, alive, holes) for terms in analysis["needs"]]
        self._history = [_Scored(postings, terms, alive, holes) for terms in analysis["history"]]
        self._reach = self._text.scores.copy()
        for scored in self._needs:
            self._reach += scored.scores
        for scored, factor in zip(self._history, analysis["factors"], strict=True):
            self._reach += scored.scores * factor // 1000
        self._parts = analysis["intents"]
        self._intents: list[_Intent] | None = None

    def told(self, floor: int, relative: int, most: int | None) -> dict[str, Any]:
        """``words`` for ``rlm_select:select/2``.

        Args:
            floor: thousandths; units whose words cannot reach it are left out, unless they are watched.
            relative: thousandths of the best score that words must reach.
            most: so many units, and all from the relative floor on, which those below it cannot reach; None for all.
        """
        import numpy as np

        reach = self._reach
        kept = reach >= max(floor, 1)
        rest = 0
        if most is not None and np.count_nonzero(kept) > most:
            reached = reach[kept]
            last = np.partition(reached, -most)[-most]
            last = min(int(last), max(floor, 1, int(reached.max()) * relative // 1000))
            left_out = reached[reached < last]
            rest = int(left_out.max()) if len(left_out) else 0
            kept &= reach >= last
            for scored in self._needs:
                kept |= scored.scores >= max(floor, 1, int(scored.scores.max()) * relative // 1000)
        kept[np.array(self._watch, dtype=np.int64)] = True
        if self._intents is None:
            self._intents = [self._text.intent(part, words, floor) for part, words in self._parts]
        if most is not None:
            for intent in self._intents:
                kept |= intent.first(_INTENTS_TOLD)
        return {
            "rest": rest,
            "text": [{**self._text.plain(kept), "intents": [intent.plain(kept) for intent in self._intents]}],
            "needs": [scored.plain(kept) for scored in self._needs],
            "history": [scored.plain(kept) for scored in self._history],
        }


class _Scored:
    """The scores of one text over all units."""

    def __init__(self, postings: Postings, terms: list[list[Any]], alive: NDArray[np.bool_], holes: bool) -> None:
        import numpy as np

        self.terms: list[str] = []
        self.rarities: list[int] = []
        self.words: list[str] = []
        self.scores = np.zeros(len(alive), dtype=np.int64)
        self._shares: dict[str, list[tuple[NDArray[np.int32], NDArray[np.int64]]]] = {}
        self._best: dict[str, NDArray[np.int64]] = {}
        self._size = len(postings._numbers)
        self._alive = alive if holes else None
        for word, factor, synonyms in zip(*terms, strict=True):
            self._count(postings, word, word, 1000 * factor, LEAST_RARITY)
            for term in synonyms:
                self._count(postings, word, term, SYNONYM_FACTOR * factor, SYNONYM_RARITY)
            self._add(self.scores, word)

    def _count(self, postings: Postings, word: str, term: str, factor: int, least: int) -> None:
        """What one term that stands for a word counts in the units that have it."""
        import numpy as np

        if term not in postings._units:
            return
        units = np.frombuffer(postings._units[term], dtype=np.int32)
        weights = np.frombuffer(postings._weights[term], dtype=np.int32)
        if self._alive is not None:
            there = self._alive[units]
            units, weights = units[there], weights[there]
        if not len(units):
            return
        rare = rarity(self._size, len(units))
        if rare < least:
            return
        weight = rare * factor // 1_000_000
        self.terms.append(term)
        self.rarities.append(weight)
        self.words.append(word)
        self._shares.setdefault(word, []).append((units, weight * weights.astype(np.int64) // 1000))

    def _add(self, scores: NDArray[np.int64], word: str) -> None:
        """Add what a word counts: in a unit with several terms that stand for it, the best."""
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

    def intent(self, part: str, words: list[str], floor: int) -> _Intent:
        """What the words of one part of the text count."""
        import numpy as np

        scores = np.zeros_like(self.scores)
        for word in words:
            self._add(scores, word)
        scores[scores < max(INTENT_LEAST, floor)] = 0
        return _Intent(part, scores)

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


class _Intent:
    """What one part of a text counts in each unit where it counts enough."""

    def __init__(self, part: str, scores: NDArray[np.int64]) -> None:
        self._part = part
        self._scores = scores

    def first(self, most: int) -> NDArray[np.bool_]:
        """The best units, with those that tie with the last of them."""
        import numpy as np

        some = self._scores[self._scores > 0]
        last = int(np.partition(some, -most)[-most]) if len(some) > most else 1
        there: NDArray[np.bool_] = self._scores >= last
        return there

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
    """As ``rlm_index:rarity/3``; tested to be the same."""
    rare = math.log(1 + (size - frequency + 0.5) / (frequency + 0.5)) / math.log(1 + (size - 0.5) / 1.5)
    return math.floor(1000 * rare + 0.5)
