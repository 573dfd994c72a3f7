"""The connection to one server: opened by the host, kept for its whole life, and mended where it breaks.

It lives on an event loop of its own; any loop and any thread may use it. What is told of it (``listing``,
``connected``, ``problem``) is a snapshot that never changes once it was read.
"""

from __future__ import annotations

import atexit
import logging
import math
import threading
import weakref
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Self, TypeVar

from rlm.errors import ConfigurationError, ToolError, did_you_mean
from rlm.model.unit import Unit
from rlm.tools.mcp.config import MCPLimits, checked_name, leaves, scrubbed, server_of
from rlm.tools.mcp.home import Gone, Home
from rlm.tools.mcp.listing import Finding, Listing, ServerTool

if TYPE_CHECKING:
    from rlm.model.turn import Message
    from rlm.tools.mcp.content import ResourceContent
    from rlm.tools.mcp.session import Session

T = TypeVar("T")
Listener = Callable[["MCPClient"], None]

FIRST_WAIT, LONGEST_WAIT = 0.1, 30.0
STABLE_SECONDS = 10.0
"""A connection that lasted so long starts a new series of attempts when it breaks."""

LEAST_PAUSE = 0.1
"""Seconds between two readings of a list that its server calls changed."""

FAREWELL_SECONDS = 5.0
MAX_SAID = 800

_log = logging.getLogger("rlm.mcp")
_open: weakref.WeakSet[MCPClient] = weakref.WeakSet()


