"""One run: what all agents of a tree share, and the one way in which any of them sends a request."""

from __future__ import annotations

import math
import random
import secrets
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import anyio.to_thread

from rlm.agent.options import Options
from rlm.agent.roles import Role, agent_policy
from rlm.agent.toolbox import Toolbox
from rlm.boundary import host_code
from rlm.catalog.catalog import Catalog
from rlm.compiler.compile import compile as compiled_view
from rlm.compiler.tokens.token_counter import counter
from rlm.errors import ConfigurationError, ProviderError, RlmError, RunError
from rlm.model.policy import Policy
from rlm.model.unit import Unit
from rlm.providers import resolve
from rlm.providers.base import Provider, ProviderReply, ProviderRequest
from rlm.providers.openai_strict import has_object_root
from rlm.providers.prices import Price, price_of
from rlm.sending import gate
from rlm.sending.charges import Bill
from rlm.sending.gate import OutcomeCallback, RequestTerms, policy_for_window
from rlm.sending.run_budget import Reservation, RunBudget
from rlm.similarity.sensor_input import SensorScores, sensor_scores
from rlm.tools.work import Workers
from rlm.trace.writer import Trace, request_key

if TYPE_CHECKING:
    from rlm.compiler.view import CompiledContext
    from rlm.context.store import Store
    from rlm.trace.replay import Replay

MOST_EARS = 8
"""So many threads ask the sensor at the same time."""

MOST_TOLD = 256
"""Texts of which it is remembered what the sensor said."""

MOST_WINDOW = 2**40
"""Tokens: no model has so many; a provider that says more is mistaken."""


@dataclass(frozen=True)
class ModelEndpoint:
    """A model that answers: its provider, and what it costs."""

    provider: Provider
    price: Price | None


@dataclass(frozen=True)
class RequestDraft:
    """One request of an agent, before it is compiled.

    ``call`` names it within the run, the same in every replay. ``extra_pinned`` are the units of its role, ``withheld``
    the capabilities that it does not have.
    """

    call: str
    role: Role
    text: str
    tail: Sequence[dict[str, str]]
    extra_pinned: tuple[Unit, ...]
    withheld: frozenset[str]
    policy: Policy
    run_budget: RunBudget
    deadline: float
    needs: tuple[str, ...] = ()
    messages: Sequence[dict[str, str]] = ()


