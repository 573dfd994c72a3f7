"""Execution of one tool call, from arguments to outcome.

    schema -> capability -> preflight -> authority -> execute -> result schema -> size

The projection that a model got has no influence here: a hidden tool may run, and a shown tool may be refused. Every
failure is an outcome with an error. Only a tool that could never run (its schema, its isolation) raises a
ConfigurationError, and registration finds that first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import anyio

from rlm.errors import RlmError, ToolError
from rlm.tools.cancellation import Cancellation
from rlm.tools.consent import obtain_consent
from rlm.tools.grant import Grant
from rlm.tools.isolated import ProcessWork
from rlm.tools.outcome import Consent, Failure, Status, ToolOutcome, failure_of
from rlm.tools.result import Finished, finish
from rlm.tools.tool import Place, Tool, is_async
from rlm.tools.work import LoopWork, ThreadWork, ToolWork, Workers

MAX_ARGUMENT_DEPTH = 64
MAX_ARGUMENT_BYTES = 16 * 1024 * 1024


async def execute(
    tool: Tool,
    arguments: Any,
    grant: Grant,
    *,
    deadline: float,
    workers: Workers | None = None,
    origin: Mapping[str, Any] | None = None,
) -> ToolOutcome:
    """Call a tool if the grant covers it, and return the outcome.

    Args:
        tool: the tool to call.
        arguments: a JSON object.
        grant: the capabilities, effects and authorities of the run.
        deadline: an absolute time in seconds, on ``anyio.current_time()``. The handler ends at
            ``min(deadline, start + time_limit)``, and the outcome follows within half a second.
        workers: the slots of the run.
        origin: the caller (run, depth, role), for the host's authority and approver.

    Raises:
        ConfigurationError: ``invalid_schema``, ``invalid_tool``, ``not_importable``.
    """
    tool.check()
    call = _ToolExecution(tool, grant, deadline, workers or Workers(), dict(origin or {}))
    try:
        call.arguments = _plain(tool, arguments)
        await call.admit()
        call.status = Status.FAILED
        return call.outcome(Status.OK, await call.perform())
    except (RlmError, Failure) as problem:
        return call.outcome(call.status, error=failure_of(problem))


class _ToolExecution:
    """The state of one call."""

    def __init__(self, tool: Tool, grant: Grant, deadline: float, workers: Workers, origin: dict[str, Any]) -> None:
        self.tool, self.grant, self.deadline, self.workers, self.origin = tool, grant, deadline, workers, origin
        self.started = anyio.current_time()
        self.status = Status.REFUSED
        self.arguments: Any = None
        self.consent: Consent | None = None
        self.abandoned = False

    def outcome(
        self, status: Status, result: Finished | None = None, error: dict[str, Any] | None = None
    ) -> ToolOutcome:
        """Return the outcome at this moment."""
        value, size, projection = result or Finished(None, 0, None)
        return ToolOutcome(
            tool=self.tool.id,
            status=status,
            value=value,
            error=error,
            arguments=self.arguments,
            seconds=anyio.current_time() - self.started,
            bytes=size,
            projection=projection,
            consent=self.consent,
            abandoned=self.abandoned,
        )

    # -- before -------------------------------------------------------------------------------------

    async def admit(self) -> None:
        """Run every check before the handler. Arguments that an approver edited are checked again from the start."""
        while True:
            self._check_arguments()
            self._check_capability()
            await self._preflight()
            edited = await obtain_consent(self)
            if edited is None:
                return
            self.arguments = _plain(self.tool, edited)

    def _check_arguments(self) -> None:
        problem = self.tool.arguments_check.problem(self.arguments)
        if problem is not None:
            detail = {"tool": self.tool.id, **problem.to_dict()}
            raise ToolError("invalid_arguments", f"{self.tool.id}: argument {problem}", detail)

    def _check_capability(self) -> None:
        if not self.grant.covers(self.tool):
            raise ToolError(
                "capability_missing",
                f"{self.tool.id}: the capability {self.tool.capability!r} is not granted",
                {"tool": self.tool.id, "capability": self.tool.capability},
            )

    async def _preflight(self) -> None:
        if self.tool.preflight is None:
            return
        try:
            reply = await self.ask(self.tool.preflight, json.loads(json.dumps(self.arguments)), stage="preflight")
        except RlmError:
            raise
        except Exception as problem:  # noqa: BLE001 - a host's code; it fails closed
            error = failure_of(problem, f"{self.tool.id}: preflight, ")
            raise ToolError("preflight_failed", error["message"], error["detail"]) from None
        if isinstance(reply, RlmError):
            raise reply
        if isinstance(reply, Mapping):
            raise Failure({"phase": "tool", "kind": "preflight_refused", "message": "refused", "detail": {}, **reply})
        if reply is not None:
            reason = f"preflight returned {type(reply).__name__}; return None or an error"
            raise ToolError("preflight_failed", f"{self.tool.id}: {reason}", {"tool": self.tool.id})

    async def ask(self, function: Callable[..., Any], *arguments: Any, stage: str) -> Any:
        """Return the reply of a host's callable, sync or async, before the deadline; its exception is raised."""
        name = f"{self.tool.id}, {stage}"
        self._check_deadline(stage)
        work: ToolWork
        if is_async(function):
            work = LoopWork(name, lambda: function(*arguments))
        else:
            work = ThreadWork(name, lambda: function(*arguments))
        await self._run(work, self.deadline, stage)
        reply = work.answer()
        if not hasattr(reply, "__await__"):
            return reply
        work = LoopWork(name, lambda: reply)
        await self._run(work, self.deadline, stage)
        return work.answer()

    def _check_deadline(self, stage: str) -> None:
        if anyio.current_time() >= self.deadline:
            raise self._timeout(stage, self.deadline)

    async def _run(self, work: ToolWork, until: float, stage: str) -> None:
        if not await self.workers.run(work, until):
            self.abandoned = not work.done.is_set()
            raise self._timeout(stage, until)

    def _timeout(self, stage: str, until: float) -> ToolError:
        limit = self.tool.time_limit if stage == "handler" and until < self.deadline else None
        limit_text = f"its time limit of {limit:g} s" if limit is not None else "the deadline"
        detail = {"tool": self.tool.id, "during": stage, "time_limit": limit}
        if self.abandoned:
            message = (
                f"{self.tool.id}: {stage} did not end at {limit_text}, nor after a request to stop; it is abandoned"
            )
            return ToolError("abandoned", message, detail)
        return ToolError("timeout", f"{self.tool.id}: {stage} did not end before {limit_text}", detail)

    # -- the handler --------------------------------------------------------------------------------

    async def perform(self) -> Finished:
        """Call the handler and return its checked result."""
        self._check_deadline("handler")
        place = self.tool.place
        work = self._work(place)
        if place is not Place.LOOP:
            self.status = Status.REFUSED
            if not await self.workers.slot(work, self.deadline):
                raise self._timeout("waiting for a slot", self.deadline)
            self.status = Status.FAILED
        until = min(self.deadline, anyio.current_time() + self.tool.time_limit)
        await self._run(work, until, "handler")
        raw = self._value(work)
        if place is not Place.LOOP:
            return raw  # type: ignore[no-any-return]
        work = ThreadWork(f"{self.tool.id}, result", lambda: finish(self.tool, raw))
        await self._run(work, until, "result")
        return work.value()  # type: ignore[no-any-return]

    def _work(self, place: Place) -> ToolWork:
        tool = self.tool
        arguments = json.loads(json.dumps(self.arguments))  # the handler may change its arguments
        if place is Place.PROCESS:
            return ProcessWork(tool.id, tool, arguments)
        cancellation = Cancellation()
        if place is Place.LOOP:
            return LoopWork(tool.id, lambda: tool.handler(**tool.bind(arguments, cancellation)))
        return ThreadWork(tool.id, lambda: _finish_in_thread(tool, arguments, cancellation), cancellation)

    def _value(self, work: ToolWork) -> Any:
        try:
            return work.value()
        except BaseException as problem:  # noqa: BLE001 - a handler may raise anything
            error = failure_of(problem, f"{self.tool.id}: ")
            raise Failure({**error, "detail": {"tool": self.tool.id, **error["detail"]}}) from None


