"""Record the host's settings in a trace, and restore them for a replay without the host's code.

Handlers, providers and callables are not recorded. A replay takes their replies and results from the trace.
"""

from __future__ import annotations

import datetime
import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import anyio.to_thread

from rlm import __version__
from rlm.catalog.catalog import Catalog
from rlm.context.bodies import FileBody, MemoryBody, pieces
from rlm.context.context import Context, ContextKind, Document
from rlm.context.limits import Guard
from rlm.errors import ConfigurationError, EngineError, RlmError, exception_text
from rlm.model.base import plain
from rlm.model.budget import Budget
from rlm.model.policy import Policy
from rlm.model.turn import Preselected
from rlm.model.unit import Trust, Unit
from rlm.tools.tool import Tool
from rlm.trace.writer import FORMAT, TRACE_PROBLEMS, Record, Trace


class RecordedRun(Protocol):
    """The fields of ``rlm.agent.run.Run`` that a trace records."""

    trace: Trace
    options: Any
    catalog: Any
    toolbox: Any
    planner: Any
    leaf: Any
    extra_pinned: Any
    today: datetime.date
    id: str

    @property
    def sensor(self) -> Any: ...


MOST_COPIED = 8 * 1024 * 1024
"""Bytes of the largest file that is copied into the store. A larger file is named by path and digest, and must still
exist for a replay."""

COMPILE_OPTIONS = ("signals", "sensors", "needs", "history", "admitted", "retained")
"""Options of ``compile`` that are plain JSON data."""


def record_run(run: RecordedRun, query: str, contexts: Iterable[str], plan: Mapping[str, Any] | None) -> None:
    """Write the first event of a trace: everything known before a context is read or a provider opened.

    Args:
        contexts: the names of the contexts.

    Raises: RunError ``trace_failed``.
    """
    trace = run.trace
    if not trace.active:
        return
    options = run.options
    host = {
        "query": query,
        "contexts": sorted(contexts),
        "plan": plan,
        "policy": _policy_row(options.effective_policy),
        "child_policy": None if options.child_policy is None else _policy_row(options.child_policy),
        "budget": options.budget.model_dump(exclude_unset=True),
        "schema": None if options.output_schema is None else dict(options.output_schema),
        "needs": options.needs,
        "sensor": run.sensor,
        "compile": {key: plain(value) for key, value in options.compile_options.items() if key in COMPILE_OPTIONS},
        "now": run.today.isoformat(),
        "inline_limit": options.inline_limit,
        "observe_limit": options.observe_limit,
        "loop": options.loop,
        "messages": [dict(message) for message in options.messages],
        "shown": dict(options.shown),
        "max_repairs": options.max_repairs,
        "temperature": options.temperature,
        "seed": options.seed,
        "standing": [unit.model_dump(mode="json") for unit in run.extra_pinned],
        "catalog": [unit.model_dump(mode="json") for unit in run.catalog] if trace.keeps_bodies else [],
        "tools": [_tool_row(tool) for tool in run.toolbox.registered],
        "bound": [_tool_row(tool) for tool in run.toolbox.bound],
        "planner": _endpoint_row(run.planner),
        "leaf": _endpoint_row(run.leaf),
    }
    trace.event("run", format=FORMAT, version=__version__, run=run.id, query=query[:200], host=trace.body(host))


async def record_contexts(trace: Trace, contexts: Mapping[str, Context]) -> None:
    """Record the contexts, by hash. A thread reads them; it stops if the caller is cancelled.

    Raises: ContextError ``unreadable``, RunError ``trace_failed``.
    """
    if not trace.active or not contexts:
        return
    guard = Guard(math.inf)
    try:
        read = partial(_context_rows, trace, contexts, guard)
        documents = await anyio.to_thread.run_sync(read, abandon_on_cancel=True)
    finally:
        guard.end()
    trace.event("contexts", documents=trace.body(documents))


def _policy_row(policy: Policy) -> dict[str, Any]:
    fields: dict[str, Any] = plain(policy)
    data = {name: fields[name] for name in policy.model_fields_set}
    return {**data, "rules": str(Path(policy.rules).absolute())} if policy.rules is not None else data


def _endpoint_row(endpoint: Any) -> dict[str, Any] | None:
    if endpoint is None:
        return None
    provider = endpoint.provider
    return {
        "name": provider.name,
        "model": provider.model,
        "wire": provider.wire,
        "enforces_schema": provider.enforces_schema,
        "price": None if endpoint.price is None else endpoint.price.model_dump(),
    }


def _tool_row(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "server": tool.server,
        "description": tool.description,
        "schema": tool.schema,
        "effect": tool.effect.value,
        "capability": tool.capability,
        "trust": str(tool.trust),
        "preflight_enforces": tool.preflight_enforces,
    }


def _context_rows(trace: Trace, contexts: Mapping[str, Context], guard: Guard) -> dict[str, Any]:
    return {name: _context_row(trace, context, guard) for name, context in contexts.items()}


def _context_row(trace: Trace, context: Context, guard: Guard) -> dict[str, Any]:
    documents = []
    for member in context.members:
        body = member.body
        row: dict[str, Any] = {"name": member.name, "bytes": body.size}
        if not isinstance(body, FileBody) or body.size <= MOST_COPIED:
            row["digest"] = body.digest()
            trace.pieces(row["digest"], pieces(body))
        else:
            row["path"] = str(body.path)
            row["digest"] = _digest(body, guard) if trace.keeps_bodies else None
        documents.append(row)
    return {"kind": context.kind.value, "replaced": context.replaced, "documents": documents}


