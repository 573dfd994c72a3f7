"""How the tests call a tool."""

from __future__ import annotations

from typing import Any

import anyio

import rlm
from rlm.tools.execute import execute
from rlm.tools.outcome import ToolOutcome

ALLOW = rlm.Grant(authority="allow")


async def call(
    tool: rlm.Tool, arguments: Any = None, grant: rlm.Grant = ALLOW, *, seconds: float = 30, **more: Any
) -> ToolOutcome:
    """The outcome of a call that has so many seconds."""
    deadline = anyio.current_time() + seconds
    return await execute(tool, {} if arguments is None else arguments, grant, deadline=deadline, **more)


def kind(outcome: ToolOutcome) -> str:
    """What kind of error an outcome has."""
    assert outcome.error is not None, outcome
    return str(outcome.error["kind"])
