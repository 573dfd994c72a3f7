"""Many completions at once, under one budget: ``rlm.complete_batch``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import anyio

from rlm.api.complete import acomplete
from rlm.batches.compiles import listed
from rlm.batches.workers import Progress
from rlm.boundary import boundary
from rlm.errors import ConfigurationError, did_you_mean
from rlm.model.budget import MOST, Budget
from rlm.sending.completion import Completion
from rlm.sending.run_budget import RunBudget, shared_budget
from rlm.sync import run_sync

MOST_AT_ONCE = 8
"""Runs at the same time, as for the sub-calls of one run."""


@boundary("acomplete_batch")
async def acomplete_batch(
    queries: Iterable[str | Mapping[str, Any]],
    *,
    at_once: int = MOST_AT_ONCE,
    total: Budget | Mapping[str, Any] | None = None,
    on_progress: Progress | None = None,
    **options: Any,
) -> list[Completion]:
    """Answer many queries, several at the same time, and return the outcomes in order.

    Each run has its own ``budget``. ``total`` is the budget of all runs together: a run that finds it used up ends as
    ``partial`` with ``budget_exhausted``, and after its ``time_limit`` all runs end. For example::

        outcomes = await rlm.acomplete_batch(
            [{"query": "What is the total?", "context": text} for text in texts],
            model="openai:gpt-5-mini",
            total={"max_cost_usd": 2.0, "time_limit": 600},
        )

    Args:
        queries: texts, or mappings with ``query`` and further arguments of ``rlm.complete`` for this one.
        at_once: the number of runs at the same time.
        total: the budget of all runs together; without it there is none.
        on_progress: called with the number of finished queries and of all queries.
        options: options of ``rlm.complete`` for all queries.

    Raises:
        ConfigurationError: ``invalid_query``, ``invalid_option``, and those of ``rlm.complete`` for options that hold
            for all queries.
    """
    rows = [_arguments(number, query) for number, query in enumerate(listed(queries))]
    if type(at_once) is not int or at_once < 1:
        raise ConfigurationError("invalid_option", f"at_once must be a whole number from 1, not {at_once!r}")
    limit = None if total is None else _total(total, options, len(rows))
    capped = total is not None and Budget.of(total).cost_is_capped
    outcomes: dict[int, Completion] = {}
    places = anyio.Semaphore(at_once)
    token = shared_budget.set(None if limit is None else RunBudget(limit))
    deadline = anyio.current_time() + (float("inf") if limit is None else limit.time_limit)

    async def one(number: int, row: Mapping[str, Any]) -> None:
        async with places:
            outcomes[number] = await _outcome(row, options, limit if capped else None, deadline)
        if on_progress is not None:
            on_progress(len(outcomes), len(rows))

    try:
        async with anyio.create_task_group() as tasks:
            for number, row in enumerate(rows):
                tasks.start_soon(one, number, row)
    except BaseExceptionGroup as group:
        raise _first(group) from None
    finally:
        shared_budget.reset(token)
    return [outcomes[number] for number in range(len(rows))]


async def _outcome(
    row: Mapping[str, Any], options: Mapping[str, Any], capped_by: Budget | None, deadline: float
) -> Completion:
    """Return the outcome of one query; no run goes on after the deadline of the batch."""
    settings = {**options, **row}
    left = deadline - anyio.current_time()
    if left != float("inf"):
        budget = Budget.of(settings.get("budget"))
        caps: dict[str, Any] = {"time_limit": min(budget.time_limit, max(0.001, left))}
        if capped_by is not None and not budget.cost_is_capped:
            caps["max_cost_usd"] = capped_by.max_cost_usd  # so that a model without a price is refused
        settings["budget"] = budget.model_copy(update=caps)
    query = settings.pop("query")
    return await acomplete(query, settings.pop("context", None), **settings)


def _total(total: Budget | Mapping[str, Any], options: Mapping[str, Any], count: int) -> Budget:
    """Return the budget of the batch. A field that the host did not set is that of one run, times their number."""
    given, one = Budget.of(total), Budget.of(options.get("budget"))
    fields = {name: getattr(given, name) for name in given.model_fields_set}
    for name in Budget.model_fields:
        value = getattr(one, name)
        if name not in fields and isinstance(value, int | float) and name not in _NOT_SUMMED:
            fields[name] = min(value * max(1, count), MOST)
    return Budget(**fields)


_NOT_SUMMED = frozenset({"max_recursion_depth", "max_concurrent_subcalls", "max_output_bytes"})
"""Fields that do not count what is used up."""


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    problem: BaseException = group
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    return problem


@boundary("complete_batch")
def complete_batch(queries: Iterable[str | Mapping[str, Any]], **options: Any) -> list[Completion]:
    """As ``acomplete_batch``, for synchronous callers. It also works in a notebook."""
    return run_sync(acomplete_batch, queries, **options)


def _arguments(number: int, query: Any) -> Mapping[str, Any]:
    if isinstance(query, str):
        return {"query": query}
    if not isinstance(query, Mapping):
        what = f"queries[{number}]: a text or a mapping is expected, not {type(query).__name__}"
        raise ConfigurationError("invalid_query", what, {"index": number})
    if "query" not in query:
        hint = next((did_you_mean(str(name), ("query",)) for name in query if did_you_mean(str(name), ("query",))), "")
        raise ConfigurationError("invalid_query", f"queries[{number}]: there is no 'query'{hint}", {"index": number})
    return dict(query)
