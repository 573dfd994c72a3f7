"""Complete: a question, a context that no prompt holds, and an answer. One function, whoever asks.

What can be wrong with the host's word is raised before anything is sent; what happens to a run is returned.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from rlm.boundary import boundary, error_from, host_code, keeps_its_meaning
from rlm.catalog.catalog import Catalog
from rlm.errors import ConfigurationError, RlmError, RunError
from rlm.model.base import digest_of
from rlm.model.given import checked_path
from rlm.model.plan import PlanError, ValidPlan
from rlm.model.turn import Turn, turn_of
from rlm.model.unit import Unit
from rlm.runtime.agent import Agent
from rlm.runtime.cancel import CancelToken
from rlm.runtime.completion import Completion, Status
from rlm.runtime.context.context import Context
from rlm.runtime.context.store import Store
from rlm.runtime.gate import provider_failed
from rlm.runtime.ledger import Account
from rlm.runtime.operations import current_agent
from rlm.runtime.options import Options
from rlm.runtime.record import Host, reading, record_contexts, record_run
from rlm.runtime.replay import Recorded, Replay, ReplayProvider, ReplayRetry, ended_alike
from rlm.runtime.roles import instruction_units
from rlm.runtime.run import Run, Speaker, speaker_of
from rlm.runtime.toolbox import Toolbox, registered
from rlm.runtime.trace import Record, Trace
from rlm.skills.bundle import standing_units
from rlm.skills.profile import Profile
from rlm.sync import run_sync
from rlm.tools.cancellation import current
from rlm.tools.grant import Grant

REPLAY_GRACE = 0.3
"""Seconds that a replay may take longer than the recorded run was allowed to: it ends where that one was stopped, and
by its own deadline only where it does not come there in time."""

ENDED_FROM_OUTSIDE = frozenset({"timeout", "cancelled", "budget_exhausted", "max_iterations", "no_progress"})
"""Kinds of runtime errors after which a result is ``partial``: nobody did anything wrong."""


def _failed(problem: RlmError) -> Completion:
    return Completion(status="failed", error=problem.to_dict())


@boundary("acomplete", _failed)
async def acomplete(query: str, context: Any = None, **options: Any) -> Completion:
    """Answer ``query`` by plans that a model writes and the runtime checks and runs.

    Args:
        query: the task, in the user's own words.
        context: what it is about: ``rlm.Context``, a text, a list, a path, a mapping of names to contexts. No
            prompt holds it; plans look into it.
        options: see ``rlm.runtime.options.Options``.

    Returns: a Completion, whatever happened to the run: also where something inside raised.

    Raises: ConfigurationError and others of configuration, before any request was sent.
    """
    _checked_query(query)
    return await _completed(_host(query, context, Options.of(**options), planned=False), None)


@boundary("completed", _failed)
async def completed(query: str, options: Options) -> Completion:
    """``acomplete`` with options that are checked already."""
    _checked_query(query)
    return await _completed(_host(query, None, options, planned=False), None)


@boundary("complete", _failed)
def complete(query: str, context: Any = None, **options: Any) -> Completion:
    """As ``acomplete``, for callers that wait; it works inside a running event loop (a notebook) too."""
    return run_sync(acomplete, query, context, **options)


@boundary("arun_plan", _failed)
async def arun_plan(plan: Mapping[str, Any], context: Any = None, *, query: str = "", **options: Any) -> Completion:
    """Run a plan that the host wrote. It may call every registered tool and every binding, shown or not.

    Raises: PlanError where it is no valid plan; ConfigurationError.
    """
    if plan is None:
        raise PlanError("wrong_type", 'a plan is wanted: {"steps": [...]}', {"path": ""})
    return await _completed(_host(query, context, Options.of(**options), planned=True), plan)


@boundary("run_plan", _failed)
def run_plan(plan: Mapping[str, Any], context: Any = None, *, query: str = "", **options: Any) -> Completion:
    """As ``arun_plan``, for callers that wait."""
    return run_sync(arun_plan, plan, context, query=query, **options)


def _checked_query(query: Any) -> None:
    if not isinstance(query, str):
        raise ConfigurationError("invalid_query", f"a query is a string, not {type(query).__name__}")
    if not query.strip():
        raise ConfigurationError("invalid_query", "the query is empty")


@dataclass
class _Host:
    """The host's word, made ready: everything that can be wrong with it has been said by now."""

    query: str
    contexts: Mapping[str, Context]
    options: Options
    toolbox: Toolbox
    standing: tuple[Unit, ...]
    grant: Grant
    planner: Speaker | None
    leaf: Speaker | None
    catalog: Catalog
    owns_catalog: bool
    replay: Replay | None = None


