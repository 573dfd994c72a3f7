"""prolog-rlm: rules that anyone can read decide which units a language model sees, and which tools it may call.

    catalog = rlm.Catalog([rlm.Unit("tool:git_diff", description="Show what changed in git")])
    view = rlm.compile(catalog, "review my change")
    print(view.explain("tool:git_diff"))

Names are loaded at their first use; importing the package starts nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Activation": "rlm.model.unit",
    "Preselected": "rlm.model.turn",
    "Agent": "rlm.api.agent",
    "AgentEvent": "rlm.api.agent",
    "Answer": "rlm.sending.results",
    "Approval": "rlm.tools.authority",
    "Authority": "rlm.tools.authority",
    "BatchRow": "rlm.batches.compiles",
    "Budget": "rlm.model.budget",
    "Cancellation": "rlm.tools.cancellation",
    "CancelToken": "rlm.sending.cancel",
    "Catalog": "rlm.catalog.catalog",
    "PackingClass": "rlm.model.turn",
    "CompiledContext": "rlm.compiler.view",
    "Command": "rlm.agent.commands",
    "Commands": "rlm.agent.commands",
    "Completion": "rlm.sending.completion",
    "Context": "rlm.context.context",
    "Decision": "rlm.tools.authority",
    "Effect": "rlm.tools.function",
    "Future": "rlm.api.futures",
    "Gateway": "rlm.gateway.gateway",
    "GatewaySettings": "rlm.gateway.settings",
    "Grant": "rlm.tools.grant",
    "Kind": "rlm.model.unit",
    "TokenLedger": "rlm.model.token_ledger",
    "MCPClient": "rlm.tools.mcp.client",
    "MCPLimits": "rlm.tools.mcp.config",
    "MCPTools": "rlm.catalog.mcp",
    "Message": "rlm.model.message",
    "Mode": "rlm.model.policy",
    "Pin": "rlm.skills.profile",
    "Policy": "rlm.model.policy",
    "Pool": "rlm.api.futures",
    "Profile": "rlm.skills.profile",
    "ResultForm": "rlm.tools.function",
    "Reason": "rlm.model.selection",
    "Registry": "rlm.tools.registry",
    "Representation": "rlm.model.unit",
    "Sensor": "rlm.similarity.sensor",
    "Session": "rlm.compiler.session",
    "State": "rlm.model.selection",
    "SubagentTimeouts": "rlm.agent.subagent",
    "AuthorityLevel": "rlm.tools.authority",
    "Tool": "rlm.tools.function",
    "ToolOutcome": "rlm.tools.outcome",
    "ToolRequest": "rlm.tools.authority",
    "Trigger": "rlm.model.unit",
    "Trust": "rlm.model.unit",
    "Unit": "rlm.model.unit",
    "aask": "rlm.api.ask",
    "achat": "rlm.api.chat",
    "acompile": "rlm.compiler.compile",
    "aexecute": "rlm.api.execute",
    "acomplete": "rlm.api.complete",
    "acomplete_batch": "rlm.batches.completions",
    "areplay": "rlm.api.complete",
    "arun_plan": "rlm.api.complete",
    "as_completed": "rlm.api.futures",
    "awarm": "rlm.compiler.warm",
    "ask": "rlm.api.ask",
    "batch": "rlm.batches.compiles",
    "cancelled": "rlm.tools.cancellation",
    "chat": "rlm.api.chat",
    "compile": "rlm.compiler.compile",
    "load_mcp_config": "rlm.tools.mcp.config",
    "complete": "rlm.api.complete",
    "complete_batch": "rlm.batches.completions",
    "execute": "rlm.api.execute",
    "gather": "rlm.api.futures",
    "replay": "rlm.api.complete",
    "run_plan": "rlm.api.complete",
    "subagent_tool": "rlm.agent.subagent",
    "submit": "rlm.api.futures",
    "tool": "rlm.tools.function",
    "tool_message": "rlm.api.execute",
    "warm": "rlm.compiler.warm",
}

_RENAMED = {
    "Admitted": "Preselected",
    "Class": "PackingClass",
    "Ledger": "TokenLedger",
    "Projection": "ResultForm",
    "Tier": "AuthorityLevel",
}
"""Names of version 0.1 with those that replace them."""

__all__ = [*_HOMES, "__version__", "errors"]

if TYPE_CHECKING:
    from rlm import errors as errors
    from rlm.agent.commands import Command as Command
    from rlm.agent.commands import Commands as Commands
    from rlm.agent.subagent import SubagentTimeouts as SubagentTimeouts
    from rlm.agent.subagent import subagent_tool as subagent_tool
    from rlm.api.agent import Agent as Agent
    from rlm.api.agent import AgentEvent as AgentEvent
    from rlm.api.ask import aask as aask
    from rlm.api.ask import ask as ask
    from rlm.api.chat import achat as achat
    from rlm.api.chat import chat as chat
    from rlm.api.complete import acomplete as acomplete
    from rlm.api.complete import areplay as areplay
    from rlm.api.complete import arun_plan as arun_plan
    from rlm.api.complete import complete as complete
    from rlm.api.complete import replay as replay
    from rlm.api.complete import run_plan as run_plan
    from rlm.api.execute import aexecute as aexecute
    from rlm.api.execute import execute as execute
    from rlm.api.execute import tool_message as tool_message
    from rlm.api.futures import Future as Future
    from rlm.api.futures import Pool as Pool
    from rlm.api.futures import as_completed as as_completed
    from rlm.api.futures import gather as gather
    from rlm.api.futures import submit as submit
    from rlm.batches.compiles import BatchRow as BatchRow
    from rlm.batches.compiles import batch as batch
    from rlm.batches.completions import acomplete_batch as acomplete_batch
    from rlm.batches.completions import complete_batch as complete_batch
    from rlm.catalog.catalog import Catalog as Catalog
    from rlm.catalog.mcp import MCPTools as MCPTools
    from rlm.compiler.compile import acompile as acompile
    from rlm.compiler.compile import compile as compile  # noqa: A004
    from rlm.compiler.session import Session as Session
    from rlm.compiler.view import CompiledContext as CompiledContext
    from rlm.compiler.warm import awarm as awarm
    from rlm.compiler.warm import warm as warm
    from rlm.context.context import Context as Context
    from rlm.gateway.gateway import Gateway as Gateway
    from rlm.gateway.settings import GatewaySettings as GatewaySettings
    from rlm.model.budget import Budget as Budget
    from rlm.model.message import Message as Message
    from rlm.model.policy import Mode as Mode
    from rlm.model.policy import Policy as Policy
    from rlm.model.selection import Reason as Reason
    from rlm.model.selection import State as State
    from rlm.model.token_ledger import TokenLedger as TokenLedger
    from rlm.model.turn import PackingClass as PackingClass
    from rlm.model.turn import Preselected as Preselected
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
    from rlm.sending.cancel import CancelToken as CancelToken
    from rlm.sending.completion import Completion as Completion
    from rlm.sending.results import Answer as Answer
    from rlm.similarity.sensor import Sensor as Sensor
    from rlm.skills.profile import Pin as Pin
    from rlm.skills.profile import Profile as Profile
    from rlm.tools.authority import Approval as Approval
    from rlm.tools.authority import Authority as Authority
    from rlm.tools.authority import AuthorityLevel as AuthorityLevel
    from rlm.tools.authority import Decision as Decision
    from rlm.tools.authority import ToolRequest as ToolRequest
    from rlm.tools.cancellation import Cancellation as Cancellation
    from rlm.tools.cancellation import cancelled as cancelled
    from rlm.tools.function import Effect as Effect
    from rlm.tools.function import ResultForm as ResultForm
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
        if name in _RENAMED:
            raise AttributeError(f"rlm.{name} is called rlm.{_RENAMED[name]} since version 0.2")
        from rlm.errors import did_you_mean

        raise AttributeError(f"module 'rlm' has no attribute {name!r}{did_you_mean(name, _HOMES)}")
    from rlm.imports import whole

    with whole():
        value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
