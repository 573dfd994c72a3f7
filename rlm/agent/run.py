"""One run: the state that all agents of a tree share, and the only way in which they send requests."""

from __future__ import annotations

import datetime
import math
import random
import secrets
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import anyio
import anyio.lowlevel
import anyio.to_thread

from rlm.agent.inputs import INLINE_SHARE, RUN_SHARE, InlineRoom
from rlm.agent.options import Options
from rlm.agent.requests import DATE_TOKENS, PLANNING, ModelEndpoint, RequestDraft, dated, wire_takes
from rlm.agent.roles import Role, agent_policy
from rlm.agent.toolbox import Toolbox
from rlm.boundary import host_code
from rlm.catalog.catalog import Catalog
from rlm.compiler.compile import compile as compile_view
from rlm.compiler.render import Shown
from rlm.compiler.representations import native_text
from rlm.compiler.tokens.token_counter import counter
from rlm.errors import ConfigurationError, ProviderError, RlmError, RunError
from rlm.model.budget import Budget
from rlm.model.policy import Policy
from rlm.model.unit import Unit
from rlm.providers.base import Provider, ProviderReply, ProviderRequest
from rlm.sending import gate
from rlm.sending.charges import Bill
from rlm.sending.gate import OutcomeCallback, RequestTerms, policy_for_window
from rlm.sending.run_budget import Reservation, RunBudget
from rlm.sending.usage_record import ShownText
from rlm.similarity.sensor_input import SensorScores, sensor_scores
from rlm.tools.work import Workers
from rlm.trace.writer import Trace, request_key

if TYPE_CHECKING:
    from rlm.compiler.view import CompiledContext
    from rlm.context.store import Store
    from rlm.trace.replay import Replay

MOST_SENSOR_THREADS = 8
"""Threads that compute sensor scores concurrently."""

MOST_SCORED_TEXTS = 256
"""Texts whose sensor scores are cached."""

MOST_WINDOW = 2**40
"""Tokens: no model has such a large window; a provider that reports a larger one is wrong."""


