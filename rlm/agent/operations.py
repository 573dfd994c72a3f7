"""The operations of an agent's plans: look at contexts, ask a model, start a child, call a tool.

Each operation first counts in the run budget. It is refused without its capability, by the same facts that the agent's
request was compiled from.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from rlm.agent.agent_state import AgentState, current_agent, current_budget, current_texts
from rlm.agent.observations import shape_of
from rlm.agent.packing import PACK_SHARE, answer_items, answers_of, packed_schema
from rlm.agent.requests import RequestDraft
from rlm.agent.roles import CONTEXT, MODEL, RECURSE, TOOL, WITHHELD_FROM_LEAVES, Role, runtime_units, signals_of
from rlm.compiler.tokens.token_counter import counter
from rlm.context.blocks import context_blocks
from rlm.errors import BudgetError, RlmError, RunError, ToolError
from rlm.fencing import FencedText, message, text_block, words
from rlm.model.message import Message
from rlm.model.plan import PlanError
from rlm.model.policy import covers
from rlm.plan import Material, Prompt, PromptText, current_step, words_in
from rlm.plan.computing import MAX_WORK, compute
from rlm.plan.machine import UNITS_PER_STEP
from rlm.plan.reply_json import material_of, read_value, without_thoughts
from rlm.plan.sizes import size_of, units_of
from rlm.plan.validate import problem_of_value
from rlm.sending.incomplete import unfinished
from rlm.sending.results import error_of
from rlm.tools.execute import execute

if TYPE_CHECKING:
    from rlm.providers.base import ProviderReply
    from rlm.sending.run_budget import RunBudget
    from rlm.tools.outcome import ToolOutcome
    from rlm.tools.tool import Tool

MOST_BYTES_PER_TOKEN = 8
"""Bytes of a context that are read for each token of the window; no token of a text is longer."""

MOST_NEEDS = 2000
"""Characters of a prompt's words that count as the needs of its request."""


