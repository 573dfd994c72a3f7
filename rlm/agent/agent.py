"""One agent: it is told its task, plans, sees what came of it, and plans again until it has an answer.

The root is one, and so is every child. What it may do follows from a handful of facts (depth, budget, the host's
policy); the rules turn them into what its requests show, and the same facts are asked again when a plan runs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread

from rlm.agent.conversation import MAX_SHOWN, Conversation, inputs_text
from rlm.agent.operations import Operations
from rlm.agent.pace import AgentPace
from rlm.agent.roles import MODEL, NEEDED, RECURSE, Role, runtime_units
from rlm.agent.run import RequestDraft, Run
from rlm.context.arguments import ACTIONS
from rlm.errors import LONGEST_EXCEPTION, BudgetError, ProviderError, RunError
from rlm.fencing import FencedText, json_text, message, row, rows_block, value_block
from rlm.model.base import digest_of
from rlm.model.message import Message
from rlm.model.plan import Ending, Failed, Final, Frame, Observe, PlanError, PlanProblem, ValidPlan
from rlm.model.policy import Policy, covers
from rlm.model.unit import CALLABLE
from rlm.model.wire_names import wire_name
from rlm.plan import Execution, Material, PromptText, Scope, is_handle, read, texts_in, validate, words_in
from rlm.plan.cost import preflight, step_problems, worst_case
from rlm.plan.reply_json import material_of
from rlm.plan.reply_schema import plan_schema
from rlm.plan.reply_text import grammar_text
from rlm.plan.schemas import mismatch
from rlm.plan.sizes import size_of
from rlm.sending.incomplete import unfinished
from rlm.sending.results import PromptProjection, error_of
from rlm.sending.run_budget import RunBudget
from rlm.tools.grant import Grant

if TYPE_CHECKING:
    from rlm.compiler.view import CompiledContext
    from rlm.context.store import Store

SUBAGENT = "rlm_subagent"
"""The tool that makes children; where there may be none, it is withheld."""

MOST_REPEATS = 3
"""A plan that has the same result so many times ends the agent's run: further turns would cost and bring nothing."""

COMPACT_SHARE = 2
"""A conversation that takes more than one part in two of the room is compacted."""


LARGE_TEXT = 8_000
"""Characters of a reply that is checked in a thread: to check one takes up to 5 ms where it holds no schema."""

LARGE_DATA = 1_000
"""Values in a plan that is checked in a thread."""

T = TypeVar("T")

Left = Mapping[str, Any]
"""What may still be taken, by budget field."""


