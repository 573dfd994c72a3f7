"""A sensor: scores for the similarity of meaning between a text and each unit, from the vectors of an embedder.

The vectors of a catalog are computed once for each text of its units, and kept from revision to revision. The scores
are evidence like any other: the rules bound their weight and name the sensor in the reasons.
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
from rlm.similarity.static_vectors import Embedder, embedder, home

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAME, DESCRIPTION = 0.5, 0.5
"""The weights of the vectors of a unit's name and of its description; that of its whole text has weight 1."""

BEST_EXAMPLE = 0.2
"""The weight of a unit's nearest example. The mean of all examples has the rest: it is nearer to their common topic."""

PARTS = 8
"""The most parts of a text that are scored."""

_FIELDS = ("category", "name", "alias", "description", "parameters", "explained")
_LONGEST = 8_192
_SPLIT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_\W]+")
_BATCH = 1_024
_END = re.compile(
    r"[.,:](?!\S)|[;!?\n。，；！？、]|\b(?:and|then|also|plus|afterwards|before|while|but)\b",  # noqa: RUF001
    re.IGNORECASE,
)
"""The same ends as ``rlm_evidence:clause_end/1``, for a text and not for words: ``report.csv`` and 1,000 stay whole."""
_WORDS_OF_A_PART = 3


def _made(kind: type[Sensor], embed: Embedder | None, name: str) -> Sensor:
    """Return a sensor that was sent to another process."""
    return kind(embed, name=name)


