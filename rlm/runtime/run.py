"""One run: what all agents of a tree share, and the one way in which any of them sends a request."""

from __future__ import annotations

import random
import secrets
from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import anyio.to_thread

from rlm.catalog.catalog import Catalog
from rlm.compiler.compile import compile as compiled_view
from rlm.compiler.tokens import counter
from rlm.errors import ConfigurationError, ProviderError, RlmError, RunError
from rlm.model.policy import Policy
from rlm.model.unit import Unit
from rlm.providers import resolve
from rlm.providers.base import Provider, ProviderReply, ProviderRequest
from rlm.providers.prices import Price, price_of
from rlm.runtime import gate
from rlm.runtime.gate import Passage
from rlm.runtime.ledger import Account, Reservation
from rlm.runtime.options import Options
from rlm.runtime.roles import Role, agent_policy
from rlm.runtime.room import fitted
from rlm.runtime.toolbox import Toolbox
from rlm.runtime.trace import Trace, request_key
from rlm.tools.work import Workers

if TYPE_CHECKING:
    from rlm.compiler.view import CompiledContext
    from rlm.runtime.context.store import Store
    from rlm.runtime.replay import Replay

MOST_WINDOW = 2**40
"""Tokens: no model has so many; a provider that says more is mistaken."""


@dataclass(frozen=True)
class Speaker:
    """A model that answers: its provider, and what it costs."""

    provider: Provider
    price: Price | None


