"""Complete: a question, a context that no prompt holds, and an answer. One function, whoever asks.

What can be wrong with the host's word is raised before anything is sent; what happens to a run is returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from rlm.agent.options import Options
from rlm.agent.prepared_run import PreparedRun, checked_query, prepare
from rlm.agent.root import failed_completion, run_prepared
from rlm.agent.run import ModelEndpoint
from rlm.agent.toolbox import Toolbox
from rlm.boundary import boundary
from rlm.model.arguments import checked_path
from rlm.model.plan import PlanError
from rlm.sending.completion import Completion
from rlm.sync import run_sync
from rlm.tools.grant import Grant
from rlm.trace.host import Host, reading
from rlm.trace.replay import Replay, ReplayProvider, ReplayRetry, ended_alike
from rlm.trace.writer import Record


@boundary("acomplete", failed_completion)
async def acomplete(query: str, context: Any = None, **options: Any) -> Completion:
    """Answer ``query`` by plans that a model writes and the runtime checks and runs.

    Args:
        query: the task, in the user's own words.
        context: what it is about: ``rlm.Context``, a text, a list, a path, a mapping of names to contexts. No
            prompt holds it; plans look into it.
        options: see ``rlm.agent.options.Options``.

    Returns: a Completion, whatever happened to the run: also where something inside raised.

    Raises: ConfigurationError and others of configuration, before any request was sent.
    """
    checked_query(query)
    return await run_prepared(prepare(query, context, Options.of(**options), planned=False), None)


@boundary("complete", failed_completion)
def complete(query: str, context: Any = None, **options: Any) -> Completion:
    """As ``acomplete``, for callers that wait; it works inside a running event loop (a notebook) too."""
    return run_sync(acomplete, query, context, **options)


@boundary("arun_plan", failed_completion)
async def arun_plan(plan: Mapping[str, Any], context: Any = None, *, query: str = "", **options: Any) -> Completion:
    """Run a plan that the host wrote. It may call every registered tool and every binding, shown or not.

    Raises: PlanError where it is no valid plan; ConfigurationError.
    """
    if plan is None:
        raise PlanError("wrong_type", 'a plan is wanted: {"steps": [...]}', {"path": ""})
    return await run_prepared(prepare(query, context, Options.of(**options), planned=True), plan)


@boundary("run_plan", failed_completion)
def run_plan(plan: Mapping[str, Any], context: Any = None, *, query: str = "", **options: Any) -> Completion:
    """As ``arun_plan``, for callers that wait."""
    return run_sync(arun_plan, plan, context, query=query, **options)


# -- again --------------------------------------------------------------------------------------------


@boundary("areplay", failed_completion)
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
        host = _recorded_run(said, replay, trace)
        plan = said.said["plan"]
    return ended_alike(record, await run_prepared(host, plan))


def _recorded_run(said: Host, replay: Replay, trace: str | Path | None) -> PreparedRun:
    """The host's word of a recorded run."""
    then = {"retry": ReplayRetry(replay=replay), "cancel": replay.interruption}
    options = Options.of(**said.options(), model="local", trace=trace, **then)
    return PreparedRun(
        query=said.said["query"],
        contexts=said.contexts(),
        options=options,
        toolbox=Toolbox(said.tools("tools"), {tool.name: tool for tool in said.tools("bound")}),
        extra_pinned=said.extra_pinned(),
        grant=Grant.of(options.effective_policy),
        planner=_replaying(said.said["planner"], replay, leaf=False),
        leaf=_replaying(said.said["leaf"], replay, leaf=True),
        catalog=said.catalog(),
        owns_catalog=True,
        replay=replay,
    )


@boundary("replay", failed_completion)
def replay(path: str | Path, *, trace: str | Path | None = None) -> Completion:
    """As ``areplay``, for callers that wait."""
    return run_sync(areplay, path, trace=trace)


def _replaying(said: Mapping[str, Any] | None, replay: Replay, *, leaf: bool) -> ModelEndpoint | None:
    if said is None:
        return None
    provider = ReplayProvider(said, replay, leaf=leaf)
    return ModelEndpoint(provider, provider.price)