@dataclass
class Run:
    """The state that the agents of one tree share. It belongs to one event loop.

    After the end of the run (``over``) no request is sent, also for a handler that still runs.
    """

    options: Options
    catalog: Catalog
    toolbox: Toolbox
    store: Store
    run_budget: RunBudget
    planner: ModelEndpoint | None
    leaf: ModelEndpoint | None
    extra_pinned: tuple[Unit, ...]
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    trace: Trace = field(default_factory=Trace)
    rng: random.Random = field(default_factory=random.Random)
    replay: Replay | None = None
    over: bool = False
    today: datetime.date = field(init=False)
    slots: anyio.CapacityLimiter = field(init=False)
    sensor_slots: anyio.CapacityLimiter = field(init=False)
    workers: Workers = field(init=False)
    loop: Any = field(default_factory=anyio.lowlevel.current_token)
    windows: dict[Provider, int | None] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    asking: Literal["plans", "tools"] | None = None
    _known_scores: dict[tuple[int, str, tuple[str, ...]], SensorScores] = field(default_factory=dict)
    leaf_tokens: dict[tuple[int, str], int] = field(default_factory=dict)
    _places: dict[tuple[str, int], anyio.CapacityLimiter] = field(default_factory=dict)
    _shared: dict[Hashable, _SharedTask] = field(default_factory=dict)
    _started: defaultdict[Hashable, anyio.Event] = field(default_factory=lambda: defaultdict(anyio.Event))

    def __post_init__(self) -> None:
        self.today = self.options.today
        self.slots = anyio.CapacityLimiter(self.width)
        self.sensor_slots = anyio.CapacityLimiter(MOST_SENSOR_THREADS)  # leaves the default threads to other work
        self.workers = Workers(self.options.budget.max_concurrent_subcalls)

    @property
    def width(self) -> float:
        """The number of slots for concurrent work.

        A replay has no limit, because it does no work. A branch that blocks there until the end must not hold the slot
        of another branch.
        """
        return math.inf if self.replay is not None else self.options.budget.max_concurrent_subcalls

    @property
    def sensor(self) -> str | None:
        """The name of the sensor of every compile."""
        if self.replay is not None:
            return self.replay.sensor
        sensor = self.options.effective_sensor
        return None if sensor is None else sensor.name

    def endpoint(self, role: Role) -> ModelEndpoint:
        """Return the model for a role. Raises: ConfigurationError ``no_model``."""
        endpoint = self.leaf if role in (Role.LEAF, Role.HANDLER) else self.planner
        if endpoint is None:
            raise ConfigurationError("no_model", "this run has no model: name one, model='openai:...'")
        return endpoint

    def child_slots(self, depth: int) -> anyio.CapacityLimiter:
        """Return the limiter of concurrent children at one depth.

        Each depth has its own slots. So an agent that waits for its child never holds the slot that the child needs.
        """
        return self._limiter("children", depth)

    def call_slots(self, depth: int) -> anyio.CapacityLimiter:
        """Return the limiter of concurrent tool calls of the agents at one depth."""
        return self._limiter("calls", depth)

    def _limiter(self, what: str, depth: int) -> anyio.CapacityLimiter:
        return self._places.setdefault((what, depth), anyio.CapacityLimiter(self.width))

    def record_left(self, call: str, run_budget: RunBudget) -> dict[str, Any]:
        """Return the amounts left at this call, by budget field, and write them to the trace.

        Concurrent branches draw on the budget in the order of replies. A replay uses the recorded amounts.
        """
        left = run_budget.left() if self.replay is None else self.replay.left(call, run_budget.left())
        self.trace.event("left", call=call, left=left)
        return left

    def record_refusal(self, call: str, problem: RlmError) -> None:
        """Write a refusal of the budget to the trace.

        Concurrent branches are refused in the order of replies. A replay uses the recorded refusals.
        """
        if problem.kind in ("budget_exhausted", "max_iterations", "operation_not_allowed", "capability_missing"):
            self.trace.event("spent", call=call, error=problem.to_dict())

    async def share(self, key: Hashable, call: str, work: Callable[[], Awaitable[Any]]) -> Any:
        """Return the value of ``work``, which runs once for each key.

        Later callers wait for the value. A failure is shared with the callers that wait for it. If the deadline or the
        budget of the first caller ends the work, the next caller runs it again.

        The key contains the depth of the work. A waiting caller is less deep, and holds no slot that the work needs, so
        no circular wait is possible. In a replay the recorded ``call`` runs the work.
        """
        if self.replay is not None and self.replay.was_shared(call):
            await self._started[key].wait()
        while (shared_task := self._shared.get(key)) is not None:
            self.trace.event("shared", call=call)
            await shared_task.done.wait()
            if not shared_task.ended_early:
                return shared_task.result()
        task = self._shared[key] = _SharedTask()
        self._started[key].set()
        try:
            task.value = await work()
        except RlmError as problem:
            task.problem = problem
            task.ended_early = isinstance(problem, RunError) and problem.terminal
        except BaseException:
            task.ended_early = True
            raise
        finally:
            if task.ended_early or task.problem is not None:
                del self._shared[key]
            task.done.set()
        return task.result()

    # -- the one way to send ------------------------------------------------------------------------

    async def compile(self, draft: RequestDraft) -> CompiledContext:
        """Return the compiled context of a request. Raises: CompileError, BudgetError, ConfigurationError."""
        window = await self._window(self.endpoint(draft.role).provider)
        catalog_units = self.catalog.units
        extra_pinned = tuple(unit for unit in (*self.extra_pinned, *draft.extra_pinned) if unit.id not in catalog_units)
        policy = policy_for_window(agent_policy(draft.policy, draft.withheld, extra_pinned), window)[0]
        options = {**self.options.compile_options, "needs": draft.needs, "unused": draft.unused}
        options["retained"] = tuple(dict.fromkeys((*options.get("retained", ()), *draft.retained)))
        options["signals"] = {**dict(options.get("signals") or {}), **draft.signals}
        if self.sensor is not None:
            options["sensors"] = {**dict(options.get("sensors") or {}), **await self._sensor_scores(draft)}
        options |= {"messages": draft.messages, "tail": draft.tail, "standing": extra_pinned}
        options |= {"names": dict(self.names), "notes": draft.notes}
        if draft.session is None:
            compile_draft = partial(compile_view, self.catalog, draft.text, policy=policy, tools="text", **options)
        else:
            draft.session.policy = policy
            compile_draft = partial(draft.session.compile, draft.text, **{"history": (), **options})
        view = await anyio.to_thread.run_sync(compile_draft, abandon_on_cancel=True)  # a deadline does not wait for it
        for item in view.shown:
            if item.callable:
                self.names.setdefault(item.unit.id, item.block.name)
        return view

    async def inline_room(self, role: Role, policy: Policy, budget: Budget) -> InlineRoom:
        """Return the room for whole contexts in the first request of an agent."""
        limit, tokenizer = await self.input_limit(role, policy)
        tokens = min(limit // INLINE_SHARE, budget.max_total_tokens // RUN_SHARE)
        return InlineRoom(self.options.inline_limit, tokens, tokenizer)

    async def input_limit(self, role: Role, policy: Policy) -> tuple[int, str]:
        """Return the tokens that a request of a role may hold, and the name of the tokenizer that counts them."""
        policy = policy_for_window(policy, await self._window(self.endpoint(role).provider))[0]
        return policy.limit, policy.tokenizer

    async def _sensor_scores(self, draft: RequestDraft) -> SensorScores:
        """Return the sensor's scores for a request, and write them to the trace: a replay has no sensor.

        Raises: ConfigurationError ``bad_embedder``; in a replay the recorded error, or RunError ``replay_differs``.
        """
        row: dict[str, Any] = {}  # stays empty if the wait for the sensor is cancelled
        try:
            replay = self.replay
            scores = await (self._compute_scores(draft) if replay is None else replay.sensor_scores(draft.call))
            row = {"scores": self.trace.body(scores)} if self.trace.active else {}
        except RlmError as problem:
            row = {"error": problem.to_dict()}
            raise
        finally:
            self.trace.event("sensor", call=draft.call, **row)
        return scores

    async def _compute_scores(self, draft: RequestDraft) -> SensorScores:
        """Return the sensor's scores, computed in a thread and cached by text."""
        sensor, key = self.options.effective_sensor, (self.catalog.revision, draft.text, draft.needs)
        scores = self._known_scores.get(key)
        if scores is None and sensor is not None:
            score = partial(sensor_scores, sensor, self.catalog, draft.text, draft.needs)
            scores = await anyio.to_thread.run_sync(score, abandon_on_cancel=True, limiter=self.sensor_slots)
            if len(self._known_scores) >= MOST_SCORED_TEXTS:
                self._known_scores.clear()
            self._known_scores[key] = scores
        return scores or {}

    async def _window(self, provider: Provider) -> int | None:
        """Return the window of a provider's model in tokens; the provider is asked once in a run.

        Raises: ConfigurationError ``invalid_window``.
        """
        if provider not in self.windows:
            with host_code(*gate.provider_failed(provider)):
                window: Any = await provider.window()
            if window is not None and (not isinstance(window, int) or not 0 < window <= MOST_WINDOW):
                what = f"{provider.name} reports a window of {window!r} tokens; window() must return a whole number"
                raise ConfigurationError("invalid_window", f"{what} from 1 to 2**40, or None")
            self.windows[provider] = window
        return self.windows[provider]

    async def send_draft(
        self, draft: RequestDraft, view: CompiledContext, schema: dict[str, Any] | None = None
    ) -> ProviderReply:
        """Send a compiled request through the gate and return the reply.

        A provider that enforces schemas gets ``schema``.

        Raises: ProviderError, RunError ``budget_exhausted`` or ``timeout``, ConfigurationError.
        """
        endpoint = self.endpoint(draft.role)
        enforced = schema if endpoint.provider.enforces_schema and wire_takes(endpoint.provider, schema) else None
        is_dated = draft.session is None and draft.role in PLANNING
        parts = view.messages("text") if draft.session is None else view.messages(endpoint.provider.wire, cache=True)
        request = ProviderRequest(
            model=endpoint.provider.model,
            parts=dated(parts, self.today) if is_dated else parts,
            max_output_tokens=view.policy.reserve_output,
            temperature=self.options.temperature,
            seed=self.options.seed,
            response_format=enforced,
        )
        size = (
            view.ledger.total
            + (DATE_TOKENS if is_dated else 0)
            + (0 if enforced is None else counter(view.policy.tokenizer).count(str(enforced)))
        )
        terms = RequestTerms(
            run_budget=draft.run_budget,
            input_tokens=size,
            tokenizer=view.policy.tokenizer,
            window=view.policy.window,
            price=endpoint.price,
            retry=self.options.retry,
            rng=self.rng,
            slots=self.slots,
            attempt=self._attempt_recorder(draft, view, endpoint.provider),
        )
        try:
            if self.replay is not None:
                await self.replay.begin_request(draft.call)
            return await gate.send(endpoint.provider, request, deadline=draft.deadline, terms=terms)
        except RunError as problem:
            self.record_refusal(draft.call, problem)
            raise
        except ProviderError as problem:
            if problem.kind == "timeout" and problem.detail.get("source") == "deadline":
                raise RunError("timeout", problem.message, problem.detail) from None
            raise

    def _attempt_recorder(
        self, draft: RequestDraft, view: CompiledContext, provider: Provider
    ) -> Callable[[ProviderRequest, bytes, Reservation], OutcomeCallback]:
        """Return the function that writes each attempt of a request, and its outcome, to the trace."""
        units, role = view.units, draft.role.value
        texts = [ShownText(item.unit.id, _characters(item), item.block.tokens) for item in view.shown]

        def record_request(request: ProviderRequest, body: bytes, reservation: Reservation) -> OutcomeCallback:
            trace = self.trace
            characters = len(body.decode("utf-8", "replace"))
            if self.replay is not None:
                characters = self.replay.characters(draft.call, characters)
            draft.run_budget.record_request(role, characters, texts)
            key = request_key(request) if trace.keeps_bodies else ""
            digest = trace.body(body) if trace.active else ""
            trace.event(
                "request",
                call=draft.call,
                role=draft.role.value,
                window=self.windows.get(self.endpoint(draft.role).provider),
                provider=provider.name,
                model=provider.model,
                request=key,
                body=digest,
                bytes=len(body),
                characters=characters,
                fingerprint=view.fingerprint,
                units=[[id, units[id].digest[:16]] for id in view.active],
                bodies=dict(view.bodies),
                tools=len(view.callable),
                reserved=[reservation.input_tokens, reservation.output_tokens],
                left=_left_row(draft),
            )

            def record_outcome(outcome: ProviderReply | RlmError, bill: Bill | None) -> None:
                if bill is not None:
                    draft.run_budget.record_reply(role, bill, texts)
                row: dict[str, Any] = {"call": draft.call, "request": key, **_bill_row(bill)}
                if isinstance(outcome, RlmError):
                    trace.event("reply", **row, error=outcome.to_dict())
                    return
                reply = outcome.model_dump(mode="json")
                row["usage"] = reply.pop("usage")
                row["body"] = trace.body(reply) if trace.active else ""
                trace.event("reply", **row, left=_left_row(draft), cost_usd=self.run_budget.counted.cost_usd)

            return record_outcome

        return record_request


def _characters(item: Shown) -> int:
    """Return the characters of a shown unit; those of its JSON if it stands in the provider's ``tools`` field."""
    return len(item.block.text or native_text(item.unit, name=item.block.name, note=item.block.note))


def _bill_row(bill: Bill | None) -> dict[str, Any]:
    """Return the charged tokens and the findings of a bill, for the trace."""
    if bill is None:
        return {}
    return {"charged": bill.charged.model_dump(), **({"findings": bill.findings} if bill.findings else {})}


def _left_row(draft: RequestDraft) -> dict[str, Any]:
    """Return the amounts left by budget field, for the trace."""
    return {**draft.run_budget.left(), "time_limit": round(max(0.0, draft.deadline - anyio.current_time()), 3)}


@dataclass
class _SharedTask:
    """A sub-task for which several steps wait."""

    done: anyio.Event = field(default_factory=anyio.Event)
    value: Any = None
    problem: RlmError | None = None
    ended_early: bool = False

    def result(self) -> Any:
        if self.problem is not None:
            raise self.problem
        return self.value
