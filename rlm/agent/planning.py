"""One turn of planning: compile a request, send it, and check the plan in the reply."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import anyio.to_thread

from rlm.agent.agent_state import AgentState, AmountsLeft
from rlm.agent.conversation import Conversation
from rlm.agent.frames import allowed_ops, budget_text, frame_of_view, lies_outside, offered_ops, planner_texts
from rlm.agent.leaf_room import leaf_room
from rlm.agent.requests import RequestDraft
from rlm.agent.roles import PlannerTexts, runtime_units, signals_of
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
        draft, view, frame, offered = await _compiled_draft(agent, conversation, call, repairing=attempt > 0)
        agent.projection = PromptProjection(
            fingerprint=view.fingerprint, active_units=view.active, tool_count=len(view.callable)
        )
        reply = await run.send_draft(draft, view, _schema(agent, frame, offered))
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


def _schema(agent: AgentState, frame: Frame, offered: frozenset[str]) -> dict[str, Any] | None:
    """Return the schema of a reply with the operations that the request describes; None where nothing enforces it.

    It is made again only where the frame differs from that of the request before.
    """
    if not agent.run.endpoint(agent.role).provider.enforces_schema:
        return None
    shown = frame.model_copy(update={"ops": offered, "variables": {}, "known_tools": (), "child": None})
    if agent.reply_schema is None or agent.reply_schema[0] != shown:
        agent.reply_schema = (shown, plan_schema(shown))
    return agent.reply_schema[1]


async def _compiled_draft(
    agent: AgentState, conversation: Conversation, call: str, *, repairing: bool
) -> tuple[RequestDraft, CompiledContext, Frame, frozenset[str]]:
    """Return the next request, its compiled context, the frame of its plan and the operations that it describes.

    A long conversation is compacted.
    """
    run = agent.run
    left = run.record_left(call, agent.run_budget)
    withheld = agent.withheld_at(left, spare=1)  # this very request
    ops = allowed_ops(agent, withheld, left)
    if not any(unit.kind in CALLABLE for unit in run.catalog.units.values()):
        ops = ops - {"tool"}  # known without a compile
    room = await leaf_room(run, agent.policy) if "model" in ops else None
    while True:
        outside = lies_outside(agent, conversation.inputs.unread)
        offered = offered_ops(ops, outside)
        status = budget_text(left, offered.acting, room)
        texts = planner_texts(agent, offered)
        draft = _draft(agent, conversation, call, withheld, repairing, outside, status, texts)
        try:
            view = await run.compile(draft)
        except BudgetError:
            if not conversation.compact():
                raise
        else:
            if not view.callable and "acting" in view.bodies.values():
                ops = ops - {"tool"}  # the tools had no room: the request does not mention the operation
                continue
            if view.ledger.task * COMPACT_SHARE <= view.ledger.limit or not conversation.compact():
                if _report_tools(agent, conversation, view, call):
                    continue
                agent.tools.show(view)
                ops = ops if view.callable else ops - {"tool"}
                return draft, view, frame_of_view(agent, view, ops), offered.of(bool(view.callable))
        run.trace.event("compacted", call=call, turns=conversation.compacted)


def _report_tools(agent: AgentState, conversation: Conversation, view: CompiledContext, call: str) -> bool:
    """Add the changes of the visible tools to the last answer; return whether the request must be compiled again."""
    change = agent.tools.changed_by(view)
    if not change.text or conversation.reports_tools(change.text):
        return False
    conversation.add_tools(change.text)
    agent.run.trace.event("needs", call=call, **change.row(view))
    return True


def _draft(
    agent: AgentState,
    conversation: Conversation,
    call: str,
    withheld: frozenset[str],
    repairing: bool,
    outside: bool,
    status: str,
    texts: PlannerTexts,
) -> RequestDraft:
    """Return the next request before it is compiled.

    Only the root's task is in the user's own words. A model wrote a child's task: the request shows it like a user's
    message, and it counts as a need.
    """
    tail = conversation.tail(status)
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
        extra_pinned=runtime_units(agent.role, repairing, texts),
        withheld=withheld,
        policy=agent.policy,
        run_budget=agent.run_budget,
        deadline=agent.deadline,
        signals=signals_of(agent.role, repairing=repairing, outside=outside),
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
