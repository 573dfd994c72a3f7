"""What an agent's plans can do: look at contexts, ask a model, start a child, call a tool.

Each operation takes from the ledger first and is refused where the agent does not have the capability for it: the
same facts that decided what its request showed.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from rlm.agent.roles import CALLING, CONTEXT, MODEL, RECURSE, TOOL, Role, runtime_units
from rlm.agent.run import RequestDraft
from rlm.context.blocks import context_blocks
from rlm.errors import RlmError, RunError, ToolError
from rlm.fencing import FencedText, message, text_block, words
from rlm.model.message import Message
from rlm.model.policy import covers
from rlm.plan import Material, Prompt, PromptText, current_step, words_in
from rlm.plan.machine import UNITS_PER_STEP
from rlm.plan.reply_json import material_of, read_value, without_thoughts
from rlm.plan.sizes import size_of, units_of
from rlm.plan.validate import problem_of_value
from rlm.sending.incomplete import unfinished
from rlm.sending.results import error_of
from rlm.tools.execute import execute

if TYPE_CHECKING:
    from rlm.agent.agent import Agent
    from rlm.providers.base import ProviderReply
    from rlm.sending.run_budget import RunBudget
    from rlm.tools.outcome import ToolOutcome
    from rlm.tools.tool import Tool

MOST_BYTES_PER_TOKEN = 8
"""No text of a window's tokens is longer."""

MOST_NEEDS = 2000
"""Characters of a prompt's words that count as what its request needs."""

current_agent: ContextVar[Agent | None] = ContextVar("current_agent", default=None)
"""The agent for which a handler of the host is running."""

current_texts: ContextVar[tuple[PromptText, ...]] = ContextVar("current_texts", default=())
"""The texts among the arguments of that handler's call, which know what in them is material."""

current_budget: ContextVar[RunBudget | None] = ContextVar("current_purse", default=None)
"""What that handler's own requests and children draw on: an account for this one call, under the agent's."""


