"""Word scores of large catalogs, counted with numpy from the rules' own vectors.

The rules say what a word weighs in a unit and which words a text has; here the sums are made, in the same
integers, for the units that could be candidates. Which of them are is for the rules to say.
"""

from __future__ import annotations

import importlib.util
import math
from array import array
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rlm.model.facts import origin_of
from rlm.model.snapshot import Snapshot
from rlm.symbolic.engine import engine

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEAST_RARITY = 150
"""As ``rlm_index:least_rarity/1``; tested to be the same, like all these."""

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

_TOLD_OF_INTENT = 8
"""So many units are told for each part of a text."""

TOLD = (256, 2048, None)
"""So many of the best-scored units are told first; where they do not decide, more, and in the end all."""

_CHUNK = 2_000
"""Units that are asked for at a time."""

View = tuple[str, str]
"""``("host", "")``, or ``("without", origin)``."""


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
        self._origins: dict[str, int] = {"": 0}
        self._names = [""]
        self._origin_of: array[int] = array("i", [0])
        self._dead: list[int] = []
        self._next = 1
        self._there: NDArray[np.bool_] | None = None

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
            self._add(reply, snapshot)
            self._next = min(self._next + _CHUNK, reply["next"])
            if self._next >= reply["next"]:
                break
        gone = [id for id in self._numbers if id not in snapshot.units]
        self._dead.extend(self._numbers.pop(id) for id in gone)
        self._there = None
        self._seen = snapshot

    def _add(self, reply: dict[str, Any], snapshot: Snapshot) -> None:
        rows = zip(reply["numbers"], reply["ids"], reply["terms"], reply["weights"], strict=True)
        for number, id, terms, weights in rows:
            old = self._numbers.get(id)
            if old is not None:
                self._dead.append(old)
            self._numbers[id] = number
            self._origin_of.extend([0] * (number - len(self._origin_of)))
            origin = origin_of(snapshot.units[id])
            if origin not in self._origins:
                self._origins[origin] = len(self._names)
                self._names.append(origin)
            self._origin_of.append(self._origins[origin])
            for term, weight in zip(terms.split(), weights, strict=True):
                units = self._units.get(term)
                if units is None:
                    units = self._units[term] = array("i")
                    self._weights[term] = array("i")
                units.append(number)
                self._weights[term].append(weight)

    def asked(self, operation: str, args: dict[str, Any], floor: int) -> Any:
        """What the rules answer to a question, told the words of it as far as they want to know them."""
        words = self.scored(engine().call("analyse", args))
        told = iter(TOLD)
        most = next(told)
        while True:
            reply = engine().call(operation, {**args, "words": words.told(floor, most)})
            if "views" in reply:
                words.count(reply["views"])
            elif "more" in reply:
                most = next(told)
            else:
                return reply

    def scored(self, analysis: dict[str, Any]) -> Words:
        """The words of one question, counted in every unit, and in the views that the rules will likely ask for;
        ``analysis`` is the reply of ``analyse``."""
        import numpy as np

        alive = self._alive()
        shown = alive.copy()
        shown[np.array(analysis["hidden"], dtype=np.int64)] = False
        words = Words(self, analysis, alive, shown)
        words.count(self._likely(words, shown))
        return words

    def _likely(self, words: Words, shown: NDArray[np.bool_]) -> set[View]:
        """The catalog without strangers, where there are any beside the host; of several, without the first one, and
        without the one who says most."""
        import numpy as np

        if len(self._origins) < 2:
            return set()
        reach = words.reach
        origins, alive = np.frombuffer(self._origin_of, dtype=np.int32), shown[: len(self._origin_of)]
        found: set[View] = {("host", "")} if (alive[1:] & (origins[1:] == 0)).any() else set()
        if len(self._origins) > 2:
            first = int(origins[np.argmax(np.where(alive & (origins != 0), reach[: len(origins)], -1))])
            names = [self._names[first], words.wordiest]
            found |= {("without", name) for name in names if name}
        return found

    def seen(self, analysis: dict[str, Any], view: View, shown: NDArray[np.bool_]) -> Words:
        """The same in a view of the catalog; ``shown`` are the units that can be shown."""
        import numpy as np

        kind, origin = view
        alive, origins = self._alive(), np.frombuffer(self._origin_of, dtype=np.int32)
        out = np.zeros(self._next, dtype=bool)
        out[: len(origins)] = origins != 0 if kind == "host" else origins == self._origins.get(origin, -1)
        return Words(self, analysis, alive & ~out, shown & ~out)

    def wordiest(self, terms: Iterable[str], shown: NDArray[np.bool_]) -> str | None:
        """As ``rlm_origin:wordiest/4``: the stranger whose units have most of the terms altogether."""
        import numpy as np

        if len(self._origins) <= 2:
            return None
        origins = np.frombuffer(self._origin_of, dtype=np.int32)
        counts = np.zeros(len(self._origins), dtype=np.int64)
        for term in terms:
            if term in self._units:
                units = np.frombuffer(self._units[term], dtype=np.int32)
                counts += np.bincount(origins[units[shown[units]]], minlength=len(counts))
        counts[0] = 0
        most = int(counts.max())
        return min(name for name, place in self._origins.items() if counts[place] == most) if most else None

    def _alive(self) -> NDArray[np.bool_]:
        """Which numbers are those of a unit that is still there."""
        import numpy as np

        if self._there is None:
            self._there = np.zeros(self._next, dtype=bool)
            self._there[np.fromiter(self._numbers.values(), dtype=np.int64, count=len(self._numbers))] = True
        return self._there


