"""The static list of a gateway. It depends on the host's configuration alone, so it never varies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mcp_types as types

from rlm.gateway.finding import plain_schema
from rlm.gateway.lanes import Lane
from rlm.model.unit import Unit

MOST_SERVERS = 40
"""ToolNames of servers in a description; the rest is a number."""

_TEXT = {"type": "string"}
_CALL = {"name": _TEXT, "args": {"type": "object"}}


def meta_tools(servers: Sequence[str], *, skills: bool, plans: bool) -> list[types.Tool]:
    """Return the gateway's own tools.

    Args:
        servers: the names of the servers of the configuration, connected or not.
        skills: whether the gateway has skills to read.
        plans: whether the gateway runs plans.
    """
    names = sorted(servers)
    behind = ", ".join(names[:MOST_SERVERS]) + (
        f" and {len(names) - MOST_SERVERS} more" if len(names) > MOST_SERVERS else ""
    )
    find = f"Find tools for a task, in plain words, before you say that you lack one. Servers: {behind or 'none'}."
    read = types.ToolAnnotations(read_only_hint=True)
    tools = [
        _tool("find_tools", find, {"task": _TEXT, "budget": {"type": "integer"}, "session": _TEXT}, ("task",), read),
        _tool(Lane.READ, "Call a found tool that only reads.", _CALL, ("name",), read),
        _tool(
            Lane.WRITE,
            "Call a found tool that changes something.",
            _CALL,
            ("name",),
            types.ToolAnnotations(read_only_hint=False, destructive_hint=False),
        ),
        _tool(
            Lane.DESTRUCTIVE,
            "Call a found tool that deletes, installs or runs something.",
            _CALL,
            ("name",),
            types.ToolAnnotations(read_only_hint=False, destructive_hint=True),
        ),
        _tool(
            "why",
            "Why a tool is found or hidden for a task, and what would show it.",
            {"task": _TEXT, "name": _TEXT},
            ("task", "name"),
            read,
        ),
    ]
    if skills:
        tools.append(_tool("read_skill", "Read a found skill.", {"name": _TEXT}, ("name",), read))
    if plans:
        tools.append(
            _tool(
                "run_plan",
                "Run several found tools as one plan. Its form: resource rlm://plan.",
                {"plan": {"type": "object"}},
                ("plan",),
                types.ToolAnnotations(read_only_hint=False, destructive_hint=True),
            )
        )
    return tools


def pinned_tools(units: Sequence[Unit]) -> list[types.Tool]:
    """Return the host's pinned tools as the client sees them, by name."""
    return [
        types.Tool(
            name=unit.id.partition(":")[2],
            description=unit.description,
            input_schema=plain_schema(unit.schema),
        )
        for unit in sorted(units, key=lambda unit: unit.id)
    ]


def _tool(
    name: str, description: str, fields: dict[str, Any], required: tuple[str, ...], hints: types.ToolAnnotations
) -> types.Tool:
    schema = {"type": "object", "properties": fields, "required": list(required)}
    return types.Tool(name=str(name), description=description, input_schema=schema, annotations=hints)
