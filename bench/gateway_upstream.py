"""The servers of a catalog file in one process, each at its own address over streamable HTTP.

    python bench/gateway_upstream.py CATALOG [GROUPS]

Without GROUPS each namespace is a server. The first line of output is JSON: ``{name: url}``. A call returns its name
and arguments.
"""

from __future__ import annotations

import contextlib
import json
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server import Server
from starlette.applications import Starlette


def servers_of(path: str, groups: int) -> dict[str, list[dict[str, Any]]]:
    """Return the tools by server; a name that a server has already is left out."""
    servers: dict[str, dict[str, dict[str, Any]]] = {}
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines()):
        row = json.loads(line)
        namespace, _, bare = row["name"].rpartition("/")
        server, name = (f"s{number % groups}", f"{namespace}_{bare}") if groups else (namespace, bare)
        servers.setdefault(server, {}).setdefault(name, {**row, "name": name})
    return {server: list(tools.values()) for server, tools in servers.items()}


def server_of(name: str, rows: list[dict[str, Any]]) -> Server[Any]:
    """Return a server with these tools."""
    tools = [
        types.Tool(
            name=row["name"],
            description=row.get("description") or "",
            input_schema=row["parameters"] if row.get("parameters") else {"type": "object", "properties": {}},
        )
        for row in rows
    ]

    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        text = json.dumps({"server": name, "tool": params.name, "arguments": params.arguments})
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    return Server(name, on_list_tools=list_tools, on_call_tool=call_tool)


async def main(path: str, groups: int) -> None:
    """Serve until the process ends."""
    servers = {name: server_of(name, rows) for name, rows in servers_of(path, groups).items()}
    routes: list[Any] = []
    for name, server in servers.items():
        routes += server.streamable_http_app(streamable_http_path=f"/{name}").routes

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for server in servers.values():
                await stack.enter_async_context(server.session_manager.run())
            yield

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        print(json.dumps({name: f"http://127.0.0.1:{port}/{name}" for name in servers}), flush=True)
        config = uvicorn.Config(Starlette(routes=routes, lifespan=lifespan), log_level="error")
        await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
