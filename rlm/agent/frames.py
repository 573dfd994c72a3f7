"""What an agent's next plan may name: operations, tools, inputs and handles; and the texts that tell a planner so."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rlm.agent.agent_state import AgentState, AmountsLeft
from rlm.agent.roles import REQUIRED_CAPABILITY
from rlm.context.arguments import ACTIONS
from rlm.model.plan import Frame
from rlm.model.policy import covers
from rlm.model.unit import CALLABLE
from rlm.plan.reply_text import grammar_text

if TYPE_CHECKING:
    from rlm.compiler.view import CompiledContext

ACTION_SCHEMAS = {name: dict(spec.schema) for name, spec in ACTIONS.items()}
"""The JSON Schema of the arguments of each context action."""


def allowed_ops(agent: AgentState, withheld: frozenset[str], left: AmountsLeft) -> frozenset[str]:
    """Return the operations of a plan that the agent may use: those with their capability.

    A plan of the last turn has no ``observe``, because no turn can follow.
    """
    patterns = withheld | agent.policy.withheld
    denied = {
        op for op, capability in REQUIRED_CAPABILITY.items() if any(covers(pattern, capability) for pattern in patterns)
    }
    if is_last_turn(left):
        denied |= {"observe", "check"}
    return Frame().without(*denied).ops


def frame_of_view(agent: AgentState, view: CompiledContext, ops: frozenset[str]) -> Frame:
    """Return the frame of a plan that answers a request: its tools are the callable ones of the view."""
    units = view.units
    checked = agent.run.toolbox.checked
    name_of = view.wire_names.of
    tools = {name_of(id): checked(id, units[id].schema or {"type": "object"}) for id in view.callable}
    hidden = tuple(name_of(id) for id, unit in units.items() if unit.kind in CALLABLE and id not in view.callable)
    frame = Frame(
        inputs={name: _length(value) for name, value in agent.inputs.items()},
        handles=tuple(handle.id for handle in agent.store.handles),
        tools=tools,
        known_tools=hidden,
        ops=ops,
        actions=ACTION_SCHEMAS,
        variables={name: _length(value) for name, value in agent.bound.items()},
    )
    if "rlm" not in ops:
        return frame
    child = frame.model_copy(
        update={
            "inputs": {"query": None, "context": None},
            "handles": ("context",),
            "variables": {},
            "ops": ops - {"observe", "check"} if _child_recurses(agent) else ops - {"observe", "check", "rlm"},
        }
    )
    return frame.model_copy(update={"child": child})


def host_frame(agent: AgentState, left: AmountsLeft) -> Frame:
    """Return the frame of a plan that the host wrote: every registered or bound tool, visible or not."""
    ops = allowed_ops(agent, agent.withheld_at(left, spare=0), left) | {"observe", "check"}
    return Frame(
        inputs={name: _length(value) for name, value in agent.inputs.items()},
        handles=tuple(handle.id for handle in agent.store.handles),
        tools=agent.run.toolbox.schemas,
        ops=ops,
        actions=ACTION_SCHEMAS,
        variables={name: _length(value) for name, value in agent.bound.items()},
    )


@lru_cache(maxsize=256)
def grammar(ops: frozenset[str]) -> str:
    """Return the text that describes the plan language with these operations."""
    return grammar_text(Frame(ops=ops, actions=ACTION_SCHEMAS))


def capabilities_text(agent: AgentState, ops: frozenset[str]) -> str:
    """Return the text that lists the operations of the agent and of a child."""
    text = f"\n# Capabilities\n{_listed(ops & REQUIRED_CAPABILITY.keys())}\n"
    if "rlm" not in ops:
        return text
    child_ops = (ops & REQUIRED_CAPABILITY.keys()) - (frozenset() if _child_recurses(agent) else {"rlm"})
    return f"{text}# Child capabilities\n{_listed(child_ops)}\n"


def budget_text(left: AmountsLeft) -> str:
    """Return the text that states the amounts left, or that this turn is the last one."""
    if is_last_turn(left):
        return "\n# Last turn\nNo turn can follow: end with `final`, by the best inference from what there is.\n"
    return (
        f"\n# Budget\nturns left after this: {left['max_iterations']}, model calls: {left['max_model_calls'] - 1}, "
        f"tool calls: {left['max_tool_calls']}\n"
    )


def is_last_turn(left: AmountsLeft) -> bool:
    """Whether no turn can follow the one that is being prepared."""
    return bool(left["max_iterations"] <= 0 or left["max_model_calls"] <= 1)


def _child_recurses(agent: AgentState) -> bool:
    return agent.depth + 1 < agent.deepest


def _listed(ops: Iterable[str]) -> str:
    return ", ".join(sorted(ops)) or "none"


def _length(value: Any) -> int | None:
    return len(value) if isinstance(value, list) else None
