"""prolog-rlm: what a language model sees, and what it may do, is decided by rules that anyone can read.

    catalog = rlm.Catalog([rlm.Unit("tool:git_diff", description="Show what changed in git")])
    view = rlm.compile(catalog, "review my change")
    print(view.explain("tool:git_diff"))

Names are loaded when they are first used; importing the package starts nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Activation": "rlm.model.unit",
    "Admitted": "rlm.model.turn",
    "Answer": "rlm.runtime.answer",
    "Approval": "rlm.tools.authority",
    "Authority": "rlm.tools.authority",
    "Budget": "rlm.model.budget",
    "Cancellation": "rlm.tools.cancellation",
    "CancelToken": "rlm.runtime.cancel",
    "Catalog": "rlm.catalog.catalog",
    "Class": "rlm.model.turn",
    "CompiledContext": "rlm.compiler.view",
    "Command": "rlm.runtime.commands",
    "Commands": "rlm.runtime.commands",
    "Completion": "rlm.runtime.completion",
    "Context": "rlm.runtime.context.context",
    "Decision": "rlm.tools.authority",
    "Effect": "rlm.tools.function",
    "Future": "rlm.runtime.futures",
    "Grant": "rlm.tools.grant",
    "Kind": "rlm.model.unit",
    "Ledger": "rlm.model.ledger",
    "MCPClient": "rlm.tools.mcp.client",
    "MCPLimits": "rlm.tools.mcp.config",
    "MCPTools": "rlm.catalog.mcp",
    "Message": "rlm.model.message",
    "Mode": "rlm.model.policy",
    "Pin": "rlm.skills.profile",
    "Policy": "rlm.model.policy",
    "Pool": "rlm.runtime.futures",
    "Profile": "rlm.skills.profile",
    "Projection": "rlm.tools.function",
    "Reason": "rlm.model.selection",
    "Registry": "rlm.tools.registry",
    "Representation": "rlm.model.unit",
    "Sensor": "rlm.compiler.sensor",
    "Session": "rlm.compiler.session",
    "State": "rlm.model.selection",
    "SubagentTimeouts": "rlm.runtime.subagent",
    "Tier": "rlm.tools.authority",
    "Tool": "rlm.tools.function",
    "ToolOutcome": "rlm.tools.outcome",
    "ToolRequest": "rlm.tools.authority",
    "Trigger": "rlm.model.unit",
    "Trust": "rlm.model.unit",
    "Unit": "rlm.model.unit",
    "aask": "rlm.runtime.ask",
    "achat": "rlm.runtime.chat",
    "acompile": "rlm.compiler.compile",
    "acomplete": "rlm.runtime.complete",
    "areplay": "rlm.runtime.complete",
    "arun_plan": "rlm.runtime.complete",
    "as_completed": "rlm.runtime.futures",
    "ask": "rlm.runtime.ask",
    "cancelled": "rlm.tools.cancellation",
    "chat": "rlm.runtime.chat",
    "compile": "rlm.compiler.compile",
    "load_mcp_config": "rlm.tools.mcp.config",
    "complete": "rlm.runtime.complete",
    "gather": "rlm.runtime.futures",
    "replay": "rlm.runtime.complete",
    "run_plan": "rlm.runtime.complete",
    "subagent_tool": "rlm.runtime.subagent",
    "submit": "rlm.runtime.futures",
    "tool": "rlm.tools.function",
}

__all__ = [*_HOMES, "__version__", "errors"]

if TYPE_CHECKING:
    from rlm import errors as errors
    from rlm.catalog.catalog import Catalog as Catalog
    from rlm.catalog.mcp import MCPTools as MCPTools
    from rlm.compiler.compile import acompile as acompile
    from rlm.compiler.compile import compile as compile  # noqa: A004
    from rlm.compiler.sensor import Sensor as Sensor
    from rlm.compiler.session import Session as Session
    from rlm.compiler.view import CompiledContext as CompiledContext
    from rlm.model.budget import Budget as Budget
    from rlm.model.ledger import Ledger as Ledger
    from rlm.model.message import Message as Message
    from rlm.model.policy import Mode as Mode
    from rlm.model.policy import Policy as Policy
    from rlm.model.selection import Reason as Reason
    from rlm.model.selection import State as State
    from rlm.model.turn import Admitted as Admitted
    from rlm.model.turn import Class as Class
    from rlm.model.unit import (
        Activation as Activation,
    )
    from rlm.model.unit import (
        Kind as Kind,
    )
    from rlm.model.unit import (
        Representation as Representation,
    )
    from rlm.model.unit import (
        Trigger as Trigger,
    )
    from rlm.model.unit import (
        Trust as Trust,
    )
    from rlm.model.unit import (
        Unit as Unit,
    )
    from rlm.runtime.answer import Answer as Answer
    from rlm.runtime.ask import aask as aask
    from rlm.runtime.ask import ask as ask
    from rlm.runtime.cancel import CancelToken as CancelToken
    from rlm.runtime.chat import achat as achat
    from rlm.runtime.chat import chat as chat
    from rlm.runtime.commands import Command as Command
    from rlm.runtime.commands import Commands as Commands
    from rlm.runtime.complete import acomplete as acomplete
    from rlm.runtime.complete import areplay as areplay
    from rlm.runtime.complete import arun_plan as arun_plan
    from rlm.runtime.complete import complete as complete
    from rlm.runtime.complete import replay as replay
    from rlm.runtime.complete import run_plan as run_plan
    from rlm.runtime.completion import Completion as Completion
    from rlm.runtime.context.context import Context as Context
    from rlm.runtime.futures import Future as Future
    from rlm.runtime.futures import Pool as Pool
    from rlm.runtime.futures import as_completed as as_completed
    from rlm.runtime.futures import gather as gather
    from rlm.runtime.futures import submit as submit
    from rlm.runtime.subagent import SubagentTimeouts as SubagentTimeouts
    from rlm.runtime.subagent import subagent_tool as subagent_tool
    from rlm.skills.profile import Pin as Pin
    from rlm.skills.profile import Profile as Profile
    from rlm.tools.authority import Approval as Approval
    from rlm.tools.authority import Authority as Authority
    from rlm.tools.authority import Decision as Decision
    from rlm.tools.authority import Tier as Tier
    from rlm.tools.authority import ToolRequest as ToolRequest
    from rlm.tools.cancellation import Cancellation as Cancellation
    from rlm.tools.cancellation import cancelled as cancelled
    from rlm.tools.function import Effect as Effect
    from rlm.tools.function import Projection as Projection
    from rlm.tools.function import Tool as Tool
    from rlm.tools.function import tool as tool
    from rlm.tools.grant import Grant as Grant
    from rlm.tools.mcp.client import MCPClient as MCPClient
    from rlm.tools.mcp.config import MCPLimits as MCPLimits
    from rlm.tools.mcp.config import load_mcp_config as load_mcp_config
    from rlm.tools.outcome import ToolOutcome as ToolOutcome
    from rlm.tools.registry import Registry as Registry


def __getattr__(name: str) -> Any:
    if name == "errors":
        return importlib.import_module("rlm.errors")
    home = _HOMES.get(name)
    if home is None:
        from rlm.errors import did_you_mean

        raise AttributeError(f"module 'rlm' has no attribute {name!r}{did_you_mean(name, _HOMES)}")
    from rlm.imports import whole

    with whole():
        value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
