"""``complete``, ``run_plan`` and ``replay``, each with an awaitable form.

Errors in the host's settings are raised before any request. Errors of a run are returned in its Completion.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from rlm.agent.options import Options
from rlm.agent.prepared_run import PreparedRun, check_query, prepare
from rlm.agent.requests import ModelEndpoint
from rlm.agent.root import failed_completion, run_prepared
from rlm.agent.toolbox import Toolbox
from rlm.boundary import boundary
from rlm.model.arguments import checked_path
from rlm.model.plan import PlanError
from rlm.sending.completion import Completion
from rlm.sync import run_sync
from rlm.tools.grant import Grant
from rlm.trace.host import HostRecord, trace_errors
from rlm.trace.replay import Replay, ReplayProvider, ReplayRetry, ended_alike
from rlm.trace.writer import Record


@boundary("acomplete", failed_completion)
async def acomplete(query: str, context: Any = None, **options: Any) -> Completion:
    """Answer ``query`` by plans that a model writes and the runtime checks and executes.

    Args:
        query: the task, in the user's own words.
        context: the material of the task: ``rlm.Context``, a text, a list, a path, or a mapping of names to contexts.
            No prompt holds it; plans look into it.
        options: see ``rlm.agent.options.Options``, for example ``model="openai:..."`` and ``budget={"time_limit":
            60}``.

    Returns: a Completion, for every outcome of the run, also after an exception inside of it.

    Raises: ConfigurationError and other errors of the host's settings, before any request.
    """
    check_query(query)
    return await run_prepared(prepare(query, context, Options.of(**options), planned=False), None)


@boundary("complete", failed_completion)
def complete(query: str, context: Any = None, **options: Any) -> Completion:
    """As ``acomplete``, for synchronous callers. It also works inside a running event loop, such as a notebook."""
    return run_sync(acomplete, query, context, **options)


@boundary("arun_plan", failed_completion)
async def arun_plan(plan: Mapping[str, Any], context: Any = None, *, query: str = "", **options: Any) -> Completion:
    """Run a plan that the host wrote. It may call every registered tool and every binding, visible or not.

    Raises: PlanError for an invalid plan; ConfigurationError.
    """
    if plan is None:
        raise PlanError("wrong_type", 'a plan is wanted: {"steps": [...]}', {"path": ""})
    return await run_prepared(prepare(query, context, Options.of(**options), planned=True), plan)


@boundary("run_plan", failed_completion)
def run_plan(plan: Mapping[str, Any], context: Any = None, *, query: str = "", **options: Any) -> Completion:
    """As ``arun_plan``, for synchronous callers."""
    return run_sync(arun_plan, plan, context, query=query, **options)


# -- replay -------------------------------------------------------------------------------------------


@boundary("areplay", failed_completion)
async def areplay(path: str | Path, *, trace: str | Path | None = None) -> Completion:
    """Replay a recorded run, without a model and without tools; their replies and results come from the trace.

    Args:
        path: a trace.
        trace: a file for the trace of the replay.

    Returns: the recorded result, or a ``failed`` Completion with ``replay_differs`` if the two runs differ.

    Raises: ConfigurationError ``unreadable_trace``, ``bad_trace`` (with the line), ``unfinished_trace``,
    ``missing_body``, ``unreadable_body``, ``changed_body``.
    """
    path = checked_path("path", path)
    Options.of(trace=trace)  # checked here, so that its errors are not reported as errors of the trace
    with trace_errors(path):
        record = await anyio.to_thread.run_sync(Record, path, abandon_on_cancel=True)  # may have a million lines
        host_record = HostRecord(record)
        replay = await anyio.to_thread.run_sync(Replay, record, abandon_on_cancel=True)
        host = _recorded_run(host_record, replay, trace)
        plan = host_record.data["plan"]
    return ended_alike(record, await run_prepared(host, plan))


def _recorded_run(host_record: HostRecord, replay: Replay, trace: str | Path | None) -> PreparedRun:
    """Return the prepared run of a replay, from the recorded settings."""
    then = {"retry": ReplayRetry(replay=replay), "cancel": replay.interruption}
    options = Options.of(**host_record.options(), model="local", trace=trace, **then)
    return PreparedRun(
        query=host_record.data["query"],
        contexts=host_record.contexts(),
        options=options,
        toolbox=Toolbox(host_record.tools("tools"), {tool.name: tool for tool in host_record.tools("bound")}),
        extra_pinned=host_record.extra_pinned(),
        grant=Grant.of(options.effective_policy),
        planner=_replay_endpoint(host_record.data["planner"], replay, leaf=False),
        leaf=_replay_endpoint(host_record.data["leaf"], replay, leaf=True),
        catalog=host_record.catalog(),
        owns_catalog=True,
        replay=replay,
    )


@boundary("replay", failed_completion)
def replay(path: str | Path, *, trace: str | Path | None = None) -> Completion:
    """As ``areplay``, for synchronous callers."""
    return run_sync(areplay, path, trace=trace)


def _replay_endpoint(fields: Mapping[str, Any] | None, replay: Replay, *, leaf: bool) -> ModelEndpoint | None:
    if fields is None:
        return None
    provider = ReplayProvider(fields, replay, leaf=leaf)
    return ModelEndpoint(provider, provider.price)