def _host(query: str, context: Any, options: Options, *, planned: bool) -> _Host:
    policy = options.effective_policy
    if options.cancel is not None and not isinstance(options.cancel, CancelToken):
        raise ConfigurationError("invalid_option", "cancel: a CancelToken is wanted, rlm.CancelToken()")
    _check_evidence(query, options)
    catalog = options.catalog
    given = registered(options.tools, options.tool_registry)
    ids = {tool.id for tool in given}
    known = () if catalog is None else tuple(tool for tool in catalog.registry if tool.id not in ids)
    toolbox = Toolbox((*given, *known), options.bindings)
    standing = (
        *standing_units(Profile.of(options.skills, disable=options.disable)),
        *instruction_units(options.instruction, options.instruction_files),
    )
    said = {} if options.authority is None else {"authority": options.authority}
    planner, leaf = _speakers(options, planned=planned)
    contexts = {} if context is None else Context.named_of(context)
    return _Host(
        query=query,
        contexts=contexts,
        options=options,
        toolbox=toolbox,
        standing=standing,
        grant=Grant.of(policy, approve=options.approve, **said).begun(),
        planner=planner,
        leaf=leaf,
        catalog=_ephemeral(toolbox) if catalog is None else catalog,
        owns_catalog=catalog is None,
    )


def _check_evidence(query: str, options: Options) -> None:
    """Raises: ConfigurationError for what no compile would take, for a sensor that could say nothing, and for a
    ``schema`` that is none."""
    evidence = {name: value for name, value in options.compile_options.items() if name in Turn.model_fields}
    turn_of(query, (), **{**evidence, "needs": options.first_needs})
    if options.effective_sensor is not None:
        options.effective_sensor.check()
    if options.output_schema is not None:
        from rlm.tools.schema import check_of

        check_of(dict(options.output_schema), "schema")


def _ephemeral(toolbox: Toolbox) -> Catalog:
    catalog = Catalog()
    try:
        catalog.add_tools(toolbox.registered)
    except BaseException:
        catalog.destroy()
        raise
    return catalog


def _speakers(options: Options, *, planned: bool) -> tuple[Speaker | None, Speaker | None]:
    """Who plans and who answers as a leaf. A plan of the host may do without a model."""
    first = options.planner_model if options.planner_model is not None else options.model
    second = options.leaf_model if options.leaf_model is not None else options.model
    first = second if first is None else first
    if first is None and planned:
        return None, None
    planner = speaker_of(first, options)
    if second is None or second is first or (isinstance(second, str) and second == first):
        return planner, planner
    return planner, speaker_of(second, options)


async def _completed(host: _Host, plan: Mapping[str, Any] | None) -> Completion:
    """Run, and give back what came of it; everything that the run made for itself is gone afterwards."""
    started = anyio.current_time()
    trace: Trace | None = None
    try:
        agent = _root(host, _deadline(started, host))
        valid = None if plan is None else await agent.valid(plan)
        trace = agent.run.trace = Trace(host.options.trace, listener=host.options.on_event, redact=host.options.redact)
        value, error = await _answered(agent, host, plan, valid)
        return _result(agent, value, error, anyio.current_time() - started)
    finally:
        if trace is not None:
            trace.close()
        if host.owns_catalog:
            host.catalog.destroy()


def _deadline(started: float, host: _Host) -> float:
    """Absolute. A run that a handler asks for never outlives the run that the handler works for."""
    own, outer = started + host.options.budget.time_limit, current_agent.get()
    own += REPLAY_GRACE if host.replay is not None else 0.0
    return own if outer is None or outer.run.over else min(own, outer.deadline)


def _root(host: _Host, deadline: float) -> Agent:
    options = host.options
    store = Store(tokenizer=options.effective_policy.tokenizer)
    inputs: dict[str, Any] = {"query": host.query} if host.query else {}
    inputs |= {name: store.put(each, name).value for name, each in host.contexts.items()}
    run = Run(
        options=options,
        catalog=host.catalog,
        toolbox=host.toolbox,
        store=store,
        account=Account(options.budget) if host.replay is None else Recorded(options.budget),
        planner=host.planner,
        leaf=host.leaf,
        standing=host.standing,
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
        account=run.account,
        deadline=deadline,
        deepest=options.budget.max_recursion_depth,
        lineage=(digest_of([host.query, inputs.get("context"), None]),),
    )


