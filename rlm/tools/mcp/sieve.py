"""A filter between the SDK's session and the transport: it checks lists row by row and bounds a server's requests.

The SDK validates a page of a list as a whole: one bad tool would cost all the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp_types.methods import validate_server_result

from rlm.model.unit import plain_json
from rlm.tools.mcp.content import usable_blocks
from rlm.tools.mcp.rescue import UNREADABLE_ROW

ROWS = {"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources"}
MAX_UNANSWERED = 64
_USED = frozenset({"name", "title", "description", "inputSchema", "outputSchema", "annotations"}) | {
    *("arguments", "uri", "mimeType", "size")
}


class Sieve(JSONRPCDispatcher):
    """The SDK's dispatcher with checks of each row.

    ``rows`` are the raw valid rows of the last page. ``refused`` are the invalid rows, each with its reason.

    Args:
        version: returns the agreed protocol version.
        most: limit of rows in one page.
        clean: removes secrets from an answer.
    """

    def __init__(
        self,
        read: Any,
        write: Any,
        *,
        version: Callable[[], str | None],
        most: int,
        clean: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> None:
        super().__init__(read, write)
        self._version, self._most, self._clean = version, most, clean
        self.rows: list[dict[str, Any]] = []
        self.refused: list[tuple[Any, str]] = []

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: Any = None, **more: Any
    ) -> dict[str, Any]:
        raw = self._clean(await super().send_raw_request(method, params, opts, **more))
        if method in ("tools/call", "prompts/get"):
            return usable_blocks(raw)
        key = ROWS.get(method)
        if key is None or not isinstance(raw.get(key), list):
            return raw
        self.rows = self._good(method, key, raw)
        return {**raw, key: self.rows}

    def _good(self, method: str, key: str, raw: dict[str, Any]) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for row in raw[key][: self._most + 1]:
            if isinstance(row, dict) and UNREADABLE_ROW in row:
                self.refused.append((row, str(row[UNREADABLE_ROW])))
                continue
            used = {name: value for name, value in row.items() if name in _USED} if isinstance(row, dict) else row
            try:
                plain_json({name: used[name] for name in used if name != "description"}, "the entry")
                validate_server_result(method, self._version() or "2025-11-25", {**raw, key: [used]})
            except (ValueError, TypeError, KeyError, RecursionError) as problem:
                self.refused.append((row, _reason(problem)))
            else:
                rows.append(used)
        return rows


def _reason(problem: Exception) -> str:
    errors = getattr(problem, "errors", None)
    if errors is None:
        return str(problem)[:200] or type(problem).__name__
    first = errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(str(part) for part in first['loc'][2:])}: {first['msg']}"


class Inbox:
    """The input stream of a session. It ends if a server sends requests and reads no answers.

    ``on_flood`` is called then.
    """

    def __init__(self, read: Any, on_flood: Callable[[], None]) -> None:
        self._read, self._on_flood = read, on_flood
        self.unanswered = 0

    async def receive(self) -> Any:
        item = await self._read.receive()
        if isinstance(item, SessionMessage) and isinstance(item.message, types.JSONRPCRequest):
            self.unanswered += 1
            if self.unanswered > MAX_UNANSWERED:
                self._on_flood()
                raise anyio.EndOfStream
        return item

    async def aclose(self) -> None:
        await self._read.aclose()

    def __aiter__(self) -> Inbox:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Inbox:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class Outbox:
    """The output stream of a session. Each answer lowers the inbox's count of unanswered requests."""

    def __init__(self, write: Any, inbox: Inbox) -> None:
        self._write, self._inbox = write, inbox

    async def send(self, item: SessionMessage) -> None:
        await self._write.send(item)
        if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError):
            self._inbox.unanswered -= 1

    async def aclose(self) -> None:
        await self._write.aclose()

    async def __aenter__(self) -> Outbox:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
