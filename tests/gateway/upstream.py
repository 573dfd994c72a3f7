"""Small servers for the gateway: ``python upstream.py files|git|many N``. Each call is counted in ``RLM_TEST_COUNT``."""

from __future__ import annotations

import os
import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

TEXT = {"type": "string"}
TOOLS = {
    "files": {
        "read_file": ("Read the text of a file.", {"path": TEXT}, types.ToolAnnotations(read_only_hint=True)),
        "write_file": ("Write a text to a file.", {"path": TEXT, "text": TEXT}, None),
        "delete_file": ("Delete a file for ever.", {"path": TEXT}, None),
        "status": ("Show the state of the file system.", {}, None),
    },
    "git": {
        "status": ("Show the state of the git repository: branch and changes.", {}, None),
        "push": ("Push commits of the git repository to a remote.", {"remote": TEXT}, None),
        "slow": ("Wait for a long time.", {"seconds": {"type": "number"}}, None),
    },
}


def tool(name: str, description: str, fields: dict[str, Any], hints: Any) -> types.Tool:
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    return types.Tool(name=name, description=description, input_schema=schema, annotations=hints)


def main(which: str) -> None:
    tools = [tool(name, *row) for name, row in TOOLS[which].items()]
    changed = os.environ.get("RLM_TEST_CHANGED", "")

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        if changed and os.path.exists(changed):  # noqa: ASYNC240
            return types.ListToolsResult(
                tools=[each.model_copy(update={"description": f"{each.description} Now otherwise."}) for each in tools]
            )
        return types.ListToolsResult(tools=tools)

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if os.environ.get("RLM_TEST_COUNT"):
            with open(os.environ["RLM_TEST_COUNT"], "a") as file:  # noqa: ASYNC230
                file.write(params.name + "\n")
        if params.name == "slow":
            await ctx.session.report_progress(1, 2, "half")
            await anyio.sleep(float(params.arguments["seconds"]))
        seen = {key: value for key, value in dict(ctx.meta or {}).items() if key.startswith("test/")}
        return types.CallToolResult(
            content=[
                types.TextContent(type="text", text=f"{params.name} {params.arguments}"),
                types.ImageContent(type="image", data="AAAA", mime_type="image/png"),
            ],
            structured_content={"tool": params.name, "meta": seen},
            _meta={"test/back": 1},
        )

    server: Server[Any] = Server(which, on_list_tools=list_tools, on_call_tool=call_tool)

    async def serve() -> None:
        async with stdio_server() as (reader, writer):
            await server.run(reader, writer, server.create_initialization_options())

    anyio.run(serve)


if __name__ == "__main__":
    main(sys.argv[1])
