"""One turn of planning: compile a request, send it, and check the plan in the reply."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import anyio.to_thread

from rlm.agent.agent_state import AgentState, AmountsLeft
from rlm.agent.conversation import Conversation
from rlm.agent.frames import allowed_ops, budget_text, capabilities_text, frame_of_view, grammar
from rlm.agent.requests import RequestDraft
from rlm.agent.roles import runtime_units
from rlm.errors import BudgetError, ProviderError, RunError
from rlm.fencing import json_text, message
from rlm.model.plan import Frame, PlanError, PlanProblem, ValidPlan
from rlm.model.unit import CALLABLE
from rlm.plan import Material, read, texts_in
from rlm.plan.cost import preflight, step_problems, worst_case
from rlm.plan.reply_json import material_of
from rlm.plan.reply_schema import plan_schema
from rlm.sending.incomplete import unfinished
from rlm.sending.results import PromptProjection

if TYPE_CHECKING:
    from rlm.compiler.view import CompiledContext

COMPACT_SHARE = 2
"""A conversation above one part in two of the request's token limit is compacted."""

LARGE_TEXT = 8_000
"""Characters of a reply that is checked in a thread. A check of so many takes up to 5 ms without a schema."""

T = TypeVar("T")


async def next_plan(agent: AgentState, conversation: Conversation) -> tuple[ValidPlan, str]:
    """Ask the planner for a plan; return the valid plan and its text.

    An invalid reply is returned to the planner with its problems, at most ``max_repairs`` times in a row.

    Raises: RunError ``no_valid_plan``, and the errors of compiling and sending.
    """
    run, trace = agent.run, agent.run.trace
    for attempt in range(run.options.max_repairs + 1):
        call = f"{agent.id}.{agent.turn}" + (f"~{attempt}" if attempt else "")
        draft, view, frame = await _compiled_draft(agent, conversation, call, repairing=attempt > 0)
        agent.projection = PromptProjection(
            fingerprint=view.fingerprint, active_units=view.active, tool_count=len(view.callable)
        )
        reply = await run.send_draft(draft, view, plan_schema(frame))
        try:
            incomplete = unfinished(reply)
            if incomplete is not None:
                raise _incomplete_plan(incomplete, view.policy.reserve_output)
            material = material_of(view.messages("text"))
            plan = await in_thread_if_large(len(reply.text), read, reply.text, frame, material)
            left = run.record_left(f"{call}:plan", agent.run_budget)
            problems = await in_thread_if_large(len(reply.text), _unaffordable, plan, frame, left)
            if problems:
                raise PlanError.of(problems)
        except PlanError as problem:
            last = problem
            trace.event("refused", call=call, error=problem.to_dict())
            conversation.add_refused(reply.text, problem.problems)
            continue
        trace.event("plan", call=call, plan=trace.body(plan.data) if trace.active else "")
        return plan, await in_thread_if_large(len(reply.text), json_text, plan.data)
    text = f"no valid plan in {run.options.max_repairs + 1} replies; the last: {last.message}"
    raise RunError("no_valid_plan", text, {"problems": last.detail.get("problems", [])})


async def _compiled_draft(
    agent: AgentState, conversation: Conversation, call: str, *, repairing: bool
) -> tuple[RequestDraft, CompiledContext, Frame]:
    """Return the next request, its compiled context and the frame of its plan; compact a long conversation."""
    run = agent.run
    left = run.record_left(call, agent.run_budget)
    withheld = agent.withheld_at(left, spare=1)  # this very request
    ops = allowed_ops(agent, withheld, left)
    if not any(unit.kind in CALLABLE for unit in run.catalog.units.values()):
        ops = ops - {"tool"}  # known without a compile
    while True:
        draft = _draft(agent, conversation, call, withheld, ops, left, repairing=repairing)
        try:
            view = await run.compile(draft)
        except BudgetError:
            if not conversation.compact():
                raise
        else:
            if "tool" in ops and not view.callable:
                ops = ops - {"tool"}  # without a callable tool the request does not mention the operation
                continue
            if view.ledger.task * COMPACT_SHARE <= view.ledger.limit or not conversation.compact():
                if _report_tools(agent, conversation, view, call):
                    continue
                agent.tools.show(view)
                return draft, view, frame_of_view(agent, view, ops)
        run.trace.event("compacted", call=call, turns=conversation.compacted)


def _report_tools(agent: AgentState, conversation: Conversation, view: CompiledContext, call: str) -> bool:
    """Add the changes of the visible tools to the last answer; return whether the request must be compiled again."""
    change = agent.tools.changed_by(view)
    if conversation.tools_reported or not conversation.exchanges or not change.text:
        return False
    conversation.add_tools(change.text)
    agent.run.trace.event("needs", call=call, **change.row(view))
    return True


def _draft(
    agent: AgentState,
    conversation: Conversation,
    call: str,
    withheld: frozenset[str],
    ops: frozenset[str],
    left: AmountsLeft,
    *,
    repairing: bool,
) -> RequestDraft:
    """Return the next request before it is compiled.

    Only the root's task is in the user's own words. A model wrote a child's task: the request shows it like a user's
    message, and it counts as a need.
    """
    tail = conversation.tail(capabilities_text(agent, ops) + budget_text(left))
    if agent.depth:
        task = message(*(piece.block if isinstance(piece, Material) else piece for piece in texts_in(agent.task)))
        tail = [{"role": "user", "content": task}, *tail]
    return RequestDraft(
        call=call,
        role=agent.role,
        text="" if agent.depth else agent.task,
        tail=tail,
        needs=agent.tools.needs,
        retained=agent.tools.retained,
        unused=agent.tools.unused,
        notes=agent.tool_notes,
        extra_pinned=runtime_units(agent.role, repairing, grammar(ops)),
        withheld=withheld,
        policy=agent.policy,
        run_budget=agent.run_budget,
        deadline=agent.deadline,
    )


async def in_thread_if_large(chars: int, check: Callable[..., T], *args: Any) -> T:
    """Return ``check(*args)``. A check of a large text runs in a thread, so that it does not block the event loop."""
    if chars < LARGE_TEXT:
        return check(*args)
    return await anyio.to_thread.run_sync(check, *args, abandon_on_cancel=True)


def _unaffordable(plan: ValidPlan, frame: Frame, left: AmountsLeft) -> tuple[PlanProblem, ...]:
    """Return the problems of a plan that can exceed the amounts left. Children have turns of their own."""
    problems = preflight(worst_case(plan, frame), {**left, "max_iterations": None})
    return (*problems, *step_problems(plan, frame, left.get("max_steps")))


def _incomplete_plan(problem: ProviderError, limit: int) -> PlanError:
    """Return the error of an incomplete reply, in the form that a planner reads."""
    text, expected = problem.message, "a whole reply with one plan"
    if problem.kind == "reply_cut":
        text += f" (at most {limit}), and a plan that is cut is not run"
        expected = "a shorter reply: the plan alone, with fewer steps; `observe` ends a plan that goes on later"
    return PlanError.of([PlanProblem(path="", kind=problem.kind, message=text, expected=expected, got="")])
