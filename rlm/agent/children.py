"""Children that a tool starts, each with its own name, budget and deadline, under those of the parent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import anyio

from rlm.agent.agent import Agent
from rlm.agent.agent_state import SUBAGENT, AgentState, current_budget, current_texts
from rlm.agent.operations import Operations
from rlm.agent.roles import RECURSE
from rlm.boundary import error_from, keeps_its_meaning
from rlm.errors import RlmError, RunError
from rlm.model.base import digest_of
from rlm.model.budget import Budget
from rlm.model.policy import Policy
from rlm.plan import current_step


def make_subagent(
    parent: AgentState,
    query: str,
    budget: Budget,
    child_policy: Policy | None = None,
    *,
    authority: Any = None,
    delegation: Mapping[str, Any] | None = None,
) -> Agent:
    """Return a child that is ready to start.

    Args:
        budget: the fields set in it are the child's own caps. The other caps are the parent's, and the child also draws
            on the parent's budget. ``max_recursion_depth`` counts from the child.
        child_policy: the child's policy; at most the rights of the parent's policy.
        authority: decides after the parent's authority; the stricter decision counts.
        delegation: the command of the host that the task carries, as inert data.

    Raises: RunError ``operation_not_allowed``, ``cycle``; ConfigurationError ``wider_than_parent``. No child is counted
    then.
    """
    Operations(parent).require(RECURSE, SUBAGENT)
    key = digest_of([query, None, None])
    if key in parent.lineage:
        raise RunError("cycle", "this task is being done by an ancestor already", {"query": query[:200]})
    task = next((text for text in current_texts.get() if text == query), query)
    policy, grant = parent.narrowed(parent.run.options.child_policy, child_policy)
    fields = {name: getattr(budget, name) for name in budget.model_fields_set}
    deepest = parent.depth + 1 + fields.get("max_recursion_depth", parent.deepest)
    call_budget = current_budget.get() or parent.run_budget
    call_budget.count("children")
    return Agent(
        run=parent.run,
        id=_name(parent),
        task=task,
        store=parent.store.narrowed([]),
        inputs={"query": query},
        policy=policy,
        grant=grant if authority is None else grant.narrowed(authority=authority),
        run_budget=call_budget.child(parent.run_budget.budget.model_copy(update=fields)),
        deadline=min(parent.deadline, anyio.current_time() + budget.time_limit),
        depth=parent.depth + 1,
        deepest=min(parent.deepest, deepest),
        lineage=(*parent.lineage, key),
        delegation=delegation,
    )


def _name(parent: AgentState) -> str:
    """Return the child's name: unique in the run, and equal in every replay. It holds the calling step and a number."""
    call = f"{parent.id}.{parent.turn}:{current_step.get() or 'tool'}"
    parent.child_counts[call] += 1
    return call if parent.child_counts[call] == 1 else f"{call}#{parent.child_counts[call]}"


async def answer_in_time(parent: AgentState, child: Agent) -> tuple[Any, RlmError | None]:
    """Return a child's answer, or its last bound value with the error that ended it.

    The child holds a slot of its depth until it ends. It ends at its own deadline, or with its parent's plan.
    """
    started, task = anyio.current_time(), asyncio.current_task()
    problem: RlmError | None = None
    scope = anyio.CancelScope(deadline=child.deadline)
    parent.child_scopes.add(scope)
    try:
        with scope:
            async with parent.run.child_slots(child.depth):
                return await child.answer(), None
    except BaseException as raised:
        if keeps_its_meaning(raised, task):
            raise
        problem = error_from(raised, "a subagent")
    finally:
        parent.child_scopes.discard(scope)
        child.seconds = anyio.current_time() - started
    if problem is None or anyio.current_time() >= child.deadline:
        problem = _ended(child)
    return next(reversed(child.partial().values()), None), problem


def _ended(child: Agent) -> RunError:
    """Return the error of a child that was ended from outside: by its deadline, or by the end of its parent's plan."""
    if anyio.current_time() < child.deadline:
        return RunError("cancelled", "the plan that started this child has ended")
    limit = child.run_budget.budget.time_limit
    return RunError("timeout", f"the time limit of {limit:g} s was reached", {"time_limit": limit})