@dataclass
class Agent:
    """One agent of a run.

    ``deadline`` is absolute, on the event loop's clock. ``lineage`` are the digests of the tasks of its ancestors and
    of its own; ``inputs`` what plans may name as ``{"input": ...}``, contexts as handles. ``deepest`` is the depth at
    which an agent of its line has no children. ``delegation`` says which command of the host its task carries, as inert
    data.
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
    living: set[anyio.CancelScope] = field(default_factory=set)
    names: Counter[str] = field(default_factory=Counter)
    results: Counter[str] = field(default_factory=Counter)

    # -- what it may do -----------------------------------------------------------------------------

    @property
    def role(self) -> Role:
        """``planner`` or ``child``."""
        return Role.CHILD if self.depth else Role.PLANNER

    @property
    def withheld(self) -> frozenset[str]:
        """The capabilities that it does not have now."""
        return self._withheld(self.run_budget.left(), spare=0)

    def _withheld(self, left: Left, *, spare: int) -> frozenset[str]:
        """What it does not have where so much is left, less ``spare`` model calls that are spoken for."""
        out: set[str] = set()
        if self.run.leaf is None:
            out |= {RECURSE, MODEL}
        if self.depth >= self.deepest:
            out.add(RECURSE)
        if left["max_model_calls"] <= spare:
            out |= {RECURSE, MODEL}
        if RECURSE in out:
            out.add(f"tool:{SUBAGENT}")
        if left["max_tool_calls"] <= 0:
            out |= {"runtime:tool", "tool:*", "mcp_tool:*"}
        if left["max_context_ops"] <= 0 or not self.store.handles:
            out.add(NEEDED["context"])
        return frozenset(out)

    # -- the loop -----------------------------------------------------------------------------------

    async def answer(self) -> Any:
        """The value of its ``final``.

        Raises: RunError, ProviderError, CompileError, BudgetError: what it could not go on with.
        """
        self.run.trace.event(
            "agent", agent=self.id, depth=self.depth, role=self.role.value, task=self._stored(self.task)
        )
        said = Conversation(await self._inputs())
        needs = self.run.options.first_needs if self.depth == 0 else (words_in(self.task),)
        while True:
            await self._turns()
            plan, reply = await self._planned(said, needs)
            ending = await self.execute(plan)
            if isinstance(ending, Final):
                problem = self._unfit(ending.value)
                if problem is None:
                    return ending.value
                ending = Failed(problem.to_dict(), "the value of `final`", self.partial())
            repeats = self._repeats(reply, ending)
            if isinstance(ending, Observe):
                said.observed(reply, ending.values, repeated=repeats > 1)
                needs = ending.needs or needs
            elif _is_last_turn(self.run.left(f"{self.id}.{self.turn}:end", self.run_budget)):
                raise error_of(ending.error)
            else:
                said.failed(reply, ending.path, ending.error, self.partial(), repeated=repeats > 1)

    def _repeats(self, plan: str, ending: Observe | Failed) -> int:
        """Count how often this plan has had this result, this time included.

        A failure is the same where the step and the kind are: messages may hold times and ids of requests.

        Raises: RunError ``no_progress`` the third time; what ended the run, where the plan failed so.
        """
        if isinstance(ending, Failed):
            if ending.terminal:
                raise error_of(ending.error)
            result: Any = [ending.path, ending.error.get("phase"), ending.error.get("kind")]
        else:
            result = dict(ending.values)
        key = digest_of([plan, result])
        self.results[key] += 1
        if self.results[key] >= MOST_REPEATS:
            raise _no_progress(ending, self.turn)
        return self.results[key]

    async def _turns(self) -> None:
        """The next turn. Raises: RunError ``max_iterations``."""
        call = f"{self.id}.{self.turn + 1}"
        try:
            if self.run.replay is not None:
                await self.run.replay.begin_turn(call)
            self.run_budget.count("turns")
        except RunError as problem:
            self.run.spent(f"{call}:turn", problem)
            raise
        self.turn += 1

    async def execute(self, plan: ValidPlan) -> Ending:
        """Run one plan; what it binds stays bound."""
        operations = Operations(self)
        task = {"query": PromptText(texts_in(self.task))} if "query" in self.inputs else {}
        known = Scope({**self.inputs, **task}, self.bound)
        self.execution = Execution(
            plan,
            operations,
            known,
            width=self.run_budget.budget.max_concurrent_subcalls,
            pace=AgentPace(self.run, self.run_budget, f"{self.id}.{self.turn}"),
        )
        try:
            return await self.execution.run()
        finally:
            for scope in tuple(self.living):  # children that a handler began on its own do not outlive the plan
                scope.cancel()
            self.bound = self.partial()
            self.execution = None

    def partial(self) -> dict[str, Any]:
        """What is bound so far, with the items of a list that is under way."""
        if self.execution is None:
            return dict(self.bound)
        return {**self.bound, **self.execution.bindings(), **self.execution.unfinished()}

    # -- one turn -----------------------------------------------------------------------------------

    async def _planned(self, said: Conversation, needs: tuple[str, ...]) -> tuple[ValidPlan, str]:
        """A valid plan and the reply that it stood in. Raises: RunError ``no_valid_plan``."""
        trace = self.run.trace
        for attempt in range(self.run.options.max_repairs + 1):
            call = f"{self.id}.{self.turn}" + (f"~{attempt}" if attempt else "")
            draft, view, frame = await self._compiled(said, needs, call, repairing=attempt > 0)
            self.projection = PromptProjection(
                fingerprint=view.fingerprint, active_units=view.active, tool_count=len(view.callable)
            )
            reply = await self.run.ask(draft, view, plan_schema(frame))
            try:
                cut = unfinished(reply)
                if cut is not None:
                    raise _no_whole_plan(cut, view.policy.reserve_output)
                material = material_of(view.messages("text"))
                plan = await _apart(len(reply.text), read, reply.text, frame, material)
                left = self.run.left(f"{call}:plan", self.run_budget)
                found = await _apart(len(reply.text), _unaffordable, plan, frame, left)
                if found:
                    raise PlanError.of(found)
            except PlanError as problem:
                last = problem
                trace.event("refused", call=call, error=problem.to_dict())
                said.refused(reply.text, problem.problems)
                continue
            trace.event("plan", call=call, plan=trace.body(plan.data) if trace.active else "")
            return plan, await _apart(len(reply.text), json_text, plan.data)
        problems = last.detail.get("problems", [])
        message = f"no valid plan in {self.run.options.max_repairs + 1} replies; the last: {last.message}"
        raise RunError("no_valid_plan", message, {"problems": problems})

    async def _compiled(
        self, said: Conversation, needs: tuple[str, ...], call: str, *, repairing: bool
    ) -> tuple[RequestDraft, CompiledContext, Frame]:
        """What the next request shows, and what a plan in its reply may name. Compacts what has become too long."""
        left = self.run.left(call, self.run_budget)
        withheld = self._withheld(left, spare=1)  # this very request
        ops = self._ops(withheld, left)
        if not any(unit.kind in CALLABLE for unit in self.run.catalog.units.values()):
            ops = ops - {"tool"}  # known without a compile
        while True:
            draft = self._asked(said, needs, call, withheld, ops, left, repairing=repairing)
            try:
                view = await self.run.compiled(draft)
            except BudgetError:
                if not said.compact():
                    raise
            else:
                if "tool" in ops and not view.callable:
                    ops = ops - {"tool"}  # nothing to call: then nothing is said of calling
                    continue
                if view.ledger.task * COMPACT_SHARE <= view.ledger.limit or not said.compact():
                    return draft, view, self._frame(view, ops)
            self.run.trace.event("compacted", call=call, turns=said.compacted)

    def _asked(
        self,
        said: Conversation,
        needs: tuple[str, ...],
        call: str,
        withheld: frozenset[str],
        ops: frozenset[str],
        left: Left,
        *,
        repairing: bool,
    ) -> RequestDraft:
        """The next request, before it is compiled.

        Only the root's task is in the user's own words; a child's was written by a model: it is shown like the
        user's and counts as a need.
        """
        tail = said.tail(self._capabilities(ops) + _status(left))
        if self.depth:
            task = message(*(piece.block if isinstance(piece, Material) else piece for piece in texts_in(self.task)))
            tail = [{"role": "user", "content": task}, *tail]
        return RequestDraft(
            call=call,
            role=self.role,
            text="" if self.depth else self.task,
            tail=tail,
            needs=needs,
            extra_pinned=runtime_units(self.role, repairing, _grammar(ops)),
            withheld=withheld,
            policy=self.policy,
            run_budget=self.run_budget,
            deadline=self.deadline,
        )

    def _capabilities(self, ops: frozenset[str]) -> str:
        """What this agent can do, and what a child of it could."""
        text = f"\n# Capabilities\n{_named(ops & NEEDED.keys())}\n"
        if "rlm" not in ops:
            return text
        deeper = self.depth + 1 < self.deepest
        return f"{text}# Child capabilities\n{_named((ops & NEEDED.keys()) - (frozenset() if deeper else {'rlm'}))}\n"

    def _ops(self, withheld: frozenset[str], left: Left) -> frozenset[str]:
        shut = withheld | self.policy.withheld
        out = {op for op, capability in NEEDED.items() if any(covers(pattern, capability) for pattern in shut)}
        if _is_last_turn(left):
            out.add("observe")
        return Frame().without(*out).ops

    def _frame(self, view: CompiledContext, ops: frozenset[str]) -> Frame:
        """What a plan may name after this view: its callable tools and no other."""
        units = view.units
        checked = self.run.toolbox.checked
        tools = {wire_name(id): checked(id, units[id].schema or {"type": "object"}) for id in view.callable}
        hidden = tuple(wire_name(id) for id, unit in units.items() if unit.kind in CALLABLE and id not in view.callable)
        frame = Frame(
            inputs={name: _length(value) for name, value in self.inputs.items()},
            handles=tuple(handle.id for handle in self.store.handles),
            tools=tools,
            known_tools=hidden,
            ops=ops,
            actions=_ACTIONS,
            variables={name: _length(value) for name, value in self.bound.items()},
        )
        if "rlm" not in ops:
            return frame
        deeper = self.depth + 1 < self.deepest
        child = frame.model_copy(
            update={
                "inputs": {"query": None, "context": None},
                "handles": ("context",),
                "variables": {},
                "ops": ops - {"observe"} if deeper else ops - {"observe", "rlm"},
            }
        )
        return frame.model_copy(update={"child": child})

    async def _inputs(self) -> str:
        rows = {}
        for name, value in self.inputs.items():
            if is_handle(value):
                rows[name] = _described(name, value["handle"], await self.store.act(value, "info"))
            elif name != "query":
                rows[name] = ("a value", value_block(name, value, MAX_SHOWN))
        return inputs_text(rows)

    def _unfit(self, value: Any) -> RunError | None:
        """Why a final value cannot be given back, if so."""
        options = self.run.options
        size = len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
        most = self.run_budget.budget.max_output_bytes
        if size > most:
            detail = {"bytes": size, "limit": most}
            return RunError("output_too_large", f"the value has {size} bytes; at most {most}", detail)
        if self.depth == 0 and options.output_schema is not None:
            broken = mismatch(dict(options.output_schema), value)
            if broken is not None:
                return RunError("invalid_value", f"the value does not follow the wanted schema: {broken}")
        return None

    async def chat(self, messages: tuple[Message, ...]) -> str:
        """The reply to a handler's own messages, as a request of this run."""
        self.chats += 1
        return await Operations(self).chat(messages, call=f"{self.id}.{self.turn}:chat[{self.chats}]")

    # -- children -----------------------------------------------------------------------------------

    async def child_answer(self, query: str, context: Any, plan: Mapping[str, Any] | None, *, call: str) -> Any:
        """The value that a child finds. The same sub-task, asked twice by agents that may do the same, is done once.

        Raises: RunError ``cycle``; ContextError for a context that is not this agent's; and whatever ended the child.
        """
        task = digest_of([query, context, plan])
        if task in self.lineage:
            raise RunError("cycle", "this task is being done by an ancestor already", {"query": query[:200]})
        store = self.store.narrowed([context] if is_handle(context) else [])
        policy, grant = self.narrowed(self.run.options.child_policy)
        means = (policy, grant.capabilities, grant.effects, grant.ceiling, *map(id, grant.authorities))

        async def answered() -> Any:
            if self.run.replay is not None:
                await self.run.replay.begin_child(call)
            async with self.run.children(self.depth + 1):
                return await begun()

        async def begun() -> Any:
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

        return await self.run.shared((task, *means, self.run_budget.budget, self.depth, self.deepest), call, answered)

    async def valid(self, plan: Any) -> ValidPlan:
        """A plan that the host wrote, or that a plan has for a child, checked; of what it may cost, its steps.

        Raises: PlanError.
        """
        left = self.run.left(f"{self.id}.{self.turn}:frame", self.run_budget)
        frame = self.host_frame(left)
        data = dict(plan) if isinstance(plan, Mapping) else plan
        valid = await _apart(LARGE_TEXT if size_of(data)[0] > LARGE_DATA else 0, validate, data, frame)
        found = step_problems(valid, frame, left.get("max_steps"))
        if found:
            raise PlanError.of(found)
        return valid

    async def follow(self, plan: ValidPlan) -> Any:
        """The value of a plan that somebody else wrote. Raises: whatever ended it."""
        ending = await self.execute(plan)
        if isinstance(ending, Failed):
            raise error_of(ending.error)
        if isinstance(ending, Observe):
            return ending.values
        problem = self._unfit(ending.value)
        if problem is not None:
            raise problem
        return ending.value

    def host_frame(self, left: Left) -> Frame:
        """What a plan of the host may name: every tool that is registered or bound, shown or not."""
        ops = self._ops(self._withheld(left, spare=0), left) | {"observe"}
        return Frame(
            inputs={name: _length(value) for name, value in self.inputs.items()},
            handles=tuple(handle.id for handle in self.store.handles),
            tools=self.run.toolbox.schemas,
            ops=ops,
            actions=_ACTIONS,
            variables={name: _length(value) for name, value in self.bound.items()},
        )

    def note(self, event: str, **data: Any) -> None:
        """Something about this agent, for the trace."""
        self.run.trace.event(event, agent=self.id, **data)

    def narrowed(self, *said: Policy | None) -> tuple[Policy, Grant]:
        """What a child may do: what this agent may, and less for each policy in which the host says so.

        Raises: ConfigurationError ``wider_than_parent`` for one that asks for more than is there by then.
        """
        policy, grant = self.policy, self.grant
        for child in said:
            if child is not None:
                given = {name: getattr(child, name) for name in child.model_fields_set}
                inherited = {name: getattr(policy, name) for name in policy.model_fields_set}
                policy = policy.narrowed(Policy(**{**inherited, **given}))
                grant = grant.narrowed(capabilities=policy.capabilities)
        return policy, grant

    def _stored(self, value: Any) -> str:
        return self.run.trace.body(value) if self.run.trace.active else ""