class Operations:
    """The executor of one agent's plans."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.run = agent.run

    @property
    def call(self) -> str:
        """The name of the step that is under way, unique in the run and the same in every replay."""
        return f"{self.agent.id}.{self.agent.turn}:{current_step.get()}"

    def require(self, capability: str, what: str) -> None:
        """Raises: RunError ``operation_not_allowed``; ``cancelled`` where a handler that was left behind asks."""
        if self.run.over:
            raise RunError("cancelled", f"{what} is not available: the run has ended")
        if any(covers(pattern, capability) for pattern in self.agent.withheld | self.agent.policy.withheld):
            raise RunError(
                "operation_not_allowed",
                f"{what} is not available here: {capability} is withheld at depth {self.agent.depth}",
                {"capability": capability, "depth": self.agent.depth},
            )

    @asynccontextmanager
    async def _step(self) -> AsyncIterator[None]:
        """A step while it is done; in a replay as far as it came in the recorded run, and no further."""
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
        """Whatever is refused here is refused by the budget, or by what is left of it."""
        try:
            yield
        except RlmError as problem:
            self.run.spent(self.call, problem)
            raise

    def event(self, path: str, kind: str, data: dict[str, Any]) -> None:
        """Everything that a plan does goes into the trace; in a replay what the recorded run came to."""
        if kind == "started" and self.run.replay is not None and not self.run.replay.was_started(self.call):
            return
        self.run.trace.event("step", agent=self.agent.id, turn=self.agent.turn, step=path, what=kind, **data)

    # -- contexts -----------------------------------------------------------------------------------

    async def context(self, handle: str, action: str, arguments: dict[str, Any]) -> Any:
        """Look at a context."""
        async with self._step():
            with self._spending():
                self.require(CONTEXT, "`context`")
                self.agent.run_budget.count("context_ops")
            return await self.agent.store.act(handle, action, arguments)

    async def checkpoint(self, label: str) -> None:
        """Note what is bound so far, by hash."""
        async with self._step():
            trace, bound = self.run.trace, ""
            partial = self.agent.partial()
            self.agent.run_budget.took_steps(units_of(*size_of(partial)) // UNITS_PER_STEP)
            if trace.active:
                bound = await anyio.to_thread.run_sync(trace.body, partial, abandon_on_cancel=True)
            trace.event("checkpoint", call=self.call, label=label, bound=bound)

    # -- models -------------------------------------------------------------------------------------

    async def model(self, prompt: Prompt, schema: dict[str, Any] | None) -> Any:
        """Ask a leaf. A reply that does not follow the schema is sent back once."""
        async with self._step():
            with self._spending():
                self.require(MODEL, "`model`")
            parts = await self._parts(prompt)
            return await self.leaf(parts, schema, needs=words_in(prompt), call=self.call)

    async def leaf(self, parts: list[str | FencedText], schema: dict[str, Any] | None, *, needs: str, call: str) -> Any:
        """The answer of a leaf to words and material; ``needs`` are the words."""
        if schema is not None and not self.run.endpoint(Role.LEAF).provider.enforces_schema:
            parts = [*parts, f"\n\nReply with JSON that follows this schema: {json.dumps(schema)}"]
        tail = [{"role": "user", "content": message(*parts)}]
        reply, material = await self._asked(tail, schema, call, needs=needs)
        if schema is None:
            return without_thoughts(reply.text)
        for attempt in range(self.run.options.max_repairs + 1):
            value, problem = read_value(reply.text, partial(problem_of_value, schema), material)
            if problem is None:
                return value
            if attempt < self.run.options.max_repairs:
                refused = message(
                    "That does not follow the schema:\n",
                    text_block("problem", problem),
                    "Reply with the corrected JSON alone.",
                )
                again = [
                    *tail,
                    {"role": "assistant", "content": words(reply.text[:4000])},
                    {"role": "user", "content": refused},
                ]
                reply, _ = await self._asked(again, schema, f"{call}~{attempt + 1}", needs=needs)
        detail = {"reply": reply.text[:500]}
        raise RunError("invalid_value", f"the reply does not follow the schema: {problem}", detail)

    async def _asked(
        self,
        tail: list[dict[str, str]],
        schema: dict[str, Any] | None,
        call: str,
        *,
        needs: str,
        role: Role = Role.LEAF,
        run_budget: RunBudget | None = None,
    ) -> tuple[ProviderReply, str]:
        """A whole reply, and the texts of its request. Raises: ProviderError for a reply that is not whole."""
        agent = self.agent
        draft = RequestDraft(
            call=call,
            role=role,
            text="",
            tail=tail,
            needs=(needs[:MOST_NEEDS],),
            extra_pinned=runtime_units(role, False, ""),
            withheld=CALLING,
            policy=agent.policy,
            run_budget=run_budget or agent.run_budget,
            deadline=agent.deadline,
        )
        view = await self.run.compiled(draft)
        reply = await self.run.ask(draft, view, schema)
        problem = unfinished(reply)
        if problem is not None:
            raise problem
        return reply, material_of(view.messages("text"))

    async def chat(self, messages: tuple[Message, ...], *, call: str) -> str:
        """The reply of the leaf model to the messages of a handler. Raises: ProviderError, also for a reply that is not
        whole."""
        self.require(MODEL, "a request of a handler")
        tail = [{"role": message.role, "content": message.content} for message in messages]
        needs = tail[-1]["content"] if tail else ""
        reply, _ = await self._asked(tail, None, call, needs=needs, role=Role.GUEST, run_budget=current_budget.get())
        return reply.text

    async def _parts(self, prompt: Prompt) -> list[str | FencedText]:
        """The words of a prompt, and blocks for its material and for the documents of the contexts in it."""
        room = self.agent.policy.limit * MOST_BYTES_PER_TOKEN
        parts: list[str | FencedText] = []
        for piece in prompt:
            if isinstance(piece, Material):
                parts.append(piece.block)
            elif isinstance(piece, str):
                parts.append(piece)
            else:
                parts += context_blocks(piece["handle"], await self.agent.store.texts(piece, room))
        return parts

    # -- children -----------------------------------------------------------------------------------

    async def rlm(self, query: str, context: Any, plan: dict[str, Any] | None) -> Any:
        """Let a child find the answer."""
        async with self._step():
            with self._spending():
                self.require(RECURSE, "`rlm`")
            return await self.agent.child_answer(query, context, plan, call=self.call)

    # -- tools --------------------------------------------------------------------------------------

    async def tool(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool of the host."""
        async with self._step():
            tool = self.run.toolbox.called(name)
            with self._spending():
                self._admit(tool)
                self.agent.run_budget.count("tool_calls")
            outcome = await self._called(tool, arguments)
        if outcome.error is not None:
            raise _of_a_tool(error_of(outcome.error), tool)
        return outcome.value

    def _admit(self, tool: Tool) -> None:
        self.require(TOOL, "`tool`")
        shut = self.agent.withheld | self.agent.policy.withheld
        if any(covers(pattern, tool.capability) for pattern in shut):
            detail = {"tool": tool.id, "capability": tool.capability}
            raise ToolError("capability_missing", f"{tool.id}: the capability {tool.capability!r} is withheld", detail)

    async def _called(self, tool: Tool, arguments: dict[str, Any]) -> ToolOutcome:
        """What a call came to, which is written down; where it is ended from outside, what it took by then."""
        replay, trace, call_budget = self.run.replay, self.run.trace, self.agent.run_budget.child()
        try:
            if replay is None:
                outcome = await self._executed(tool, arguments, call_budget)
            else:
                call_budget.charge(replay.tool_usage(self.call))
                outcome = await replay.tool(self.call, arguments)
        except BaseException:
            with suppress(RunError):  # the trace cannot be written: that is known already
                took = call_budget.at_most().model_dump(mode="json", exclude_defaults=True)
                trace.event("interrupted", call=self.call, tool=tool.id, took=took)
            raise
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

    async def _executed(self, tool: Tool, arguments: dict[str, Any], call_budget: RunBudget) -> ToolOutcome:
        """What a tool comes to, called for this agent."""
        agent, run = self.agent, self.run
        origin: dict[str, Any] = {"run": run.id, "agent": agent.id, "depth": agent.depth, "role": agent.role.value}
        origin |= {"call": self.call} | ({"delegation": agent.delegation} if agent.delegation else {})
        texts = tuple(value for value in arguments.values() if isinstance(value, PromptText))
        tokens = current_agent.set(agent), current_budget.set(call_budget), current_texts.set(texts)
        try:
            async with run.calls(agent.depth):
                workers = run.workers.at(agent.depth)
                return await execute(
                    tool, arguments, agent.grant, deadline=agent.deadline, workers=workers, origin=origin
                )
        finally:
            current_agent.reset(tokens[0])
            current_budget.reset(tokens[1])
            current_texts.reset(tokens[2])


def _of_a_tool(problem: RlmError, tool: Tool) -> RlmError:
    """What a tool failed with. Where a run that its handler waited for was ended, this one goes on."""
    if isinstance(problem, RunError) and problem.terminal:
        return ToolError(problem.kind, f"{tool.id}: {problem.message}", problem.detail)
    return problem
