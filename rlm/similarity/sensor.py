"""A sensor: how near a text is to each unit in meaning, from the vectors of an embedder.

The vectors of a catalog are computed once for each text that its units have, and kept from revision to revision.
What a sensor says is evidence like any other: the rules bound its weight and name it in the reasons.
"""

from __future__ import annotations

import importlib.util
import re
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from rlm.boundary import host_code
from rlm.catalog.catalog import Catalog
from rlm.errors import ConfigurationError
from rlm.forks import ForkLock
from rlm.model.facts import facts_of, origin_of
from rlm.model.snapshot import Snapshot
from rlm.model.unit import Unit
from rlm.model.words import counted
from rlm.similarity.scores import UNRELATED, Usual, nearest, similarity_scores, usual_scores

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Embedder = Callable[[Sequence[str]], Any]
"""From texts to one vector each: anything that numpy takes for an array of shape (texts, dimensions)."""

NAME, DESCRIPTION = 0.5, 0.5
"""What the vectors of a unit's name and of its description count, beside that of all it says."""

BEST_EXAMPLE = 0.2
"""What the nearest example of a unit counts; the rest is for the mean of all, which knows better what they share."""

PARTS = 8
"""So many parts of a text are looked at."""

_FIELDS = ("category", "name", "alias", "description", "parameters", "explained")
_LONGEST = 8_192
_SPLIT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_\W]+")
_BATCH = 1_024
_END = re.compile(
    r"[.,:](?!\S)|[;!?\n。，；！？、]|\b(?:and|then|also|plus|afterwards|before|while|but)\b",  # noqa: RUF001
    re.IGNORECASE,
)
"""As ``rlm_evidence:clause_end/1``, whose words are read already: here ``report.csv`` and 1,000 must stay whole."""
_WORDS_OF_A_PART = 3


