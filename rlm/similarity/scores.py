"""How near a text is to each unit of a catalog, as scores: how far a likeness stands out from that of all.

Arrays of one number for each unit; nothing here knows texts or embedders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TOLD = 64
"""So many of the nearest units are told."""

NEAR = 5.0
"""Standard deviations above the mean likeness of a catalog at which a score is 1; at the mean it is 0."""

USUAL_WEIGHT = 60
"""How many units the knowledge is worth of what an embedder's likeness of unrelated texts usually is."""

UNRELATED = (
    "Set the alarm of the kitchen clock",
    "Which rivers flow into the sea?",
    "Sell all my shares in the steel company",
    "Tune a violin",
    "The square root of a number",
    "Who won the football match yesterday?",
    "Print the letter on both sides",
    "A recipe for bread without yeast",
    "Close the pull request",
    "Is there a pharmacy near the station?",
    "Translate a poem into French",
    "Feed the cat at noon",
    "Rotate an image by ninety degrees",
    "Delete rows from a table of customers",
    "How tall is that mountain?",
    "Book a table for four people",
)
"""Texts that have nothing to do with each other."""

PART = 0.6
"""What the likeness to a part of a text counts, beside that to the whole."""


Usual = tuple[float, float]
"""Mean and deviation of likenesses."""


def usual_scores(vectors: NDArray[np.float32]) -> Usual:
    """What the likeness of texts that have nothing to do with each other is for an embedder.

    Args:
        vectors: of ``UNRELATED``, each of length one.
    """
    import numpy as np

    pairs = np.einsum("ik,jk->ij", vectors, vectors)[np.triu_indices(len(vectors), 1)]
    return float(pairs.mean()), max(float(pairs.std()), 1e-3)


def similarity_scores(matrix: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """The cosines. Not by BLAS: its threads cost more than they save here, and may add up in another order."""
    import numpy as np

    found: NDArray[np.float32] = np.einsum("ij,j->i", matrix, query)
    return found


def nearest(
    ids: Sequence[str],
    whole: NDArray[np.float32],
    parts: Sequence[NDArray[np.float32]],
    origins: NDArray[np.int64],
    usual: Usual,
) -> dict[str, float]:
    """Scores between 0 and 1 of the units nearest to a text, or to one of its parts.

    Args:
        ids: of the units, as the arrays have them.
        whole: how like each unit is to the text.
        parts: the same for each part of it.
        origins: where each unit is from; 0 for the host.
        usual: of that embedder, as ``usual_likeness`` has it.
    """
    import numpy as np

    looks = list(_looks(whole, origins, usual))
    for part in parts:
        looks = [
            np.maximum(look, PART * again) for look, again in zip(looks, _looks(part, origins, usual), strict=True)
        ]
    told = np.logical_or.reduce([_first(look) for look in looks])
    scores = np.maximum.reduce(looks).round(3)
    return {ids[place]: float(scores[place]) for place in np.flatnonzero(told & (scores > 0)).tolist()}


def _looks(cosines: NDArray[np.float32], origins: NDArray[np.int64], usual: Usual) -> Iterator[NDArray[np.float32]]:
    """Scores, by how far the likeness stands out from that of all; and once more as if strangers were not there
    (``rlm_spare``). A crowd that is all alike makes nobody else less so."""
    import numpy as np

    yield _standing_out(cosines, *_measured(cosines, usual))
    for judged, seen in _views(cosines, origins, usual):
        yield np.where(judged, _standing_out(cosines, *_measured(cosines[seen], usual)), 0)


def _views(
    cosines: NDArray[np.float32], origins: NDArray[np.int64], usual: Usual
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Whose likeness is looked at once more, and beside which units: the host's beside the host's, and strangers'
    without that other stranger who makes it hardest to stand out."""

    host = origins == 0
    if host.all():
        return
    if host.any():
        yield host, host
    hardest = _hardest(cosines, origins, usual)
    if hardest is not None:
        others = origins != hardest
        yield ~host & others, others


def _hardest(cosines: NDArray[np.float32], origins: NDArray[np.int64], usual: Usual) -> int | None:
    """The stranger without whom it takes least likeness to stand half-way out, where there are several."""
    import numpy as np

    units = np.bincount(origins)
    sums = np.bincount(origins, weights=cosines)
    squares = np.bincount(origins, weights=cosines.astype(np.float64) ** 2)
    strangers = np.flatnonzero(units)
    strangers = strangers[strangers > 0]
    if len(strangers) < 2:
        return None
    mean, deviation = _moments(units.sum() - units, sums.sum() - sums, squares.sum() - squares, usual)
    return int(strangers[np.argmin((mean + deviation * NEAR / 2)[strangers])])


def _measured(cosines: NDArray[np.float32], usual: Usual) -> Usual:
    """Mean and deviation of the likeness of these units, beside what is usual."""
    mean, deviation = _moments(
        len(cosines),
        float(cosines.sum()),
        float((cosines.astype("f8") ** 2).sum()),
        usual,
    )
    return float(mean), float(deviation)


def _moments(units: Any, total: Any, squares: Any, usual: Usual) -> tuple[Any, Any]:
    """Mean and deviation from the sums of so many likenesses, beside what is usual."""
    import numpy as np

    usual_mean, usual_deviation = usual
    weight = units + USUAL_WEIGHT
    mean = (total + USUAL_WEIGHT * usual_mean) / weight
    spread = squares - 2 * mean * total + units * mean**2 + USUAL_WEIGHT * usual_deviation**2
    return mean, np.maximum(np.sqrt(np.maximum(spread, 0) / weight), 1e-6)


def _standing_out(cosines: NDArray[np.float32], mean: float, deviation: float) -> NDArray[np.float32]:
    import numpy as np

    found: NDArray[np.float32] = np.clip((cosines - mean) / (deviation * NEAR), 0, 1)
    return found


def _first(scores: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which are the nearest, so many as are told."""
    import numpy as np

    first = np.ones(len(scores), dtype=bool)
    if len(scores) > TOLD:
        first[np.argpartition(-scores, TOLD)[TOLD:]] = False
    return first
