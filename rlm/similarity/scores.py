"""Similarity scores: how far the similarity of each unit to a text exceeds the mean of the catalog.

Arrays have one number for each unit. This module knows no texts and no embedders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SENT = 64
"""The number of the nearest units that are sent to the rules."""

NEAR = 5.0
"""Standard deviations above the mean similarity of a catalog at which a score is 1. At the mean it is 0."""

USUAL_WEIGHT = 60
"""The weight of an embedder's usual similarity of unrelated texts, as a number of units."""

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
"""Texts on unrelated topics."""

PART = 0.6
"""The weight of the score for a part of a text; that for the whole text has weight 1."""


Usual = tuple[float, float]
"""Mean and standard deviation of similarities."""


def usual_scores(vectors: NDArray[np.float32]) -> Usual:
    """Return an embedder's mean and deviation of the similarity of unrelated texts.

    Args:
        vectors: of ``UNRELATED``, each of length one.
    """
    import numpy as np

    pairs = np.einsum("ik,jk->ij", vectors, vectors)[np.triu_indices(len(vectors), 1)]
    return float(pairs.mean()), max(float(pairs.std()), 1e-3)


def similarity_scores(matrix: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the cosines of the rows with the query.

    This does not use BLAS: its threads cost more than they save here, and may add up in another order.
    """
    import numpy as np

    cosines: NDArray[np.float32] = np.einsum("ij,j->i", matrix, query)
    return cosines


def nearest(
    ids: Sequence[str],
    whole: NDArray[np.float32],
    parts: Sequence[NDArray[np.float32]],
    origins: NDArray[np.int64],
    usual: Usual,
) -> dict[str, float]:
    """Return scores between 0 and 1 of the units nearest to a text, or to one of its parts.

    Args:
        ids: ids of the units, in the order of the arrays.
        whole: the similarity of each unit to the text.
        parts: the same for each part of it.
        origins: the number of each unit's origin; 0 for the host.
        usual: mean and deviation of the embedder, from ``usual_scores``.
    """
    import numpy as np

    rounds = list(_scores_by_round(whole, origins, usual))
    for part in parts:
        rounds = [
            np.maximum(scores, PART * part_scores)
            for scores, part_scores in zip(rounds, _scores_by_round(part, origins, usual), strict=True)
        ]
    sent = np.logical_or.reduce([_first(scores) for scores in rounds])
    best = np.maximum.reduce(rounds).round(3)
    return {ids[place]: float(best[place]) for place in np.flatnonzero(sent & (best > 0)).tolist()}


def _scores_by_round(
    cosines: NDArray[np.float32], origins: NDArray[np.int64], usual: Usual
) -> Iterator[NDArray[np.float32]]:
    """Yield scores against all units, then against subsets without third parties (``rlm_fairness``).

    So many similar units of one third party do not lower the scores of other origins.
    """
    import numpy as np

    yield _excess(cosines, *_measured(cosines, usual))
    for scored, others in _subsets(cosines, origins, usual):
        yield np.where(scored, _excess(cosines, *_measured(cosines[others], usual)), 0)


def _subsets(
    cosines: NDArray[np.float32], origins: NDArray[np.int64], usual: Usual
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Yield pairs of masks: the units to score again, and the units to compare them with.

    Units of the host are compared with the host's. Units of third parties are compared with all units except those of
    the origin that most raises the similarity they must exceed.
    """

    host = origins == 0
    if host.all():
        return
    if host.any():
        yield host, host
    strongest = _strongest_origin(cosines, origins, usual)
    if strongest is not None:
        others = origins != strongest
        yield ~host & others, others


def _strongest_origin(cosines: NDArray[np.float32], origins: NDArray[np.int64], usual: Usual) -> int | None:
    """Return the third party without which a score of 0.5 takes the least similarity; None for fewer than two."""
    import numpy as np

    units = np.bincount(origins)
    sums = np.bincount(origins, weights=cosines)
    squares = np.bincount(origins, weights=cosines.astype(np.float64) ** 2)
    third_parties = np.flatnonzero(units)
    third_parties = third_parties[third_parties > 0]
    if len(third_parties) < 2:
        return None
    mean, deviation = _moments(units.sum() - units, sums.sum() - sums, squares.sum() - squares, usual)
    return int(third_parties[np.argmin((mean + deviation * NEAR / 2)[third_parties])])


def _measured(cosines: NDArray[np.float32], usual: Usual) -> Usual:
    """Return mean and deviation of the similarity of these units, weighted with the usual ones."""
    mean, deviation = _moments(
        len(cosines),
        float(cosines.sum()),
        float((cosines.astype("f8") ** 2).sum()),
        usual,
    )
    return float(mean), float(deviation)


def _moments(units: Any, total: Any, squares: Any, usual: Usual) -> tuple[Any, Any]:
    """Return mean and deviation from the sums of so many similarities, weighted with the usual ones."""
    import numpy as np

    usual_mean, usual_deviation = usual
    weight = units + USUAL_WEIGHT
    mean = (total + USUAL_WEIGHT * usual_mean) / weight
    spread = squares - 2 * mean * total + units * mean**2 + USUAL_WEIGHT * usual_deviation**2
    return mean, np.maximum(np.sqrt(np.maximum(spread, 0) / weight), 1e-6)


def _excess(cosines: NDArray[np.float32], mean: float, deviation: float) -> NDArray[np.float32]:
    """Return the similarities above the mean as scores: 1 at ``NEAR`` deviations."""
    import numpy as np

    scores: NDArray[np.float32] = np.clip((cosines - mean) / (deviation * NEAR), 0, 1)
    return scores


def _first(scores: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return the mask of the nearest units, at most ``SENT`` of them."""
    import numpy as np

    first = np.ones(len(scores), dtype=bool)
    if len(scores) > SENT:
        first[np.argpartition(-scores, SENT)[SENT:]] = False
    return first
