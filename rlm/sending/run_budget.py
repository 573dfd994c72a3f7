"""One ledger for the tree: what was reserved, what was spent, what is left.

Reserve before, settle after. A reservation counts as spent until it is settled, in the account that made it and
in every account above, so that what runs side by side can never promise the same token twice. The ledger lives
on one event loop; nothing here waits, but who cannot have what others were promised may wait for ``freed``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import anyio

from rlm.errors import RunError
from rlm.model.budget import Budget, Spent, Tokens
from rlm.providers.base import Usage
from rlm.providers.prices import Price
from rlm.sending.charges import Bill, bill_of

MOST_FINDINGS = 32
"""Findings about replies that a run keeps; the trace has all of them."""

LEAST_OUTPUT = 16
"""Tokens: a request that could not answer with so many is not sent."""

COUNTED = {
    "model_calls": "max_model_calls",
    "tool_calls": "max_tool_calls",
    "context_ops": "max_context_ops",
    "turns": "max_iterations",
}
"""What is counted one by one, and the budget field that caps it."""


@dataclass
class Reservation:
    """What one request may take. ``output_tokens`` is the limit that it must be sent with."""

    input_tokens: int
    output_tokens: int
    price: Price | None
    run_budgets: tuple[RunBudget, ...]
    open: bool = True

    @property
    def tokens(self) -> int:
        """Tokens in and out."""
        return self.input_tokens + self.output_tokens

    @property
    def cost(self) -> float | None:
        """USD, at the most."""
        if self.price is None:
            return None
        return self.price.cost(Usage(input_tokens=self.input_tokens, output_tokens=self.output_tokens))


@dataclass
class RunBudget:
    """A budget and what was taken from it. A child's account draws from its parent's as well."""

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
    reserved_tokens: int = 0
    reserved_input_tokens: int = 0
    reserved_cost: float = 0.0
    _freed: anyio.Event | None = None

    def child(self, budget: Budget | None = None) -> RunBudget:
        """An account that draws from this one; without a budget of its own it may take all that is left here."""
        return type(self)(budget or self.budget, self)

    # -- one by one ---------------------------------------------------------------------------------

    def count(self, what: str) -> None:
        """Take one of ``model_calls``, ``tool_calls``, ``context_ops``, ``turns`` or ``children``.

        Raises: RunError ``budget_exhausted`` (``max_iterations`` for turns), and nothing is taken. Turns are an
        agent's own, and iterations of all those above; all else is theirs just so.
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
        """Steps of plans that may still be taken, here and in every account above; None: any number."""
        caps = [a.budget_left("steps", "max_steps") for a in self._line() if a.budget.max_steps is not None]
        return min(caps) if caps else None

    def took_steps(self, steps: int) -> None:
        """Count steps that were taken. The last one may count as several, so that the sum may pass the cap."""
        for run_budget in self._line():
            run_budget.counts["steps"] = run_budget.counts.get("steps", 0) + steps

    def no_steps(self) -> RunError:
        """The error where none is left."""
        capped = [run_budget for run_budget in self._line() if run_budget.budget.max_steps is not None]
        first = min(capped, key=lambda run_budget: run_budget.budget_left("steps", "max_steps"))
        return spent_out("max_steps", first.budget.max_steps or 0, first.counts.get("steps", 0))

    # -- requests -----------------------------------------------------------------------------------

    def reserve(self, input_tokens: int, most_output: int, price: Price | None) -> Reservation:
        """Put aside what a request may take, and one model call.

        Args:
            input_tokens: tokens of the finished request, as counted.
            most_output: tokens that the reply should be allowed to take; it gets fewer where fewer are left.

        Raises: RunError ``budget_exhausted`` with the budget field that is used up; nothing is taken then.
        """
        output = most_output
        for run_budget in self._line():
            output = min(output, run_budget._affordable_output(input_tokens, price))
        if output < min(LEAST_OUTPUT, most_output):
            raise self._why_not(input_tokens, price)
        self.count("model_calls")
        return self._promised(Reservation(input_tokens, output, price, self._line()))

    @staticmethod
    def _promised(reservation: Reservation) -> Reservation:
        for run_budget in reservation.run_budgets:
            run_budget.reserved_tokens += reservation.tokens
            run_budget.reserved_input_tokens += reservation.input_tokens
            run_budget.reserved_cost += reservation.cost or 0.0
        return reservation

    def freed(self, input_tokens: int, price: Price | None) -> anyio.Event | None:
        """What to wait for where a reservation was refused only because of promises to others: it is set when one of
        them is kept. None where waiting is no use."""
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
        """Charge a reply: the greater of what the server reported and our own count.

        Args:
            usage: what the server reported; None for nothing.
            received: our own count of the reply, tokens; None where it did not arrive: what the server does not report
                costs as much as was reserved then.
            window: tokens of the model's window; a figure above it and the limit on output is not believed. None for
                no such bound.
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
        """Charge what was taken at another time, all at once; no cap refuses it."""
        for run_budget in self._line():
            for what in ("model_calls", "tool_calls", "context_ops", "children", "iterations", "steps"):
                run_budget.counts[what] = run_budget.counts.get(what, 0) + getattr(spent, what)
            run_budget._take(counted_of(spent), spent.reported, spent.charged)
            run_budget.cached_input_tokens += spent.cached_input_tokens
            run_budget.written_input_tokens += spent.written_input_tokens
            run_budget.estimated_tokens += spent.estimated_tokens

    def release(self, reservation: Reservation) -> None:
        """Give a reservation back: the request never left, or the other side says that it took nothing."""
        self._close(reservation)

    # -- what it comes to ---------------------------------------------------------------------------

    @property
    def tokens(self) -> int:
        """Tokens that are charged or promised."""
        return self.charged.total_tokens + self.reserved_tokens

    @property
    def cost(self) -> float:
        """USD that are charged or promised."""
        return (self.charged.cost_usd or 0.0) + self.reserved_cost

    def left(self) -> dict[str, Any]:
        """What may still be taken, by budget field; the least of this account and those above."""
        fields = {cap: min(a.budget_left(what, cap) for a in self._line()) for what, cap in COUNTED.items()}
        fields["max_iterations"] = self.budget_left("turns", "max_iterations")
        fields["max_total_tokens"] = min(max(0, a.budget.max_total_tokens - a.tokens) for a in self._line())
        steps = self.steps_left()
        return fields if steps is None else {**fields, "max_steps": steps}

    def budget_left(self, what: str, cap: str) -> int:
        """How many of ``what`` this account alone has left."""
        return max(0, int(getattr(self.budget, cap)) - self.counts.get(what, 0))

    def spent(self, seconds: float) -> Spent:
        """What was taken so far; open reservations are not in it."""
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
        )

    def at_most(self) -> Spent:
        """What this account will have taken once all that is on its way is cancelled: what was taken so far, and every
        open reservation whole."""
        spent = self.spent(0.0)
        promised = Tokens(
            input_tokens=self.reserved_input_tokens,
            output_tokens=self.reserved_tokens - self.reserved_input_tokens,
            cost_usd=self.reserved_cost or None,
        )
        counted = self.counted.plus(promised)
        return spent.model_copy(
            update={
                "input_tokens": counted.input_tokens,
                "output_tokens": counted.output_tokens,
                "cost_usd": counted.cost_usd,
                "estimated_tokens": spent.estimated_tokens + self.reserved_tokens,
                "charged": self.charged.plus(promised),
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
        room = self.budget.max_total_tokens - self.tokens - input_tokens
        if price is not None:
            left = self.budget.max_cost_usd - self.cost - price.input_per_million * input_tokens / 1_000_000
            if left < 0:
                return 0
            if price.output_per_million > 0:
                room = min(room, int(left * 1_000_000 / price.output_per_million))
        return max(0, room)

    def _why_not(self, input_tokens: int, price: Price | None) -> RunError:
        for run_budget in self._line():
            room = run_budget.budget.max_total_tokens - run_budget.tokens - input_tokens
            if room < LEAST_OUTPUT:
                return spent_out(
                    "max_total_tokens", run_budget.budget.max_total_tokens, run_budget.tokens, input_tokens
                )
        run_budget = min(self._line(), key=lambda each: each._affordable_output(input_tokens, price))
        return spent_out("max_cost_usd", run_budget.budget.max_cost_usd, round(run_budget.cost, 6), input_tokens)


def counted_of(spent: Spent) -> Tokens:
    """The best that is known of what was taken."""
    return Tokens(input_tokens=spent.input_tokens, output_tokens=spent.output_tokens, cost_usd=spent.cost_usd)


def spent_out(field: str, limit: float, taken: float, wanted: int | None = None) -> RunError:
    """The error for a budget field that is used up."""
    kind = "max_iterations" if field == "max_iterations" else "budget_exhausted"
    detail: dict[str, Any] = {"field": field, "limit": limit, "taken": taken}
    more = ""
    if wanted is not None:
        detail["request_tokens"] = wanted
        more = f"; the next request has {wanted} tokens"
    return RunError(kind, f"the budget's {field} is used up: {taken} of {limit}{more}", detail)
