"""The budget of a run, and the amounts that the run spent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from rlm.model.arguments import mapping
from rlm.model.base import Noun
from rlm.model.words import counted

MOST = 1_000_000_000_000
"""No count of a budget is larger: what is told to the rules and written to a trace stays a plain integer."""


class Budget(Noun):
    """The most that a run may take, with everything that happens beneath it.

    ``time_limit`` is seconds of wall time, ``max_cost_usd`` USD, ``max_output_bytes`` bytes of the value that comes
    back. ``max_iterations`` counts planner turns of one agent, ``max_recursion_depth`` how deep children may go
    (0: none), ``max_concurrent_subcalls`` how many requests are on their way at the same moment, and how many tools
    and children work at the same moment at one depth; all else is counted over the whole tree. A cap on cost that the
    host writes down needs a price for the model; the default one holds where a price is known.

    ``max_steps`` counts the steps of plans that are taken, those that call nothing too; None: any number. A step over
    large values counts as several: one more for each 100 values, or 10,000 characters, that it looks at. The default
    lets the longest ``map`` there may be (10,000 items) run ten steps for each item, and is used up after about two
    seconds of a processor.
    """

    time_limit: float = Field(default=120.0, gt=0, allow_inf_nan=False)
    max_iterations: int = Field(default=32, ge=1, le=MOST)
    max_recursion_depth: int = Field(default=1, ge=0, le=16)
    max_concurrent_subcalls: int = Field(default=8, ge=1, le=1024)
    max_model_calls: int = Field(default=32, ge=0, le=MOST)
    max_total_tokens: int = Field(default=200_000, ge=0, le=MOST)
    max_cost_usd: float = Field(default=0.25, ge=0, allow_inf_nan=False)
    max_context_ops: int = Field(default=256, ge=0, le=MOST)
    max_tool_calls: int = Field(default=32, ge=0, le=MOST)
    max_output_bytes: int = Field(default=65_536, ge=0, le=MOST)
    max_steps: int | None = Field(default=100_000, ge=1, le=MOST)

    @property
    def cost_is_capped(self) -> bool:
        """Whether the host itself wrote down a cap on cost."""
        return "max_cost_usd" in self.model_fields_set

    @classmethod
    def of(cls, value: Budget | Mapping[str, Any] | None) -> Budget:
        """Return the budget in a caller's mapping. Raises: ConfigurationError for a misspelt key, or where it is no
        mapping.
        """
        if isinstance(value, Budget):
            return value
        return cls(**mapping("budget", {} if value is None else value, "a Budget or a mapping"))


class Tokens(Noun):
    """Tokens in and out, and USD; ``cost_usd`` is None where no amount is known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None

    @property
    def total_tokens(self) -> int:
        """Tokens in and out."""
        return self.input_tokens + self.output_tokens

    def plus(self, other: Tokens) -> Tokens:
        """The sum of both."""
        amounts = [each for each in (self.cost_usd, other.cost_usd) if each is not None]
        return Tokens(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=sum(amounts) if amounts else None,
        )


class RoleUsage(Noun):
    """The requests of one role (``planner``, ``child``, ``leaf``, ``handler``) of a run.

    ``characters`` are those of the request bodies as sent. Tokens and USD are the best known figures, as in ``Spent``.
    """

    requests: int = 0
    characters: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cost_usd: float | None = None


class UnitUsage(Noun):
    """One unit in the requests of a run: the requests that showed it (``shown``), and its calls (``used``).

    ``characters`` and ``tokens`` are those of its text, summed over these requests. ``cached_tokens`` and ``cost_usd``
    are its share of the requests: in proportion to its tokens.
    """

    shown: int = 0
    used: int = 0
    characters: int = 0
    tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None


class Spent(Noun):
    """The amounts that a run spent. ``model_calls`` counts the requests that were sent; each attempt counts.

    ``input_tokens``, ``output_tokens`` and ``cost_usd`` are the best known figures: the servers' figures, and our own
    count (for money: by the price) where a server reported nothing; ``estimated_tokens`` says how many of
    ``input_tokens + output_tokens`` are not a server's. ``reported`` is the sum of the servers' figures. ``charged`` is
    the amount that counts against the budget: reply by reply, the greater of the server's figure and our own. Of
    ``input_tokens``, ``cached_input_tokens`` came from a provider's cache and ``written_input_tokens`` were written to
    one. ``cost_usd`` is None where no price is known. ``steps`` are those of plans, counted as in ``Budget.max_steps``.
    ``seconds`` is wall time. ``by_role`` and ``by_unit`` are the bill of the run's own requests: by role, and by unit
    that a request showed; ``unused`` says in sentences which tools no call used.

    Example: a server reports 900 + 20 for a request of 1,000 tokens by our count. ``input_tokens`` and
    ``reported.input_tokens`` are 900, ``charged.input_tokens`` is 1,000.
    """

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    written_input_tokens: int = 0
    estimated_tokens: int = 0
    cost_usd: float | None = None
    reported: Tokens = Tokens()
    charged: Tokens = Tokens()
    context_ops: int = 0
    tool_calls: int = 0
    children: int = 0
    iterations: int = 0
    steps: int = 0
    seconds: float = 0.0
    by_role: dict[str, RoleUsage] = {}
    by_unit: dict[str, UnitUsage] = {}

    @property
    def total_tokens(self) -> int:
        """Tokens in and out."""
        return self.input_tokens + self.output_tokens

    @property
    def unused(self) -> tuple[str, ...]:
        """Return a sentence for each tool that was shown and not used, the dearest first.

        For example ``tool:mail_send was shown 14 times and used 0 times (2,310 tokens)``.
        """
        rows = [(usage, id) for id, usage in self.by_unit.items() if not usage.used and id.startswith(_CALLABLE)]
        rows.sort(key=lambda row: (-row[0].tokens, row[1]))
        return tuple(
            f"{id} was shown {counted(usage.shown, 'time')} and used 0 times ({counted(usage.tokens, 'token')})"
            for usage, id in rows
        )


_CALLABLE = ("tool:", "mcp_tool:")