class Sensor:
    """Scores between 0 and 1 for the units that are nearest to a text in meaning.

        view = rlm.compile(catalog, "what will it rain tomorrow?", sensor=rlm.Sensor())

    Safe to use from any thread, for any number of catalogs. Whoever comes first computes the vectors of a revision;
    all others wait for them.

    Args:
        embed: from a list of texts to one vector each (an array, or lists of numbers); the static word vectors of
            the package ``wordllama`` (extra ``semantic``) if not given. The same text must always give the same. It
            is called from several threads at once.
        name: what the reasons call it.

    Raises:
        ConfigurationError: ``no_numpy``, ``no_vectors`` (at the first use) where the extra is not installed.
    """

    def __init__(self, embed: Embedder | None = None, *, name: str = "semantic") -> None:
        self.name = name
        self._embed = embed
        self._width: int | None = None
        self._lock = ForkLock()
        self._known: weakref.WeakKeyDictionary[Catalog, _Known] = weakref.WeakKeyDictionary()
        self._usual: Usual | None = None

    def __repr__(self) -> str:
        return f"<Sensor {self.name}>"

    def scores(self, catalog: Catalog, text: str) -> dict[str, dict[str, float]]:
        """The scores by sensor and unit id, as ``sensors`` of ``rlm.compile``.

        A text that says several things is looked at part by part, too. Units with ``examples`` have a second sensor,
        ``name:examples``.
        """
        vectors = self._vectors(catalog)
        if not vectors.ids or not text.strip():
            return {}
        query, usual = self._embedded([text, *_parts(text)]), self._usual_likeness()
        whole, *parts = (similarity_scores(vectors.matrix, vector) for vector in query)
        found = {self.name: nearest(vectors.ids, whole, parts, vectors.origins, usual)}
        if vectors.exemplary:
            found[f"{self.name}:examples"] = nearest(
                vectors.exemplary, vectors.like_examples(query[0]), (), vectors.exemplary_origins, usual
            )
        return {name: scores for name, scores in found.items() if scores}

    def check(self) -> None:
        """Make no vector, and see whether it could.

        Raises: ConfigurationError ``no_numpy``, ``no_vectors`` where the extra is not installed.
        """
        if importlib.util.find_spec("numpy") is None:
            raise ConfigurationError("no_numpy", "a sensor needs numpy: pip install 'prolog-rlm[semantic]'")
        if self._embed is None:
            from rlm.similarity.static_vectors import home

            home()

    def _vectors(self, catalog: Catalog) -> _Vectors:
        with self._lock:
            known = self._known.setdefault(catalog, _Known())
        with known.lock:
            snapshot = catalog.snapshot()  # not before: who waited long must not go back to a revision of then
            if known.vectors is None or known.vectors.digest != snapshot.digest:
                self.check()
                known.vectors = _Vectors(snapshot, known.vectors, self._embedded)
            return known.vectors

    def _usual_likeness(self) -> Usual:
        with self._lock:
            if self._usual is None:
                self._usual = usual_scores(self._embedded(UNRELATED))
            return self._usual

    def _embedded(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of length one; a text without any has zeros.

        Raises:
            ConfigurationError: ``bad_embedder`` for what is no vector for each text, or none as long as those before,
                or where it raised.
        """
        import numpy as np

        if self._embed is None:
            from rlm.similarity.static_vectors import embedder

            self._embed = embedder()
        with host_code(f"the embedder of sensor {self.name!r}", partial(ConfigurationError, "bad_embedder")):
            rows = np.asarray(self._embed(list(texts)), dtype=np.float64)
        wrong = self._wrong(rows, len(texts))
        if wrong:
            raise ConfigurationError("bad_embedder", f"the embedder of sensor {self.name!r} gave {wrong}")
        self._width = rows.shape[1]
        return _ones(_in_reach(rows))

    def _wrong(self, rows: NDArray[np.float64], texts: int) -> str:
        """What is wrong with the vectors of so many texts; nothing, where they are as they should be."""
        import numpy as np

        if rows.ndim != 2 or len(rows) != texts or not rows.shape[1]:
            return f"an array of shape {rows.shape} for {counted(texts, 'text')}"
        if self._width not in (None, rows.shape[1]):
            return f"vectors of {counted(rows.shape[1], 'number')}, and of {self._width} before"
        return "" if np.isfinite(rows).all() else "vectors with numbers that are not finite"


@dataclass
class _Known:
    """What is known of a catalog: nothing, until somebody asks. Guarded by ``lock``."""

    lock: ForkLock = field(default_factory=ForkLock)
    vectors: _Vectors | None = None


class _Vectors:
    """The vectors of one revision of a catalog."""

    def __init__(self, snapshot: Snapshot, before: _Vectors | None, embed: Callable[[Sequence[str]], Any]) -> None:
        import numpy as np

        self.digest = snapshot.digest
        self.ids = sorted(snapshot.units)
        named: dict[str, int] = {"": 0}
        from_where = [named.setdefault(origin_of(snapshot.units[id]), len(named)) for id in self.ids]
        self.origins = np.array(from_where, dtype=np.int64)
        texts = [_texts(snapshot.units[id]) for id in self.ids]
        said = [(place, line) for place, id in enumerate(self.ids) for line in snapshot.units[id].examples]
        owners, self._starts = np.unique([place for place, _ in said], return_index=True)
        self.exemplary = [self.ids[place] for place in owners.tolist()]
        self.exemplary_origins = self.origins[owners.astype(np.int64)]
        self._by_text: dict[str, Any] = dict(before._by_text) if before is not None else {}
        wanted = {*(text for three in texts for text in three), *(line for _, line in said)}
        self._by_text = {text: vector for text, vector in self._by_text.items() if text in wanted}
        fresh = sorted(wanted - self._by_text.keys())
        for start in range(0, len(fresh), _BATCH):
            batch = fresh[start : start + _BATCH]
            self._by_text.update(zip(batch, embed(batch), strict=True))
        self.matrix = self._examples = self._means = np.zeros((0, 0), dtype=np.float32)
        if texts:
            whole, name, description = (self._rows(column) for column in zip(*texts, strict=True))
            self.matrix = _ones(whole + NAME * name + DESCRIPTION * description)
        if said:
            self._examples = self._rows([line for _, line in said])
            self._means = _ones(np.add.reduceat(self._examples, self._starts))

    def _rows(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        return np.array([self._by_text[text] for text in texts], dtype=np.float32)

    def like_examples(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """For each unit with examples, how like the text is to them."""
        import numpy as np

        best = np.maximum.reduceat(similarity_scores(self._examples, query), self._starts)
        found: NDArray[np.float32] = BEST_EXAMPLE * best + (1 - BEST_EXAMPLE) * similarity_scores(self._means, query)
        return found


def _in_reach(rows: NDArray[np.float64]) -> NDArray[np.float32]:
    """The rows in single precision, each times the power of two that makes its largest number about 1: no length of
    a vector is too large or too small."""
    import numpy as np

    _, power = np.frexp(np.abs(rows).max(axis=1, keepdims=True))
    found: NDArray[np.float32] = np.ldexp(rows, -power).astype(np.float32)
    return found


def _ones(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows with length one; what has none stays."""
    import numpy as np

    found: NDArray[np.float32] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return found


def _parts(text: str) -> list[str]:
    """The sentences and clauses of a text that says several things; else none."""
    parts = [part.strip() for part in _END.split(text)]
    parts = [part for part in parts if len(part.split()) >= _WORDS_OF_A_PART][:PARTS]
    return parts if len(parts) > 1 else []


def _texts(unit: Unit) -> tuple[str, str, str]:
    """What a unit says of itself, identifiers split: all of it, its name, its description."""
    fields: Mapping[str, str] = facts_of(unit)["fields"]
    told = {field: fields[field] for field in _FIELDS}
    told.update({field: " ".join(_SPLIT.split(told[field])) for field in ("category", "name")})
    whole = " ".join(told.values())
    return whole[:_LONGEST], told["name"][:_LONGEST], told["description"][:_LONGEST]