class MCPClient:
    """A connection to one MCP server.

        with rlm.MCPClient("files", {"command": "mcp-files", "args": ["--root", "/srv"]}) as client:
            catalog.add_mcp(client)

    Args:
        name: the host's name for the server; the units are ``mcp_tool:<name>/...``.
        server: ``{"command", "args", "env", "cwd"}`` or ``{"url", "headers"}``.
        limits: what the server may take.

    Raises: ConfigurationError ``invalid_server`` and others; ``mcp_missing`` where the extra is not installed.
    """

    def __init__(self, name: str, server: Any, *, limits: MCPLimits | None = None) -> None:
        self.name = checked_name(name)
        self.limits = limits or MCPLimits()
        self._server = server_of(name, server)
        self._listing = Listing(name, Unit(f"mcp_server:{name}", trust="stranger", available=False))
        self._shown = self._listing
        self._connected = False
        self._problem = "it was not opened"
        self._listeners: list[Listener] = []
        self._guard = threading.Lock()
        self._home: Home | None = None
        self._opening: Future[None] = Future()
        self._session: Session | None = None
        self._closing = False

    def __repr__(self) -> str:
        state = "connected" if self.connected else "not connected"
        return f"<MCPClient {self.name!r} at {self._server.place}: {state}, {len(self.listing.tools)} tools>"

    # -- what is there ------------------------------------------------------------------------------

    @property
    def connected(self) -> bool:
        """Whether the server can be asked at this moment."""
        return self._connected

    @property
    def problem(self) -> str:
        """Why it is not connected; empty where it is."""
        return self._problem

    @property
    def listing(self) -> Listing:
        """What the server offered when it was last asked."""
        return self._listing

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong or worth knowing of that."""
        return self._listing.findings

    def on_change(self, listener: Listener) -> None:
        """Have a function called with this client after each change of ``listing`` or ``connected``, on the
        connection's own thread."""
        self._listeners.append(listener)

    # -- life cycle ---------------------------------------------------------------------------------

    async def aopen(self) -> None:
        """Connect, and read what the server offers. An open connection stays as it is.

        Raises: ToolError ``not_connected``, with the reason; nothing is left running then.
        """
        import asyncio

        with self._guard:
            opening = self._start()
        try:
            await asyncio.wrap_future(opening)
        except asyncio.CancelledError:
            self.begin_closing()
            raise

    def open(self) -> None:
        """As ``aopen``, for callers that wait."""
        from rlm.sync import run_sync

        run_sync(self.aopen)

    def close(self) -> None:
        """End the connection, and the server's process where it is one. Twice is no error."""
        self.begin_closing()
        home = self._home
        if home is not None and home.join(self.limits.close_seconds * 2 + FAREWELL_SECONDS):
            with self._guard:
                self._home = None if self._home is home else self._home

    async def aclose(self) -> None:
        """As ``close``, without keeping an event loop from its work."""
        import anyio.to_thread

        await anyio.to_thread.run_sync(self.close)

    async def __aenter__(self) -> Self:
        await self.aopen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> Future[None]:
        if self._home is not None and self._home.here and not self._closing:
            return self._opening
        if self._home is not None and self._home.here:
            self._home.join(self.limits.close_seconds * 2 + FAREWELL_SECONDS)
        _sdk()
        self._closing = False
        self._opening = Future()
        self._opening.set_running_or_notify_cancel()
        self._home = Home(f"rlm-mcp-{self.name}", self._main)
        _open.add(self)
        return self._opening

    def begin_closing(self) -> None:
        """Have the connection end, without waiting for it."""
        self._closing = True
        home = self._home
        if home is not None:
            home.tell(self._end)

    # -- asking -------------------------------------------------------------------------------------

    async def acall(self, tool: ServerTool, arguments: Mapping[str, Any], *, attempts: int = 1) -> Any:
        """Call a tool, for its handler: hosts call through a registry. The value is JSON data.

        A connection that is down is waited for. A call that was under way when the line broke is made again only
        within ``attempts``: nobody knows whether the server did it.

        Raises:
            ToolError: ``tool_removed``, ``tool_changed``, ``not_connected``, ``connection_lost``, ``mcp_error``,
                ``tool_failed``, ``invalid_result``, ``result_too_large``, ``input_required``.
        """
        return await self._at_home(self._called, tool, arguments, attempts)

    async def aprompt(self, name: str, arguments: Mapping[str, str] | None = None) -> tuple[Message, ...]:
        """A prompt, filled in by the server. It is a stranger's text, and as long as the limits allow.

        Raises: ToolError ``unknown_prompt``, ``invalid_arguments``, and as ``acall``.
        """
        return await self._at_home(self._prompted, name, dict(arguments or {}))

    def prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> tuple[Message, ...]:
        """As ``aprompt``, for callers that wait."""
        from rlm.sync import run_sync

        return run_sync(self.aprompt, name, arguments)

    async def aresource(self, name: str) -> tuple[ResourceContent, ...]:
        """What a resource holds at this moment, by its name or its URI.

        Raises: ToolError ``unknown_resource``, and as ``acall``.
        """
        return await self._at_home(self._read, name)

    def resource(self, name: str) -> tuple[ResourceContent, ...]:
        """As ``aresource``, for callers that wait."""
        from rlm.sync import run_sync

        return run_sync(self.aresource, name)

    async def arefresh(self) -> Listing:
        """Read anew what the server offers. Raises: as ``acall``."""
        return await self._at_home(self._asked, self._relisted, 2)

    def refresh(self) -> Listing:
        """As ``arefresh``, for callers that wait."""
        from rlm.sync import run_sync

        return run_sync(self.arefresh)

    async def _at_home(self, function: Callable[..., Awaitable[T]], *args: Any) -> T:
        home = self._home
        if home is None or self._closing:
            raise self._error("not_connected", self._problem)
        try:
            return await home.call(function, *args)
        except Gone:
            why = self._problem if home.here else "it was opened by the process that this one was forked from"
            raise self._error("not_connected", why or "it was closed") from None

    # -- over there ---------------------------------------------------------------------------------

    async def _called(self, tool: ServerTool, arguments: Mapping[str, Any], attempts: int) -> Any:
        import mcp_types as types

        from rlm.tools.mcp.content import text_of, value_of

        async def ask(session: Session) -> Any:
            self._check_current(tool)
            return await session.call(tool.name, arguments)

        result = await self._asked(ask, attempts)
        if not isinstance(result, types.CallToolResult):
            raise self._error("input_required", f"{tool.name} asks the user something, which no run answers")
        if result.is_error:
            said = self._clean(text_of(result.content)) or "it gave no reason"
            raise self._error("tool_failed", f"{tool.name}: {said}", tool=tool.unit.id)
        if tool.output_schema is not None:
            self._check_result(tool, result.structured_content)
        return scrubbed(value_of(result), self._server)

    def _check_current(self, tool: ServerTool) -> None:
        now = self._listing.tools.get(tool.name)
        if now is None:
            raise self._error("tool_removed", f"it offers {tool.name} no more", tool=tool.unit.id)
        if now.digest != tool.digest:
            what = f"it changed {tool.name} since this run began; what was approved is not what would be called"
            raise self._error("tool_changed", what, tool=tool.unit.id)

    def _check_result(self, tool: ServerTool, value: Any) -> None:
        from rlm.tools.result import RESULT_SECONDS
        from rlm.tools.schema import check_of

        problem = check_of(tool.output_schema, tool.unit.id).problem(value, RESULT_SECONDS)
        if problem is not None:
            detail = {"tool": tool.unit.id, **problem.to_dict()}
            raise ToolError("invalid_result", f"{tool.unit.id}: result, {problem}", detail)

    async def _prompted(self, name: str, arguments: dict[str, str]) -> tuple[Message, ...]:
        import mcp_types as types

        from rlm.tools.mcp.content import messages_of

        prompt = self._listing.prompts.get(name)
        if prompt is None:
            hint = did_you_mean(name, self._listing.prompts)
            raise self._error("unknown_prompt", f"it offers no prompt {name!r}{hint}", prompt=name)
        missing = [each for each in prompt.required if each not in arguments]
        unknown = [each for each in arguments if each not in prompt.arguments]
        if missing or unknown:
            what = f"{missing[0]!r} is missing" if missing else f"there is no {unknown[0]!r}"
            hint = did_you_mean(unknown[0], prompt.arguments) if unknown and not missing else ""
            raise self._error("invalid_arguments", f"prompt {name}: {what}{hint}", prompt=name)
        result = await self._asked(lambda session: session.prompt(name, arguments), 2)
        if not isinstance(result, types.GetPromptResult):
            raise self._error("input_required", f"prompt {name} asks the user something")
        return messages_of(result, self.limits.max_content_bytes, prompt.unit.id)

    async def _read(self, name: str) -> tuple[ResourceContent, ...]:
        import mcp_types as types

        from rlm.tools.mcp.content import contents_of

        known = self._listing.resources.get(name)
        if known is None and "://" not in name:
            hint = did_you_mean(name, self._listing.resources)
            raise self._error("unknown_resource", f"it offers no resource {name!r}{hint}", resource=name)
        uri = known.uri if known is not None else name
        result = await self._asked(lambda session: session.read(uri), 2)
        if not isinstance(result, types.ReadResourceResult):
            raise self._error("input_required", f"resource {name} asks the user something")
        return contents_of(result, self.limits.max_content_bytes, known.unit.id if known is not None else uri)

    async def _asked(self, ask: Callable[[Session], Awaitable[T]], attempts: int) -> T:
        """An answer; asked for anew where that does nothing twice, or where ``attempts`` allow it."""
        import pydantic
        from mcp.shared.exceptions import MCPError

        from rlm.tools.mcp.session import is_safe_again

        tried = 0
        while True:
            session = await self._up()
            tried += 1
            try:
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

    async def _is_fault(self, session: Session, problem: Any) -> bool:
        """Whether the line failed; otherwise the error is the server's answer."""
        from rlm.tools.mcp.session import is_broken_off, is_fault

        if not is_fault(problem):
            return False
        if session.over.is_set():
            return True
        there = session.is_process or await session.answers()
        return is_broken_off(problem) or not there

    def _answered(self, problem: Any) -> ToolError:
        """The error that a server gave as its answer."""
        from rlm.tools.mcp.codes import TOO_LARGE

        if problem.code == TOO_LARGE or problem.message.startswith("SSE stream failed: Server-sent event exceeded"):
            limit = self.limits.max_message_bytes
            return self._error("result_too_large", f"its answer has more than {limit:,} bytes", limit=limit)
        if problem.code == _timeout_code():
            return self._error("timeout", "it did not answer in time")
        said = self._clean(problem.message)
        return self._error("mcp_error", f"it answered with error {problem.code}: {said}", code=problem.code)

    async def _up(self) -> Session:
        """The session, which is waited for where there is none."""
        import anyio

        self._kick.set()
        with anyio.move_on_after(self.limits.reconnect_seconds):
            while self._session is None or self._session.over.is_set():
                if self._closing:
                    break
                await self._changed.wait()
            else:
                return self._session
        raise self._error("not_connected", self._problem or "the connection is being made anew")

    async def _settled(self, session: Session) -> None:
        """Wait until a session that is over is put away."""
        import anyio

        with anyio.move_on_after(self.limits.reconnect_seconds):
            while self._session is session and session.over.is_set():
                await self._changed.wait()

    def _end(self) -> None:
        """Begin to close, on the loop."""
        self._kick.set()
        if self._session is not None:
            self._session.over.set()
        elif self._scope is not None:
            self._scope.cancel()

    # -- the connection -----------------------------------------------------------------------------

    async def _main(self) -> None:
        """Connect, and connect anew where the connection breaks, until the end."""
        import anyio

        self._changed, self._kick = anyio.Event(), anyio.Event()
        self._scope: anyio.CancelScope | None = None
        wait = FIRST_WAIT
        while True:
            began = anyio.current_time()
            problem = await self._lived()
            self._session = None
            self._tell(connected=False, problem=problem)
            if not self._opening.done():
                self._opening.set_exception(self._error("not_connected", problem))
                break
            if self._closing:
                self._tell(connected=False, problem="it was closed")
                break
            wait = FIRST_WAIT if anyio.current_time() - began > STABLE_SECONDS else min(2 * wait, LONGEST_WAIT)
            self._kick = anyio.Event()
            with anyio.move_on_after(wait):
                await self._kick.wait()
        self._closing = True
        _open.discard(self)

    async def _lived(self) -> str:
        """Connect and stay connected; why that came to an end."""
        import anyio

        from rlm.tools.mcp.session import Session, line_of, opened

        line = line_of(self._server)
        session = Session(self.name, self.limits, line)
        deadline = anyio.current_time() + self.limits.connect_seconds
        with anyio.CancelScope(deadline=deadline) as self._scope:
            try:
                async with opened(self._server, session):
                    self._listing = await session.listed(self._listing)
                    self._scope.deadline = math.inf
                    await self._stayed(session)
                    self._scope.deadline = anyio.current_time() + self.limits.close_seconds
            except Exception as problem:  # noqa: BLE001 - whatever the SDK or a server brings about
                return self._described(problem, line)
        if self._scope.cancelled_caught and not self._closing and not self._connected:
            return self._described(TimeoutError(f"no answer within {self.limits.connect_seconds:g} s"), line)
        return self._described(None, line)

    async def _stayed(self, session: Session) -> None:
        """Follow the server's changes until the session is over."""
        import anyio

        self._session = session
        self._tell(connected=True, problem="")
        if not self._opening.done():
            self._opening.set_result(None)
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

    async def _follow(self, session: Session) -> None:
        """Read the lists anew when they changed; not faster than that takes."""
        import anyio
        from mcp.shared.exceptions import MCPError

        while True:
            await session.stale.wait()
            began = anyio.current_time()
            try:
                await self._relisted(session)
            except MCPError:
                if not await session.answers():
                    return
            await anyio.sleep(max(LEAST_PAUSE, anyio.current_time() - began))

    async def _relisted(self, session: Session) -> Listing:
        listing = await session.listed(self._listing)
        if listing != self._listing:
            self._listing = listing
            self._tell(connected=self._connected, problem=self._problem)
        return listing

    def _tell(self, *, connected: bool, problem: str) -> None:
        """Let everybody know."""
        import anyio

        before = (self._connected, self._shown)
        self._connected, self._problem, self._shown = connected, problem, self._listing
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
        if before == (connected, self._listing):
            return
        for listener in tuple(self._listeners):
            try:
                listener(self)
            except Exception:
                _log.exception("%r: a listener failed", self)

    # -- words --------------------------------------------------------------------------------------

    def _described(self, problem: BaseException | None, line: Any) -> str:
        """Why a connection could not be made or ended, in words without secrets."""
        said = []
        if problem is not None:
            first = next(leaves(problem))
            if isinstance(first, FileNotFoundError):
                said.append(f"{first.filename or self._server.place} was not found")
            else:
                text = str(first).strip()
                said.append(text.splitlines()[0] if text else type(first).__name__)
        if line.last_words:
            said.append(line.last_words)
        return self._clean("; ".join(said) or "the connection ended")

    def _clean(self, text: str) -> str:
        return str(scrubbed(text, self._server))[:MAX_SAID]

    def _error(self, kind: str, what: str, **detail: Any) -> ToolError:
        return ToolError(kind, f"MCP server {self.name!r}: {what}", {"server": self.name, **detail})


def _timeout_code() -> int:
    from mcp_types import REQUEST_TIMEOUT

    return REQUEST_TIMEOUT


def _sdk() -> None:
    """Load the SDK, here and not in a connection's thread."""
    try:
        import rlm.tools.mcp.session  # noqa: F401
    except ImportError as problem:
        if (problem.name or "").partition(".")[0] not in ("mcp", "mcp_types", "httpx2"):
            raise
        raise ConfigurationError(
            "mcp_missing", "MCP servers need the extra 'mcp': pip install 'prolog-rlm[mcp]'", {"extra": "mcp"}
        ) from None


@atexit.register
def _close_all() -> None:
    """End the servers of connections that nobody closed, all at once."""
    clients = list(_open)
    for client in clients:
        client.begin_closing()
    for client in clients:
        client.close()
