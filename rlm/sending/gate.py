"""Send every provider request, and fit a policy to a model's window.

``send`` reserves budget before a request and settles it afterwards. It applies the deadline, and records the exact
bytes by hash. No other code of the library calls a provider's ``send`` (a test reads the sources).
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel

from rlm.boundary import host_code
from rlm.compiler.tokens.token_counter import counter
from rlm.errors import ConfigurationError, ProviderError, RlmError, RunError, valid_text
from rlm.model.base import Noun
from rlm.model.policy import DEFAULT_RESERVE_OUTPUT, DEFAULT_TOKENIZER, Policy
from rlm.providers.base import Provider, ProviderReply, ProviderRequest, Usage
from rlm.providers.prices import Price
from rlm.providers.retry import Retry
from rlm.sending.charges import Bill
from rlm.sending.run_budget import Reservation, RunBudget

ONCE = Retry(attempts=1)

MOST_COUNTED = 262_144
"""Characters of a reply that are counted; the count of a longer reply is extrapolated from its beginning."""

COUNTED_AT_ONCE = 32_768
"""Characters of a reply that are counted between two turns of the event loop: about 20 ms."""

OUTPUT_SHARE = 4
"""The largest default reply is one part in four of the model's window."""

OutcomeCallback = Callable[[ProviderReply | RlmError, Bill | None], None]
"""Receives the outcome of a request, and its bill; None if nothing was charged."""


class SentRequest(Noun):
    """A request that was sent: SHA-256 and size (bytes) of its body, its provider and its model."""

    digest: str
    size: int
    provider: str
    model: str


@dataclass(frozen=True)
class RequestTerms:
    """The terms of a request inside a run: budget, price, retries and slots.

    ``input_tokens`` is the size of the finished request, counted by the ``tokenizer``. The same tokenizer counts the
    reply. ``window`` is the model's window in tokens; a reported usage above it counts as impossible. ``slots`` limits
    the concurrent requests of the tree. ``attempt`` is called before each attempt, and returns the callback for its
    outcome.
    """

    run_budget: RunBudget
    input_tokens: int
    tokenizer: str = DEFAULT_TOKENIZER
    window: int | None = None
    price: Price | None = None
    retry: Retry = ONCE
    rng: random.Random = field(default_factory=random.Random)
    slots: anyio.CapacityLimiter | None = None
    attempt: Callable[[ProviderRequest, bytes, Reservation], OutcomeCallback] | None = None


async def send(
    provider: Provider,
    request: ProviderRequest,
    *,
    deadline: float,
    record: Callable[[SentRequest], None] | None = None,
    terms: RequestTerms | None = None,
    on_text: Callable[[str], Any] | None = None,
) -> ProviderReply:
    """Send a request and return the provider's reply.

    Args:
        deadline: an absolute time on the event loop's clock (``anyio.current_time()``), seconds. Every request has one.
        record: called with each request before it is sent.
        terms: budget and retries of the run. None: nothing is charged, and nothing is sent twice.
        on_text: called with each piece of the reply's text as it arrives.

    Raises: ProviderError, for example ``timeout`` with ``detail["source"] == "deadline"`` after the deadline; no
    connection stays open. RunError ``budget_exhausted`` before anything is sent. ConfigurationError for a request that
    cannot be encoded.
    """
    attempts = 0
    while True:
        attempts += 1
        try:
            return await _attempt(provider, request, deadline, record, terms, on_text)
        except ProviderError as problem:
            left = deadline - anyio.current_time()
            wait = terms.retry.delay(attempts, problem, terms.rng, left=left) if terms is not None else None
            if wait is None:
                raise
            await anyio.sleep(wait)