@dataclass
class Run:
    """What the agents of one tree share. Lives on one event loop. When it is ``over``, nothing is asked any more, not
    even by a handler that was left behind."""

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
    slots: anyio.CapacityLimiter = field(init=False)
    ears: anyio.CapacityLimiter = field(init=False)
    workers: Workers = field(init=False)
    loop: Any = field(default_factory=anyio.lowlevel.current_token)
    windows: dict[Provider, int | None] = field(default_factory=dict)
    _told: dict[tuple[int, str, tuple[str, ...]], SensorScores] = field(default_factory=dict)
    _places: dict[tuple[str, int], anyio.CapacityLimiter] = field(default_factory=dict)
    _shared: dict[Hashable, _RunState] = field(default_factory=dict)
    _begun: defaultdict[Hashable, anyio.Event] = field(default_factory=lambda: defaultdict(anyio.Event))

    def __post_init__(self) -> None:
        self.slots = anyio.CapacityLimiter(self.width)
        self.ears = anyio.CapacityLimiter(MOST_EARS)  # who waits for vectors keeps no thread that others need
        self.workers = Workers(self.options.budget.max_concurrent_subcalls)

    @property
    def width(self) -> float:
        """How much works at the same moment. In a replay nothing works; and who waits there for the end, as he did when
        the recorded run was ended, must not keep a place from those who came further."""
        return math.inf if self.replay is not None else self.options.budget.max_concurrent_subcalls

    @property
    def sensor(self) -> str | None:
        """The name of the sensor with which every request is compiled."""
        if self.replay is not None:
            return self.replay.sensor
        sensor = self.options.effective_sensor
        return None if sensor is None else sensor.name

    def endpoint(self, role: Role) -> ModelEndpoint:
        """Who answers a request of this role. Raises: ConfigurationError ``no_model``."""
        found = self.leaf if role in (Role.LEAF, Role.GUEST) else self.planner
        if found is None:
            raise ConfigurationError("no_model", "this run has no model: name one, model='openai:...'")
        return found

    def children(self, depth: int) -> anyio.CapacityLimiter:
        """How many children of one depth work at the same moment. Each depth has its own places: who waits for a
        child never keeps that child from starting."""
        return self._limiter("children", depth)

    def calls(self, depth: int) -> anyio.CapacityLimiter:
        """Likewise, how many tools agents of one depth have at work."""
        return self._limiter("calls", depth)

    def _limiter(self, what: str, depth: int) -> anyio.CapacityLimiter:
        return self._places.setdefault((what, depth), anyio.CapacityLimiter(self.width))

    def left(self, call: str, run_budget: RunBudget) -> dict[str, Any]:
        """What may still be taken at this place of the run, by budget field. Who works side by side sees it in the
        order of replies; so it is written down, and a replay goes by what was there then."""
        found = run_budget.left() if self.replay is None else self.replay.left(call, run_budget.left())
        self.trace.event("left", call=call, left=found)
        return found

    def spent(self, call: str, problem: RlmError) -> None:
        """Write down what the ledger, or what it left, refused: who works side by side is refused in the order of
        replies, so a replay goes by what was said then."""
        if problem.kind in ("budget_exhausted", "max_iterations", "operation_not_allowed", "capability_missing"):
            self.trace.event("spent", call=call, error=problem.to_dict())

    async def shared(self, key: Hashable, call: str, work: Callable[[], Awaitable[Any]]) -> Any:
        """The value of ``work``, done once for each key: who comes later gets the value, and waits for it where it is
        not there yet. A failure is shared with those who wait for it; what ended the first from outside (its deadline,
        its budget) is nobody else's, and the next one does the work then.

        The key says at which depth the work is done. Who waits is less deep, and holds no place that it needs: so
        nobody waits in a circle. In a replay it is done by the ``call`` that did it then.
        """
        if self.replay is not None and self.replay.was_shared(call):
            await self._begun[key].wait()
        while (known := self._shared.get(key)) is not None:
            self.trace.event("shared", call=call)
            await known.done.wait()
            if not known.ended_early:
                return known.result()
        mine = self._shared[key] = _RunState()
        self._begun[key].set()
        try:
            mine.value = await work()
        except RlmError as problem:
            mine.problem = problem
            mine.ended_early = isinstance(problem, RunError) and problem.terminal
        except BaseException:
            mine.ended_early = True
            raise
        finally:
            if mine.ended_early or mine.problem is not None:
                del self._shared[key]
            mine.done.set()
        return mine.result()

    # -- the one way to send ------------------------------------------------------------------------

    async def compiled(self, draft: RequestDraft) -> CompiledContext:
        """What a request shows. Raises: CompileError, BudgetError, ConfigurationError."""
        window = await self._window(self.endpoint(draft.role).provider)
        there = self.catalog.units
        extra_pinned = tuple(unit for unit in (*self.extra_pinned, *draft.extra_pinned) if unit.id not in there)
        policy = policy_for_window(agent_policy(draft.policy, draft.withheld, extra_pinned), window)[0]
        options = {**self.options.compile_options, "needs": draft.needs}
        if self.sensor is not None:
            options["sensors"] = {**dict(options.get("sensors") or {}), **await self._heard(draft)}
        compiled = partial(
            compiled_view,
            self.catalog,
            draft.text,
            policy=policy,
            messages=draft.messages,
            tail=draft.tail,
            standing=extra_pinned,
            tools="text",
            **options,
        )
        return await anyio.to_thread.run_sync(compiled, abandon_on_cancel=True)  # a deadline does not wait for it

    async def _heard(self, draft: RequestDraft) -> SensorScores:
        """What the sensor says of a request, which is written down: a replay has no sensor.

        Raises: ConfigurationError ``bad_embedder``; in a replay what was raised then, or RunError ``replay_differs``.
        """
        row: dict[str, Any] = {}  # as it stays where something ends the wait for the sensor
        try:
            found = await (self._scores(draft) if self.replay is None else self.replay.sensor_scores(draft.call))
            row = {"scores": self.trace.body(found)} if self.trace.active else {}
        except RlmError as problem:
            row = {"error": problem.to_dict()}
            raise
        finally:
            self.trace.event("sensor", call=draft.call, **row)
        return found

    async def _scores(self, draft: RequestDraft) -> SensorScores:
        """The same, asked of the sensor: in a thread, and once for the same words."""
        sensor, key = self.options.effective_sensor, (self.catalog.revision, draft.text, draft.needs)
        found = self._told.get(key)
        if found is None and sensor is not None:
            listen = partial(sensor_scores, sensor, self.catalog, draft.text, draft.needs)
            found = await anyio.to_thread.run_sync(listen, abandon_on_cancel=True, limiter=self.ears)
            if len(self._told) >= MOST_TOLD:
                self._told.clear()
            self._told[key] = found
        return found or {}

    async def _window(self, provider: Provider) -> int | None:
        """Tokens that a provider's model can hold; asked once in a run.

        Raises: ConfigurationError ``invalid_window``.
        """
        if provider not in self.windows:
            with host_code(*gate.provider_failed(provider)):
                window: Any = await provider.window()
            if window is not None and (not isinstance(window, int) or not 0 < window <= MOST_WINDOW):
                raise ConfigurationError("invalid_window", f"{provider.name} says that its window is {window!r} tokens")
            self.windows[provider] = window
        return self.windows[provider]

    async def ask(
        self, draft: RequestDraft, view: CompiledContext, schema: dict[str, Any] | None = None
    ) -> ProviderReply:
        """Send what ``compiled`` gave, through the gate; where the provider can see to it, the reply follows
        ``schema``.

        Raises: ProviderError, RunError ``budget_exhausted`` or ``timeout``, ConfigurationError.
        """
        endpoint = self.endpoint(draft.role)
        enforced = schema if endpoint.provider.enforces_schema and _takes(endpoint.provider, schema) else None
        request = ProviderRequest(
            model=endpoint.provider.model,
            parts=view.messages("text"),
            max_output_tokens=view.policy.reserve_output,
            temperature=self.options.temperature,
            seed=self.options.seed,
            response_format=enforced,
        )
        size = view.ledger.total + (0 if enforced is None else counter(view.policy.tokenizer).count(str(enforced)))
        terms = RequestTerms(
            run_budget=draft.run_budget,
            input_tokens=size,
            tokenizer=view.policy.tokenizer,
            window=view.policy.window,
            price=endpoint.price,
            retry=self.options.retry,
            rng=self.rng,
            slots=self.slots,
            attempt=self._attempt(draft, view, endpoint.provider),
        )
        try:
            if self.replay is not None:
                await self.replay.begin_request(draft.call)
            return await gate.send(endpoint.provider, request, deadline=draft.deadline, terms=terms)
        except RunError as problem:
            self.spent(draft.call, problem)
            raise
        except ProviderError as problem:
            if problem.kind == "timeout" and problem.detail.get("source") == "deadline":
                raise RunError("timeout", problem.message, problem.detail) from None
            raise

    def _attempt(
        self, draft: RequestDraft, view: CompiledContext, provider: Provider
    ) -> Callable[[ProviderRequest, bytes, Reservation], OutcomeCallback]:
        """Records each attempt of a request, and what came of it."""
        units = view.units

        def begins(request: ProviderRequest, body: bytes, reservation: Reservation) -> OutcomeCallback:
            trace = self.trace
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
                fingerprint=view.fingerprint,
                units=[[id, units[id].digest[:16]] for id in view.active],
                tools=len(view.callable),
                reserved=[reservation.input_tokens, reservation.output_tokens],
                left=_left(draft),
            )

            def ends(outcome: ProviderReply | RlmError, bill: Bill | None) -> None:
                row: dict[str, Any] = {"call": draft.call, "request": key, **_billed(bill)}
                if isinstance(outcome, RlmError):
                    trace.event("reply", **row, error=outcome.to_dict())
                    return
                reply = outcome.model_dump(mode="json")
                row["usage"] = reply.pop("usage")
                row["body"] = trace.body(reply) if trace.active else ""
                trace.event("reply", **row, left=_left(draft), cost_usd=self.run_budget.counted.cost_usd)

            return ends

        return begins


