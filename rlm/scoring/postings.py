"""Word scores of large catalogs, computed with numpy from the rules' own vectors.

The rules decide the weight of a word in a unit and the words of a text. This module adds the weights, in the same
integers, for all possible candidates. The rules then decide which units are candidates.
"""

from __future__ import annotations

import importlib.util
from array import array
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rlm.model.facts import origin_of
from rlm.model.snapshot import Snapshot
from rlm.scoring.frozen_postings import FrozenPostings, Sections
from rlm.scoring.scored import (
    NEED_SHARE,
    Intent,
    Scored,
)
from rlm.symbolic.engine import engine

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SENT_OF_INTENT = 8
"""The number of units that are sent to the rules for each part of a text."""

SENT = (256, 2048, None)
"""The numbers of best-scored units that are sent to the rules. If the first do not decide, more are sent, then all."""

_CHUNK = 2_000
"""The number of units in one request to the rules."""

View = tuple[str, str]
"""A subset of the catalog: ``("host", "")``, or ``("without", origin)``, for example ``("without", "github")``."""


def numpy_is_there() -> bool:
    """Whether numpy can be imported (extra ``semantic``). This does not import it."""
    return importlib.util.find_spec("numpy") is not None


class Postings:
    """The units of each term with their weights, by the rules' numbers for units.

    Args:
        frozen: arrays that were written by ``to_sections``, mapped into memory; later units are kept beside them.
    """

    def __init__(self, frozen: Sections | None = None) -> None:
        self._followed: Snapshot | None = None
        self._start()
        if frozen is not None:
            self._thaw(frozen)

    def _start(self) -> None:
        self._units: dict[str, array[int]] = {}
        self._weights: dict[str, array[int]] = {}
        self._numbers: dict[str, int] = {}
        self._origins: dict[str, int] = {"": 0}
        self._names = [""]
        self._origin_of: array[int] = array("i", [0])
        self._dead: list[int] = []
        self._next = 1
        self._registered: NDArray[np.bool_] | None = None
        self._frozen: FrozenPostings | None = None

    def _thaw(self, frozen: Sections) -> None:
        import numpy as np

        self._frozen = FrozenPostings(frozen)
        self._names = frozen.table["origins"]
        self._origins = {name: place for place, name in enumerate(self._names)}
        self._origin_of = array("i", bytes(frozen.section("origin_of")))
        numbers = np.frombuffer(frozen.section("numbers"), dtype=np.int32).tolist()
        self._numbers = dict(zip(frozen.lines("ids"), numbers, strict=True))
        self._next = frozen.table["next"]

    def to_sections(self, ids: Sequence[str]) -> tuple[dict[str, bytes], list[str]]:
        """Return the arrays as sections of a frozen file, and the names of the origins.

        Args:
            ids: the units in the order of the file.
        """
        terms = sorted({*self._units, *(self._frozen.places if self._frozen else ())})
        starts, units, weights = array("q", [0]), bytearray(), bytearray()
        for term in terms:
            posted = self.posted(term)
            assert posted is not None
            units += posted[0].tobytes()
            weights += posted[1].tobytes()
            starts.append(len(units) // 4)
        return {
            "numbers": array("i", [self._numbers[id] for id in ids]).tobytes(),
            "origin_of": self._origin_of.tobytes(),
            "terms": "\n".join(terms).encode(),
            "term_starts": starts.tobytes(),
            "term_units": bytes(units),
            "term_weights": bytes(weights),
        }, self._names

    def posted(self, term: str) -> tuple[NDArray[np.int32], NDArray[np.int32]] | None:
        """Return the numbers of the units that have a term, and its weight in each; None where no unit has it."""
        import numpy as np

        below = self._frozen.posted(term) if self._frozen else None
        if term not in self._units:
            return below
        units = np.frombuffer(self._units[term], dtype=np.int32)
        weights = np.frombuffer(self._weights[term], dtype=np.int32)
        return (units, weights) if below is None else (np.append(below[0], units), np.append(below[1], weights))

    @property
    def size(self) -> int:
        """The next number of a unit: arrays over all units have this length."""
        return self._next

    def follow(self, handle: int | None, snapshot: Snapshot) -> None:
        """Read the vectors of new units from the rules, which already hold ``snapshot``."""
        if self._followed is snapshot:
            return
        if len(self._dead) > len(self._numbers) + _CHUNK:  # mostly removed units: read all vectors again
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
        self._registered = None
        self._followed = snapshot

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

    def call(self, operation: str, args: dict[str, Any], floor: int) -> Any:
        """Return the reply of an operation of the rules; send word scores until the rules can decide.

        Args:
            operation: for example ``select``.
            args: its arguments without the scores.
            floor: thousandths; units with lower scores are not sent.
        """
        words = self.scored(engine().call("analyse", args))
        sizes = iter(SENT)
        most = next(sizes)
        while True:
            reply = engine().call(operation, {**args, "words": words.to_args(floor, most)})
            if "views" in reply:
                words.count(reply["views"])
            elif "more" in reply:
                most = next(sizes)
            else:
                return reply

    def scored(self, analysis: dict[str, Any]) -> Words:
        """Return the word scores of one text in every unit, and in the subsets that the rules will likely request.

        ``analysis`` is the reply of ``analyse``.
        """
        import numpy as np

        alive = self._alive()
        shown = alive.copy()
        shown[np.array(analysis["hidden"], dtype=np.int64)] = False
        words = Words(self, analysis, alive, shown)
        words.count(self._likely(words, shown))
        return words

    def _likely(self, words: Words, shown: NDArray[np.bool_]) -> set[View]:
        """Return the likely subsets: the host's units, if there are third parties.

        With several third parties also the catalog without that of the best unit, and without the wordiest one.
        """
        import numpy as np

        if len(self._origins) < 2:
            return set()
        reach = words.reach
        origins, alive = np.frombuffer(self._origin_of, dtype=np.int32), shown[: len(self._origin_of)]
        views: set[View] = {("host", "")} if (alive[1:] & (origins[1:] == 0)).any() else set()
        if len(self._origins) > 2:
            first = int(origins[np.argmax(np.where(alive & (origins != 0), reach[: len(origins)], -1))])
            names = [self._names[first], words.wordiest]
            views |= {("without", name) for name in names if name}
        return views

    def subset_words(self, analysis: dict[str, Any], view: View, shown: NDArray[np.bool_]) -> Words:
        """Return the word scores in a subset of the catalog; ``shown`` is the mask of units that can be shown."""
        import numpy as np

        kind, origin = view
        alive, origins = self._alive(), np.frombuffer(self._origin_of, dtype=np.int32)
        out = np.zeros(self._next, dtype=bool)
        out[: len(origins)] = origins != 0 if kind == "host" else origins == self._origins.get(origin, -1)
        return Words(self, analysis, alive & ~out, shown & ~out)

    def wordiest(self, terms: Iterable[str], shown: NDArray[np.bool_]) -> str | None:
        """Return the third party with the most of the terms in its units, as ``rlm_origin:wordiest/4``.

        None if there are fewer than two third parties.
        """
        import numpy as np

        if len(self._origins) <= 2:
            return None
        origins = np.frombuffer(self._origin_of, dtype=np.int32)
        counts = np.zeros(len(self._origins), dtype=np.int64)
        for term in terms:
            posted = self.posted(term)
            if posted is not None:
                units = posted[0]
                counts += np.bincount(origins[units[shown[units]]], minlength=len(counts))
        counts[0] = 0
        most = int(counts.max())
        return min(name for name, place in self._origins.items() if counts[place] == most) if most else None

    def _alive(self) -> NDArray[np.bool_]:
        """Return the mask of the numbers of registered units."""
        import numpy as np

        if self._registered is None:
            self._registered = np.zeros(self._next, dtype=bool)
            self._registered[np.fromiter(self._numbers.values(), dtype=np.int64, count=len(self._numbers))] = True
        return self._registered


class Words:
    """The word scores of one text in every unit of a catalog, or of a subset of it (``rlm_origin``)."""

    def __init__(
        self, postings: Postings, analysis: dict[str, Any], alive: NDArray[np.bool_], shown: NDArray[np.bool_]
    ) -> None:
        masks = (alive if not alive[1:].all() else None, shown)
        self._postings, self._analysis = postings, analysis
        self._shown = shown
        self._views: dict[View, Words] = {}
        self._watch = analysis["watch"]
        self._text = Scored(postings, analysis["text"], *masks)
        self._needs = [Scored(postings, terms, *masks) for terms in analysis["needs"]]
        self._history = [Scored(postings, terms, *masks) for terms in analysis["history"]]
        self.reach = self._text.scores.copy()
        for scored in self._needs:
            self.reach += scored.scores
        for scored, factor in zip(self._history, analysis["factors"], strict=True):
            self.reach += scored.scores * factor // 1000
        self._parts = analysis["intents"]
        self._intents: list[Intent] | None = None

    def count(self, views: Iterable[Sequence[str]]) -> None:
        """Add the scores in these subsets, each given as a ``View``."""
        for kind, origin in views:
            self._views[kind, origin] = self._postings.subset_words(self._analysis, (kind, origin), self._shown)

    def to_args(self, floor: int, most: int | None) -> dict[str, Any]:
        """Return ``words`` for ``rlm_select:select/2``, with the scores of each counted subset.

        Args:
            floor: thousandths; units with lower word scores are left out, unless they are watched.
            most: the number of units, best first; None for all.
        """
        kept, rest = self._kept(floor, most)
        views = []
        for view, words in self._views.items():
            kept_here, rest_here = words._kept(floor, most)
            views.append([*view, words._plain(kept_here, rest_here)])
            kept |= kept_here
        return {
            **self._plain(kept, rest),
            "views": views,
            "wordiest": [name for name in (self.wordiest,) if name is not None],
        }

    @cached_property
    def wordiest(self) -> str | None:
        """The third party with the most of the text's words; None if there are fewer than two."""
        return self._postings.wordiest(self._analysis["text"][0], self._shown)

    def _kept(self, floor: int, most: int | None) -> tuple[NDArray[np.bool_], int]:
        """Return the mask of units sent to the rules, and the best score among those left out."""
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
                kept |= intent.first(_SENT_OF_INTENT)
        return kept, rest

    def _plain(self, kept: NDArray[np.bool_], rest: int) -> dict[str, Any]:
        assert self._intents is not None
        return {
            "rest": rest,
            "text": [{**self._text.plain(kept), "intents": [intent.plain(kept) for intent in self._intents]}],
            "needs": [scored.plain(kept) for scored in self._needs],
            "history": [scored.plain(kept) for scored in self._history],
        }