class Words:
    """What the words of one question count in every unit of a catalog, or of a view of it (``rlm_origin``)."""

    def __init__(
        self, postings: Postings, analysis: dict[str, Any], alive: NDArray[np.bool_], shown: NDArray[np.bool_]
    ) -> None:
        there = (alive if not alive[1:].all() else None, shown)
        self._postings, self._analysis = postings, analysis
        self._shown = shown
        self._views: dict[View, Words] = {}
        self._watch = analysis["watch"]
        self._text = _Scored(postings, analysis["text"], *there)
        self._needs = [_Scored(postings, terms, *there) for terms in analysis["needs"]]
        self._history = [_Scored(postings, terms, *there) for terms in analysis["history"]]
        self.reach = self._text.scores.copy()
        for scored in self._needs:
            self.reach += scored.scores
        for scored, factor in zip(self._history, analysis["factors"], strict=True):
            self.reach += scored.scores * factor // 1000
        self._parts = analysis["intents"]
        self._intents: list[_Intent] | None = None

    def count(self, views: Iterable[Sequence[str]]) -> None:
        """Count them in these views too, each its kind and the origin that it is without."""
        for kind, origin in views:
            self._views[kind, origin] = self._postings.seen(self._analysis, (kind, origin), self._shown)

    def told(self, floor: int, most: int | None) -> dict[str, Any]:
        """``words`` for ``rlm_select:select/2``, with those of each view that was counted.

        Args:
            floor: thousandths; units whose words cannot reach it are left out, unless they are watched.
            most: so many units, best first; None for all.
        """
        kept, rest = self._kept(floor, most)
        views = []
        for view, words in self._views.items():
            seen, left_out = words._kept(floor, most)
            views.append([*view, words._plain(seen, left_out)])
            kept |= seen
        return {
            **self._plain(kept, rest),
            "views": views,
            "wordiest": [name for name in (self.wordiest,) if name is not None],
        }

    @cached_property
    def wordiest(self) -> str | None:
        """Who of several strangers has most of the text's words."""
        return self._postings.wordiest(self._analysis["text"][0], self._shown)

    def _kept(self, floor: int, most: int | None) -> tuple[NDArray[np.bool_], int]:
        """Which units are told, and the most that one counts which is not."""
        import numpy as np

        reach = self.reach
        kept = reach >= max(floor, 1)
        rest = 0
        if most is not None and np.count_nonzero(kept) > most:
            reached = reach[kept]
            last = int(np.partition(reached, -most)[-most])
            left_out = reached[reached < last]
            rest = int(left_out.max()) if len(left_out) else 0
            kept &= reach >= last
            for scored in self._needs:
                best = int(scored.scores[self._shown].max(initial=0))
                kept |= scored.scores >= max(floor, 1, best * NEED_SHARE // 1000)
        kept[np.array(self._watch, dtype=np.int64)] = True
        if self._intents is None:
            self._intents = [self._text.intent(part, words, floor) for part, words in self._parts]
        if most is not None:
            for intent in self._intents:
                kept |= intent.first(_TOLD_OF_INTENT)
        return kept, rest

    def _plain(self, kept: NDArray[np.bool_], rest: int) -> dict[str, Any]:
        assert self._intents is not None
        return {
            "rest": rest,
            "text": [{**self._text.plain(kept), "intents": [intent.plain(kept) for intent in self._intents]}],
            "needs": [scored.plain(kept) for scored in self._needs],
            "history": [scored.plain(kept) for scored in self._history],
        }


class _Scored:
    """The scores of one text over all units."""

    def __init__(
        self, postings: Postings, terms: list[list[Any]], alive: NDArray[np.bool_] | None, shown: NDArray[np.bool_]
    ) -> None:
        import numpy as np

        self.terms: list[str] = []
        self.rarities: list[int] = []
        self.words: list[str] = []
        self.scores = np.zeros(postings._next, dtype=np.int64)
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

    def _count(self, postings: Postings, word: str, term: str, factor: int, least: int) -> int:
        """What one term that stands for a word counts in the units that have it, and how many can be shown."""
        import numpy as np

        if term not in postings._units:
            return 0
        units = np.frombuffer(postings._units[term], dtype=np.int32)
        weights = np.frombuffer(postings._weights[term], dtype=np.int32)
        if self._alive is not None:
            there = self._alive[units]
            units, weights = units[there], weights[there]
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
