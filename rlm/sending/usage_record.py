"""The bill of a run in the making: each request, reply and tool call, by role and by unit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from rlm.model.budget import RoleUsage, Spent, UnitUsage
from rlm.sending.charges import Bill

U = TypeVar("U", RoleUsage, UnitUsage)


@dataclass(frozen=True, slots=True)
class ShownText:
    """The text of one unit in a request: the unit's id, and its characters and tokens."""

    unit: str
    characters: int
    tokens: int


@dataclass
class UsageRecord:
    """Counts the requests of one run budget. It belongs to the run's event loop."""

    _roles: defaultdict[str, RoleUsage] = field(default_factory=lambda: defaultdict(RoleUsage))
    _units: defaultdict[str, UnitUsage] = field(default_factory=lambda: defaultdict(UnitUsage))

    def add_request(self, role: str, characters: int, texts: Iterable[ShownText]) -> None:
        """Count a request that is sent, with the units that it shows."""
        self._add_to_role(role, requests=1, characters=characters)
        for text in texts:
            self._add_to_unit(text.unit, shown=1, characters=text.characters, tokens=text.tokens)

    def add_reply(self, role: str, bill: Bill, texts: Iterable[ShownText]) -> None:
        """Count the tokens and the cost of a reply. A unit has its share by its tokens."""
        tokens, cost = bill.counted, bill.counted.cost_usd
        self._add_to_role(
            role,
            input_tokens=tokens.input_tokens,
            output_tokens=tokens.output_tokens,
            cached_input_tokens=bill.cached_input_tokens,
            cost_usd=cost,
        )
        for text in texts:
            cached = bill.cached_input_tokens * text.tokens // max(1, tokens.input_tokens)
            share = None if cost is None else cost * text.tokens / max(1, tokens.total_tokens)
            self._add_to_unit(text.unit, cached_tokens=min(cached, text.tokens), cost_usd=share)

    def add_call(self, tool: str) -> None:
        """Count a call of a tool."""
        self._add_to_unit(tool, used=1)

    def add(self, spent: Spent) -> None:
        """Add the bill of recorded requests."""
        for role, usage in spent.by_role.items():
            self._add_to_role(role, **dict(usage))
        for unit, share in spent.by_unit.items():
            self._add_to_unit(unit, **dict(share))

    def by_role(self) -> dict[str, RoleUsage]:
        """Return the usage by role, by name."""
        return dict(sorted(self._roles.items()))

    def by_unit(self) -> dict[str, UnitUsage]:
        """Return the usage by unit, by id."""
        return dict(sorted(self._units.items()))

    def _add_to_role(self, role: str, **amounts: float | None) -> None:
        self._roles[role] = _sum(self._roles[role], amounts)

    def _add_to_unit(self, unit: str, **amounts: float | None) -> None:
        self._units[unit] = _sum(self._units[unit], amounts)


def _sum(usage: U, amounts: dict[str, float | None]) -> U:
    fields = {name: (getattr(usage, name) or 0) + amount for name, amount in amounts.items() if amount is not None}
    return usage.model_copy(update=fields)
