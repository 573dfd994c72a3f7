"""Many compiles of one catalog: ``rlm.batch``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rlm.batches import workers
from rlm.batches.workers import Progress, cores
from rlm.boundary import boundary, error_from
from rlm.catalog.catalog import Catalog
from rlm.compiler.compile import compile as compile_view
from rlm.errors import ConfigurationError, EngineError, did_you_mean
from rlm.model.unit import Unit

ENGINES = ("processes", "ray")

_INPUTS = frozenset({"text", "messages", "tail", "history", "needs", "signals", "sensors", "admitted"})


@dataclass(frozen=True, slots=True)
class BatchRow:
    """The result of one query of a batch.

    ``active`` and ``packed_out`` are unit ids, ``callable`` those of the tools with a full schema. ``tokens`` is the
    ledger's total, ``limit`` its limit. ``request`` has the finished parts of the request if a wire was asked for.
    ``error`` is the error of this query as a mapping with ``phase``, ``kind`` and ``message``; the other fields are
    empty then.
    """

    query: str
    active: tuple[str, ...] = ()
    callable: tuple[str, ...] = ()
    packed_out: tuple[str, ...] = ()
    fingerprint: str = ""
    tokens: int = 0
    limit: int = 0
    warnings: tuple[str, ...] = ()
    request: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None

    @property
    def ok(self) -> bool:
        """Whether the query was compiled."""
        return self.error is None


@dataclass(frozen=True)
class CompileJob:
    """The material that all queries of a batch share."""

    units: tuple[Unit, ...]
    stemmer: str
    options: Mapping[str, Any] = field(default_factory=dict)
    wire: Literal["openai", "anthropic"] | None = None

    @classmethod
    def of(cls, catalog: Catalog, options: Mapping[str, Any], wire: Any) -> CompileJob:
        """Return the job for a catalog as it is now."""
        snapshot = catalog.snapshot()
        return cls(tuple(snapshot.units.values()), snapshot.stemmer, dict(options), wire)

    def begun(self) -> Callable[[Any], BatchRow]:
        """Return the function of one query."""
        catalog = Catalog(stemmer=self.stemmer)
        catalog.add(*self.units, allow_missing=True)
        return lambda query: self.row(catalog, query)

    def row(self, catalog: Catalog, query: str | Mapping[str, Any]) -> BatchRow:
        """Return the result of one query."""
        inputs = {"text": query} if isinstance(query, str) else dict(query)
        text = str(inputs.pop("text", ""))
        try:
            view = compile_view(catalog, text, **{**self.options, **inputs})
            return BatchRow(
                query=text,
                active=view.active,
                callable=tuple(view.callable),
                packed_out=view.packed_out,
                fingerprint=view.fingerprint,
                tokens=view.ledger.total,
                limit=view.ledger.limit,
                warnings=tuple(view.warnings),
                request=None if self.wire is None else view.messages(self.wire),
            )
        except Exception as problem:  # noqa: BLE001 - one query must not end the batch
            return BatchRow(query=text, error=error_from(problem, "batch").to_dict())

    def lost(self, row: Any) -> BatchRow:
        """Return the result of a query that ended every worker which compiled it."""
        text = row if isinstance(row, str) else str(row.get("text", ""))
        problem = EngineError("worker_lost", "the worker process ended each time that this query was compiled")
        return BatchRow(query=text, error=problem.to_dict())


@boundary("batch")
def batch(
    queries: Iterable[str | Mapping[str, Any]],
    catalog: Catalog,
    *,
    jobs: int | None = None,
    engine: Literal["processes", "ray"] = "processes",
    wire: Literal["openai", "anthropic"] | None = None,
    on_progress: Progress | None = None,
    **options: Any,
) -> list[BatchRow]:
    """Compile many queries against one catalog, in several processes, and return the results in order.

    A worker process that ends is replaced, and its rows are compiled again. A query that cannot be compiled has an
    ``error`` and does not end the batch. For example::

        rows = rlm.batch(["review my change", "send a mail"], catalog, jobs=4, policy=policy)
        print(rows[0].active, rows[0].tokens)

    Args:
        queries: texts, or mappings with ``text`` and further inputs of ``rlm.compile``, such as ``history``.
        catalog: the catalog; the workers get its units as they are now.
        jobs: the number of worker processes; the number of processors without it. 1 works in this process.
        engine: ``"processes"``, or ``"ray"`` for actors of a Ray cluster (extra ``ray``).
        wire: ``"openai"`` or ``"anthropic"``: each row gets the finished parts of the ``request``.
        on_progress: called with the number of finished queries and of all queries.
        options: further options of ``rlm.compile``, the same for all queries: ``policy``, ``sensor``, ``tools``.

    Raises:
        ConfigurationError: ``invalid_option``, ``invalid_query``, ``not_a_catalog``, ``not_picklable``,
            ``missing_extra``; EngineError: ``worker_failed``.
    """
    if not isinstance(catalog, Catalog):
        raise ConfigurationError("not_a_catalog", f"batch: a Catalog is expected, not {type(catalog).__name__}")
    rows = [_checked(number, query) for number, query in enumerate(listed(queries))]
    jobs = _checked_jobs(jobs)
    if engine not in ENGINES:
        hint = did_you_mean(str(engine), ENGINES)
        raise ConfigurationError("invalid_option", f"engine must be 'processes' or 'ray', not {engine!r}{hint}")
    if wire not in (None, "openai", "anthropic"):
        hint = did_you_mean(str(wire), ("openai", "anthropic"))
        raise ConfigurationError("invalid_option", f"wire must be 'openai' or 'anthropic', not {wire!r}{hint}")
    job = CompileJob.of(catalog, options, wire)
    if engine == "ray":
        from rlm.batches import actors

        return actors.mapped(job, rows, jobs=jobs, on_progress=on_progress)
    return workers.mapped(job, rows, jobs=jobs, on_progress=on_progress)


def listed(queries: Any) -> list[Any]:
    """Return the queries as a list. Raises: ConfigurationError ``invalid_query``."""
    if isinstance(queries, str | bytes | Mapping):
        kind = type(queries).__name__
        raise ConfigurationError("invalid_query", f"queries: a list of queries is expected, not one {kind}")
    try:
        return list(queries)
    except TypeError:
        kind = type(queries).__name__
        raise ConfigurationError("invalid_query", f"queries: a list of queries is expected, not {kind}") from None


def _checked(number: int, query: Any) -> str | Mapping[str, Any]:
    if isinstance(query, str):
        return query
    if not isinstance(query, Mapping):
        what = f"queries[{number}]: a text or a mapping is expected, not {type(query).__name__}"
        raise ConfigurationError("invalid_query", what, {"index": number})
    for name in query:
        if name not in _INPUTS:
            hint = did_you_mean(str(name), _INPUTS)
            raise ConfigurationError(
                "invalid_query", f"queries[{number}]: no such input {name!r}{hint}", {"index": number}
            )
    return dict(query)


def _checked_jobs(jobs: Any) -> int:
    if jobs is None:
        return cores()
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise ConfigurationError("invalid_option", f"jobs must be a whole number from 1, not {jobs!r}")
    return jobs