async def _answered(
    agent: Agent, host: _Host, said: Mapping[str, Any] | None, plan: ValidPlan | None
) -> tuple[Any, RlmError | None]:
    """The value, or why there is none; by the deadline, and with nothing left running."""
    run, token, call = agent.run, agent.run.options.cancel, current.get()
    task = asyncio.current_task()
    outer = CancelToken()  # ends with the tool call whose handler asks for this run, if one does
    with (
        anyio.CancelScope(deadline=agent.deadline) as scope,
        outer.covers(scope),
        nullcontext() if token is None else token.covers(scope),
        nullcontext() if call is None else call.watched(outer.cancel),
    ):
        try:
            record_run(run, host.query, host.contexts, said)
            async with _open(run.planner), _open(run.leaf):
                await record_contexts(run.trace, host.contexts)
                value = await (agent.answer() if plan is None else agent.follow(plan))
                if run.replay is not None:
                    await run.replay.closes()
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
        return None, RunError("cancelled", "the tool call that asked for this run is over")
    limit, asker = run.options.budget.time_limit, current_agent.get()
    if asker is not None and asker.deadline <= agent.deadline:
        return None, RunError("timeout", "the deadline of the run that asked for this one has passed")
    return None, RunError("timeout", f"the time limit of {limit:g} s was reached", {"time_limit": limit})


@asynccontextmanager
async def _open(speaker: Speaker | None) -> AsyncIterator[None]:
    """The provider's connections, kept from one request to the next. Raises: ProviderError ``provider_failed``."""
    if speaker is None:
        yield
        return
    provider = speaker.provider
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
    shown = run.catalog.units
    completion = Completion(
        status=status,
        value=value,
        error=None if error is None else error.to_dict(),
        bound={} if error is None else bound,
        usage=run.account.spent(seconds),
        prompt_projection=agent.projection,
        findings=tuple(run.account.findings),
        executable_only=tuple(sorted(tool.id for tool in run.toolbox.all if tool.id not in shown)),
        abandoned=run.workers.abandoned,
        run=run.id,
        trace=None if trace.path is None else str(trace.path),
    )
    if trace.wanted:
        usage = completion.usage.model_dump(mode="json")
        try:
            trace.event("end", status=status, value=trace.body(value), error=completion.error, usage=usage)
        except RlmError as problem:
            return completion.model_copy(update={"status": "failed", "error": problem.to_dict(), "bound": bound})
    return completion


# -- again --------------------------------------------------------------------------------------------


@boundary("areplay", _failed)
async def areplay(path: str | Path, *, trace: str | Path | None = None) -> Completion:
    """Run a recorded run again, without a model and without tools: both answer as they did.

    Args:
        path: a trace. ``trace``: a file for the trace of the replay.

    Returns: the result: the same one; ``failed`` with ``replay_differs`` where the two runs part.

    Raises: ConfigurationError ``unreadable_trace``, ``bad_trace`` (with the line), ``unfinished_trace``,
    ``missing_body``, ``unreadable_body``, ``changed_body``.
    """
    path = checked_path("path", path)
    Options.of(trace=trace)  # the host's own words: what is wrong with them is not the trace's fault
    with reading(path):
        record = await anyio.to_thread.run_sync(Record, path, abandon_on_cancel=True)  # may have a million lines
        said = Host(record)
        replay = await anyio.to_thread.run_sync(Replay, record, abandon_on_cancel=True)
        host = _recorded_host(said, replay, trace)
        plan = said.said["plan"]
    return ended_alike(record, await _completed(host, plan))


def _recorded_host(said: Host, replay: Replay, trace: str | Path | None) -> _Host:
    """The host's word of a recorded run."""
    then = {"retry": ReplayRetry(replay=replay), "cancel": replay.interruption}
    options = Options.of(**said.options(), model="local", trace=trace, **then)
    return _Host(
        query=said.said["query"],
        contexts=said.contexts(),
        options=options,
        toolbox=Toolbox(said.tools("tools"), {tool.name: tool for tool in said.tools("bound")}),
        standing=said.standing(),
        grant=Grant.of(options.effective_policy),
        planner=_replaying(said.said["planner"], replay, leaf=False),
        leaf=_replaying(said.said["leaf"], replay, leaf=True),
        catalog=said.catalog(),
        owns_catalog=True,
        replay=replay,
    )


@boundary("replay", _failed)
def replay(path: str | Path, *, trace: str | Path | None = None) -> Completion:
    """As ``areplay``, for callers that wait."""
    return run_sync(areplay, path, trace=trace)


def _replaying(said: Mapping[str, Any] | None, replay: Replay, *, leaf: bool) -> Speaker | None:
    if said is None:
        return None
    provider = ReplayProvider(said, replay, leaf=leaf)
    return Speaker(provider, provider.price)