def _billed(bill: Bill | None) -> dict[str, Any]:
    """What was charged for a request, and what was not believed of its usage."""
    if bill is None:
        return {}
    return {"charged": bill.charged.model_dump(), **({"findings": bill.findings} if bill.findings else {})}


def _left(draft: RequestDraft) -> dict[str, Any]:
    """What may still be taken, by budget field."""
    return {**draft.run_budget.left(), "time_limit": round(max(0.0, draft.deadline - anyio.current_time()), 3)}


@dataclass
class _RunState:
    """A sub-task that several steps wait for."""

    done: anyio.Event = field(default_factory=anyio.Event)
    value: Any = None
    problem: RlmError | None = None
    ended_early: bool = False

    def result(self) -> Any:
        if self.problem is not None:
            raise self.problem
        return self.value


def endpoint_of(model: Any, options: Options) -> ModelEndpoint:
    """The provider that a model names, with its price.

    Raises: ConfigurationError ``unknown_model``, ``no_model``, ``no_price``; ProviderError where a local model is
    not there.
    """
    if model is None:
        raise ConfigurationError("no_model", "a completion needs a model: model='openai:...', or a provider")
    provider = resolve(model)
    price = price_of(provider, options.prices)
    if price is None and options.budget.cost_is_capped:
        raise ConfigurationError(
            "no_price",
            f"max_cost_usd needs a price for {provider.model!r}: prices={{{provider.model!r}: rlm.Price(...)}}",
            {"model": provider.model},
        )
    return ModelEndpoint(provider, price)


def _takes(provider: Provider, schema: Any) -> bool:
    """Whether the wire takes the top of a reply's schema; where not, the prompt alone asks for it."""
    return provider.wire != "openai" or has_object_root(schema)
