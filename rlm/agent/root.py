"""Run the root agent: from a prepared run to its result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import anyio

from rlm.agent.agent import Agent
from rlm.agent.agent_state import current_agent
from rlm.agent.options import Options
from rlm.agent.prepared_run import PreparedRun, check_query, prepare
from rlm.agent.requests import ModelEndpoint
from rlm.agent.run import Run
from rlm.boundary import boundary, error_from, host_code, keeps_its_meaning
from rlm.context.store import Store
from rlm.errors import RlmError, RunError
from rlm.model.base import digest_of
from rlm.model.plan import ValidPlan
from rlm.sending.cancel import CancelToken
from rlm.sending.completion import Completion, Status
from rlm.sending.gate import provider_failed
from rlm.sending.run_budget import RunBudget, shared_budget
from rlm.tools.cancellation import current
from rlm.trace.host import record_contexts, record_run
from rlm.trace.replay import ReplayBudget
from rlm.trace.writer import Trace

REPLAY_GRACE = 0.3
"""Seconds that a replay may last longer than the time limit of the recorded run. A replay normally ends where the
recorded run ended; its own deadline is the last resort."""

ENDED_FROM_OUTSIDE = frozenset({"timeout", "cancelled", "budget_exhausted", "max_iterations", "no_progress"})
"""Kinds of runtime errors after which a result is ``partial``: no part of the run failed."""


def failed_completion(problem: RlmError) -> Completion:
    """Return a failed Completion with ``problem``."""
    return Completion(status="failed", error=problem.to_dict())


@boundary("complete_checked", failed_completion)
async def complete_checked(query: str, options: Options) -> Completion:
    """As ``acomplete``, with checked options."""
    check_query(query)
    return await run_prepared(prepare(query, None, options, planned=False), None)


async def run_prepared(host: PreparedRun, plan: Mapping[str, Any] | None) -> Completion:
    """Run a prepared run and return its result; everything made for this run is removed afterwards."""
    started = anyio.current_time()
    trace: Trace | None = None
    try:
        agent = _root(host, _deadline(started, host))
        valid = None if plan is None else await agent.valid(plan)
        trace = agent.run.trace = Trace(host.options.trace, listener=host.options.on_event, redact=host.options.redact)
        value, error = await _answer_in_time(agent, host, plan, valid)
        return _result(agent, value, error, anyio.current_time() - started)
    finally:
        if trace is not None:
            trace.close()
        if host.owns_catalog:
            host.catalog.destroy()


def _deadline(started: float, host: PreparedRun) -> float:
    """Return the absolute deadline. A run started by a handler never outlives the handler's run."""
    own, outer = started + host.options.budget.time_limit, current_agent.get()
    own += REPLAY_GRACE if host.replay is not None else 0.0
    return own if outer is None or outer.run.over else min(own, outer.deadline)


def _root(host: PreparedRun, deadline: float) -> Agent:
    options = host.options
    store = Store(tokenizer=options.effective_policy.tokenizer)
    inputs: dict[str, Any] = {"query": host.query} if host.query else {}
    inputs |= {name: store.put(each, name).value for name, each in host.contexts.items()}
    run = Run(
        options=options,
        catalog=host.catalog,
        toolbox=host.toolbox,
        store=store,
        run_budget=_run_budget(host),
        planner=host.planner,
        leaf=host.leaf,
        extra_pinned=host.extra_pinned,
        replay=host.replay,
    )
    return Agent(
        run=run,
        id="0",
        task=host.query,
        store=store,
        inputs=inputs,
        policy=options.effective_policy,
        grant=host.grant,
        run_budget=run.run_budget,
        deadline=deadline,
        deepest=options.budget.max_recursion_depth,
        lineage=(digest_of([host.query, inputs.get("context"), None]),),
    )


def _run_budget(host: PreparedRun) -> RunBudget:
    """Return the budget of a run. A run of a batch also draws from the budget of the batch."""
    budget = host.options.budget
    if host.replay is not None:
        return ReplayBudget(budget)
    return RunBudget(budget, shared_budget.get() if current_agent.get() is None else None)


async def _answer_in_time(
    agent: Agent, host: PreparedRun, plan_data: Mapping[str, Any] | None, plan: ValidPlan | None
) -> tuple[Any, RlmError | None]:
    """Return the value and None, or None and the error, at the latest at the deadline; nothing keeps running."""
    run, token, call = agent.run, agent.run.options.cancel, current.get()
    task = asyncio.current_task()
    outer = CancelToken()  # cancelled with the tool call whose handler started this run, if any
    with (
        anyio.CancelScope(deadline=agent.deadline) as scope,
        outer.covers(scope),
        nullcontext() if token is None else token.covers(scope),
        nullcontext() if call is None else call.watched(outer.cancel),
    ):
        try:
            record_run(run, host.query, host.contexts, plan_data)
            async with _opened(run.planner), _opened(run.leaf):
                await record_contexts(run.trace, host.contexts)
                value = await (agent.answer() if plan is None else agent.follow(plan))
                if run.replay is not None:
                    await run.replay.end_run()
                return value, None
        except BaseException as problem:
            if keeps_its_meaning(problem, task):
                raise
            return None, error_from(problem, "the run")
        finally:
            run.over = True
    if token is not None and token.cancelled:
        return None, RunError("cancelled", "the host cancelled the run")
    if outer.cancelled:
        return None, RunError("cancelled", "the tool call that started this run is over")
    limit, outer_agent = run.options.budget.time_limit, current_agent.get()
    if outer_agent is not None and outer_agent.deadline <= agent.deadline:
        return None, RunError("timeout", "the deadline of the run that started this one has passed")
    return None, RunError("timeout", f"the time limit of {limit:g} s was reached", {"time_limit": limit})


@asynccontextmanager
async def _opened(endpoint: ModelEndpoint | None) -> AsyncIterator[None]:
    """Keep the provider's connections open between requests. Raises: ProviderError ``provider_failed``."""
    if endpoint is None:
        yield
        return
    provider = endpoint.provider
    with host_code(*provider_failed(provider)):
        await provider.__aenter__()
    ended: tuple[Any, Any, Any] = (None, None, None)
    try:
        yield
    except BaseException as problem:
        ended = (type(problem), problem, problem.__traceback__)
        raise
    finally:
        with host_code(*provider_failed(provider)):
            await provider.__aexit__(*ended)


def _result(agent: Agent, value: Any, error: RlmError | None, seconds: float) -> Completion:
    run, trace = agent.run, agent.run.trace
    status: Status = "ok"
    bound = agent.partial()
    if error is not None:
        status = "partial" if isinstance(error, RunError) and error.kind in ENDED_FROM_OUTSIDE else "failed"
        value = next(reversed(bound.values()), None)
    units = run.catalog.units
    completion = Completion(
        status=status,
        value=value,
        error=None if error is None else error.to_dict(),
        bound={} if error is None else bound,
        assumptions=agent.assumptions if error is None else "",
        usage=run.run_budget.spent(seconds),
        prompt_projection=agent.projection,
        findings=tuple(run.run_budget.findings),
        executable_only=tuple(sorted(tool.id for tool in run.toolbox.all if tool.id not in units)),
        abandoned=run.workers.abandoned,
        run=run.id,
        trace=None if trace.path is None else str(trace.path),
    )
    if trace.active:
        usage = completion.usage.model_dump(mode="json")
        try:
            trace.event("end", status=status, value=trace.body(value), error=completion.error, usage=usage)
        except RlmError as problem:
            return completion.model_copy(update={"status": "failed", "error": problem.to_dict(), "bound": bound})
    return completion