@dataclass(frozen=True)
class Asked:
    """One request of an agent, before it is compiled.

    ``call`` names it within the run, the same in every replay. ``standing`` are the units of its role, ``withheld``
    the capabilities that it does not have.
    """

    call: str
    role: Role
    text: str
    tail: Sequence[dict[str, str]]
    standing: tuple[Unit, ...]
    withheld: frozenset[str]
    policy: Policy
    account: Account
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
    account: Account
    planner: Speaker | None
    leaf: Speaker | None
    standing: tuple[Unit, ...]
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    trace: Trace = field(default_factory=Trace)
    rng: random.Random = field(default_factory=random.Random)
    replay: Replay | None = None
    over: bool = False
    slots: anyio.CapacityLimiter = field(init=False)
    workers: Workers = field(init=False)
    loop: Any = field(default_factory=anyio.lowlevel.current_token)
    windows: dict[Provider, int | None] = field(default_factory=dict)
    _places: dict[tuple[str, int], anyio.CapacityLimiter] = field(default_factory=dict)
    _shared: dict[Hashable, _Shared] = field(default_factory=dict)
    _waiting: list[tuple[frozenset[str], str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        width = self.options.budget.max_concurrent_subcalls
        self.slots = anyio.CapacityLimiter(width)
        self.workers = Workers(width)

    def speaker(self, role: Role) -> Speaker:
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
        width = self.options.budget.max_concurrent_subcalls
        return self._places.setdefault((what, depth), anyio.CapacityLimiter(width))

    def left(self, call: str, account: Account) -> dict[str, Any]:
        """What may still be taken at this place of the run, by budget field. Who works side by side sees it in the
        order of replies; so it is written down, and a replay goes by what was there then."""
        found = account.left() if self.replay is None else self.replay.left(call, account.left())
        self.trace.event("left", call=call, left=found)
        return found

    async def shared(self, key: Hashable, lineage: tuple[str, ...], work: Callable[[], Awaitable[Any]]) -> Any:
        """The value of ``work``, done once for each key: who comes later gets the value, and waits for it where it is
        not there yet. A failure is shared with those who wait for it; what ended the first from outside (its deadline,
        its budget) is nobody else's, and the next one does the work then.

        Args:
            lineage: the digests of the tasks that wait for this one; the last is that of ``work``.

        Raises: what ``work`` raised; RunError ``cycle`` where the first waits for one of the lineage itself.
        """
        *waiting, task = lineage
        while (known := self._shared.get(key)) is not None:
            if self._waits_for(task, waiting):
                raise RunError("cycle", "whoever does this task waits for the one that asks for it")
            entry = (frozenset(waiting), task)
            self._waiting.append(entry)
            try:
                await known.done.wait()
            finally:
                self._waiting.remove(entry)
            if not known.ended_early:
                return known.result()
        mine = self._shared[key] = _Shared()
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

    def _waits_for(self, task: str, others: Collection[str]) -> bool:
        """Whether somebody who works on ``task``, at any depth, waits for one of the others."""
        reached = [task]
        for each in reached:
            if each in others:
                return True
            reached += [goal for line, goal in self._waiting if each in line and goal not in reached]
        return False

    # -- the one way to send ------------------------------------------------------------------------

    async def compiled(self, asked: Asked) -> CompiledContext:
        """What a request shows. Raises: CompileError, BudgetError, ConfigurationError."""
        window = await self._window(self.speaker(asked.role).provider)
        there = self.catalog.units
        standing = tuple(unit for unit in (*self.standing, *asked.standing) if unit.id not in there)
        policy = fitted(agent_policy(asked.policy, asked.withheld, standing), window)[0]
        compiled = partial(
            compiled_view,
            self.catalog,
            asked.text,
            policy=policy,
            messages=asked.messages,
            tail=asked.tail,
            standing=standing,
            tools="text",
            **{**self.options.compile_options, "needs": asked.needs},
        )
        return await anyio.to_thread.run_sync(compiled, abandon_on_cancel=True)  # a deadline does not wait for it

    async def _window(self, provider: Provider) -> int | None:
        """Tokens that a provider's model can hold; asked once in a run.

        Raises: ConfigurationError ``invalid_window``.
        """
        if provider not in self.windows:
            window: Any = await provider.window()
            if window is not None and (not isinstance(window, int) or not 0 < window <= MOST_WINDOW):
                raise ConfigurationError("invalid_window", f"{provider.name} says that its window is {window!r} tokens")
            self.windows[provider] = window
        return self.windows[provider]

    async def ask(self, asked: Asked, view: CompiledContext, schema: dict[str, Any] | None = None) -> ProviderReply:
        """Send what ``compiled`` gave, through the gate; where the provider can see to it, the reply follows
        ``schema``.

        Raises: ProviderError, RunError ``budget_exhausted`` or ``timeout``, ConfigurationError.
        """
        speaker = self.speaker(asked.role)
        enforced = schema if speaker.provider.enforces_schema else None
        request = ProviderRequest(
            model=speaker.provider.model,
            parts=view.messages("text"),
            max_output_tokens=view.policy.reserve_output,
            temperature=self.options.temperature,
            seed=self.options.seed,
            response_format=enforced,
        )
        size = view.ledger.total + (0 if enforced is None else counter(view.policy.tokenizer).count(str(enforced)))
        passage = Passage(
            account=asked.account,
            input_tokens=size,
            price=speaker.price,
            retry=self.options.retry,
            rng=self.rng,
            slots=self.slots,
            attempt=self._attempt(asked, view, speaker.provider),
        )
        try:
            return await gate.send(speaker.provider, request, deadline=asked.deadline, passage=passage)
        except ProviderError as problem:
            if problem.kind == "timeout" and problem.detail.get("source") == "deadline":
                raise RunError("timeout", problem.message, problem.detail) from None
            raise

    def _attempt(
        self, asked: Asked, view: CompiledContext, provider: Provider
    ) -> Callable[[ProviderRequest, bytes, Reservation], Callable[[ProviderReply | RlmError], None]]:
        """Records each attempt of a request, and what came of it."""
        units = view.units

        def begins(
            request: ProviderRequest, body: bytes, reservation: Reservation
        ) -> Callable[[ProviderReply | RlmError], None]:
            trace = self.trace
            key = request_key(request) if trace.kept else ""
            digest = trace.body(body) if trace.wanted else ""
            trace.event(
                "request",
                call=asked.call,
                role=asked.role.value,
                window=self.windows.get(self.speaker(asked.role).provider),
                provider=provider.name,
                model=provider.model,
                request=key,
                body=digest,
                bytes=len(body),
                fingerprint=view.fingerprint,
                units=[[id, units[id].digest[:16]] for id in view.active],
                tools=len(view.callable),
                reserved=[reservation.input_tokens, reservation.output_tokens],
                left=_left(asked),
            )

            def ends(outcome: ProviderReply | RlmError) -> None:
                if isinstance(outcome, RlmError):
                    trace.event("reply", call=asked.call, request=key, error=outcome.to_dict())
                    return
                reply = outcome.model_dump(mode="json")
                usage = reply.pop("usage")
                stored = trace.body(reply) if trace.wanted else ""
                left = _left(asked)
                cost = self.account.cost_usd
                trace.event("reply", call=asked.call, request=key, body=stored, usage=usage, left=left, cost_usd=cost)

            return ends

        return begins


def _left(asked: Asked) -> dict[str, Any]:
    """What may still be taken, by budget field."""
    return {**asked.account.left(), "time_limit": round(max(0.0, asked.deadline - anyio.current_time()), 3)}


@dataclass
class _Shared:
    """A sub-task that several steps wait for."""

    done: anyio.Event = field(default_factory=anyio.Event)
    value: Any = None
    problem: RlmError | None = None
    ended_early: bool = False

    def result(self) -> Any:
        if self.problem is not None:
            raise self.problem
        return self.value


def speaker_of(model: Any, options: Options) -> Speaker:
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
    return Speaker(provider, price)
