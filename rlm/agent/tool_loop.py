"""The ``tools`` loop: the model calls visible tools by the provider's own tool calls, until it answers with a text.

Each turn is one request of the same session, so the tools are only appended until a stated compaction. The calls of a
reply become one plan, whose parts run side by side where their effects allow it. A tool that is not declared to read
only runs alone, in the order of the calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from rlm.agent.agent_state import AgentState, AmountsLeft
from rlm.agent.frames import allowed_ops, budget_text, frame_of_view, grammar, is_last_turn
from rlm.agent.inputs import AgentInputs
from rlm.agent.loop_tools import FIND_TOOLS, PREFIX, RUN_PLAN, body_of, context_tools, finding_tool, plan_tool
from rlm.agent.observations import observe
from rlm.agent.requests import RequestDraft, native_wire
from rlm.agent.roles import loop_units, signals_of
from rlm.agent.tool_talk import CallResult, ToolExchange, ToolTalk
from rlm.compiler.session import Session
from rlm.errors import BudgetError, ConfigurationError, RlmError, RunError, ToolError
from rlm.fencing import json_text, message, text_block, value_block
from rlm.model.base import digest_of
from rlm.model.plan import Failed, Frame, PlanError, ValidPlan
from rlm.model.unit import CALLABLE
from rlm.plan import Material, texts_in, validate
from rlm.plan.cost import preflight, step_problems, worst_case
from rlm.plan.reply_json import material_of, read_value, without_thoughts
from rlm.plan.validate import problem_of_value
from rlm.sending.incomplete import unfinished
from rlm.sending.results import PromptProjection, error_of
from rlm.tools.tool import Effect

if TYPE_CHECKING:
    from rlm.compiler.view import CompiledContext
    from rlm.providers.base import ProviderReply, ToolCall

COMPACT_SHARE = 2
"""A conversation above one part in two of the request's token limit is compacted."""

MAX_ERROR_CHARS = 2_000
"""Characters of the error of a call."""

LEAST_RESULT = 1_000
"""Characters that each result of a turn has at least, however many calls there are."""

MOST_REPEATS = 3
"""The number of equal results of equal calls that ends an agent."""

PLAN_OPS = frozenset({"observe", "checkpoint"})
"""The operations that a plan of ``run_plan`` does not have."""


class LoopWatcher(Protocol):
    """Is told what happens in the loop of the root."""

    def called(self, calls: Sequence[ToolCall]) -> None:
        """The model called tools."""

    def returned(self, results: Sequence[CallResult]) -> None:
        """The calls have results."""

    def answered(self, messages: list[dict[str, Any]], shown: dict[str, str]) -> None:
        """The run has its answer: all messages up to it, and the names of the tools in the block."""


watching: ContextVar[list[LoopWatcher] | None] = ContextVar("rlm_watching", default=None)
"""The watcher of the run that is started now; the root of that run takes it out."""


def _taken_watcher(depth: int) -> LoopWatcher | None:
    waiting = watching.get()
    return waiting.pop() if waiting and depth == 0 else None


