"""One tool call, from arguments to outcome.

    schema -> capability -> preflight -> authority -> execute -> result schema -> size

Nothing here looks at what a model was shown: a tool that is hidden runs, and one that is shown is refused like any
other. Every failure is an outcome with an error; only a tool that could never run (its schema, its isolation) raises
a ConfigurationError, and that is found when it is registered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import anyio

from rlm.errors import RlmError, ToolError
from rlm.tools.cancellation import Cancellation
from rlm.tools.consent import consented
from rlm.tools.failure import Failure, failure_of
from rlm.tools.grant import Grant
from rlm.tools.isolated import ProcessWork
from rlm.tools.outcome import Consent, Status, ToolOutcome
from rlm.tools.result import Finished, finished
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
    """Call a tool, if the grant lets it.

    Args:
        arguments: JSON data; an object.
        deadline: absolute, on ``anyio.current_time()``. The handler ends at ``min(deadline, start + time_limit)``;
            the outcome is there within half a second after it.
        workers: the slots of the run.
        origin: what the host's authority and approver are told of where the call comes from.

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
        """The outcome as of now."""
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
        """Everything before the handler; arguments that an approver edited begin anew."""
        while True:
            self._check_arguments()
            self._check_capability()
            await self._preflight()
            edited = await consented(self)
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
            said = await self.ask(self.tool.preflight, json.loads(json.dumps(self.arguments)), what="preflight")
        except RlmError:
            raise
        except Exception as problem:  # noqa: BLE001 - a host's code; it fails closed
            error = failure_of(problem, f"{self.tool.id}: preflight, ")
            raise ToolError("preflight_failed", error["message"], error["detail"]) from None
        if isinstance(said, RlmError):
            raise said
        if isinstance(said, Mapping):
            raise Failure({"phase": "tool", "kind": "preflight_refused", "message": "refused", "detail": {}, **said})
        if said is not None:
            what = f"preflight gave {type(said).__name__}; None or an error is wanted"
            raise ToolError("preflight_failed", f"{self.tool.id}: {what}", {"tool": self.tool.id})

    async def ask(self, function: Callable[..., Any], *arguments: Any, what: str) -> Any:
        """What a host's callable says, sync or async, before the deadline. Raises: what it raises."""
        name = f"{self.tool.id}, {what}"
        self._in_time(what)
        work: ToolWork
        if is_async(function):
            work = LoopWork(name, lambda: function(*arguments))
        else:
            work = ThreadWork(name, lambda: function(*arguments))
        await self._run(work, self.deadline, what)
        said = work.answer()
        if not hasattr(said, "__await__"):
            return said
        work = LoopWork(name, lambda: said)
        await self._run(work, self.deadline, what)
        return work.answer()

    def _in_time(self, what: str) -> None:
        if anyio.current_time() >= self.deadline:
            raise self._timeout(what, self.deadline)

    async def _run(self, work: ToolWork, until: float, what: str) -> None:
        if not await self.workers.run(work, until):
            self.abandoned = not work.done.is_set()
            raise self._timeout(what, until)

    def _timeout(self, what: str, until: float) -> ToolError:
        limit = self.tool.time_limit if what == "handler" and until < self.deadline else None
        said = f"its time limit of {limit:g} s" if limit is not None else "the deadline"
        detail = {"tool": self.tool.id, "during": what, "time_limit": limit}
        if self.abandoned:
            message = f"{self.tool.id}: {what} did not end at {said}, nor when it was told to; it is left behind"
            return ToolError("abandoned", message, detail)
        return ToolError("timeout", f"{self.tool.id}: {what} did not end before {said}", detail)

    # -- the handler --------------------------------------------------------------------------------

    async def perform(self) -> Finished:
        """Call the handler, and finish what it gives."""
        self._in_time("handler")
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
        work = ThreadWork(f"{self.tool.id}, result", lambda: finished(self.tool, raw))
        await self._run(work, until, "result")
        return work.value()  # type: ignore[no-any-return]

    def _work(self, place: Place) -> ToolWork:
        tool = self.tool
        arguments = json.loads(json.dumps(self.arguments))  # the handler may change what it gets
        if place is Place.PROCESS:
            return ProcessWork(tool.id, tool, arguments)
        cancellation = Cancellation()
        if place is Place.LOOP:
            return LoopWork(tool.id, lambda: tool.handler(**tool.bind(arguments, cancellation)))
        return ThreadWork(tool.id, lambda: _finished_in_thread(tool, arguments, cancellation), cancellation)

    def _value(self, work: ToolWork) -> Any:
        try:
            return work.value()
        except BaseException as problem:  # noqa: BLE001 - whatever a handler raised
            error = failure_of(problem, f"{self.tool.id}: ")
            raise Failure({**error, "detail": {"tool": self.tool.id, **error["detail"]}}) from None


def _finished_in_thread(tool: Tool, arguments: dict[str, Any], cancellation: Cancellation) -> Finished:
    return finished(tool, tool.handler(**tool.bind(arguments, cancellation)))


def _plain(tool: Tool, arguments: Any) -> Any:
    """A private copy of arguments, which must be JSON; a number that is none is for a preflight that asked for it."""
    try:
        text = json.dumps(arguments, ensure_ascii=False, allow_nan=bool(tool.preflight_enforces))
        size = len(text.encode("utf-8"))
        copy = json.loads(text)
        depth = _depth(copy)
    except (TypeError, ValueError, RecursionError) as problem:
        raise ToolError(
            "invalid_arguments", f"{tool.id}: the arguments are no JSON data: {problem}", {"tool": tool.id, "path": ""}
        ) from None
    if size > MAX_ARGUMENT_BYTES or depth > MAX_ARGUMENT_DEPTH:
        what = f"{size:,} bytes, {depth} levels; at most {MAX_ARGUMENT_BYTES:,} and {MAX_ARGUMENT_DEPTH}"
        raise ToolError("invalid_arguments", f"{tool.id}: arguments of {what}", {"tool": tool.id, "path": ""})
    return copy


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max((_depth(item) for item in value.values()), default=0)
    if isinstance(value, list):
        return 1 + max((_depth(item) for item in value), default=0)
    return 0
