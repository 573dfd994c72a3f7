"""A sensor: how near a text is to each unit in meaning, from the vectors of an embedder.

The vectors of a catalog are computed once for each text that its units have, and kept from revision to revision.
What a sensor says is evidence like any other: the rules bound its weight and name it in the reasons.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rlm.catalog.catalog import Catalog
from rlm.catalog.facts import facts_of
from rlm.catalog.snapshot import Snapshot
from rlm.errors import ConfigurationError
from rlm.model.unit import Unit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Embedder = Callable[[Sequence[str]], Any]
"""From texts to one vector each: anything that numpy takes for an array of shape (texts, dimensions)."""

TOLD = 256
"""So many of the nearest units are told."""

FAR, NEAR = 0.0, 5.0
"""Standard deviations above the mean likeness of a catalog at which a score is 0 and 1."""

USUAL_MEAN, USUAL_DEVIATION, USUAL_WEIGHT = 0.05, 0.09, 20
"""What the likeness of a text to unrelated units usually is, and how many units that knowledge is worth."""

_FIELDS = ("category", "name", "alias", "description", "parameters", "explained")
_LONGEST = 8_192
_SPLIT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_\W]+")
_BATCH = 1_024


class Sensor:
    """Scores between 0 and 1 for the units that are nearest to a text in meaning.

        view = rlm.compile(catalog, "what will it rain tomorrow?", sensor=rlm.Sensor())

    Safe to use from any thread, for any number of catalogs.

    Args:
        embed: from a list of texts to one vector each (an array, or lists of numbers); the static word vectors of
            the package ``wordllama`` (extra ``semantic``) if not given. The same text must always give the same.
        name: what the reasons call it.

    Raises:
        ConfigurationError: ``no_numpy``, ``no_vectors`` (at the first use) where the extra is not installed.
    """

    def __init__(self, embed: Embedder | None = None, *, name: str = "semantic") -> None:
        self.name = name
        self._embed = embed
        self._lock = threading.Lock()
        self._known: weakref.WeakKeyDictionary[Catalog, _Vectors] = weakref.WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"<Sensor {self.name}>"

    def scores(self, catalog: Catalog, text: str) -> dict[str, dict[str, float]]:
        """The scores by sensor and unit id, as ``sensors`` of ``rlm.compile``.

        Units with ``examples`` have a second sensor, ``name:examples``: the nearest one counts.
        """
        vectors = self._vectors(catalog)
        if not vectors.ids or not text.strip():
            return {}
        query = self._unit_vectors([text])[0]
        found = {self.name: _nearest(vectors.ids, _likeness(vectors.matrix, query))}
        if len(vectors.owners):
            ids, likeness = vectors.nearest_example(query)
            found[f"{self.name}:examples"] = _nearest(ids, likeness)
        return {name: scores for name, scores in found.items() if scores}

    def _vectors(self, catalog: Catalog) -> _Vectors:
        snapshot = catalog.snapshot()
        with self._lock:
            known = self._known.get(catalog)
            if known is None or known.digest != snapshot.digest:
                known = _Vectors(snapshot, known, self._unit_vectors)
                self._known[catalog] = known
            return known

    def _unit_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of length one; a text without any has zeros.

        Raises:
            ConfigurationError: ``bad_embedder`` for what is no vector for each text.
        """
        import numpy as np

        if self._embed is None:
            from rlm.compiler.static_vectors import embedder

            self._embed = embedder()
        rows = np.asarray(self._embed(list(texts)), dtype=np.float32)
        if rows.ndim != 2 or len(rows) != len(texts) or not np.isfinite(rows).all():
            raise ConfigurationError(
                "bad_embedder",
                f"the embedder of sensor {self.name!r} gave an array of shape {rows.shape} for {len(texts)} texts",
            )
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.maximum(norms, 1e-9)  # type: ignore[no-any-return]


class _Vectors:
    """The vectors of one revision of a catalog."""

    def __init__(self, snapshot: Snapshot, before: _Vectors | None, embed: Callable[[Sequence[str]], Any]) -> None:
        import numpy as np

        self.digest = snapshot.digest
        self.ids = sorted(snapshot.units)
        texts = [_text(snapshot.units[id]) for id in self.ids]
        said = [(place, line) for place, id in enumerate(self.ids) for line in snapshot.units[id].examples]
        self.owners = np.array([place for place, _ in said], dtype=np.int64)
        self._by_text: dict[str, Any] = dict(before._by_text) if before is not None else {}
        wanted = {*texts, *(line for _, line in said)}
        self._by_text = {text: vector for text, vector in self._by_text.items() if text in wanted}
        fresh = sorted(wanted - self._by_text.keys())
        for start in range(0, len(fresh), _BATCH):
            batch = fresh[start : start + _BATCH]
            self._by_text.update(zip(batch, embed(batch), strict=True))
        self.matrix = np.array([self._by_text[text] for text in texts], dtype=np.float32)
        self._examples = np.array([self._by_text[line] for _, line in said], dtype=np.float32)

    def nearest_example(self, query: NDArray[np.float32]) -> tuple[list[str], NDArray[np.float32]]:
        """For each unit with examples, how near the nearest one is."""
        import numpy as np

        places, starts = np.unique(self.owners, return_index=True)
        likeness = np.maximum.reduceat(_likeness(self._examples, query), starts)
        return [self.ids[place] for place in places], likeness


def _likeness(matrix: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """The cosines. Not by BLAS: its threads cost more than they save here, and may add up in another order."""
    import numpy as np

    found: NDArray[np.float32] = np.einsum("ij,j->i", matrix, query)
    return found


def _nearest(ids: Sequence[str], likeness: NDArray[np.float32]) -> dict[str, float]:
    """Scores of the nearest units: how far their likeness stands out from that of all."""
    import numpy as np

    size = len(ids)
    weight = size + USUAL_WEIGHT
    mean = (float(likeness.sum()) + USUAL_WEIGHT * USUAL_MEAN) / weight
    spread = float(((likeness - mean) ** 2).sum()) + USUAL_WEIGHT * USUAL_DEVIATION**2
    deviation = max((spread / weight) ** 0.5, 1e-6)
    scores = np.clip(((likeness - mean) / deviation - FAR) / (NEAR - FAR), 0, 1).round(3)
    places = np.arange(size) if size <= TOLD else np.argpartition(-scores, TOLD)[:TOLD]
    return {ids[place]: float(scores[place]) for place in places.tolist() if scores[place] > 0}


def _text(unit: Unit) -> str:
    """What a unit says of itself, identifiers split."""
    fields: Mapping[str, str] = facts_of(unit)["fields"]
    said = " ".join(
        " ".join(_SPLIT.split(fields[field])) if field in ("name", "category") else fields[field] for field in _FIELDS
    )
    return said[:_LONGEST]
