"""The budget of a run and of its children: reserved, spent and left.

A request reserves before it is sent, and settles afterwards. An open reservation counts as spent in its own run budget
and in every parent. So concurrent requests never reserve the same token twice. A run budget lives on one event loop,
and its methods never wait. A request that lacks only tokens reserved by other requests can wait for ``freed``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import anyio

from rlm.errors import RunError
from rlm.model.budget import Budget, Spent, Tokens
from rlm.providers.base import Usage
from rlm.providers.prices import Price
from rlm.sending.charges import Bill, bill_of
from rlm.sending.usage_record import ShownText, UsageRecord

MOST_FINDINGS = 32
"""Findings about replies that a run budget keeps; the trace has all of them."""

LEAST_OUTPUT = 16
"""Tokens of the smallest reply; a request with fewer tokens left for its reply is not sent."""

COUNTED = {
    "model_calls": "max_model_calls",
    "tool_calls": "max_tool_calls",
    "context_ops": "max_context_ops",
    "turns": "max_iterations",
}
"""Names of the counters, and the budget field that caps each."""


@dataclass
class Reservation:
    """The tokens reserved for one request. ``output_tokens`` is the output limit in the request."""

    input_tokens: int
    output_tokens: int
    price: Price | None
    run_budgets: tuple[RunBudget, ...]
    open: bool = True

    @property
    def tokens(self) -> int:
        """Tokens of the request and of the reply."""
        return self.input_tokens + self.output_tokens

    @property
    def cost(self) -> float | None:
        """The largest cost in USD; None without a price."""
        if self.price is None:
            return None
        return self.price.cost(Usage(input_tokens=self.input_tokens, output_tokens=self.output_tokens))


@dataclass
class RunBudget:
    """A budget with its counters. A child's run budget also draws from its parent's.

    For example, a model call of a grandchild counts in three run budgets: its own, the child's and the root's.
    """

    budget: Budget
    parent: RunBudget | None = None
    counts: dict[str, int] = field(default_factory=dict)
    counted: Tokens = field(default_factory=Tokens)
    reported: Tokens = field(default_factory=Tokens)
    charged: Tokens = field(default_factory=Tokens)
    cached_input_tokens: int = 0
    written_input_tokens: int = 0
    estimated_tokens: int = 0
    findings: list[dict[str, Any]] = field(default_factory=list)
    record: UsageRecord = field(default_factory=UsageRecord)
    reserved_tokens: int = 0
    reserved_input_tokens: int = 0
    reserved_cost: float = 0.0
    _freed: anyio.Event | None = None

    def child(self, budget: Budget | None = None) -> RunBudget:
        """Return a run budget that also draws from this one; without ``budget`` it has the same caps."""
        return type(self)(budget or self.budget, self)

    # -- one by one ---------------------------------------------------------------------------------

    def count(self, what: str) -> None:
        """Count one of ``model_calls``, ``tool_calls``, ``context_ops``, ``turns`` or ``children``.

        Turns are capped for each agent alone; they count as iterations here and in every parent. The other counters
        are capped here and in every parent.

        Raises: RunError ``budget_exhausted`` (``max_iterations`` for turns); nothing is counted then.
        """
        cap = COUNTED.get(what)
        for run_budget in (self,) if what == "turns" else self._line():
            if cap is not None and run_budget.counts.get(what, 0) >= getattr(run_budget.budget, cap):
                raise spent_out(cap, getattr(run_budget.budget, cap), run_budget.counts.get(what, 0))
        if what == "turns":
            self._add("turns", (self,))
            what = "iterations"
        self._add(what, self._line())

    @staticmethod
    def _add(what: str, run_budgets: tuple[RunBudget, ...]) -> None:
        for run_budget in run_budgets:
            run_budget.counts[what] = run_budget.counts.get(what, 0) + 1

    # -- steps of plans -----------------------------------------------------------------------------

    def steps_left(self) -> int | None:
        """Return the steps of plans left here and in every parent; None for no cap."""
        caps = [a.budget_left("steps", "max_steps") for a in self._line() if a.budget.max_steps is not None]
        return min(caps) if caps else None

    def took_steps(self, steps: int) -> None:
        """Count executed steps. The last step may count as several, so the sum may exceed the cap."""
        for run_budget in self._line():
            run_budget.counts["steps"] = run_budget.counts.get("steps", 0) + steps

    def no_steps(self) -> RunError:
        """Return the error for used up steps."""
        capped = [run_budget for run_budget in self._line() if run_budget.budget.max_steps is not None]
        first = min(capped, key=lambda run_budget: run_budget.budget_left("steps", "max_steps"))
        return spent_out("max_steps", first.budget.max_steps or 0, first.counts.get("steps", 0))

    # -- requests -----------------------------------------------------------------------------------

    def reserve(self, input_tokens: int, most_output: int, price: Price | None) -> Reservation:
        """Reserve the tokens of one request, and count one model call.

        For example, a request of 800 tokens with ``most_output=500`` in a budget of 1,000 tokens gets 200 output
        tokens.

        Args:
            input_tokens: counted tokens of the finished request.
            most_output: the desired output limit in tokens; the reservation has fewer if fewer are left.

        Raises: RunError ``budget_exhausted`` with the used up budget field; nothing is reserved then.
        """
        output = most_output
        for run_budget in self._line():
            output = min(output, run_budget._affordable_output(input_tokens, price))
        if output < min(LEAST_OUTPUT, most_output):
            raise self._exhausted(input_tokens, price)
        self.count("model_calls")
        return self._opened(Reservation(input_tokens, output, price, self._line()))

    @staticmethod
    def _opened(reservation: Reservation) -> Reservation:
        for run_budget in reservation.run_budgets:
            run_budget.reserved_tokens += reservation.tokens
            run_budget.reserved_input_tokens += reservation.input_tokens
            run_budget.reserved_cost += reservation.cost or 0.0
        return reservation

    def freed(self, input_tokens: int, price: Price | None) -> anyio.Event | None:
        """Return the event that the next closed reservation sets, for a request that was refused a reservation.

        Returns None if waiting cannot help: the tokens are spent, or no reservation is open.
        """
        for run_budget in self._line():
            free = RunBudget(run_budget.budget, charged=run_budget.charged)
            if free._affordable_output(input_tokens, price) < LEAST_OUTPUT:
                return None
        root = self._line()[-1]
        if not root.reserved_tokens:
            return None
        root._freed = root._freed or anyio.Event()
        return root._freed

    def _close(self, reservation: Reservation) -> None:
        assert reservation.open
        reservation.open = False
        for run_budget in reservation.run_budgets:
            run_budget.reserved_tokens -= reservation.tokens
            run_budget.reserved_input_tokens -= reservation.input_tokens
            run_budget.reserved_cost -= reservation.cost or 0.0
        root = reservation.run_budgets[-1]
        if root._freed is not None:
            root._freed.set()
            root._freed = None

    def settle(
        self, reservation: Reservation, usage: Usage | None, *, received: int | None = None, window: int | None = None
    ) -> Bill:
        """Close a reservation and charge the greater of the reported usage and the own count.

        Args:
            usage: the usage that the server reported; None for none.
            received: the own count of the reply in tokens. None if the reply did not arrive: a figure that the server
                does not report is charged as reserved.
            window: tokens of the model's window. A figure above the window plus the output limit counts as
                impossible. None for no bound.
        """
        self._close(reservation)
        bill = bill_of(
            usage or Usage(),
            (reservation.input_tokens, reservation.output_tokens),
            reservation.price,
            received=received,
            most=None if window is None else window + reservation.output_tokens,
        )
        for run_budget in reservation.run_budgets:
            run_budget._take(bill.counted, bill.reported, bill.charged)
            run_budget.cached_input_tokens += bill.cached_input_tokens
            run_budget.written_input_tokens += bill.written_input_tokens
            run_budget.estimated_tokens += bill.estimated
            run_budget.findings += bill.findings[: MOST_FINDINGS - len(run_budget.findings)]
        return bill

    def _take(self, counted: Tokens, reported: Tokens, charged: Tokens) -> None:
        self.counted = self.counted.plus(counted)
        self.reported = self.reported.plus(reported)
        self.charged = self.charged.plus(charged)

    def charge(self, spent: Spent) -> None:
        """Add recorded counts, tokens and costs; no cap applies."""
        for run_budget in self._line():
            for what in ("model_calls", "tool_calls", "context_ops", "children", "iterations", "steps"):
                run_budget.counts[what] = run_budget.counts.get(what, 0) + getattr(spent, what)
            run_budget._take(counted_of(spent), spent.reported, spent.charged)
            run_budget.cached_input_tokens += spent.cached_input_tokens
            run_budget.written_input_tokens += spent.written_input_tokens
            run_budget.estimated_tokens += spent.estimated_tokens
            run_budget.record.add(spent)

    def release(self, reservation: Reservation) -> None:
        """Close a reservation without a charge: the request was not sent, or the server charged nothing."""
        self._close(reservation)

    # -- the bill -----------------------------------------------------------------------------------

    def record_request(self, role: str, characters: int, texts: Sequence[ShownText]) -> None:
        """Add a request that is sent to the bill, with the units that it shows."""
        for run_budget in self._line():
            run_budget.record.add_request(role, characters, texts)

    def record_reply(self, role: str, bill: Bill, texts: Sequence[ShownText]) -> None:
        """Add the tokens and the cost of a reply to the bill."""
        for run_budget in self._line():
            run_budget.record.add_reply(role, bill, texts)

    def record_call(self, tool: str) -> None:
        """Add a call of a tool to the bill."""
        for run_budget in self._line():
            run_budget.record.add_call(tool)

    # -- sums ---------------------------------------------------------------------------------------

    @property
    def tokens(self) -> int:
        """Tokens that are charged or reserved."""
        return self.charged.total_tokens + self.reserved_tokens

    @property
    def cost(self) -> float:
        """USD that are charged or reserved."""
        return (self.charged.cost_usd or 0.0) + self.reserved_cost

    def left(self) -> dict[str, Any]:
        """Return the amounts left by budget field: the least of this run budget and its parents."""
        fields = {cap: min(a.budget_left(what, cap) for a in self._line()) for what, cap in COUNTED.items()}
        fields["max_iterations"] = self.budget_left("turns", "max_iterations")
        fields["max_total_tokens"] = min(max(0, a.budget.max_total_tokens - a.tokens) for a in self._line())
        steps = self.steps_left()
        return fields if steps is None else {**fields, "max_steps": steps}

    def budget_left(self, what: str, cap: str) -> int:
        """Return how many of ``what`` are left in this run budget alone, under the budget field ``cap``."""
        return max(0, int(getattr(self.budget, cap)) - self.counts.get(what, 0))

    def spent(self, seconds: float) -> Spent:
        """Return the usage so far, without open reservations; ``seconds`` is the duration to report."""
        return Spent(
            model_calls=self.counts.get("model_calls", 0),
            input_tokens=self.counted.input_tokens,
            output_tokens=self.counted.output_tokens,
            cached_input_tokens=self.cached_input_tokens,
            written_input_tokens=self.written_input_tokens,
            estimated_tokens=self.estimated_tokens,
            cost_usd=self.counted.cost_usd,
            reported=self.reported,
            charged=self.charged,
            context_ops=self.counts.get("context_ops", 0),
            tool_calls=self.counts.get("tool_calls", 0),
            children=self.counts.get("children", 0),
            iterations=self.counts.get("iterations", 0),
            steps=self.counts.get("steps", 0),
            seconds=seconds,
            by_role=self.record.by_role(),
            by_unit=self.record.by_unit(),
        )

    def at_most(self) -> Spent:
        """Return the usage after a cancellation of all open requests: each reservation counts as spent."""
        spent = self.spent(0.0)
        reserved = Tokens(
            input_tokens=self.reserved_input_tokens,
            output_tokens=self.reserved_tokens - self.reserved_input_tokens,
            cost_usd=self.reserved_cost or None,
        )
        counted = self.counted.plus(reserved)
        return spent.model_copy(
            update={
                "input_tokens": counted.input_tokens,
                "output_tokens": counted.output_tokens,
                "cost_usd": counted.cost_usd,
                "estimated_tokens": spent.estimated_tokens + self.reserved_tokens,
                "charged": self.charged.plus(reserved),
            }
        )

    def _line(self) -> tuple[RunBudget, ...]:
        run_budget: RunBudget | None = self
        line = []
        while run_budget is not None:
            line.append(run_budget)
            run_budget = run_budget.parent
        return tuple(line)

    def _affordable_output(self, input_tokens: int, price: Price | None) -> int:
        tokens = self.budget.max_total_tokens - self.tokens - input_tokens
        if price is not None:
            left = self.budget.max_cost_usd - self.cost - price.input_per_million * input_tokens / 1_000_000
            if left < 0:
                return 0
            if price.output_per_million > 0:
                tokens = min(tokens, int(left * 1_000_000 / price.output_per_million))
        return max(0, tokens)

    def _exhausted(self, input_tokens: int, price: Price | None) -> RunError:
        for run_budget in self._line():
            limit = run_budget.budget.max_total_tokens
            if limit - run_budget.tokens - input_tokens < LEAST_OUTPUT:
                return spent_out("max_total_tokens", limit, run_budget.tokens, input_tokens)
        run_budget = min(self._line(), key=lambda each: each._affordable_output(input_tokens, price))
        return spent_out("max_cost_usd", run_budget.budget.max_cost_usd, round(run_budget.cost, 6), input_tokens)


def counted_of(spent: Spent) -> Tokens:
    """Return the counted tokens and cost of a usage."""
    return Tokens(input_tokens=spent.input_tokens, output_tokens=spent.output_tokens, cost_usd=spent.cost_usd)


def spent_out(field: str, limit: float, taken: float, request_tokens: int | None = None) -> RunError:
    """Return the error for a used up budget field."""
    kind = "max_iterations" if field == "max_iterations" else "budget_exhausted"
    detail: dict[str, Any] = {"field": field, "limit": limit, "taken": taken}
    more = ""
    if request_tokens is not None:
        detail["request_tokens"] = request_tokens
        more = f"; the next request has {request_tokens} tokens"
    return RunError(kind, f"the budget's {field} is used up: {taken} of {limit}{more}", detail)


shared_budget: ContextVar[RunBudget | None] = ContextVar("rlm_shared_budget", default=None)
"""The run budget of a batch: the runs that the batch starts draw from it too."""