def _finish_in_thread(tool: Tool, arguments: dict[str, Any], cancellation: Cancellation) -> Finished:
    return finish(tool, tool.handler(**tool.bind(arguments, cancellation)))


def _plain(tool: Tool, arguments: Any) -> Any:
    """Return a private copy of the arguments, which must be JSON.

    NaN and infinity pass only to a tool with ``preflight_enforces``: its preflight refuses them.
    """
    try:
        text = json.dumps(arguments, ensure_ascii=False, allow_nan=bool(tool.preflight_enforces))
        size = len(text.encode("utf-8"))
        copy = json.loads(text)
        depth = _depth(copy)
    except (TypeError, ValueError, RecursionError) as problem:
        raise ToolError(
            "invalid_arguments", f"{tool.id}: the arguments are not JSON data: {problem}", {"tool": tool.id, "path": ""}
        ) from None
    if size > MAX_ARGUMENT_BYTES or depth > MAX_ARGUMENT_DEPTH:
        sizes = f"{size:,} bytes, {depth} levels; at most {MAX_ARGUMENT_BYTES:,} and {MAX_ARGUMENT_DEPTH}"
        raise ToolError("invalid_arguments", f"{tool.id}: arguments of {sizes}", {"tool": tool.id, "path": ""})
    return copy


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max((_depth(item) for item in value.values()), default=0)
    if isinstance(value, list):
        return 1 + max((_depth(item) for item in value), default=0)
    return 0
