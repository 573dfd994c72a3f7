"""Children that a tool asked for: with a name, a budget and a deadline of their own, under their parent's."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import anyio

from rlm.agent.agent import SUBAGENT, Agent
from rlm.agent.operations import Operations, current_budget, current_texts
from rlm.agent.roles import RECURSE
from rlm.boundary import error_from, keeps_its_meaning
from rlm.errors import RlmError, RunError
from rlm.model.base import digest_of
from rlm.model.budget import Budget
from rlm.model.policy import Policy
from rlm.plan import current_step


def subagent(
    parent: Agent,
    query: str,
    budget: Budget,
    child_policy: Policy | None = None,
    *,
    authority: Any = None,
    delegation: Mapping[str, Any] | None = None,
) -> Agent:
    """A child, ready to begin.

    Args:
        budget: what it says is the child's own; the rest is the parent's, and all of it draws on the parent's.
            ``max_recursion_depth`` counts from the child.
        child_policy: at most what the parent may do.
        authority: is asked after the parent's, and the stricter word counts.
        delegation: which command of the host the task carries, as inert data.

    Raises: RunError ``operation_not_allowed``, ``cycle``; ConfigurationError ``wider_than_parent``. Nothing was made
    or counted then.
    """
    Operations(parent).require(RECURSE, SUBAGENT)
    key = digest_of([query, None, None])
    if key in parent.lineage:
        raise RunError("cycle", "this task is being done by an ancestor already", {"query": query[:200]})
    task = next((text for text in current_texts.get() if text == query), query)
    policy, grant = parent.narrowed(parent.run.options.child_policy, child_policy)
    said = {name: getattr(budget, name) for name in budget.model_fields_set}
    deepest = parent.depth + 1 + said.get("max_recursion_depth", parent.deepest)
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
        run_budget=call_budget.child(parent.run_budget.budget.model_copy(update=said)),
        deadline=min(parent.deadline, anyio.current_time() + budget.time_limit),
        depth=parent.depth + 1,
        deepest=min(parent.deepest, deepest),
        lineage=(*parent.lineage, key),
        delegation=delegation,
    )


def _name(parent: Agent) -> str:
    """Unique in the run, and the same each time: the call that asks, and which of its children this is."""
    call = f"{parent.id}.{parent.turn}:{current_step.get() or 'tool'}"
    parent.names[call] += 1
    return call if parent.names[call] == 1 else f"{call}#{parent.names[call]}"


async def in_time(parent: Agent, child: Agent) -> tuple[Any, RlmError | None]:
    """A child's answer by its own deadline; else what it had bound last, and what ended it.

    A place among the children of its depth is taken for so long, and given back whatever happens. The child ends
    with its parent's plan at the latest, whoever waits for it.
    """
    started, task = anyio.current_time(), asyncio.current_task()
    problem: RlmError | None = None
    scope = anyio.CancelScope(deadline=child.deadline)
    parent.living.add(scope)
    try:
        with scope:
            async with parent.run.children(child.depth):
                return await child.answer(), None
    except BaseException as raised:
        if keeps_its_meaning(raised, task):
            raise
        problem = error_from(raised, "a subagent")
    finally:
        parent.living.discard(scope)
        child.seconds = anyio.current_time() - started
    if problem is None or anyio.current_time() >= child.deadline:
        problem = _ended(child)
    return next(reversed(child.partial().values()), None), problem


def _ended(child: Agent) -> RunError:
    """What ended it from outside: its deadline, whoever noticed that first; else the end of its parent's plan."""
    if anyio.current_time() < child.deadline:
        return RunError("cancelled", "the plan that asked for this child has ended")
    limit = child.run_budget.budget.time_limit
    return RunError("timeout", f"the time limit of {limit:g} s was reached", {"time_limit": limit})