class ToolLoop:
    """The loop of one agent.

    Args:
        agent: the agent.
        inputs: its inputs.
        wire: the format of its provider.
    """

    def __init__(self, agent: AgentState, inputs: AgentInputs, wire: Literal["openai", "anthropic"]) -> None:
        self.agent, self.run, self.inputs = agent, agent.run, inputs
        left = agent.run_budget.left()
        self.ops = allowed_ops(agent, agent.withheld_at(left, spare=1), left) - PLAN_OPS
        self.talk = ToolTalk(wire, self._opening(left))
        shown = self.run.options.shown if agent.depth == 0 else {}
        self.session = Session(self.run.catalog, tools="native", wire=wire, shown=shown)
        self.watcher = _taken_watcher(agent.depth)

    def _opening(self, left: AmountsLeft) -> str:
        """Return the first message after the task: the inputs, the form of the answer, and the budget."""
        has_inputs = self.inputs.has_material or "(none)" not in self.inputs.text
        schema = self.run.options.output_schema if self.agent.depth == 0 else None
        form = "" if schema is None else f"# Answer\nOnly JSON that follows this schema: {json_text(dict(schema))}\n"
        return f"{self.inputs.text if has_inputs else ''}{form}{budget_text(left, self.ops, None).lstrip()}"

    async def answer(self) -> Any:
        """Return the final value. Raises: the error that ended the agent."""
        refused = 0
        while True:
            await self.agent.begin_turn()
            call = f"{self.agent.id}.{self.agent.turn}"
            draft, view = await self._compiled_draft(call)
            self.agent.projection = PromptProjection(
                fingerprint=view.fingerprint, active_units=view.active, tool_count=len(view.callable)
            )
            reply = await self.run.send_draft(draft, view, self._schema())
            exchange = self.talk.add(reply)
            if exchange.calls:
                if self.watcher is not None:
                    self.watcher.called(exchange.calls)
                await self._take_calls(exchange, view, call)
                if self.watcher is not None:
                    self.watcher.returned(exchange.results)
                refused = 0
                continue
            value, problem = self._value_of(reply, view)
            if problem is None:
                if self.watcher is not None:
                    self.watcher.answered(self._whole_conversation(), self.session.shown)
                return value
            refused += 1
            self.run.trace.event("refused", call=call, error=problem.to_dict())
            if refused > self.run.options.max_repairs:
                raise problem
            exchange.answer = message(
                "# Refused\n",
                text_block("problem", problem.message),
                "Answer again, with the corrected answer alone.\n",
            )

    def _whole_conversation(self) -> list[dict[str, Any]]:
        """Return all messages up to the answer, in the provider's own form."""
        earlier = [dict(each) for each in self.run.options.messages]
        return [*earlier, {"role": "user", "content": self.agent.task}, *self.talk.tail()]

    def _schema(self) -> dict[str, Any] | None:
        schema = self.run.options.output_schema
        return dict(schema) if schema is not None and self.agent.depth == 0 else None

    def _value_of(self, reply: ProviderReply, view: CompiledContext) -> tuple[Any, RlmError | None]:
        """Return the value in a reply without calls, or the error for a reply that holds none."""
        problem: RlmError | None = unfinished(reply)
        if problem is not None:
            return None, problem
        schema, value = self._schema(), without_thoughts(reply.text).strip()
        if schema is not None:
            check = partial(problem_of_value, schema)
            value, fault = read_value(reply.text, check, material_of(view.messages(self.talk.wire)))
            if fault is not None:
                return None, RunError("invalid_value", f"the answer does not follow the wanted schema: {fault}")
        return value, self.agent.value_problem(value)

    # -- requests -----------------------------------------------------------------------------------

    async def _compiled_draft(self, call: str) -> tuple[RequestDraft, CompiledContext]:
        """Return the next request and its compiled context; compact a long conversation."""
        left = self.run.record_left(call, self.agent.run_budget)
        self.talk.last_turn = self.talk.last_turn or is_last_turn(left)
        while True:
            draft = self._draft(call, left)
            compactions = len(self.session.compactions)
            try:
                view = await self.run.compile(draft)
            except BudgetError:
                if not self.talk.compact():
                    raise
            else:
                for compaction in self.session.compactions[compactions:]:
                    row = {"reason": compaction.reason.value, "lost": list(compaction.lost)}
                    self.run.trace.event("compacted", call=call, turns=self.talk.compacted, tools=row)
                if self._reported(view, call):
                    continue
                if view.ledger.task * COMPACT_SHARE <= view.ledger.limit or not self.talk.compact():
                    self.agent.tools.show(view)
                    return draft, view
            self.run.trace.event("compacted", call=call, turns=self.talk.compacted)

    def _reported(self, view: CompiledContext, call: str) -> bool:
        """Fill in the results of ``find_tools``; return whether the request must be compiled again."""
        waiting = [result for result in self._last_results() if not result.text]
        if not waiting:
            return False
        change = self.agent.tools.changed_by(view)
        for result in waiting:
            result.text = change.text or "no further tool is available"
        self.run.trace.event("needs", call=call, **change.row(view))
        return True

    def _last_results(self) -> Iterable[CallResult]:
        return self.talk.exchanges[-1].results if self.talk.exchanges else ()

    def _draft(self, call: str, left: AmountsLeft) -> RequestDraft:
        agent = self.agent
        tail: list[dict[str, Any]] = self.talk.tail()
        if agent.depth:
            task = message(*(piece.block if isinstance(piece, Material) else piece for piece in texts_in(agent.task)))
            tail = [{"role": "user", "content": task}, *tail]
        return RequestDraft(
            call=call,
            role=agent.role,
            text="" if agent.depth else agent.task,
            messages=() if agent.depth else self.run.options.messages,
            tail=tail,
            needs=agent.tools.needs,
            extra_pinned=(*loop_units(agent.role), *self._own_tools()),
            withheld=agent.withheld_at(left, spare=1),
            policy=agent.policy,
            run_budget=agent.run_budget,
            deadline=agent.deadline,
            notes=agent.tool_notes,
            session=self.session,
            signals=signals_of(agent.role, in_loop=True, outside=bool(self.inputs.unread)),
        )

    def _own_tools(self) -> list[Any]:
        """Return the runtime's tools that have a use in this run. The rules decide which of them are shown."""
        has_tools = any(unit.kind in CALLABLE for unit in self.run.catalog.units.values())
        ops = self.ops if has_tools else self.ops - {"tool"}
        ops = ops if self.inputs.unread else ops - {"context"}
        plans = [plan_tool(grammar(ops))] if has_tools or self.inputs.unread else []
        return [*context_tools(self.inputs.unread), *plans, *([finding_tool()] if has_tools else [])]

    # -- calls --------------------------------------------------------------------------------------

    async def _take_calls(self, exchange: ToolExchange, view: CompiledContext, call: str) -> None:
        """Do the calls of a reply and add their results to the exchange."""
        left = self.run.record_left(f"{call}:calls", self.agent.run_budget)
        frame = _frame(self.agent, view, self.ops)
        outcomes: dict[str, Any] = {}
        bodies: dict[str, tuple[list[dict[str, Any]], bool]] = {}
        for each in exchange.calls:
            try:
                id = view.resolve(each)
                if id == FIND_TOOLS:
                    self.agent.tools.add_needs(_needs(view.arguments(each)))
                    continue
                bodies[each.id] = self._body(id, each, view, frame, left), self._is_alone(id)
            except RlmError as problem:
                self.run.trace.event("refused", call=call, error=problem.to_dict())
                outcomes[each.id] = {"error": problem.to_dict()}
        outcomes |= await self._run(bodies, frame, call)
        self._count_repeats(exchange.calls, outcomes)
        room = max(LEAST_RESULT, self.run.options.observe_limit // max(1, len(exchange.calls)))
        exchange.results = [self._result(each, outcomes.get(each.id), room) for each in exchange.calls]

    def _body(
        self, id: str, call: ToolCall, view: CompiledContext, frame: Frame, left: AmountsLeft
    ) -> list[dict[str, Any]]:
        """Return the checked steps of a call. Raises: ToolError, PlanError."""
        steps = body_of(id, view.wire_names.of(id), view.arguments(call), self.inputs.unread)
        plan = validate({"steps": steps}, frame)
        problems = preflight(worst_case(plan, frame), {**left, "max_iterations": None})
        problems = (*problems, *step_problems(plan, frame, left.get("max_steps")))
        if problems:
            raise PlanError.of(problems)
        return list(plan.data["steps"])

    def _is_alone(self, id: str) -> bool:
        """Whether a call runs alone: a plan, and a tool that may do more than read."""
        if id.startswith(PREFIX):
            return id == RUN_PLAN
        try:
            return self.run.toolbox.find(id).effect is not Effect.READ
        except ToolError:
            return False

    async def _run(
        self, bodies: Mapping[str, tuple[list[dict[str, Any]], bool]], frame: Frame, call: str
    ) -> dict[str, Any]:
        """Run the calls as one plan, and return the outcome of each. Raises: an error that ends the agent."""
        if not bodies:
            return {}
        groups: list[list[str]] = []
        for id, (_, alone) in bodies.items():
            if alone or not groups or bodies[groups[-1][-1]][1]:
                groups.append([id])
            else:
                groups[-1].append(id)
        names = [f"calls_{self.agent.turn}_{number}" for number in range(len(groups))]
        steps: list[dict[str, Any]] = [
            {"op": "parallel", "plans": [{"steps": bodies[id][0]} for id in group], "bind": name}
            for group, name in zip(groups, names, strict=True)
        ]
        steps.append({"op": "observe", "values": [{"var": name} for name in names]})
        plan = ValidPlan(data={"steps": steps}, tools=(), limits=frame.limits)
        self.run.trace.event("plan", call=call, plan=self.run.trace.body(plan.data) if self.run.trace.active else "")
        ending = await self.agent.execute(plan)
        if isinstance(ending, Failed):
            raise error_of(ending.error)
        return {
            id: outcome
            for group, name in zip(groups, names, strict=True)
            for id, outcome in zip(group, self.agent.bound[name], strict=True)
        }

    def _count_repeats(self, calls: Iterable[ToolCall], outcomes: Mapping[str, Any]) -> None:
        """Raises: RunError ``no_progress`` at the third equal result of equal calls."""
        rows = []
        for each in calls:
            outcome = outcomes.get(each.id)
            error = outcome.get("error") if isinstance(outcome, dict) and "ok" not in outcome else None
            rows.append(
                [each.name, each.arguments, outcome if error is None else [error.get("phase"), error.get("kind")]]
            )
        key = digest_of(rows)
        self.agent.result_counts[key] += 1
        if self.agent.result_counts[key] >= MOST_REPEATS:
            detail = {"repeats": MOST_REPEATS, "turn": self.agent.turn}
            raise RunError("no_progress", f"the same calls had the same results {MOST_REPEATS} times", detail)

    def _result(self, call: ToolCall, outcome: Any, room: int) -> CallResult:
        """Return the result of a call as the model sees it; without a text, a compile fills it in."""
        if outcome is None:
            return CallResult(call, "")
        if "ok" not in outcome:
            return CallResult(call, message("failed:\n", value_block("error", outcome["error"], MAX_ERROR_CHARS)), True)
        seen = observe({"result": outcome["ok"]}, room, self.agent.keep_text)
        return CallResult(call, seen.text)


def _frame(agent: AgentState, view: CompiledContext, ops: frozenset[str]) -> Frame:
    """Return the frame of a plan that a call stands for. The runtime's own tools are no tools of a plan."""
    frame = frame_of_view(agent, view, ops | {"tool", "context"})
    own = {view.wire_names.of(id) for id in view.callable if id.startswith(PREFIX)}
    tools = {name: schema for name, schema in frame.tools.items() if name not in own}
    return frame.model_copy(update={"tools": tools})


def _needs(arguments: Mapping[str, Any]) -> list[str]:
    needs = arguments.get("needs")
    if not isinstance(needs, list) or not needs or not all(isinstance(need, str) for need in needs):
        raise ToolError("invalid_arguments", "find_tools: `needs` must be a list of texts", {"tool": "find_tools"})
    return [need[:500] for need in needs[:4]]


def chosen_loop(agent: AgentState, inputs: AgentInputs) -> Literal["plans", "tools"]:
    """Return the loop of ``loop="auto"``, by what is known before the first request.

    ``tools`` if the provider takes native tools, there is a tool to call, and all material stands whole in the request.
    Each step then depends on the last one. Otherwise ``plans``: parts of large material go side by side.
    """
    try:
        native_wire(agent.run.endpoint(agent.role).provider)
    except ConfigurationError:
        return "plans"
    has_tools = any(unit.kind in CALLABLE for unit in agent.run.catalog.units.values())
    return "tools" if has_tools and not inputs.unread else "plans"