class Operations:
    """Executes the operations of one agent's plans."""

    def __init__(self, agent: AgentState) -> None:
        self.agent = agent
        self.run = agent.run

    @property
    def call(self) -> str:
        """The name of the current step: unique in the run, and equal in every replay."""
        return f"{self.agent.id}.{self.agent.turn}:{current_step.get()}"

    def require(self, capability: str, subject: str) -> None:
        """Check that the agent has a capability. ``subject`` names the operation in the error.

        Raises: RunError ``operation_not_allowed``; ``cancelled`` for a handler that still runs after the end of the
        run.
        """
        if self.run.over:
            raise RunError("cancelled", f"{subject} is not available: the run has ended")
        if any(covers(pattern, capability) for pattern in self.agent.withheld | self.agent.policy.withheld):
            raise RunError(
                "operation_not_allowed",
                f"{subject} is not available here: {capability} is withheld at depth {self.agent.depth}",
                {"capability": capability, "depth": self.agent.depth},
            )

    @asynccontextmanager
    async def _step(self) -> AsyncIterator[None]:
        """Enclose one step. In a replay, block where the recorded step ended early."""
        replay, call = self.run.replay, self.call
        if replay is None:
            yield
            return
        with self._spending():
            await replay.begin_step(call)
        try:
            yield
        except RlmError as problem:
            if not getattr(problem, "terminal", False):
                await replay.end_step(call)
            raise
        await replay.end_step(call)

    @contextmanager
    def _spending(self) -> Iterator[None]:
        """Record a refusal of the budget inside the context."""
        try:
            yield
        except RlmError as problem:
            self.run.record_refusal(self.call, problem)
            raise

    def event(self, path: str, kind: str, data: dict[str, Any]) -> None:
        """Write an event of the plan to the trace; in a replay only events that the recorded run has."""
        if kind == "started" and self.run.replay is not None and not self.run.replay.was_started(self.call):
            return
        self.run.trace.event("step", agent=self.agent.id, turn=self.agent.turn, step=path, what=kind, **data)

    # -- contexts -----------------------------------------------------------------------------------

    async def context(self, handle: str, action: str, arguments: dict[str, Any]) -> Any:
        """Return the result of a context action."""
        async with self._step():
            with self._spending():
                self.require(CONTEXT, "`context`")
                self.agent.run_budget.count("context_ops")
            return await self.agent.store.act(handle, action, arguments)

    async def let(self, expression: str, values: Mapping[str, Any]) -> Any:
        """Return the value of an expression. A thread computes it; it ends with the step."""
        async with self._step():
            left = self.agent.run_budget.steps_left() if self.run.replay is None else None
            most = MAX_WORK if left is None else min(MAX_WORK, left * UNITS_PER_STEP)
            ended = Event()
            computing = partial(compute, expression, values, "expr", most=most, ended=ended.is_set)
            try:
                value, work = await anyio.to_thread.run_sync(computing, abandon_on_cancel=True)
            except PlanError as problem:
                if problem.kind == "too_much_work" and most < MAX_WORK:
                    self.agent.run_budget.took_steps(most // UNITS_PER_STEP)
                    raise self.agent.run_budget.no_steps() from None
                raise
            finally:
                ended.set()
            self.agent.run_budget.took_steps(work // UNITS_PER_STEP)
            return value

    async def checkpoint(self, label: str) -> None:
        """Write the bound values to the trace, by hash."""
        async with self._step():
            trace, bound = self.run.trace, ""
            partial = self.agent.partial()
            self.agent.run_budget.took_steps(units_of(*size_of(partial)) // UNITS_PER_STEP)
            if trace.active:
                bound = await anyio.to_thread.run_sync(trace.body, partial, abandon_on_cancel=True)
            trace.event("checkpoint", call=self.call, label=label, bound=bound)

    # -- models -------------------------------------------------------------------------------------

    async def model(self, prompt: Prompt, schema: dict[str, Any] | None) -> Any:
        """Return the answer of a leaf model. A reply that breaks the schema is returned to the model for correction."""
        async with self._step():
            with self._spending():
                self.require(MODEL, "`model`")
            parts = await self._prompt_parts(prompt)
            return await self.ask_leaf(parts, schema, needs=words_in(prompt), call=self.call)

    async def ask_leaf(
        self, parts: list[str | FencedText], schema: dict[str, Any] | None, *, needs: str, call: str
    ) -> Any:
        """Return a leaf's answer to words and material; ``needs`` are the words."""
        if schema is not None and not self.run.endpoint(Role.LEAF).provider.enforces_schema:
            parts = [*parts, f"\n\nReply with JSON that follows this schema: {json.dumps(schema)}"]
        tail = [{"role": "user", "content": message(*parts)}]
        reply, material = await self._leaf_reply(tail, schema, call, needs=needs)
        if schema is None:
            return without_thoughts(reply.text)
        for attempt in range(self.run.options.max_repairs + 1):
            value, problem = read_value(reply.text, partial(problem_of_value, schema), material)
            if problem is None:
                return value
            if attempt < self.run.options.max_repairs:
                refusal_text = message(
                    "That does not follow the schema:\n",
                    text_block("problem", problem),
                    "Reply with the corrected JSON alone.",
                )
                retry = [
                    *tail,
                    {"role": "assistant", "content": words(reply.text[:4000])},
                    {"role": "user", "content": refusal_text},
                ]
                reply, _ = await self._leaf_reply(retry, schema, f"{call}~{attempt + 1}", needs=needs)
        detail = {"reply": reply.text[:500]}
        raise RunError("invalid_value", f"the reply does not follow the schema: {problem}", detail)

    async def _leaf_reply(
        self,
        tail: list[dict[str, str]],
        schema: dict[str, Any] | None,
        call: str,
        *,
        needs: str,
        role: Role = Role.LEAF,
        run_budget: RunBudget | None = None,
    ) -> tuple[ProviderReply, str]:
        """Return a complete reply, and the texts of its request. Raises: ProviderError for an incomplete reply."""
        agent = self.agent
        draft = RequestDraft(
            call=call,
            role=role,
            text="",
            tail=tail,
            needs=(needs[:MOST_NEEDS],),
            extra_pinned=runtime_units(role, False, None),
            withheld=WITHHELD_FROM_LEAVES,
            policy=agent.policy,
            run_budget=run_budget or agent.run_budget,
            deadline=agent.deadline,
            signals=signals_of(role),
        )
        try:
            view = await self.run.compile(draft)
        except BudgetError as refusal:
            raise await self._too_large_prompt(tail, refusal) from None
        reply = await self.run.send_draft(draft, view, schema)
        problem = unfinished(reply)
        if problem is not None:
            raise problem
        return reply, material_of(view.messages("text"))

    async def models(self, prompts: Sequence[Prompt], schema: dict[str, Any] | None) -> list[Any]:
        """Return the answers of a leaf to several prompts; as many as there is room for share a request."""
        async with self._step():
            with self._spending():
                self.require(MODEL, "`model`")
            items = [await self._prompt_parts(prompt) for prompt in prompts]
            limit, tokenizer = await self.run.input_limit(Role.LEAF, self.agent.policy)
            sizes = await anyio.to_thread.run_sync(_sizes, items, tokenizer, abandon_on_cancel=True)
            call, needs = self.call, [words_in(prompt) for prompt in prompts]

            async def ask(parts: list[str | FencedText], numbers: Sequence[int], name: str) -> dict[int, Any]:
                try:
                    return await self._ask_pack(parts, numbers, schema, needs=needs[numbers[0]], call=f"{call}{name}")
                except RlmError as problem:
                    if getattr(problem, "terminal", False):
                        raise
                    return {}

            async def ask_one(number: int, name: str) -> Any:
                return await self.ask_leaf(items[number], schema, needs=needs[number], call=f"{call}{name}")

            return await answer_items(items, sizes, limit // PACK_SHARE, self.run.width, ask, ask_one)

    async def _ask_pack(
        self,
        parts: list[str | FencedText],
        numbers: Sequence[int],
        schema: dict[str, Any] | None,
        *,
        needs: str,
        call: str,
    ) -> dict[int, Any]:
        """Return the answers in one reply by item; items that are missing there are left out."""
        if schema is not None:
            parts = [*parts, f"\n\nEach value follows this schema: {json.dumps(schema)}"]
        tail = [{"role": "user", "content": message(*parts)}]
        reply, material = await self._leaf_reply(tail, packed_schema(len(numbers), schema), call, needs=needs)
        value, _ = read_value(reply.text, lambda found: None if isinstance(found, dict) else "no object", material)
        found = answers_of(value, len(numbers), partial(problem_of_value, schema or {"type": "string"}))
        return {numbers[place]: answer for place, answer in found.items()}

    async def _too_large_prompt(self, tail: list[dict[str, str]], problem: BudgetError) -> RlmError:
        """Return the error of a prompt that does not fit beside the leaf's instructions, in a planner's terms."""
        _, tokenizer = await self.run.input_limit(Role.LEAF, self.agent.policy)
        texts = [message["content"] for message in tail]
        size = await anyio.to_thread.run_sync(lambda: sum(map(counter(tokenizer).count, texts)), abandon_on_cancel=True)
        fits = size - int(problem.detail.get("missing_tokens", size))
        if fits <= 0:
            return problem  # not even an empty prompt would fit: the host must change that
        text = f"your prompt has about {size:,} tokens, and about {fits:,} fit: cut it, for example with `partition`"
        return RunError("prompt_too_large", text, {"tokens": size, "fits": fits})

    async def chat(self, messages: tuple[Message, ...], *, call: str) -> str:
        """Return the leaf model's reply to the messages of a handler. Raises: ProviderError, also for an incomplete
        reply."""
        self.require(MODEL, "a request of a handler")
        tail = [{"role": message.role, "content": message.content} for message in messages]
        needs, budget = tail[-1]["content"] if tail else "", current_budget.get()
        reply, _ = await self._leaf_reply(tail, None, call, needs=needs, role=Role.HANDLER, run_budget=budget)
        return reply.text

    async def _prompt_parts(self, prompt: Prompt) -> list[str | FencedText]:
        """Return the words of a prompt, with blocks for its material and for the documents of its contexts."""
        max_bytes = self.agent.policy.limit * MOST_BYTES_PER_TOKEN
        parts: list[str | FencedText] = []
        for piece in prompt:
            if isinstance(piece, Material):
                parts.append(piece.block)
            elif isinstance(piece, str):
                parts.append(piece)
            else:
                parts += context_blocks(piece["handle"], await self.agent.store.texts(piece, max_bytes))
        return parts

    # -- children -----------------------------------------------------------------------------------

    async def rlm(self, query: str, context: Any, plan: dict[str, Any] | None) -> Any:
        """Return the value of a child."""
        async with self._step():
            with self._spending():
                self.require(RECURSE, "`rlm`")
            return await self.agent.child_answer(query, context, plan, call=self.call)

    # -- tools --------------------------------------------------------------------------------------

    async def tool(self, name: str, arguments: dict[str, Any]) -> Any:
        """Return the value of a tool call."""
        async with self._step():
            tool = self.run.toolbox.find(name, self.run.names)
            with self._spending():
                self._require_tool(tool)
                self.agent.run_budget.count("tool_calls")
            outcome = await self._call_tool(tool, arguments)
        if outcome.error is not None:
            raise _tool_error(error_of(outcome.error), tool)
        self.agent.result_shapes[name] = shape_of(outcome.value)
        return outcome.value

    def _require_tool(self, tool: Tool) -> None:
        self.require(TOOL, "`tool`")
        patterns = self.agent.withheld | self.agent.policy.withheld
        if any(covers(pattern, tool.capability) for pattern in patterns):
            detail = {"tool": tool.id, "capability": tool.capability}
            raise ToolError("capability_missing", f"{tool.id}: the capability {tool.capability!r} is withheld", detail)

    async def _call_tool(self, tool: Tool, arguments: dict[str, Any]) -> ToolOutcome:
        """Return the outcome of a tool call, and write it to the trace. A cancelled call is recorded with its usage so
        far."""
        replay, trace, call_budget = self.run.replay, self.run.trace, self.agent.run_budget.child()
        try:
            if replay is None:
                outcome = await self._execute_tool(tool, arguments, call_budget)
            else:
                call_budget.charge(replay.tool_usage(self.call))
                outcome = await replay.tool(self.call, arguments)
        except BaseException:
            with suppress(RunError):  # the trace cannot be written: that is known already
                usage = call_budget.at_most().model_dump(mode="json", exclude_defaults=True)
                trace.event("interrupted", call=self.call, tool=tool.id, took=usage)
            raise
        self.agent.run_budget.record_call(tool.id)
        if outcome.error is None:
            self.agent.tools.used.add(tool.id)
        if trace.active:
            trace.event(
                "tool",
                call=self.call,
                tool=tool.id,
                status=outcome.status.value,
                arguments=trace.body(outcome.arguments),
                outcome=trace.body(outcome.model_dump(mode="json")),
                seconds=round(outcome.seconds, 6),
                abandoned=outcome.abandoned,
                took=call_budget.spent(0.0).model_dump(mode="json", exclude_defaults=True),
            )
        return outcome

    async def _execute_tool(self, tool: Tool, arguments: dict[str, Any], call_budget: RunBudget) -> ToolOutcome:
        """Execute a tool for this agent and return the outcome."""
        agent, run = self.agent, self.run
        origin: dict[str, Any] = {"run": run.id, "agent": agent.id, "depth": agent.depth, "role": agent.role.value}
        origin |= {"call": self.call} | ({"delegation": agent.delegation} if agent.delegation else {})
        texts = tuple(value for value in arguments.values() if isinstance(value, PromptText))
        tokens = current_agent.set(agent), current_budget.set(call_budget), current_texts.set(texts)
        try:
            async with run.call_slots(agent.depth):
                workers = run.workers.at(agent.depth)
                return await execute(
                    tool, arguments, agent.grant, deadline=agent.deadline, workers=workers, origin=origin
                )
        finally:
            current_agent.reset(tokens[0])
            current_budget.reset(tokens[1])
            current_texts.reset(tokens[2])


def _sizes(items: Sequence[list[str | FencedText]], tokenizer: str) -> list[int]:
    """Return the tokens of each prompt."""
    count = counter(tokenizer).count
    return [count(message(*item)) for item in items]


def _tool_error(problem: RlmError, tool: Tool) -> RlmError:
    """Return the error of a tool. If it ended another run, in the tool's handler, this run goes on."""
    if isinstance(problem, RunError) and problem.terminal:
        return ToolError(problem.kind, f"{tool.id}: {problem.message}", problem.detail)
    return problem


async def chat_in_run(agent: AgentState, messages: tuple[Message, ...]) -> str:
    """Send a handler's own messages as a request of the agent's run, and return the reply.

    Raises: ProviderError, also for an incomplete reply; RunError.
    """
    agent.chats += 1
    return await Operations(agent).chat(messages, call=f"{agent.id}.{agent.turn}:chat[{agent.chats}]")
