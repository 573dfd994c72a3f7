"""One connection on its own event loop: it connects, follows changes, reconnects, and sends requests.

All of this code runs on that loop. Other threads read ``listing``, ``connected`` and ``problem``: these values are
replaced and never changed in place.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

import anyio
import mcp_types as types
import pydantic
from mcp.shared.exceptions import MCPError

from rlm.errors import ToolError, did_you_mean, valid_text
from rlm.model.message import Message
from rlm.tools.mcp.config import MCPLimits, ServerConfig
from rlm.tools.mcp.content import ResourceContent, contents_of, messages_of, reason_of, value_of
from rlm.tools.mcp.listing import ServerListing, ServerTool
from rlm.tools.mcp.rescue import FORBIDDEN, REFUSED, TOO_LARGE, UNAUTHORIZED, UNREADABLE
from rlm.tools.mcp.session import ServerSession, is_broken_off, is_fault, is_safe_again, line_of, opened
from rlm.tools.result import RESULT_SECONDS
from rlm.tools.schema import check_of
from rlm.web.logs import secrets_in_logs
from rlm.web.secrets import Secrets

T = TypeVar("T")

FIRST_WAIT, LONGEST_WAIT = 0.1, 30.0
STABLE_SECONDS = 10.0
"""A connection that lasted this long starts a new series of attempts when it breaks."""

LISTEN_SECONDS = 1.0
"""Seconds that the first lists wait for a server to acknowledge that it reports changes."""

LEAST_PAUSE = 0.1
"""Least seconds between two reads of a changed list."""

MAX_REASON = 800

_log = logging.getLogger("rlm.mcp")


def _path_hint(command: str) -> str:
    """Return a remedy for a command that was not found; empty for a path."""
    if " " in command:
        return "; write one program as the command, and its arguments in 'args'"
    return "" if "/" in command or not command else "; install it, or write its whole path"


class Connection:
    """One connection, from ``main`` to its end.

    ``keep_trying``: whether to try again if the first attempt fails.

    Args:
        name: the host's name for the server.
        server: the configuration of the server.
        limits: bounds of time and size.
        listing: the latest listing of the server.
        on_change: called after each change of ``listing`` or ``connected``.
    """

    def __init__(
        self, name: str, server: ServerConfig, limits: MCPLimits, listing: ServerListing, on_change: Callable[[], None]
    ) -> None:
        self.name, self.limits = name, limits
        self.listing = listing
        self.connected = False
        self.problem = ""
        self.closing = False
        self.keep_trying = False
        self.opening: Future[None] = Future()
        self.opening.set_running_or_notify_cancel()  # one waiting caller cannot cancel it for the others
        self._server = server
        self._secrets = Secrets(server.secrets)
        self._on_change = on_change
        self._reported_state = (False, listing)
        self._session: ServerSession | None = None
        self._scope: anyio.CancelScope | None = None
        self._changed: anyio.Event
        self._kick: anyio.Event

    # -- requests ----------------------------------------------------------------------------------

    async def call(self, tool: ServerTool, arguments: Mapping[str, Any], attempts: int) -> Any:
        result = await self.call_whole(tool, arguments, attempts)
        if result.is_error:
            reason = self._clean(reason_of(result)) or "it gave no reason"
            raise self._error("tool_failed", f"{tool.name}: {reason}", tool=tool.unit.id)
        return value_of(result)

    async def call_whole(
        self,
        tool: ServerTool,
        arguments: Mapping[str, Any],
        attempts: int,
        meta: Mapping[str, Any] | None = None,
        progress: Any = None,
    ) -> types.CallToolResult:
        """Call a tool and return the whole result; one with ``is_error`` too."""

        async def ask(session: ServerSession) -> Any:
            self._check_current(tool)
            return await session.call(tool.name, arguments, meta, progress)

        result = await self.request(ask, attempts)
        if not isinstance(result, types.CallToolResult):
            raise self._error("input_required", f"{tool.name} asks the user for input, which no run can answer")
        if tool.output_schema is not None and not result.is_error:
            self._check_result(tool, result.structured_content)
        return result

    def _check_current(self, tool: ServerTool) -> None:
        now = self.listing.tools.get(tool.name)
        if now is None:
            raise self._error("tool_removed", f"it no longer offers {tool.name}", tool=tool.unit.id)
        if now.digest != tool.digest:
            reason = f"it changed {tool.name} since this run began; the approval was for the earlier version"
            raise self._error("tool_changed", reason, tool=tool.unit.id)

    def _check_result(self, tool: ServerTool, value: Any) -> None:
        problem = check_of(tool.output_schema, tool.unit.id).problem(value, RESULT_SECONDS)
        if problem is not None:
            detail = {"tool": tool.unit.id, **problem.to_dict()}
            raise ToolError("invalid_result", f"{tool.unit.id}: result, {problem}", detail)

    async def prompt(self, name: str, arguments: dict[str, str]) -> tuple[Message, ...]:
        prompt = self.listing.prompts.get(name)
        if prompt is None:
            hint = did_you_mean(name, self.listing.prompts)
            raise self._error("unknown_prompt", f"it offers no prompt {name!r}{hint}", prompt=name)
        missing = [each for each in prompt.required if each not in arguments]
        unknown = [each for each in arguments if each not in prompt.arguments]
        if missing or unknown:
            reason = f"{missing[0]!r} is missing" if missing else f"there is no {unknown[0]!r}"
            hint = did_you_mean(unknown[0], prompt.arguments) if unknown and not missing else ""
            raise self._error("invalid_arguments", f"prompt {name}: {reason}{hint}", prompt=name)
        result = await self.request(lambda session: session.prompt(name, arguments), 2)
        if not isinstance(result, types.GetPromptResult):
            raise self._error("input_required", f"prompt {name} asks the user for input")
        return messages_of(result, self.limits.max_content_bytes, prompt.unit.id)

    async def read(self, name: str) -> tuple[ResourceContent, ...]:
        known = self.listing.resources.get(name)
        if known is None and "://" not in name:
            hint = did_you_mean(name, self.listing.resources)
            raise self._error("unknown_resource", f"it offers no resource {name!r}{hint}", resource=name)
        uri = known.uri if known is not None else name
        result = await self.request(lambda session: session.read(uri), 2)
        if not isinstance(result, types.ReadResourceResult):
            raise self._error("input_required", f"resource {name} asks the user for input")
        return contents_of(result, self.limits.max_content_bytes, known.unit.id if known is not None else uri)

    async def request(self, ask: Callable[[ServerSession], Awaitable[T]], attempts: int) -> T:
        """Send a request and return its answer.

        The request is repeated if the server certainly did not get it, or if ``attempts`` allow it.
        """
        tried = 0
        while True:
            session = await self._open_session()
            tried += 1
            try:
                with secrets_in_logs(self._secrets):
                    return await ask(session)
            except MCPError as problem:
                if not await self._is_fault(session, problem):
                    raise self._error_of(problem) from None
                if tried >= attempts + (2 if is_safe_again(problem) else 0):
                    cause = session.line.trouble or problem.message
                    reason = f"the connection broke during the request, and the server may have done the work: {cause}"
                    raise self._error("connection_lost", self._clean(reason)) from None
                await self._wait_for_end(session)
            except pydantic.ValidationError:
                raise self._error("invalid_result", "its answer is not valid in the protocol") from None

    async def _is_fault(self, session: ServerSession, problem: Any) -> bool:
        """Return whether the connection failed. Otherwise the error is the server's answer."""
        if not is_fault(problem):
            return False
        if session.over.is_set():
            return True
        there = session.is_process or await session.answers()
        return is_broken_off(problem) or not there

    def _error_of(self, problem: Any) -> ToolError:
        """Return the ToolError for a server's error answer."""
        if problem.code == TOO_LARGE or problem.message.startswith("SSE stream failed: Server-sent event exceeded"):
            limit = self.limits.max_message_bytes
            return self._error("result_too_large", f"its answer has more than {limit:,} bytes", limit=limit)
        if problem.code == types.REQUEST_TIMEOUT:
            return self._error("timeout", "it did not answer in time")
        message = self._clean(problem.message)
        if problem.code in (UNAUTHORIZED, FORBIDDEN):
            kind, status = ("unauthorized", 401) if problem.code == UNAUTHORIZED else ("forbidden", 403)
            remedy = "set valid credentials in its headers" if status == 401 else "its credentials do not allow this"
            return self._error(kind, f"{message}; {remedy}", status=status)
        if problem.code == UNREADABLE:
            return self._error("invalid_result", message)
        if problem.code == REFUSED:
            return self._error("mcp_error", message)
        return self._error("mcp_error", f"it answered with error {problem.code}: {message}", code=problem.code)

    async def _open_session(self) -> ServerSession:
        """Return the session. Wait for a new one if there is none."""
        self._kick.set()
        with anyio.move_on_after(self.limits.reconnect_seconds):
            while self._session is None or self._session.over.is_set():
                if self.closing:
                    break
                await self._changed.wait()
            else:
                return self._session
        raise self._error("not_connected", self.problem or "it is connecting again")

    async def _wait_for_end(self, session: ServerSession) -> None:
        """Wait until a session that is over is removed."""
        with anyio.move_on_after(self.limits.reconnect_seconds):
            while self._session is session and session.over.is_set():
                await self._changed.wait()

    def end(self) -> None:
        """Start to close. The caller is on the loop."""
        self._kick.set()
        if self._session is not None:
            self._session.over.set()
        elif self._scope is not None:
            self._scope.cancel()

    # -- the connection -----------------------------------------------------------------------------

    async def main(self) -> None:
        """Connect, and reconnect after a failure, until ``end``."""
        with secrets_in_logs(self._secrets):
            await self._keep_connected()

    async def _keep_connected(self) -> None:
        self._changed, self._kick = anyio.Event(), anyio.Event()
        wait = FIRST_WAIT
        while True:
            began = anyio.current_time()
            problem = await self._run_session()
            self._session = None
            self._publish(connected=False, problem=problem)
            if not self.opening.done():
                self.opening.set_exception(self._error("not_connected", problem))
                if not self.keep_trying:
                    break
            if self.closing:
                self._publish(connected=False, problem="it was closed")
                break
            wait = FIRST_WAIT if anyio.current_time() - began > STABLE_SECONDS else min(2 * wait, LONGEST_WAIT)
            self._kick = anyio.Event()
            with anyio.move_on_after(wait):
                await self._kick.wait()
        self.closing = True

    async def _run_session(self) -> str:
        """Connect and stay connected. Return the reason for the end."""
        line = line_of(self._server)
        session = ServerSession(self.name, self.limits, line, self._secrets)
        deadline = anyio.current_time() + self.limits.connect_seconds
        with anyio.CancelScope(deadline=deadline) as self._scope:
            try:
                async with opened(self._server, session), anyio.create_task_group() as tasks:
                    if session.is_modern:  # listen before the lists are read, so that no change falls between
                        tasks.start_soon(session.listen)
                        with anyio.move_on_after(LISTEN_SECONDS):
                            await session.listening.wait()
                    self.listing = await session.list_all(self.listing)
                    self._scope.deadline = math.inf
                    await self._follow_session(session)
                    tasks.cancel_scope.cancel()
                    self._scope.deadline = anyio.current_time() + self.limits.close_seconds
            except Exception as problem:  # noqa: BLE001 - the SDK or a server may cause any exception
                return self._describe_end(problem, line)
        if self._scope.cancelled_caught and not self.closing and not self.connected:
            return self._describe_end(TimeoutError(f"no answer within {self.limits.connect_seconds:g} s"), line)
        return self._describe_end(None, line)

    async def _follow_session(self, session: ServerSession) -> None:
        """Follow the server's changes until the session is over."""
        self._session = session
        self._publish(connected=True, problem="")
        if not self.opening.done():
            self.opening.set_result(None)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow, session)
            if not session.is_process:
                tasks.start_soon(session.ping)
            await session.over.wait()
            tasks.cancel_scope.cancel()
        self._session = None
        self._publish(connected=False, problem=session.line.trouble or "the connection broke")

    async def _follow(self, session: ServerSession) -> None:
        """Read the lists again after a change. The pause is at least as long as a read."""
        while True:
            await session.stale.wait()
            began = anyio.current_time()
            try:
                await self.refresh(session)
            except MCPError:
                if not await session.answers():
                    return
            await anyio.sleep(max(LEAST_PAUSE, anyio.current_time() - began))

    async def refresh(self, session: ServerSession) -> ServerListing:
        """Read the lists, store them and return the listing."""
        listing = await session.list_all(self.listing)
        if listing != self.listing:
            self.listing = listing
            self._publish(connected=self.connected, problem=self.problem)
        return listing

    def _publish(self, *, connected: bool, problem: str) -> None:
        """Store the state and notify listeners and waiting requests."""
        self.connected, self.problem = connected, problem
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
        if self._reported_state != (connected, self.listing):
            self._reported_state = (connected, self.listing)
            self._on_change()

    # -- errors -------------------------------------------------------------------------------------

    def _describe_end(self, problem: BaseException | None, line: Any) -> str:
        """Return the reason why a connection failed or ended, without secrets."""
        reasons = []
        if problem is not None:
            first = next(_leaves(problem))
            if isinstance(first, FileNotFoundError):
                command = str(first.filename or self._server.place)
                reasons.append(f"{command} was not found{_path_hint(command)}")
            else:
                text = str(first).strip()
                where = f"{self._server.place}: " if text.startswith("Connect") else ""
                reasons.append(where + (text.splitlines()[0] if text else type(first).__name__))
        if line.end_reason:
            reasons.append(line.end_reason)
        return self._clean("; ".join(reasons) or "the connection ended")

    def _clean(self, text: str) -> str:
        return valid_text(str(self._secrets.scrub(text)))[:MAX_REASON]

    def _error(self, kind: str, reason: str, **detail: Any) -> ToolError:
        return ToolError(kind, f"MCP server {self.name!r}: {reason}", {"server": self.name, **detail})


def _leaves(problem: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions in a group, or the exception itself."""
    if isinstance(problem, BaseExceptionGroup):
        for inner in problem.exceptions:
            yield from _leaves(inner)
    else:
        yield problem
