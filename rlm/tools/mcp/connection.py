"""A connection as it lives on its own event loop: made, followed, mended, and asked.

Everything here runs on that loop. What others read of it (``listing``, ``connected``, ``problem``) is replaced and
never changed.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

import anyio
import mcp_types as types
import pydantic
from mcp.shared.exceptions import MCPError

from rlm.errors import ToolError, did_you_mean, valid_text
from rlm.model.message import Message
from rlm.tools.mcp.codes import FORBIDDEN, REFUSED, TOO_LARGE, UNAUTHORIZED, UNREADABLE
from rlm.tools.mcp.config import MCPLimits, ServerConfig, leaves
from rlm.tools.mcp.content import ResourceContent, contents_of, messages_of, reason_of, value_of
from rlm.tools.mcp.listing import ServerListing, ServerTool
from rlm.tools.mcp.session import ServerSession, is_broken_off, is_fault, is_safe_again, line_of, opened
from rlm.tools.result import RESULT_SECONDS
from rlm.tools.schema import check_of
from rlm.web.logs import secrets_in_logs
from rlm.web.secrets import Secrets

T = TypeVar("T")

FIRST_WAIT, LONGEST_WAIT = 0.1, 30.0
STABLE_SECONDS = 10.0
"""A connection that lasted so long starts a new series of attempts when it breaks."""

LEAST_PAUSE = 0.1
"""Seconds between two readings of a list that its server calls changed."""

MAX_SAID = 800

_log = logging.getLogger("rlm.mcp")


def _path_hint(command: str) -> str:
    """Return what to do about a command that was not found; empty for a path."""
    if " " in command:
        return "; a command is one program, and its arguments stand in 'args'"
    return "" if "/" in command or not command else "; install it, or write its whole path"


class Connection:
    """One connection, from ``main`` to its end.

    ``keep_trying``: whether it goes on where the very first attempt fails.

    Args:
        name: the host's name for the server.
        listing: what the server offered when it was last asked.
        told: called after each change of ``listing`` or ``connected``.
    """

    def __init__(
        self, name: str, server: ServerConfig, limits: MCPLimits, listing: ServerListing, told: Callable[[], None]
    ) -> None:
        self.name, self.limits = name, limits
        self.listing = listing
        self.connected = False
        self.problem = ""
        self.closing = False
        self.keep_trying = False
        self.opening: Future[None] = Future()
        self.opening.set_running_or_notify_cancel()  # who waits for it cannot cancel it for others
        self._server = server
        self._secrets = Secrets(server.secrets)
        self._told = told
        self._shown = (False, listing)
        self._session: ServerSession | None = None
        self._scope: anyio.CancelScope | None = None
        self._changed: anyio.Event
        self._kick: anyio.Event

    # -- asking -------------------------------------------------------------------------------------

    async def called(self, tool: ServerTool, arguments: Mapping[str, Any], attempts: int) -> Any:
        async def ask(session: ServerSession) -> Any:
            self._check_current(tool)
            return await session.call(tool.name, arguments)

        result = await self.asked(ask, attempts)
        if not isinstance(result, types.CallToolResult):
            raise self._error("input_required", f"{tool.name} asks the user something, which no run answers")
        if result.is_error:
            said = self._clean(reason_of(result)) or "it gave no reason"
            raise self._error("tool_failed", f"{tool.name}: {said}", tool=tool.unit.id)
        if tool.output_schema is not None:
            self._check_result(tool, result.structured_content)
        return value_of(result)

    def _check_current(self, tool: ServerTool) -> None:
        now = self.listing.tools.get(tool.name)
        if now is None:
            raise self._error("tool_removed", f"it offers {tool.name} no more", tool=tool.unit.id)
        if now.digest != tool.digest:
            what = f"it changed {tool.name} since this run began; what was approved is not what would be called"
            raise self._error("tool_changed", what, tool=tool.unit.id)

    def _check_result(self, tool: ServerTool, value: Any) -> None:
        problem = check_of(tool.output_schema, tool.unit.id).problem(value, RESULT_SECONDS)
        if problem is not None:
            detail = {"tool": tool.unit.id, **problem.to_dict()}
            raise ToolError("invalid_result", f"{tool.unit.id}: result, {problem}", detail)

    async def prompted(self, name: str, arguments: dict[str, str]) -> tuple[Message, ...]:
        prompt = self.listing.prompts.get(name)
        if prompt is None:
            hint = did_you_mean(name, self.listing.prompts)
            raise self._error("unknown_prompt", f"it offers no prompt {name!r}{hint}", prompt=name)
        missing = [each for each in prompt.required if each not in arguments]
        unknown = [each for each in arguments if each not in prompt.arguments]
        if missing or unknown:
            what = f"{missing[0]!r} is missing" if missing else f"there is no {unknown[0]!r}"
            hint = did_you_mean(unknown[0], prompt.arguments) if unknown and not missing else ""
            raise self._error("invalid_arguments", f"prompt {name}: {what}{hint}", prompt=name)
        result = await self.asked(lambda session: session.prompt(name, arguments), 2)
        if not isinstance(result, types.GetPromptResult):
            raise self._error("input_required", f"prompt {name} asks the user something")
        return messages_of(result, self.limits.max_content_bytes, prompt.unit.id)

    async def read(self, name: str) -> tuple[ResourceContent, ...]:
        known = self.listing.resources.get(name)
        if known is None and "://" not in name:
            hint = did_you_mean(name, self.listing.resources)
            raise self._error("unknown_resource", f"it offers no resource {name!r}{hint}", resource=name)
        uri = known.uri if known is not None else name
        result = await self.asked(lambda session: session.read(uri), 2)
        if not isinstance(result, types.ReadResourceResult):
            raise self._error("input_required", f"resource {name} asks the user something")
        return contents_of(result, self.limits.max_content_bytes, known.unit.id if known is not None else uri)

    async def asked(self, ask: Callable[[ServerSession], Awaitable[T]], attempts: int) -> T:
        """An answer; asked for anew where that does nothing twice, or where ``attempts`` allow it."""
        tried = 0
        while True:
            session = await self._up()
            tried += 1
            try:
                with secrets_in_logs(self._secrets):
                    return await ask(session)
            except MCPError as problem:
                if not await self._is_fault(session, problem):
                    raise self._answered(problem) from None
                if tried >= attempts + (2 if is_safe_again(problem) else 0):
                    why = session.line.trouble or problem.message
                    what = f"the line broke, and whether it did what was asked is not known: {why}"
                    raise self._error("connection_lost", self._clean(what)) from None
                await self._settled(session)
            except pydantic.ValidationError:
                raise self._error("invalid_result", "its answer is none that the protocol knows") from None

    async def _is_fault(self, session: ServerSession, problem: Any) -> bool:
        """Whether the line failed; otherwise the error is the server's answer."""
        if not is_fault(problem):
            return False
        if session.over.is_set():
            return True
        there = session.is_process or await session.answers()
        return is_broken_off(problem) or not there

    def _answered(self, problem: Any) -> ToolError:
        """The error that a server gave as its answer."""
        if problem.code == TOO_LARGE or problem.message.startswith("SSE stream failed: Server-sent event exceeded"):
            limit = self.limits.max_message_bytes
            return self._error("result_too_large", f"its answer has more than {limit:,} bytes", limit=limit)
        if problem.code == types.REQUEST_TIMEOUT:
            return self._error("timeout", "it did not answer in time")
        said = self._clean(problem.message)
        if problem.code in (UNAUTHORIZED, FORBIDDEN):
            kind, status = ("unauthorized", 401) if problem.code == UNAUTHORIZED else ("forbidden", 403)
            remedy = "its headers need credentials that hold" if status == 401 else "its credentials do not allow this"
            return self._error(kind, f"{said}; {remedy}", status=status)
        if problem.code == UNREADABLE:
            return self._error("invalid_result", said)
        if problem.code == REFUSED:
            return self._error("mcp_error", said)
        return self._error("mcp_error", f"it answered with error {problem.code}: {said}", code=problem.code)

    async def _up(self) -> ServerSession:
        """The session, which is waited for where there is none."""
        self._kick.set()
        with anyio.move_on_after(self.limits.reconnect_seconds):
            while self._session is None or self._session.over.is_set():
                if self.closing:
                    break
                await self._changed.wait()
            else:
                return self._session
        raise self._error("not_connected", self.problem or "the connection is being made anew")

    async def _settled(self, session: ServerSession) -> None:
        """Wait until a session that is over is put away."""
        with anyio.move_on_after(self.limits.reconnect_seconds):
            while self._session is session and session.over.is_set():
                await self._changed.wait()

    def end(self) -> None:
        """Begin to close, on the loop."""
        self._kick.set()
        if self._session is not None:
            self._session.over.set()
        elif self._scope is not None:
            self._scope.cancel()

    # -- the connection -----------------------------------------------------------------------------

    async def main(self) -> None:
        """Connect, and connect anew where the connection breaks, until the end."""
        with secrets_in_logs(self._secrets):
            await self._kept()

    async def _kept(self) -> None:
        self._changed, self._kick = anyio.Event(), anyio.Event()
        wait = FIRST_WAIT
        while True:
            began = anyio.current_time()
            problem = await self._lived()
            self._session = None
            self._tell(connected=False, problem=problem)
            if not self.opening.done():
                self.opening.set_exception(self._error("not_connected", problem))
                if not self.keep_trying:
                    break
            if self.closing:
                self._tell(connected=False, problem="it was closed")
                break
            wait = FIRST_WAIT if anyio.current_time() - began > STABLE_SECONDS else min(2 * wait, LONGEST_WAIT)
            self._kick = anyio.Event()
            with anyio.move_on_after(wait):
                await self._kick.wait()
        self.closing = True

    async def _lived(self) -> str:
        """Connect and stay connected; why that came to an end."""
        line = line_of(self._server)
        session = ServerSession(self.name, self.limits, line, self._secrets)
        deadline = anyio.current_time() + self.limits.connect_seconds
        with anyio.CancelScope(deadline=deadline) as self._scope:
            try:
                async with opened(self._server, session):
                    self.listing = await session.listed(self.listing)
                    self._scope.deadline = math.inf
                    await self._stayed(session)
                    self._scope.deadline = anyio.current_time() + self.limits.close_seconds
            except Exception as problem:  # noqa: BLE001 - whatever the SDK or a server brings about
                return self._described(problem, line)
        if self._scope.cancelled_caught and not self.closing and not self.connected:
            return self._described(TimeoutError(f"no answer within {self.limits.connect_seconds:g} s"), line)
        return self._described(None, line)

    async def _stayed(self, session: ServerSession) -> None:
        """Follow the server's changes until the session is over."""
        self._session = session
        self._tell(connected=True, problem="")
        if not self.opening.done():
            self.opening.set_result(None)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow, session)
            if not session.is_process:
                tasks.start_soon(session.ping)
            if session.is_modern:
                tasks.start_soon(session.hear)
            await session.over.wait()
            tasks.cancel_scope.cancel()
        self._session = None
        self._tell(connected=False, problem=session.line.trouble or "the connection broke")

    async def _follow(self, session: ServerSession) -> None:
        """Read the lists anew when they changed; not faster than that takes."""
        while True:
            await session.stale.wait()
            began = anyio.current_time()
            try:
                await self.relisted(session)
            except MCPError:
                if not await session.answers():
                    return
            await anyio.sleep(max(LEAST_PAUSE, anyio.current_time() - began))

    async def relisted(self, session: ServerSession) -> ServerListing:
        listing = await session.listed(self.listing)
        if listing != self.listing:
            self.listing = listing
            self._tell(connected=self.connected, problem=self.problem)
        return listing

    def _tell(self, *, connected: bool, problem: str) -> None:
        """Let everybody know."""
        self.connected, self.problem = connected, problem
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
        if self._shown != (connected, self.listing):
            self._shown = (connected, self.listing)
            self._told()

    # -- words --------------------------------------------------------------------------------------

    def _described(self, problem: BaseException | None, line: Any) -> str:
        """Why a connection could not be made or ended, in words without secrets."""
        said = []
        if problem is not None:
            first = next(leaves(problem))
            if isinstance(first, FileNotFoundError):
                command = str(first.filename or self._server.place)
                said.append(f"{command} was not found{_path_hint(command)}")
            else:
                text = str(first).strip()
                where = f"{self._server.place}: " if text.startswith("Connect") else ""
                said.append(where + (text.splitlines()[0] if text else type(first).__name__))
        if line.last_words:
            said.append(line.last_words)
        return self._clean("; ".join(said) or "the connection ended")

    def _clean(self, text: str) -> str:
        return valid_text(str(self._secrets.scrub(text)))[:MAX_SAID]

    def _error(self, kind: str, what: str, **detail: Any) -> ToolError:
        return ToolError(kind, f"MCP server {self.name!r}: {what}", {"server": self.name, **detail})
