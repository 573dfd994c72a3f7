"""Batches by actors of a Ray cluster (extra ``ray``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlm.batches.workers import MESSAGES, MOST_ROWS, Job, Progress
from rlm.errors import ConfigurationError


def mapped(job: Job, rows: Sequence[Any], *, jobs: int, on_progress: Progress | None = None) -> list[Any]:
    """As ``rlm.batches.workers.mapped``, with actors of Ray. An actor that is lost is started again by Ray.

    Raises: ConfigurationError ``missing_extra``.
    """
    ray = _ray()
    if not ray.is_initialized():
        ray.init(num_cpus=jobs, include_dashboard=False, log_to_driver=False)
    actor = ray.remote(max_restarts=-1, max_task_retries=3)(_Actor)
    shared = ray.put(job)
    actors = [actor.remote(shared) for _ in range(max(1, min(jobs, len(rows))))]
    size = max(1, min(MOST_ROWS, len(rows) // (len(actors) * MESSAGES) or 1))
    starts = range(0, len(rows), size)
    try:
        pending = {
            actors[number % len(actors)].compute.remote(list(rows[start : start + size])): start
            for number, start in enumerate(starts)
        }
        results: dict[int, Any] = {}
        while pending:
            (ready, *_), _ = ray.wait(list(pending), num_returns=1)
            start = pending.pop(ready)
            results.update(enumerate(_got(ray, ready, job, rows[start : start + size]), start))
            if on_progress is not None:
                on_progress(len(results), len(rows))
    finally:
        for each in actors:
            ray.kill(each)
    return [results[place] for place in range(len(rows))]


def _got(ray: Any, reference: Any, job: Job, rows: Sequence[Any]) -> list[Any]:
    try:
        return list(ray.get(reference))
    except ray.exceptions.RayActorError:
        return [job.lost(row) for row in rows]


class _Actor:
    def __init__(self, job: Job) -> None:
        self._compute = job.begun()

    def compute(self, rows: Sequence[Any]) -> list[Any]:
        return [self._compute(row) for row in rows]


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        remedy = "pip install 'prolog-rlm[ray]'"
        raise ConfigurationError("missing_extra", f"engine='ray' requires the package ray: {remedy}") from None
    return ray
