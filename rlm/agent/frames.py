"""What an agent's next plan may name: operations, tools, inputs and handles; and the texts that tell a planner so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rlm.agent.agent_state import AgentState, AmountsLeft
from rlm.agent.roles import REQUIRED_CAPABILITY, PlannerTexts, planner_part
from rlm.context.arguments import ACTIONS
from rlm.model.plan import Frame
from rlm.model.policy import covers
from rlm.model.unit import CALLABLE
from rlm.plan import is_handle
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


READ_WHOLE = frozenset({"final", "model", "rlm"})
"""The operations that a request offers where no material lies outside of it and no tool is shown."""


@dataclass(frozen=True)
class OfferedOps:
    """The operations that a request describes: without a tool, and where a tool is shown (``acting``).

    A plan may have all operations of its frame. What a request cannot use is not described in it.
    """

    plain: frozenset[str]
    acting: frozenset[str]

    def of(self, acting: bool) -> frozenset[str]:
        """Return the operations where a tool is shown, or where none is."""
        return self.acting if acting else self.plain


def offered_ops(ops: frozenset[str], outside: bool) -> OfferedOps:
    """Return the operations that a request describes.

    Args:
        ops: the operations that the agent may use, without ``tool`` where no tool can be shown.
        outside: whether material lies outside of the request.
    """
    reading = ops if outside else ops - {"context"}
    plain = reading - {"tool", "retry"}  # only a tool has a passing failure that nothing else retries
    if not outside:
        plain &= READ_WHOLE | ({"observe"} if "tool" in ops else set())  # a need brings a tool that is not shown yet
    return OfferedOps(plain, reading if "tool" in ops else plain)


def lies_outside(agent: AgentState, unread: Iterable[str]) -> bool:
    """Whether any context of the agent is not whole in its request; ``unread`` are the inputs that are not."""
    missing = set(unread)
    whole = {value["handle"] for name, value in agent.inputs.items() if is_handle(value) and name not in missing}
    return any(handle.id not in whole for handle in agent.store.handles)


def planner_texts(agent: AgentState, offered: OfferedOps) -> PlannerTexts:
    """Return the texts of a planner's request, for a request with and without a tool."""
    writes = agent.run.toolbox.may_write
    return PlannerTexts(
        planner_part(offered.plain, False, False),
        grammar(offered.plain) + capabilities_text(agent, offered.plain),
        planner_part(offered.acting, True, writes),
        grammar(offered.acting) + capabilities_text(agent, offered.acting),
    )


@lru_cache(maxsize=256)
def grammar(ops: frozenset[str]) -> str:
    """Return the text that describes the plan language with these operations."""
    return grammar_text(Frame(ops=ops, actions=ACTION_SCHEMAS))


def capabilities_text(agent: AgentState, ops: frozenset[str]) -> str:
    """Return the text that lists the operations of the agent and of a child."""
    text = f"# Capabilities\n{_listed(ops & REQUIRED_CAPABILITY.keys())}\n"
    if "rlm" not in ops:
        return text
    child_ops = (ops & REQUIRED_CAPABILITY.keys()) - (frozenset() if _child_recurses(agent) else {"rlm"})
    return f"{text}# Child capabilities\n{_listed(child_ops)}\n"


def budget_text(left: AmountsLeft, ops: frozenset[str], leaf_room: int | None) -> str:
    """Return the text that states the amounts left, or that this turn is the last one.

    Args:
        left: the amounts left, by budget field.
        ops: the operations that the request offers.
        leaf_room: tokens that the prompt of a ``model`` step may have; None where there is no such step.
    """
    room = "" if leaf_room is None or "model" not in ops else f"room of a `model` prompt: {leaf_room:,} tokens\n"
    if is_last_turn(left):
        return f"\n# Last turn\nNo turn can follow: end with `final`, by the best inference from what there is.\n{room}"
    tools = f", tool calls: {left['max_tool_calls']}" if "tool" in ops else ""
    return (
        f"\n# Budget\nmodel calls: {left['max_model_calls'] - 1} (each further turn of yours takes one), "
        f"turns: {left['max_iterations']}{tools}\n{room}"
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
