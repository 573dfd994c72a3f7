"""One session with a server: the handshake, the lists, the requests, and the watch for changes."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import mcp_types as types
import pydantic
from mcp.client.session import ClientSession
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from rlm.errors import valid_text
from rlm.tools.mcp.config import HTTPServer, MCPLimits, ServerConfig, StdioServer
from rlm.tools.mcp.listing import Finding, Reader, ServerListing, finding
from rlm.tools.mcp.rescue import BROKEN_OFF, FORBIDDEN, SESSION_ENDED, UNAUTHORIZED, UNREACHED, UNREADABLE
from rlm.tools.mcp.sieve import Inbox, Outbox, Sieve
from rlm.tools.mcp.stdio import Child, stdio_transport
from rlm.tools.mcp.web import Line, http_transport
from rlm.web.logs import loggers_of, scrub_logs
from rlm.web.secrets import Secrets, changed

for _name in ("mcp", "client"):  # the SDK's loggers: faults of a server must not print to a host's terminal
    logging.getLogger(_name).addHandler(logging.NullHandler())

scrub_logs(
    *(*loggers_of("httpx2", "httpcore2"), "client"),
    *("mcp.client.streamable_http", "mcp.client.client", "mcp.shared.dispatcher", "mcp.shared.jsonrpc_dispatcher"),
)

CALL_SECONDS = 3600.0
"""Seconds, above any time limit of a tool: the caller ends the call."""

PING_SECONDS = 15.0
"""A server that does not answer in this time is taken for gone. One that shares a busy machine may need 5."""

RELISTEN_SECONDS, LASTING_SECONDS = 0.5, 30.0

CHANGES = (
    types.ToolListChangedNotification,
    types.PromptListChangedNotification,
    types.ResourceListChangedNotification,
)
FAULTS = (UNREACHED, BROKEN_OFF, SESSION_ENDED, types.CONNECTION_CLOSED)
CALL_RESULT: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(types.CallToolResult | types.InputRequiredResult)
PROMPT_RESULT: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(types.GetPromptResult | types.InputRequiredResult)
READ_RESULT: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(types.ReadResourceResult | types.InputRequiredResult)


class ServerSession:
    """A running session. ``over`` is set when it ended or must end, ``stale`` when a list changed, ``listening``
    when the server reports changes, or is known not to. ``active_calls`` is the number of running calls.

    Args:
        server: the host's name for the server.
        limits: bounds of time and size.
        line: the process, or the line to an address.
        secrets: values that the server knows and may repeat.
    """

    def __init__(self, server: str, limits: MCPLimits, line: Child | Line, secrets: Secrets) -> None:
        self.server, self.limits, self.line, self.secrets = server, limits, line, secrets
        self.over = line.ended
        self.stale = anyio.Event()
        self.listening = anyio.Event()
        self.active_calls = 0
        self._listing = anyio.Lock()
        self._sdk: ClientSession
        self._sieve: Sieve

    @property
    def is_process(self) -> bool:
        """Return whether the server is a child process: then its end is noticed without a ping."""
        return isinstance(self.line, Child)

    @property
    def is_modern(self) -> bool:
        """Return whether the server reports changes on a stream that the client opens (2026-07-28 and later)."""
        return self._sdk.protocol_version in MODERN_PROTOCOL_VERSIONS

    def end_flood(self) -> None:
        """End the session because the server sends requests without reading the answers."""
        self.line.trouble = "it sent requests of its own and did not read the answers"
        self.over.set()

    async def notify(self, message: Any) -> None:
        """Handle a notification of the server."""
        if isinstance(message, CHANGES):
            self.stale.set()

    async def agree(self) -> None:
        """Agree on a protocol version: the newest one, or the older handshake for older servers."""
        try:
            await self._sdk.discover()
        except MCPError as problem:
            if problem.code in (UNAUTHORIZED, FORBIDDEN):
                raise
            if problem.code in FAULTS and (problem.code != types.CONNECTION_CLOSED or self.over.is_set()):
                raise
            await self._initialize()
        except (RuntimeError, pydantic.ValidationError):
            await self._initialize()

    async def _initialize(self) -> None:
        """The older handshake. A server may answer the newer one too late and then refuse this: it is asked again."""
        try:
            await self._sdk.initialize()
        except MCPError as problem:
            if problem.code != types.UNSUPPORTED_PROTOCOL_VERSION:
                raise
            await self._sdk.discover()

    # -- requests ----------------------------------------------------------------------------------

    async def call(
        self, name: str, arguments: Mapping[str, Any], meta: Mapping[str, Any] | None = None, progress: Any = None
    ) -> Any:
        """Send ``tools/call``. ``meta`` is its ``_meta``; ``progress`` gets the server's reports of progress.

        The SDK's own method is not used: it checks the result by a third-party schema with Python's regular
        expressions, in this loop.
        """
        more: dict[str, Any] = {} if not meta else {"_meta": dict(meta)}
        params = types.CallToolRequestParams(name=name, arguments=dict(arguments), **more)
        request = types.CallToolRequest(params=params)
        self.active_calls += 1
        try:
            return await self._sdk.send_request(
                request, CALL_RESULT, request_read_timeout_seconds=CALL_SECONDS, progress_callback=progress
            )
        finally:
            self.active_calls -= 1

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> Any:
        """Send ``prompts/get``."""
        params = types.GetPromptRequestParams(name=name, arguments=dict(arguments))
        return await self._sdk.send_request(types.GetPromptRequest(params=params), PROMPT_RESULT)

    async def read(self, uri: str) -> Any:
        """Send ``resources/read``."""
        params = types.ReadResourceRequestParams(uri=uri)
        return await self._sdk.send_request(types.ReadResourceRequest(params=params), READ_RESULT)

    async def answers(self) -> bool:
        """Return whether the server still answers. If it does not, end the session.

        A server that works on a call may be silent: many servers handle one request at a time.
        """
        ping_request = types.DiscoverRequest() if self.is_modern else types.PingRequest()
        trouble = "it does not answer"
        with anyio.move_on_after(PING_SECONDS) as patience:
            try:
                await self._sdk.send_request(ping_request, types.EmptyResult)
            except pydantic.ValidationError:
                return True
            except MCPError as problem:
                if problem.code not in FAULTS:
                    return True  # an error is an answer too
                trouble = problem.message
            else:
                return True
        if patience.cancelled_caught and self.active_calls:
            return True
        self.line.trouble = self.line.trouble or trouble
        self.over.set()
        return False

    # -- listing ------------------------------------------------------------------------------------

    async def list_all(self, before: ServerListing | None = None) -> ServerListing:
        """Read all lists and return the listing. An unreadable list is a finding and stays as it was ``before``."""
        async with self._listing:
            self.stale = anyio.Event()
            findings: list[Finding] = []
            offers = self._sdk.server_capabilities or types.ServerCapabilities()
            rows = {
                key: await self._rows(key, method, findings) if getattr(offers, key) is not None else []
                for key, method in {
                    "tools": self._sdk.list_tools,
                    "prompts": self._sdk.list_prompts,
                    "resources": self._sdk.list_resources,
                }.items()
            }
        tools, prompts, resources = (entries or () for entries in rows.values())
        listing = Reader(self.server, self._about()).listing(tools, prompts, resources, findings)
        kept = {key: getattr(before, key) for key, entries in rows.items() if entries is None and before is not None}
        return dataclasses.replace(listing, **kept)

    def _about(self) -> dict[str, str]:
        info = self._sdk.server_info
        about = {"instructions": self._sdk.instructions or ""}
        if info is not None:
            about |= {"title": info.title or info.name, "version": info.version}
        return about

    async def _rows(self, key: str, method: Callable[..., Any], findings: list[Finding]) -> list[Any] | None:
        """Return the rows of one list, page by page, or None if the first page could not be read."""
        rows: list[Any] = []
        cursors: set[str | None] = set()
        cursor: str | None = None
        for _ in range(self.limits.max_pages):
            cursors.add(cursor)
            try:
                page = await method(params=types.PaginatedRequestParams(cursor=cursor))
            except (MCPError, pydantic.ValidationError) as problem:
                if self.over.is_set() or (isinstance(problem, MCPError) and problem.code in FAULTS):
                    raise
                self._note(findings, "unreadable_list", key, _reason(problem))
                return rows if len(cursors) > 1 else None
            rows += self._usable_rows(key, page, findings)
            cursor = page.next_cursor
            if len(rows) > self.limits.max_items or (cursor is not None and len(rows) == self.limits.max_items):
                self._note(findings, "too_many", key, f"over {self.limits.max_items:,}; the rest is left out")
                return rows[: self.limits.max_items]
            if cursor is None:
                return rows
            if cursor in cursors:
                self._note(findings, "endless_list", key, "a page leads back to an earlier one; reading ended there")
                return rows
        self._note(findings, "endless_list", key, f"over {self.limits.max_pages:,} pages; reading ended there")
        return rows

    def _usable_rows(self, key: str, page: Any, findings: list[Finding]) -> list[Any]:
        kind = {"tools": "mcp_tool", "prompts": "mcp_prompt", "resources": "resource"}[key]
        for row, reason in self._sieve.refused:
            name = row.get("name") if isinstance(row, dict) else None
            name = name if isinstance(name, str) else "?"
            findings.append(finding("error", "invalid_entry", f"{kind}:{self.server}/{name}"[:80], reason))
        self._sieve.refused.clear()
        accepted = {item.name for item in getattr(page, key)}
        for row in self._sieve.rows:
            if row["name"] not in accepted:
                reason = "its x-mcp-header annotations are not allowed"
                findings.append(finding("error", "invalid_entry", f"{kind}:{self.server}/{row['name']}"[:80], reason))
        return [row for row in self._sieve.rows if row["name"] in accepted]

    def _note(self, findings: list[Finding], kind: str, key: str, message: str) -> None:
        findings.append(finding("error", kind, f"mcp_server:{self.server}", f"{key}: {message}", key))

    # -- watching -----------------------------------------------------------------------------------

    async def ping(self) -> None:
        """Ping the server at intervals, until there is no answer."""
        while True:
            await anyio.sleep(self.limits.ping_seconds)
            if not await self.answers():
                return

    async def listen(self) -> None:
        """Keep the stream open on which newer servers report changes."""
        offers = self._sdk.server_capabilities or types.ServerCapabilities()
        topics = {
            f"{key}_list_changed": True
            for key in ("tools", "prompts", "resources")
            if getattr(getattr(offers, key), "list_changed", None)
        }
        try:
            await self._listen_again(topics)
        finally:
            self.listening.set()

    async def _listen_again(self, topics: Mapping[str, bool]) -> None:
        pause = RELISTEN_SECONDS
        while topics and not self.over.is_set():
            began = anyio.current_time()
            try:
                async with listen(self._sdk, **topics) as changes:  # type: ignore[arg-type]
                    self.listening.set()
                    async for _ in changes:
                        self.stale.set()
            except MCPError as problem:
                if problem.code not in FAULTS:
                    return  # the server has no such stream
            except (SubscriptionLost, TimeoutError):
                pass
            self.listening.set()
            lasted = anyio.current_time() - began > LASTING_SECONDS
            pause = RELISTEN_SECONDS if lasted else min(2 * pause, LASTING_SECONDS)
            await anyio.sleep(pause)
            if await self.answers():
                self.stale.set()  # changes in the meantime were not reported


@asynccontextmanager
async def opened(config: ServerConfig, session: ServerSession) -> AsyncIterator[None]:
    """Open the transport and the session, and agree on a protocol.

    Raises:
        OSError, MCPError, RuntimeError, pydantic.ValidationError: and groups of them.
    """
    limits, line = session.limits, session.line
    if isinstance(config, StdioServer):
        assert isinstance(line, Child)
        transport: Any = stdio_transport(config, limits, line)
    else:
        assert isinstance(line, Line)
        transport = http_transport(config, limits, line, session.secrets)
    async with transport as (read, write):
        inbox = Inbox(read, session.end_flood)
        session._sieve = Sieve(
            inbox,
            Outbox(write, inbox),
            version=lambda: session._sdk.protocol_version,
            most=limits.max_items,
            clean=partial(_clean, secrets=session.secrets),
        )
        session._sdk = ClientSession(
            dispatcher=session._sieve,
            read_timeout_seconds=limits.answer_seconds,
            message_handler=session.notify,
            client_info=types.Implementation(name="prolog-rlm", version=_version()),
        )
        async with session._sdk:
            await session.agree()
            yield


def line_of(config: ServerConfig) -> Child | Line:
    """Return the state of the transport for such a server."""
    return Line() if isinstance(config, HTTPServer) else Child()


def _clean(answer: dict[str, Any], secrets: Secrets) -> dict[str, Any]:
    """Return an answer as valid Unicode, without secrets."""
    return dict(changed(secrets.scrub(answer), valid_text))


def _version() -> str:
    try:
        return importlib.metadata.version("prolog-rlm")
    except importlib.metadata.PackageNotFoundError:
        return "0"


def is_safe_again(problem: MCPError) -> bool:
    """Return whether the server certainly did not do the requested work."""
    return problem.code in (UNREACHED, SESSION_ENDED)


def is_fault(problem: MCPError) -> bool:
    """Return whether the connection may have failed, and not the request."""
    return problem.code in FAULTS


def is_broken_off(problem: MCPError) -> bool:
    """Return whether the connection certainly failed."""
    return problem.code == BROKEN_OFF or is_safe_again(problem)


def _reason(problem: Exception) -> str:
    if isinstance(problem, MCPError) and problem.code == UNREADABLE:
        return problem.message[:300]
    if isinstance(problem, MCPError):
        return f"the server answered with error {problem.code}: {problem.message[:300]}"
    return "the server's answer is not a valid list"