_ACTIONS = {name: dict(spec.schema) for name, spec in ACTIONS.items()}


async def _apart(chars: int, check: Callable[..., T], *args: Any) -> T:
    """What a check gives: of a large plan in a thread, so that other tasks on the event loop go on meanwhile."""
    if chars < LARGE_TEXT:
        return check(*args)
    return await anyio.to_thread.run_sync(check, *args, abandon_on_cancel=True)


@lru_cache(maxsize=256)
def _grammar(ops: frozenset[str]) -> str:
    """The plan language as an agent with these operations is told it."""
    return grammar_text(Frame(ops=ops, actions=_ACTIONS))


def _unaffordable(plan: ValidPlan, frame: Frame, left: Left) -> tuple[PlanProblem, ...]:
    """What of a plan could take more than is left, at its dearest. Children have turns of their own."""
    found = preflight(worst_case(plan, frame), {**left, "max_iterations": None})
    return (*found, *step_problems(plan, frame, left.get("max_steps")))


def _no_whole_plan(problem: ProviderError, limit: int) -> PlanError:
    """A reply that is no whole answer, as a planner is told of it."""
    message, expected = problem.message, "a whole reply with one plan"
    if problem.kind == "reply_cut":
        message += f" (at most {limit}), and a plan that is cut is not run"
        expected = "a shorter reply: the plan alone, with fewer steps; `observe` ends a plan that goes on later"
    return PlanError.of([PlanProblem(path="", kind=problem.kind, message=message, expected=expected, got="")])