async def _attempt(
    provider: Provider,
    request: ProviderRequest,
    deadline: float,
    record: Callable[[SentRequest], None] | None,
    terms: RequestTerms | None,
    on_text: Callable[[str], Any] | None,
) -> ProviderReply:
    if terms is None:
        return await _send(provider, request, _encoded(provider, request), deadline, record, on_text)
    if terms.slots is None:
        return await _charged(provider, request, deadline, record, terms, on_text)
    with anyio.CancelScope(deadline=deadline):
        await terms.slots.acquire_on_behalf_of(ticket := object())
        try:
            return await _charged(provider, request, deadline, record, terms, on_text)
        finally:
            terms.slots.release_on_behalf_of(ticket)
    raise _too_late(provider, "while the request waited for its turn")


async def _charged(
    provider: Provider,
    request: ProviderRequest,
    deadline: float,
    record: Callable[[SentRequest], None] | None,
    terms: RequestTerms,
    on_text: Callable[[str], Any] | None,
) -> ProviderReply:
    run_budget = terms.run_budget
    reservation = await _reserved(provider, request, deadline, terms)
    on_outcome: OutcomeCallback | None = None
    try:
        if reservation.output_tokens != request.max_output_tokens:
            request = request.model_copy(update={"max_output_tokens": reservation.output_tokens})
        body = _encoded(provider, request)
        on_outcome = terms.attempt(request, body, reservation) if terms.attempt is not None else None
        reply = await _send(provider, request, body, deadline, record, on_text)
    except RlmError as problem:
        bill = _settled(problem, reservation, terms)
        if on_outcome is not None:
            on_outcome(problem, bill)
        raise
    except BaseException:  # cancelled: the tokens taken so far are unknown
        run_budget.settle(reservation, None)
        raise
    received = await received_tokens(reply, terms.tokenizer)
    bill = run_budget.settle(reservation, reply.usage, received=received, window=terms.window)
    if on_outcome is not None:
        on_outcome(reply, bill)
    return reply


def _settled(problem: RlmError, reservation: Reservation, terms: RequestTerms) -> Bill | None:
    """Settle the reservation of a failed request and return the bill; None if nothing is charged."""
    usage = _usage_in(problem)
    if took_nothing(problem) and not (usage.input_tokens or usage.output_tokens):
        terms.run_budget.release(reservation)
        return None
    received = problem.detail.get("received_bytes")  # a text has no more tokens than bytes
    received = min(received, reservation.output_tokens) if isinstance(received, int) else None
    return terms.run_budget.settle(reservation, usage, received=received, window=terms.window)


def _usage_in(problem: RlmError) -> Usage:
    """Return the usage that a server reported for a failed answer."""
    usage = problem.detail.get("usage") if isinstance(problem, ProviderError) else None
    try:
        return Usage(**usage) if isinstance(usage, dict) else Usage()
    except (ConfigurationError, TypeError):
        return Usage()


async def received_tokens(reply: ProviderReply, tokenizer: str) -> int:
    """Count the tokens of a reply.

    Other tasks run between two pieces. Cancellation does not stop the count, because an arrived reply is charged.
    """
    text = "\n".join([reply.text, reply.refusal, *(f"{call.name} {call.arguments}" for call in reply.tool_calls)])
    text = text.rstrip("\n")
    read, counted = min(len(text), MOST_COUNTED), 0
    with anyio.CancelScope(shield=True):
        for start in range(0, read, COUNTED_AT_ONCE):
            if start:
                await anyio.lowlevel.checkpoint()
            counted += counter(tokenizer).count(text[start : min(read, start + COUNTED_AT_ONCE)])
    return counted if read == len(text) else math.ceil(counted * len(text) / read)


async def _reserved(provider: Provider, request: ProviderRequest, deadline: float, terms: RequestTerms) -> Reservation:
    """Return a reservation; wait while only the open reservations of other requests stand against it."""
    run_budget = terms.run_budget
    while True:
        try:
            return run_budget.reserve(terms.input_tokens, request.max_output_tokens, terms.price)
        except RunError as problem:
            freed = run_budget.freed(terms.input_tokens, terms.price)
            if freed is None or problem.detail.get("field") == "max_model_calls":
                raise
        with anyio.CancelScope(deadline=deadline) as scope:
            await freed.wait()
        if scope.cancelled_caught:
            raise _too_late(provider, "while the request waited for budget that other requests hold", unsent=True)


