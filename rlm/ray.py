"""Batches on a Ray cluster (extra ``ray``).

``rlm.batch(..., engine="ray")`` uses actors. For Ray Data there is a class::

    import ray, rlm, rlm.ray

    queries = ray.data.from_items([{"text": "review my change"}, {"text": "send a mail"}])
    job = rlm.ray.job(catalog, policy=policy)
    rows = queries.map_batches(rlm.ray.Compiler, fn_constructor_kwargs={"job": job}, concurrency=2)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlm.batches.compiles import BatchRow, CompileJob
from rlm.catalog.catalog import Catalog

COLUMNS = ("active", "callable", "packed_out", "fingerprint", "tokens", "error")


def job(catalog: Catalog, *, wire: str | None = None, **options: Any) -> CompileJob:
    """Return the job of a catalog, for ``Compiler``.

    Args:
        catalog: the units.
        wire: as in ``rlm.batch``.
        options: options of ``rlm.compile`` for all queries.
    """
    return CompileJob.of(catalog, options, wire)


class Compiler:
    """A class for ``Dataset.map_batches``: it adds the columns ``active``, ``callable``, ``packed_out``,
    ``fingerprint``, ``tokens`` and ``error`` to a batch with the column ``text``.

    Args:
        job: what ``job()`` returned.
    """

    def __init__(self, job: CompileJob) -> None:
        self._compute = job.begun()

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Compile the texts of a batch."""
        rows: list[BatchRow] = [self._compute(str(text)) for text in batch["text"]]
        columns: dict[str, list[Any]] = {name: [_cell(row, name) for row in rows] for name in COLUMNS}
        return {**batch, **columns}


def _cell(row: BatchRow, name: str) -> Any:
    value = getattr(row, name)
    if name == "error":
        return "" if value is None else f"{value['phase']}/{value['kind']}: {value['message']}"
    return list(value) if isinstance(value, tuple) else value