def _no_progress(ending: Observe | Failed, turn: int) -> RunError:
    """Return the error that ends an agent whose plan had the same result too often; it repeats what went wrong."""
    message, detail = f"the same plan had the same result {MOST_REPEATS} times", {"repeats": MOST_REPEATS, "turn": turn}
    if isinstance(ending, Observe):
        return RunError("no_progress", f"{message}: it ends with `observe`, and nothing changed", detail)
    cause = {name: ending.error.get(name) for name in ("phase", "kind", "message")}
    words = str(cause["message"])[:LONGEST_EXCEPTION]
    return RunError(
        "no_progress", f"{message}: at {ending.path}: {words}", {**detail, "path": ending.path, "cause": cause}
    )


def _is_last_turn(left: Left) -> bool:
    """Whether no turn can follow the one that is being asked for."""
    return bool(left["max_iterations"] <= 0 or left["max_model_calls"] <= 1)


def _status(left: Left) -> str:
    if _is_last_turn(left):
        return "\n# Last turn\nNo turn can follow: end with `final`, by the best inference from what there is.\n"
    return (
        f"\n# Budget\nturns left after this: {left['max_iterations']}, model calls: {left['max_model_calls'] - 1}, "
        f"tool calls: {left['max_tool_calls']}\n"
    )


def _named(ops: Iterable[str]) -> str:
    return ", ".join(sorted(ops)) or "none"


def _length(value: Any) -> int | None:
    return len(value) if isinstance(value, list) else None


HEAD = 160
"""Characters of the beginning of a context that an agent is shown at first."""

NAMED = 8
"""Documents of a context that are named at first."""


def _described(name: str, id: str, info: Mapping[str, Any]) -> tuple[str, FencedText]:
    """A context in one line: how large it is and what it consists of; and a block: what it holds, how it begins."""
    about = "about " if "characters" in info.get("estimated", ()) else ""
    said = "a context" if id == name else f"context {id!r}"
    parts = [f"{said}: {info['kind']}", f"{about}{info['characters']:,} characters", f"{about}{info['lines']:,} lines"]
    parts.append(f"about {info['tokens']:,} tokens")
    head = info["head"][:HEAD]
    rows = [row("begins", head)]
    if "documents" in info:
        names = [each["name"] for each in info["names"][:NAMED]]
        parts.append(f"{info['documents']:,} documents")
        label = "names" if info["documents"] == len(names) else "first names"
        rows.insert(0, row(label, names))
    return ", ".join(parts), rows_block(id, rows)