def _digest(body: FileBody, guard: Guard) -> str:
    """Return the SHA-256 of a large file. Raises: OutOfTime after the caller was cancelled."""
    digest = hashlib.sha256()
    for piece in pieces(body):
        guard.check()
        digest.update(piece)
    return digest.hexdigest()


# -- restoring ----------------------------------------------------------------------------------------


@contextmanager
def trace_errors(path: str | Path) -> Iterator[None]:
    """Convert errors from a damaged body of a trace to ConfigurationError ``bad_trace``.

    Raises: ConfigurationError of one of the kinds in ``TRACE_PROBLEMS``, or ``wrong_suffix``; EngineError.
    """
    name = Path(path).name
    try:
        yield
    except OSError as problem:
        reason = problem.strerror or exception_text(problem)
        raise ConfigurationError("unreadable_trace", f"{name} cannot be read: {reason}") from None
    except EngineError:
        raise
    except RlmError as problem:
        if problem.kind in TRACE_PROBLEMS or problem.kind == "wrong_suffix":
            raise
        raise _not_recorded(name, problem) from None
    except MemoryError:
        raise
    except Exception as problem:  # noqa: BLE001 - a body may hold JSON of any shape
        raise _not_recorded(name, problem) from None


def _not_recorded(name: str, problem: Exception) -> ConfigurationError:
    """Return the error for a first event with damaged bodies."""
    what = f"{name}, line 1: the body of 'host', or one that it leads to, is not as recorded: {exception_text(problem)}"
    return ConfigurationError("bad_trace", what, {"line": 1})


class HostRecord:
    """The host's settings from a trace."""

    def __init__(self, record: Record) -> None:
        self.data: dict[str, Any] = record.value(record.events[0]["host"])
        self._record = record

    def contexts(self) -> dict[str, Context]:
        """Return the contexts by name.

        Raises: ConfigurationError ``missing_body``, ``unreadable_file``; ``unfinished_trace`` for a run that ended
        before its contexts were recorded.
        """
        if not self.data["contexts"]:
            return {}
        for row in self._record.of("contexts"):
            return {name: self._context(fields) for name, fields in self._record.value(row["documents"]).items()}
        ended = "this run ended before its contexts were recorded: it can be looked at, not done again"
        raise ConfigurationError("unfinished_trace", f"{self._record.path.name}: {ended}")

    def catalog(self) -> Catalog:
        """Return a new catalog with the recorded units; the caller destroys it."""
        units = [Unit(**fields) for fields in self.data["catalog"]]
        catalog = Catalog()
        try:
            catalog.add(*units, allow_missing=True)
        except BaseException:
            catalog.destroy()
            raise
        return catalog

    def extra_pinned(self) -> tuple[Unit, ...]:
        """Return the units that the host pinned for every request."""
        return tuple(Unit(**fields) for fields in self.data["standing"])

    def tools(self, kind: str) -> tuple[Tool, ...]:
        """Return the ``tools`` or the ``bound`` tools from their recorded fields; a call of one raises
        AssertionError."""
        return tuple(
            Tool(handler=_not_executed, preflight=_not_executed, **{**row, "trust": Trust(row["trust"])})
            for row in self.data[kind]
        )

    def options(self) -> dict[str, Any]:
        """Return the recorded options of the completion."""
        data = self.data
        child = data["child_policy"]
        return {
            "policy": Policy(**data["policy"]),
            "child_policy": None if child is None else Policy(**child),
            "budget": Budget(**data["budget"]),
            "schema": data["schema"],
            "needs": tuple(data["needs"]),
            "prompt_compile_options": {**data["compile"], "admitted": _preselected(data["compile"])},
            "now": data.get("now"),
            "inline_limit": data.get("inline_limit"),
            "observe_limit": data.get("observe_limit"),
            "loop": data.get("loop", "plans"),
            "messages": tuple(data.get("messages", ())),
            "shown": data.get("shown", {}),
            "max_repairs": data["max_repairs"],
            "temperature": data["temperature"],
            "seed": data["seed"],
        }

    def _context(self, row: Mapping[str, Any]) -> Context:
        documents = []
        for each in row["documents"]:
            body = _file_body(each) if "path" in each else MemoryBody(self._record.body(each["digest"]))
            documents.append(Document(each["name"], body))
        return Context(ContextKind(row["kind"]), tuple(documents), row["replaced"])


def _file_body(row: Mapping[str, Any]) -> FileBody:
    """Return the body of a large file after a check of its digest.

    Raises: ConfigurationError ``unreadable_file``, ``changed_body``.
    """
    found = FileBody.at(Path(row["path"]))
    body = replace(found, size=row["bytes"])  # later appended bytes are not part of the body
    if found.size < body.size or body.digest() != row["digest"]:
        what = f"{body.path} has changed since it was recorded"
        raise ConfigurationError("changed_body", what, {"file": str(body.path)})
    return body


def _preselected(options: Mapping[str, Any]) -> tuple[Preselected, ...]:
    return tuple(Preselected(**row) for row in options.get("admitted", ()))


def _not_executed(**_: Any) -> Any:
    raise AssertionError("a tool of a replay is not executed")
