"""Lanes: the three tools of the gateway that call others, by what a call may do.

Clients ask their user for each lane by its own name. So a tool is in one lane only, and a claim of a server can move
it to a stricter lane, or to a milder one where the host believes the server.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import Any

from rlm.gateway.names import bare_name, long_name
from rlm.gateway.settings import GatewaySettings
from rlm.model.policy import covers
from rlm.tools.tool import Effect, Tool

_DELETING = frozenset({"delete", "remove", "drop", "destroy", "purge", "erase", "wipe", "truncate", "uninstall", "rm"})
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


class Lane(enum.StrEnum):
    """The gateway's tool that calls a tool."""

    READ = "call_read"
    WRITE = "call_write"
    DESTRUCTIVE = "call_destructive"


def lane_of(tool: Tool, annotations: Mapping[str, Any], settings: GatewaySettings) -> Lane:
    """Return the lane of a tool.

    The host's patterns count first. A read is a read because the host declares it or believes the server. A tool that
    deletes by its name, or by the word of its server, is destructive, unless the host declares its effect.
    """
    name = long_name(tool.id)
    if any(covers(pattern, name) for pattern in settings.destructive) or tool.effect in (
        Effect.PROCESS,
        Effect.INSTALL,
    ):
        return Lane.DESTRUCTIVE
    if tool.effect is Effect.READ:
        return Lane.READ
    declared = any(covers(pattern, name) or pattern == bare_name(tool.id) for pattern in settings.effects)
    deletes = {word.lower() for word in _WORD.findall(bare_name(tool.id))} & _DELETING
    if not declared and (deletes or annotations.get("destructiveHint") is True):
        return Lane.DESTRUCTIVE
    return Lane.WRITE
