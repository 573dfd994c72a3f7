"""What a trace keeps of the host's word, so that the run can be done again without the host's code.

Handlers, providers and callables stay where they are: a replay needs what they said, not what they are.
"""

from __future__ import annotations

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
from rlm.trace.writer import FORMAT, READING, Record, Trace


class RecordedRun(Protocol):
    """What of a run its trace records: ``rlm.agent.run.Run``, seen from this room."""

    trace: Trace
    options: Any
    catalog: Any
    toolbox: Any
    planner: Any
    leaf: Any
    extra_pinned: Any
    id: str

    @property
    def sensor(self) -> Any: ...


MOST_COPIED = 8 * 1024 * 1024
"""Bytes of a file that are copied into the store; a larger one is named by path and digest, and must be there."""

COMPILE_OPTIONS = ("signals", "sensors", "needs", "history", "admitted", "retained")
"""Options of ``compile`` that are JSON data as they are."""


def record_run(run: RecordedRun, query: str, contexts: Iterable[str], plan: Mapping[str, Any] | None) -> None:
    """The first event of a trace: what is known before anything is read or opened. ``contexts`` are their names.

    Raises: RunError ``trace_failed``.
    """
    trace = run.trace
    if not trace.wanted:
        return
    options = run.options
    host = {
        "query": query,
        "contexts": sorted(contexts),
        "plan": plan,
        "policy": _policy(options.effective_policy),
        "child_policy": None if options.child_policy is None else _policy(options.child_policy),
        "budget": options.budget.model_dump(exclude_unset=True),
        "schema": None if options.output_schema is None else dict(options.output_schema),
        "needs": options.needs,
        "sensor": run.sensor,
        "compile": {key: plain(value) for key, value in options.compile_options.items() if key in COMPILE_OPTIONS},
        "max_repairs": options.max_repairs,
        "temperature": options.temperature,
        "seed": options.seed,
        "standing": [unit.model_dump(mode="json") for unit in run.extra_pinned],
        "catalog": [unit.model_dump(mode="json") for unit in run.catalog] if trace.kept else [],
        "tools": [_tool(tool) for tool in run.toolbox.registered],
        "bound": [_tool(tool) for tool in run.toolbox.bound],
        "planner": _endpoint_row(run.planner),
        "leaf": _endpoint_row(run.leaf),
    }
    trace.event("run", format=FORMAT, version=__version__, run=run.id, query=query[:200], host=trace.body(host))


async def record_contexts(trace: Trace, contexts: Mapping[str, Context]) -> None:
    """The contexts, by hash. They are read in a thread, as long as somebody waits.

    Raises: ContextError ``unreadable``, RunError ``trace_failed``.
    """
    if not trace.wanted or not contexts:
        return
    guard = Guard(math.inf)
    try:
        documents = await anyio.to_thread.run_sync(partial(_all_kept, trace, contexts, guard), abandon_on_cancel=True)
    finally:
        guard.end()
    trace.event("contexts", documents=trace.body(documents))


def _policy(policy: Policy) -> dict[str, Any]:
    fields: dict[str, Any] = plain(policy)
    said = {name: fields[name] for name in policy.model_fields_set}
    return {**said, "rules": str(Path(policy.rules).absolute())} if policy.rules is not None else said


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


def _tool(tool: Tool) -> dict[str, Any]:
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


def _all_kept(trace: Trace, contexts: Mapping[str, Context], guard: Guard) -> dict[str, Any]:
    return {name: _kept(trace, context, guard) for name, context in contexts.items()}


def _kept(trace: Trace, context: Context, guard: Guard) -> dict[str, Any]:
    documents = []
    for member in context.members:
        body = member.body
        row: dict[str, Any] = {"name": member.name, "bytes": body.size}
        if not isinstance(body, FileBody) or body.size <= MOST_COPIED:
            row["digest"] = body.digest()
            trace.pieces(row["digest"], pieces(body))
        else:
            row["path"] = str(body.path)
            row["digest"] = _digest(body, guard) if trace.kept else None
        documents.append(row)
    return {"kind": context.kind.value, "replaced": context.replaced, "documents": documents}


