"""One agent: it plans, executes the plan, observes the result, and plans again until it has a final value.

The root of a run is an agent, and so is every child. A few facts (depth, budget, the host's policy) determine its
capabilities. The rules compile its requests from these facts, and the same facts are checked when a plan is executed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from rlm.agent.agent_state import AgentState
from rlm.agent.conversation import Conversation
from rlm.agent.frames import host_frame, is_last_turn
from rlm.agent.inputs import AgentInputs, answer_text, describe_inputs, observe_text
from rlm.agent.operations import Operations
from rlm.agent.pace import AgentPace
from rlm.agent.planning import LARGE_TEXT, in_thread_if_large, next_plan
from rlm.agent.requests import native_wire
from rlm.agent.roles import CONTEXT
from rlm.agent.shown_tools import needs_of
from rlm.agent.tool_loop import ToolLoop, chosen_loop
from rlm.context.context import Context
from rlm.errors import LONGEST_EXCEPTION, RunError
from rlm.model.base import digest_of
from rlm.model.plan import Ending, Failed, Final, Observe, PlanError, ValidPlan
from rlm.model.policy import covers
from rlm.plan import Execution, PromptText, Scope, is_handle, texts_in, validate, words_in
from rlm.plan.cost import step_problems
from rlm.plan.schemas import mismatch
from rlm.plan.sizes import size_of
from rlm.sending.results import error_of
from rlm.tools.consent import notes_by_effect

MOST_REPEATS = 3
"""The number of equal results of an equal plan that ends an agent: further turns would bring nothing new."""

LARGE_DATA = 1_000
"""Values in a plan that is checked in a thread."""


class Agent(AgentState):
    """One agent of a run, with its loop and its children."""

    # -- the loop -----------------------------------------------------------------------------------

    async def answer(self) -> Any:
        """Plan until a plan ends with ``final``, and return its value.

        Raises: RunError, ProviderError, CompileError or BudgetError that ended the agent.
        """
        trace = self.run.trace
        task = trace.body(self.task) if trace.active else ""
        calls = notes_by_effect(self.grant) if self.run.replay is None else self.run.replay.call_notes(self.id)
        trace.event("agent", agent=self.id, depth=self.depth, role=self.role.value, task=task, calls=calls)
        room = await self.run.inline_room(self.role, self.policy, self.run_budget.budget)
        inputs = await describe_inputs(self.inputs, self.store, room)
        self.tools.first = self.run.options.first_needs if self.depth == 0 else (words_in(self.task),)
        if self._asking(inputs) == "tools":
            return await ToolLoop(self, inputs, native_wire(self.run.endpoint(self.role).provider)).answer()
        room_text = observe_text(self.run.options.observe_limit)
        form = "" if self.depth else answer_text(self.run.options.output_schema)
        inputs = replace(inputs, text=f"{inputs.text}{room_text}{form}")
        conversation = Conversation(inputs, self.run.options.observe_limit)
        while True:
            await self.begin_turn()
            plan, plan_text = await next_plan(self, conversation)
            ending = await self.execute(plan)
            self.tools.add_needs(needs_of(plan))
            if isinstance(ending, Final):
                problem = self.value_problem(ending.value)
                if problem is None:
                    self.assumptions = ending.assumptions
                    return ending.value
                ending = Failed(problem.to_dict(), "the value of `final`", self.partial())
            repeats = self._count_result(plan, ending)
            if isinstance(ending, Observe):
                conversation.add_observed(
                    plan_text,
                    ending.values,
                    self.keep_text,
                    check=ending.failed_check,
                    repeated=repeats > 1,
                    shapes=self.result_shapes,
                )
            elif is_last_turn(self.run.record_left(f"{self.id}.{self.turn}:end", self.run_budget)):
                raise error_of(ending.error)
            else:
                conversation.add_failed(
                    plan_text,
                    ending.path,
                    ending.error,
                    self.partial(),
                    repeated=repeats > 1,
                    shapes=self.result_shapes,
                )

    def _asking(self, inputs: AgentInputs) -> Literal["plans", "tools"]:
        """Return the way in which the run asks its model. The root decides; its children follow."""
        if self.run.asking is None:
            loop = self.run.options.loop
            self.run.asking = loop if loop != "auto" else chosen_loop(self, inputs)
            if self.run.asking == "tools":
                self.run.trace.event("loop", agent=self.id, loop=self.run.asking)
        return self.run.asking

    def keep_text(self, name: str, text: str) -> str | None:
        """Keep an observed text as a context, so that actions read it; None where the agent has no actions."""
        patterns = self.policy.withheld
        if self.run_budget.left()["max_context_ops"] <= 0 or any(covers(each, CONTEXT) for each in patterns):
            return None
        return self.store.put(Context.text(text), name).id

    def _count_result(self, plan: ValidPlan, ending: Observe | Failed) -> int:
        """Return how often this plan has had this result, including now.

        Two plans are equal if their steps are, whatever their notes. Two failures are equal if step, phase and kind
        are equal: messages may hold times and ids of requests.

        Raises: RunError ``no_progress`` at the third equal result; the error of a failure that ends the run.
        """
        if isinstance(ending, Failed):
            if ending.terminal:
                raise error_of(ending.error)
            result: Any = [ending.path, ending.error.get("phase"), ending.error.get("kind")]
        else:
            result = dict(ending.values)
        key = digest_of([plan.data["steps"], result])
        self.result_counts[key] += 1
        if self.result_counts[key] >= MOST_REPEATS:
            raise _no_progress(ending, self.turn)
        return self.result_counts[key]

    async def begin_turn(self) -> None:
        """Count the next turn. Raises: RunError ``max_iterations``."""
        call = f"{self.id}.{self.turn + 1}"
        try:
            if self.run.replay is not None:
                await self.run.replay.begin_turn(call)
            self.run_budget.count("turns")
        except RunError as problem:
            self.run.record_refusal(f"{call}:turn", problem)
            raise
        self.turn += 1

    async def execute(self, plan: ValidPlan) -> Ending:
        """Execute one plan and return its ending; the bound values stay bound."""
        task = {"query": PromptText(texts_in(self.task))} if "query" in self.inputs else {}
        self.execution = Execution(
            plan,
            Operations(self),
            Scope({**self.inputs, **task}, self.bound),
            width=self.run_budget.budget.max_concurrent_subcalls,
            pace=AgentPace(self.run, self.run_budget, f"{self.id}.{self.turn}"),
        )
        try:
            return await self.execution.run()
        finally:
            for scope in tuple(self.child_scopes):  # children that a handler started end with the plan
                scope.cancel()
            self.bound = self.partial()
            self.execution = None

    def value_problem(self, value: Any) -> RunError | None:
        """Return the error for a final value that is too large or breaks the schema; None for a good value."""
        options = self.run.options
        size = len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
        limit = self.run_budget.budget.max_output_bytes
        if size > limit:
            detail = {"bytes": size, "limit": limit}
            return RunError("output_too_large", f"the value has {size} bytes; at most {limit}", detail)
        if self.depth == 0 and options.output_schema is not None:
            problem = mismatch(dict(options.output_schema), value)
            if problem is not None:
                return RunError("invalid_value", f"the value does not follow the wanted schema: {problem}")
        return None

    # -- ready plans --------------------------------------------------------------------------------

    async def valid(self, plan: Any) -> ValidPlan:
        """Check a plan that the host, or the plan of a parent, wrote. Return the valid plan.

        Raises: PlanError, also for more steps than are left.
        """
        left = self.run.record_left(f"{self.id}.{self.turn}:frame", self.run_budget)
        frame = host_frame(self, left)
        data = dict(plan) if isinstance(plan, Mapping) else plan
        chars = LARGE_TEXT if size_of(data)[0] > LARGE_DATA else 0
        valid = await in_thread_if_large(chars, validate, data, frame)
        problems = step_problems(valid, frame, left.get("max_steps"))
        if problems:
            raise PlanError.of(problems)
        return valid

    async def follow(self, plan: ValidPlan) -> Any:
        """Execute a ready plan and return its value. Raises: the error that ended the plan."""
        ending = await self.execute(plan)
        if isinstance(ending, Failed):
            raise error_of(ending.error)
        if isinstance(ending, Observe) and ending.failed_check:
            text = f"the check at {ending.failed_check} does not hold"
            raise RunError("check_failed", text, {"path": ending.failed_check})
        if isinstance(ending, Observe):
            return ending.values
        problem = self.value_problem(ending.value)
        if problem is not None:
            raise problem
        return ending.value

    # -- children -----------------------------------------------------------------------------------

    async def child_answer(self, query: str, context: Any, plan: Mapping[str, Any] | None, *, call: str) -> Any:
        """Let a child do a sub-task and return its value.

        Agents with equal rights share an equal sub-task: one child does it, and all of them get its value.

        Raises: RunError ``cycle``; ContextError for a context of another agent; the error that ended the child.
        """
        task = digest_of([query, context, plan])
        if task in self.lineage:
            raise RunError("cycle", "this task is being done by an ancestor already", {"query": query[:200]})
        store = self.store.narrowed([context] if is_handle(context) else [])
        policy, grant = self.narrowed(self.run.options.child_policy)
        rights = (policy, grant.capabilities, grant.effects, grant.ceiling, *map(id, grant.authorities))

        async def place_and_run() -> Any:
            if self.run.replay is not None:
                await self.run.replay.begin_child(call)
            async with self.run.child_slots(self.depth + 1):
                return await run_child()

        async def run_child() -> Any:
            self.run_budget.count("children")
            inputs: dict[str, Any] = {"query": str(query)}
            if context is not None:
                inputs["context"] = context if is_handle(context) else store.put(context, "context").value
            child = Agent(
                run=self.run,
                id=call,
                task=query,
                store=store,
                inputs=inputs,
                policy=policy,
                grant=grant,
                run_budget=self.run_budget.child(),
                deadline=self.deadline,
                depth=self.depth + 1,
                deepest=self.deepest,
                lineage=(*self.lineage, task),
                delegation=self.delegation,
            )
            return await (child.answer() if plan is None else child.follow(await child.valid(plan)))

        key = (task, *rights, self.run_budget.budget, self.depth, self.deepest)
        return await self.run.share(key, call, place_and_run)


def _no_progress(ending: Observe | Failed, turn: int) -> RunError:
    """Return the error for a plan that had the same result too often, with the cause of a repeated failure."""
    message, detail = f"the same plan had the same result {MOST_REPEATS} times", {"repeats": MOST_REPEATS, "turn": turn}
    if isinstance(ending, Observe):
        return RunError("no_progress", f"{message}: it ends with `observe`, and nothing changed", detail)
    cause = {name: ending.error.get(name) for name in ("phase", "kind", "message")}
    words = str(cause["message"])[:LONGEST_EXCEPTION]
    return RunError(
        "no_progress", f"{message}: at {ending.path}: {words}", {**detail, "path": ending.path, "cause": cause}
    )