class Sensor:
    """Scores between 0 and 1 for the units that are nearest to a text in meaning.

        view = rlm.compile(catalog, "what will it rain tomorrow?", sensor=rlm.Sensor())

    A sensor may be used from any thread, for any number of catalogs. The first call computes the vectors of a
    revision; calls at the same time wait for them.

    Args:
        embed: returns one vector for each text of a list (an array, or lists of numbers). Default: the static word
            vectors of the package ``wordllama`` (extra ``semantic``). The same text must always have the same vector.
            Several threads call it at once.
        name: the sensor's name in the reasons.

    Raises:
        ConfigurationError: ``no_numpy``, ``no_vectors`` (at the first use) if the extra is not installed.
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

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in another process has the embedder and computes its vectors anew."""
        return _made, (type(self), self._embed, self.name)

    def scores(self, catalog: Catalog, text: str) -> dict[str, dict[str, float]]:
        """Return the scores by sensor and unit id, as ``sensors`` of ``rlm.compile``.

        A text of several clauses is also scored clause by clause: for example "book a flight, then mail my boss".
        Units with ``examples`` have a second sensor, ``name:examples``.
        """
        vectors = self._vectors(catalog)
        if not vectors.ids or not text.strip():
            return {}
        query, usual = self._embedded([text, *_parts(text)]), self._usual_scores()
        whole, *parts = (similarity_scores(vectors.matrix, vector) for vector in query)
        by_sensor = {self.name: nearest(vectors.ids, whole, parts, vectors.origins, usual)}
        if vectors.exemplary:
            by_sensor[f"{self.name}:examples"] = nearest(
                vectors.exemplary, vectors.example_scores(query[0]), (), vectors.exemplary_origins, usual
            )
        return {name: scores for name, scores in by_sensor.items() if scores}

    def check(self) -> None:
        """Check that the sensor can compute vectors, without computing one.

        Raises:
            ConfigurationError: ``no_numpy``, ``no_vectors`` if the extra is not installed.
        """
        if importlib.util.find_spec("numpy") is None:
            raise ConfigurationError("no_numpy", "a sensor needs numpy: pip install 'prolog-rlm[semantic]'")
        if self._embed is None:
            home()

    def _vectors(self, catalog: Catalog) -> _Vectors:
        with self._lock:
            known = self._known.setdefault(catalog, _Known())
        with known.lock:
            snapshot = catalog.snapshot()  # under the lock: after a long wait the revision may be newer
            if known.vectors is None or known.vectors.digest != snapshot.digest:
                self.check()
                known.vectors = _Vectors(snapshot, known.vectors, self._embedded)
            return known.vectors

    def _usual_scores(self) -> Usual:
        with self._lock:
            if self._usual is None:
                self._usual = usual_scores(self._embedded(UNRELATED))
            return self._usual

    def _embedded(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of length one; a text without known tokens has zeros.

        Raises:
            ConfigurationError: ``bad_embedder`` if the embedder raised, if it did not return one vector for each
                text, or if their length differs from earlier ones.
        """
        import numpy as np

        if self._embed is None:
            self._embed = embedder()
        with host_code(f"the embedder of sensor {self.name!r}", partial(ConfigurationError, "bad_embedder")):
            rows = np.asarray(self._embed(list(texts)), dtype=np.float64)
        fault = self._fault_of(rows, len(texts))
        if fault:
            raise ConfigurationError("bad_embedder", f"the embedder of sensor {self.name!r} returned {fault}")
        self._width = rows.shape[1]
        return _unit_length(_single_precision(rows))

    def _fault_of(self, rows: NDArray[np.float64], texts: int) -> str:
        """Return the description of a fault in the vectors of so many texts; empty if they are valid."""
        import numpy as np

        if rows.ndim != 2 or len(rows) != texts or not rows.shape[1]:
            return f"an array of shape {rows.shape} for {counted(texts, 'text')}"
        if self._width not in (None, rows.shape[1]):
            return f"vectors of {counted(rows.shape[1], 'number')}, and of {self._width} before"
        return "" if np.isfinite(rows).all() else "vectors with numbers that are not finite"


@dataclass
class _Known:
    """The vectors of a catalog; None before the first use. Guarded by ``lock``."""

    lock: ForkLock = field(default_factory=ForkLock)
    vectors: _Vectors | None = None


class _Vectors:
    """The vectors of one revision of a catalog."""

    def __init__(self, snapshot: Snapshot, before: _Vectors | None, embed: Callable[[Sequence[str]], Any]) -> None:
        import numpy as np

        self.digest = snapshot.digest
        self.ids = sorted(snapshot.units)
        numbers: dict[str, int] = {"": 0}
        origins = [numbers.setdefault(origin_of(snapshot.units[id]), len(numbers)) for id in self.ids]
        self.origins = np.array(origins, dtype=np.int64)
        texts = [_texts(snapshot.units[id]) for id in self.ids]
        examples = [(place, line) for place, id in enumerate(self.ids) for line in snapshot.units[id].examples]
        owners, self._starts = np.unique([place for place, _ in examples], return_index=True)
        self.exemplary = [self.ids[place] for place in owners.tolist()]
        self.exemplary_origins = self.origins[owners.astype(np.int64)]
        self._by_text: dict[str, Any] = dict(before._by_text) if before is not None else {}
        needed = {*(text for three in texts for text in three), *(line for _, line in examples)}
        self._by_text = {text: vector for text, vector in self._by_text.items() if text in needed}
        fresh = sorted(needed - self._by_text.keys())
        for start in range(0, len(fresh), _BATCH):
            batch = fresh[start : start + _BATCH]
            self._by_text.update(zip(batch, embed(batch), strict=True))
        self.matrix = self._examples = self._means = np.zeros((0, 0), dtype=np.float32)
        if texts:
            whole, name, description = (self._rows(column) for column in zip(*texts, strict=True))
            self.matrix = _unit_length(whole + NAME * name + DESCRIPTION * description)
        if examples:
            self._examples = self._rows([line for _, line in examples])
            self._means = _unit_length(np.add.reduceat(self._examples, self._starts))

    def _rows(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        return np.array([self._by_text[text] for text in texts], dtype=np.float32)

    def example_scores(self, query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the similarity of the text to the examples of each unit that has some."""
        import numpy as np

        best = np.maximum.reduceat(similarity_scores(self._examples, query), self._starts)
        scores: NDArray[np.float32] = BEST_EXAMPLE * best + (1 - BEST_EXAMPLE) * similarity_scores(self._means, query)
        return scores


def _single_precision(rows: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the rows in single precision, each times the power of two that makes its largest number about 1.

    So no length of a vector is too large or too small.
    """
    import numpy as np

    _, power = np.frexp(np.abs(rows).max(axis=1, keepdims=True))
    scaled: NDArray[np.float32] = np.ldexp(rows, -power).astype(np.float32)
    return scaled


def _unit_length(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the rows with length one; a row of zeros stays."""
    import numpy as np

    scaled: NDArray[np.float32] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return scaled


def _parts(text: str) -> list[str]:
    """Return the clauses of a text; none if it has only one."""
    parts = [part.strip() for part in _END.split(text)]
    parts = [part for part in parts if len(part.split()) >= _WORDS_OF_A_PART][:PARTS]
    return parts if len(parts) > 1 else []


def _texts(unit: Unit) -> tuple[str, str, str]:
    """Return the whole text of a unit, its name and its description, with identifiers split."""
    fields: Mapping[str, str] = facts_of(unit)["fields"]
    words = {field: fields[field] for field in _FIELDS}
    words.update({field: " ".join(_SPLIT.split(words[field])) for field in ("category", "name")})
    whole = " ".join(words.values())
    return whole[:_LONGEST], words["name"][:_LONGEST], words["description"][:_LONGEST]
