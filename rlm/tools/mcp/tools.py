"""Tools of a server as ``rlm.Tool`` objects, under the host's capability and effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlm.tools.mcp.listing import ServerTool
from rlm.tools.tool import Effect, Tool

if TYPE_CHECKING:
    from rlm.tools.mcp.client import MCPClient


def tool_of(client: MCPClient, server_tool: ServerTool, effect: Effect, **host: Any) -> Tool:
    """Return the tool that calls ``server_tool`` on its server.

    Args:
        client: the connection to the server.
        server_tool: the tool, as the listing describes it.
        effect: the effect, as the host declares it; the server's annotations have no influence. Only a ``read`` is
            called again if the connection breaks during a call.
        host: further fields of the tool, for example ``time_limit=5.0``.

    Raises:
        ConfigurationError: ``invalid_tool``.
    """
    attempts = 2 if effect is Effect.READ else 1

    async def call(**arguments: Any) -> Any:
        return await client.acall(server_tool, arguments, attempts=attempts)

    return Tool(
        name=server_tool.name,
        description=server_tool.unit.description,
        schema=server_tool.unit.schema or {},
        effect=effect,
        handler=call,
        server=client.name,
        **host,
    )
