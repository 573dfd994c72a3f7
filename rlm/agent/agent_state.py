"""The state of an agent: its task, its rights, its budget, and the values that its plans bound.

Operations and requests depend on this state only. The loop of an agent and its children are in ``rlm.agent.agent``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import anyio

from rlm.agent.roles import MODEL, RECURSE, REQUIRED_CAPABILITY, Role
from rlm.agent.run import Run
from rlm.agent.shown_tools import ShownTools
from rlm.context.store import Store
from rlm.errors import RunError
from rlm.model.plan import Ending, Frame, ValidPlan
from rlm.model.policy import Policy
from rlm.plan import Execution, PromptText
from rlm.sending.results import PromptProjection
from rlm.sending.run_budget import RunBudget
from rlm.tools.consent import notes_by_effect
from rlm.tools.grant import Grant

SUBAGENT = "rlm_subagent"
"""The name of the tool that starts children. It is withheld from agents that must not have any."""

AmountsLeft = Mapping[str, Any]
"""The amounts left of a budget, by budget field."""


@dataclass
class AgentState(ABC):
    """The state of one agent of a run.

    ``deadline`` is an absolute time on the event loop's clock. ``lineage`` holds the digests of the agent's task and
    of its ancestors' tasks. ``inputs`` are the values that plans name as ``{"input": ...}``; contexts are handles.
    ``deepest`` is the depth at which an agent of this line has no children. ``delegation`` is the command of the host
    that the task carries, as inert data. ``child_scopes`` are the cancel scopes of running subagents.
    ``result_shapes`` has the shape of each tool's last result. ``assumptions`` are those of the final value.
    ``reply_schema`` is the schema of the last reply, with the frame that it was made from.
    """

    run: Run
    id: str
    task: str
    store: Store
    inputs: Mapping[str, Any]
    policy: Policy
    grant: Grant
    run_budget: RunBudget
    deadline: float
    depth: int = 0
    deepest: int = 0
    lineage: tuple[str, ...] = ()
    delegation: Mapping[str, Any] | None = None
    bound: dict[str, Any] = field(default_factory=dict)
    turn: int = 0
    chats: int = 0
    seconds: float = 0.0
    execution: Execution | None = None
    projection: PromptProjection | None = None
    reply_schema: tuple[Frame, dict[str, Any]] | None = None
    child_scopes: set[anyio.CancelScope] = field(default_factory=set)
    child_counts: Counter[str] = field(default_factory=Counter)
    result_shapes: dict[str, str] = field(default_factory=dict)
    assumptions: str = ""
    result_counts: Counter[str] = field(default_factory=Counter)
    tools: ShownTools = field(default_factory=ShownTools)

    @abstractmethod
    async def child_answer(self, query: str, context: Any, plan: Mapping[str, Any] | None, *, call: str) -> Any:
        """Let a child do a sub-task and return its value."""

    @abstractmethod
    async def begin_turn(self) -> None:
        """Count the next turn. Raises: RunError ``max_iterations``."""

    @abstractmethod
    async def execute(self, plan: ValidPlan) -> Ending:
        """Execute one plan and return its ending; the bound values stay bound."""

    @abstractmethod
    def value_problem(self, value: Any) -> RunError | None:
        """Return the error for a final value that is too large or breaks the schema; None for a good value."""

    @abstractmethod
    def keep_text(self, name: str, text: str) -> str | None:
        """Keep an observed text as a context, so that actions read it; None where the agent has no actions."""

    @property
    def role(self) -> Role:
        """``planner`` for the root, ``child`` for every other agent."""
        return Role.CHILD if self.depth else Role.PLANNER

    @property
    def withheld(self) -> frozenset[str]:
        """The capabilities that the agent lacks now."""
        return self.withheld_at(self.run_budget.left(), spare=0)

    def withheld_at(self, left: AmountsLeft, *, spare: int) -> frozenset[str]:
        """Return the capabilities that the agent lacks.

        For example, an agent at its deepest level lacks ``runtime:recurse`` and the tool ``rlm_subagent``.

        Args:
            left: the amounts left of its budget.
            spare: model calls in ``left`` that are already assigned.
        """
        withheld: set[str] = set()
        if self.run.leaf is None:
            withheld |= {RECURSE, MODEL}
        if self.depth >= self.deepest:
            withheld.add(RECURSE)
        if left["max_model_calls"] <= spare:
            withheld |= {RECURSE, MODEL}
        if RECURSE in withheld:
            withheld.add(f"tool:{SUBAGENT}")
        if left["max_tool_calls"] <= 0:
            withheld |= {"runtime:tool", "tool:*", "mcp_tool:*"}
        if left["max_context_ops"] <= 0 or not self.store.handles:
            withheld.add(REQUIRED_CAPABILITY["context"])
        return frozenset(withheld)

    @cached_property
    def tool_notes(self) -> dict[str, str]:
        """What the grant says of calls beforehand, by tool id."""
        replay = self.run.replay
        known = notes_by_effect(self.grant) if replay is None else replay.call_notes(self.id)
        return {tool.id: known[tool.effect] for tool in self.run.toolbox.registered if tool.effect in known}

    def partial(self) -> dict[str, Any]:
        """Return the values bound so far, with the finished items of a list that is still being made."""
        if self.execution is None:
            return dict(self.bound)
        return {**self.bound, **self.execution.bindings(), **self.execution.unfinished()}

    def narrowed(self, *policies: Policy | None) -> tuple[Policy, Grant]:
        """Return a child's policy and grant: the agent's own, narrowed by each policy.

        Raises: ConfigurationError ``wider_than_parent`` for a policy that allows more than remains.
        """
        policy, grant = self.policy, self.grant
        for child in policies:
            if child is not None:
                fields = {name: getattr(child, name) for name in child.model_fields_set}
                inherited = {name: getattr(policy, name) for name in policy.model_fields_set}
                policy = policy.narrowed(Policy(**{**inherited, **fields}))
                grant = grant.narrowed(capabilities=policy.capabilities)
        return policy, grant

    def note(self, event: str, **data: Any) -> None:
        """Write an event about this agent to the trace."""
        self.run.trace.event(event, agent=self.id, **data)


current_agent: ContextVar[AgentState | None] = ContextVar("current_agent", default=None)
"""The agent whose tool call runs the current handler of the host."""

current_texts: ContextVar[tuple[PromptText, ...]] = ContextVar("current_texts", default=())
"""The texts among the arguments of that tool call; each knows which of its parts are material."""

current_budget: ContextVar[RunBudget | None] = ContextVar("current_budget", default=None)
"""The run budget of that tool call, under the agent's own. The handler's requests and children draw on it."""