def took_nothing(problem: RlmError) -> bool:
    """Whether a failed request cost nothing: it was not sent, or was refused with an HTTP status."""
    if not isinstance(problem, ProviderError):
        return True
    if problem.status is not None:
        return problem.status >= 400 and problem.status not in (408, 504)
    return problem.detail.get("unsent") is True


def _encoded(provider: Provider, request: ProviderRequest) -> bytes:
    with host_code(*provider_failed(provider)):
        return provider.encode(request)


async def _send(
    provider: Provider,
    request: ProviderRequest,
    body: bytes,
    deadline: float,
    record: Callable[[SentRequest], None] | None,
    on_text: Callable[[str], Any] | None,
) -> ProviderReply:
    if anyio.current_time() >= deadline:
        raise _too_late(provider, "before the request was sent", unsent=True)
    if record is not None:
        digest = hashlib.sha256(body).hexdigest()
        record(SentRequest(digest=digest, size=len(body), provider=provider.name, model=request.model))
    with anyio.CancelScope(deadline=deadline) as scope:
        with host_code(*provider_failed(provider)):
            return _sound(provider, await provider.send(request, body, _listening(on_text)))
    assert scope.cancelled_caught
    raise _too_late(provider, "while the provider was answering")


def provider_failed(provider: Provider) -> tuple[str, Callable[[str, dict[str, Any]], ProviderError]]:
    """Return the arguments of ``host_code`` for a provider: its name, and the maker of ``provider_failed``."""

    def error(message: str, detail: dict[str, Any]) -> ProviderError:
        return ProviderError("provider_failed", message, {**detail, "provider": provider.name})

    return f"provider {provider.name!r}", error


def _listening(on_text: Callable[[str], Any] | None) -> Callable[[str], Any] | None:
    """Wrap ``on_text``: an exception in it ends the request with ProviderError ``listener_failed``."""
    if on_text is None:
        return None
    listener = on_text

    def guarded(piece: str) -> None:
        with host_code("on_text", lambda message, detail: ProviderError("listener_failed", message, detail)):
            listener(piece)

    return guarded


def _sound(provider: Provider, reply: Any) -> ProviderReply:
    """Check a provider's reply and return it with valid Unicode text."""
    if not isinstance(reply, ProviderReply):
        what = f"{provider.name} gave {type(reply).__name__} where a ProviderReply is wanted"
        raise ProviderError("malformed_reply", what, {"provider": provider.name})
    text = valid_text(reply.text)
    return reply if text == reply.text else reply.model_copy(update={"text": text})


def _too_late(provider: Provider, when: str, *, unsent: bool = False) -> ProviderError:
    detail = {"source": "deadline", "provider": provider.name, **({"unsent": True} if unsent else {})}
    return ProviderError("timeout", f"the deadline passed {when}", detail, retryable=False)


def policy_for_window(
    policy: Policy, window: int | None, max_output: int | None = None, default_output: int = DEFAULT_RESERVE_OUTPUT
) -> tuple[Policy, int]:
    """Return a policy narrowed to a model's window, and the tokens that the reply may take.

    The reply gets ``max_output``. Without it the reply gets the policy's ``reserve_output``. A policy that does not
    set it gets ``default_output``, at most a quarter of the window. For example, a window of 8,192 tokens leaves at
    most 2,048 of them to the reply.

    Args:
        policy: the host's policy.
        window: tokens of the model's window; None if the provider does not know it.
        max_output: tokens of the reply that the caller asks for.
        default_output: tokens of the reply that neither the caller nor the policy sets.
    """
    fields = {name: getattr(policy, name) for name in policy.model_fields_set}
    window = policy.window if window is None else min(window, fields.get("window", window))
    if max_output is None:
        max_output = fields.get("reserve_output", min(default_output, window // OUTPUT_SHARE))
    reserve = max(max_output, fields.get("reserve_output", 0))
    if (window, reserve) == (policy.window, policy.reserve_output):
        return policy, max_output
    return Policy(**{**fields, "window": window, "reserve_output": reserve}), max_output
