"""The tools of a server as tools of ours: called by its name for them, under the host's capability and effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlm.tools.mcp.listing import ServerTool
from rlm.tools.tool import Effect, Tool

if TYPE_CHECKING:
    from rlm.tools.mcp.client import MCPClient


def tool_of(client: MCPClient, described: ServerTool, effect: Effect, **host: Any) -> Tool:
    """The tool that calls ``described`` on its server.

    Args:
        effect: the host's word; what the server says of it counts nothing. Only a ``read`` is called again where the
            line broke in the middle of a call.
        host: further fields of the tool.

    Raises: ConfigurationError ``invalid_tool``.
    """
    attempts = 2 if effect is Effect.READ else 1

    async def call(**arguments: Any) -> Any:
        return await client.acall(described, arguments, attempts=attempts)

    return Tool(
        name=described.name,
        description=described.unit.description,
        schema=described.unit.schema or {},
        effect=effect,
        handler=call,
        server=client.name,
        **host,
    )