def _digest(body: FileBody, guard: Guard) -> str:
    """SHA-256 of a large file. Raises: OutOfTime where nobody waits any more."""
    digest = hashlib.sha256()
    for piece in pieces(body):
        guard.check()
        digest.update(piece)
    return digest.hexdigest()


# -- the other way ------------------------------------------------------------------------------------


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Read a recorded run: what its bodies do not hold as they should is ``bad_trace``.

    Raises: ConfigurationError of one of the kinds in ``READING``, or ``wrong_suffix``; EngineError.
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
        if problem.kind in READING or problem.kind == "wrong_suffix":
            raise
        raise _not_recorded(name, problem) from None
    except MemoryError:
        raise
    except Exception as problem:  # noqa: BLE001 - JSON of any shape may stand in a body
        raise _not_recorded(name, problem) from None


def _not_recorded(name: str, problem: Exception) -> ConfigurationError:
    """What the first event refers to is not the host's word."""
    what = f"{name}, line 1: the body of 'host', or one that it leads to, is not as recorded: {exception_text(problem)}"
    return ConfigurationError("bad_trace", what, {"line": 1})


class Host:
    """The host's word, from a trace."""

    def __init__(self, record: Record) -> None:
        self.said: dict[str, Any] = record.value(record.events[0]["host"])
        self._record = record

    def contexts(self) -> dict[str, Context]:
        """The contexts by name. Raises: ConfigurationError ``missing_body``, ``unreadable_file``; ``unfinished_trace``
        where the run ended while they were being recorded."""
        if not self.said["contexts"]:
            return {}
        for row in self._record.of("contexts"):
            return {name: self._context(said) for name, said in self._record.value(row["documents"]).items()}
        ended = "this run ended before its contexts were recorded: it can be looked at, not done again"
        raise ConfigurationError("unfinished_trace", f"{self._record.path.name}: {ended}")

    def catalog(self) -> Catalog:
        """A catalog with the units that there were; the caller destroys it."""
        units = [Unit(**fields) for fields in self.said["catalog"]]
        catalog = Catalog()
        try:
            catalog.add(*units, allow_missing=True)
        except BaseException:
            catalog.destroy()
            raise
        return catalog

    def extra_pinned(self) -> tuple[Unit, ...]:
        """The units that the host pinned for every request."""
        return tuple(Unit(**fields) for fields in self.said["standing"])

    def tools(self, kind: str) -> tuple[Tool, ...]:
        """The ``tools`` or the ``bound`` ones, as far as they are said; calling one is a mistake."""
        return tuple(
            Tool(handler=_never, preflight=_never, **{**row, "trust": Trust(row["trust"])}) for row in self.said[kind]
        )

    def options(self) -> dict[str, Any]:
        """Options of a completion."""
        said = self.said
        child = said["child_policy"]
        return {
            "policy": Policy(**said["policy"]),
            "child_policy": None if child is None else Policy(**child),
            "budget": Budget(**said["budget"]),
            "schema": said["schema"],
            "needs": tuple(said["needs"]),
            "prompt_compile_options": {**said["compile"], "admitted": _admitted(said["compile"])},
            "max_repairs": said["max_repairs"],
            "temperature": said["temperature"],
            "seed": said["seed"],
        }

    def _context(self, row: Mapping[str, Any]) -> Context:
        documents = []
        for each in row["documents"]:
            body = _unchanged(each) if "path" in each else MemoryBody(self._record.body(each["digest"]))
            documents.append(Document(each["name"], body))
        return Context(ContextKind(row["kind"]), tuple(documents), row["replaced"])


def _unchanged(row: Mapping[str, Any]) -> FileBody:
    """A large file, if it is as it was. Raises: ConfigurationError ``unreadable_file``, ``changed_body``."""
    found = FileBody.at(Path(row["path"]))
    body = replace(found, size=row["bytes"])  # what was appended later does not belong to it
    if found.size < body.size or body.digest() != row["digest"]:
        raise ConfigurationError("changed_body", f"{body.path} is not the file that it was", {"file": str(body.path)})
    return body


def _admitted(options: Mapping[str, Any]) -> tuple[Preselected, ...]:
    return tuple(Preselected(**row) for row in options.get("admitted", ()))


def _never(**_: Any) -> Any:
    raise AssertionError("a tool of a replay is not executed")
