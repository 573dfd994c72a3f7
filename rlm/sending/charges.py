"""Compute the bill of one reply from the server's usage and the library's own count. Pure functions.

Each figure exists twice: the server reports one, and this library counts one. The greater one is charged. Some
reported figures are impossible for the request, such as more tokens than the model's window holds. Then the reserved
amount is charged, and a finding names the figure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rlm.model.budget import Tokens
from rlm.providers.base import Usage
from rlm.providers.prices import MILLION, Price, cost_of

NOT_BELIEVED = "usage_not_believed"
"""The kind of a finding about an impossible figure in a server's usage."""

DEAREST = 8
"""A factor: a reply costs at most this many times the price of the most tokens at the dearer of the two rates. Prices
of caches and of long requests are multiples of the basic rates."""


@dataclass(frozen=True)
class Bill:
    """The bill of one reply.

    ``reported`` holds the server's figures that are possible. ``counted`` fills the gaps with the library's own count.
    ``charged`` is the greater of ``counted`` and the own count. ``estimated`` is the number of tokens in ``counted``
    that the server did not report.
    """

    reported: Tokens
    counted: Tokens
    charged: Tokens
    cached_input_tokens: int = 0
    written_input_tokens: int = 0
    estimated: int = 0
    findings: tuple[dict[str, Any], ...] = ()


@dataclass
class _UsageReader:
    """Reads the figures of a usage. ``most`` is the upper bound of a figure in tokens; None for no bound."""

    usage: Usage
    most: int | None
    findings: list[dict[str, Any]] = field(default_factory=list)

    def figure(self, name: str) -> tuple[int | None, bool]:
        """Return a figure (None if it is missing or impossible) and whether it is impossible."""
        value = getattr(self.usage, name)
        wrong = name in self.usage.unread or (value is not None and not self._possible(value))
        if wrong:
            most = "" if self.most is None else f" of at most {self.most}"
            self._finding(name, f"no count of tokens{most}")
        return (None if wrong else value), wrong

    def count(self, name: str, own: int | None, reservation: int) -> tuple[int | None, int]:
        """Return the server's usable figure (or None) and the best known count.

        The best known count is the server's figure, then the ``own`` count. Without either, or after an impossible
        figure, it is the ``reservation``.
        """
        value, wrong = self.figure(name)
        if value is not None and (value > 0 or not own):  # a text with words cannot have 0 tokens
            return value, value
        if wrong or own is None:
            return None, max(reservation, own or 0)
        return None, own

    def cost(self, price: Price | None) -> tuple[float | None, bool]:
        """Return the server's cost in USD (None if it is missing or impossible) and whether it is impossible."""
        value, limit = self.usage.cost_usd, self._most_cost(price)
        wrong = "cost_usd" in self.usage.unread or (value is not None and limit is not None and value > limit)
        if wrong:
            self._finding("cost_usd", "no amount of USD" + ("" if limit is None else f" of at most {limit:.6g}"))
        return (None if wrong else value), wrong

    def _possible(self, value: Any) -> bool:
        whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        return whole and (self.most is None or value <= self.most)

    def _most_cost(self, price: Price | None) -> float | None:
        dearer = 0.0 if price is None else max(price.input_per_million, price.output_per_million)
        return None if self.most is None or dearer == 0 else DEAREST * self.most * dearer / MILLION

    def _finding(self, name: str, what: str) -> None:
        value = getattr(self.usage, name, None)
        reported = "its value" if value is None else str(value)[:40]
        message = f"the provider's {name} is not believed: {reported} is {what}; the reserved amount is charged"
        self.findings.append({"kind": NOT_BELIEVED, "field": name, "message": message})


def bill_of(
    usage: Usage, reserved: tuple[int, int], price: Price | None, *, received: int | None, most: int | None
) -> Bill:
    """Return the bill of one reply.

    For example, a server reports 90 input tokens for a request that this library counts as 100. Then 90 tokens are
    ``reported`` and ``counted``, and 100 are ``charged``.

    Args:
        usage: the server's usage.
        reserved: reserved tokens, in and out; the first number is the own count of the request.
        price: the model's price; None if it is not known.
        received: the own count of the reply in tokens; None if the reply did not arrive.
        most: upper bound of each figure in tokens (the window plus the output limit); None for no bound.
    """
    reader = _UsageReader(usage, most)
    reported_in, counted_in = reader.count("input_tokens", reserved[0], reserved[0])
    reported_out, counted_out = reader.count("output_tokens", received, reserved[1])
    counted = (counted_in, counted_out)
    charged = (max(counted_in, reserved[0]), max(counted_out, received or 0))
    cached, written = (reader.figure(name)[0] or 0 for name in ("cached_input_tokens", "written_input_tokens"))
    hour = reader.figure("hour_input_tokens")[0]
    cost, wrong_cost = reader.cost(price)
    caches = {"cached_input_tokens": cached, "written_input_tokens": written, "hour_input_tokens": hour}
    own_cost = None if price is None else price.cost(_usage(charged, caches))
    if wrong_cost and price is not None:
        own_cost = max(own_cost or 0.0, price.cost(_usage(reserved, {})) or 0.0)
    known = cost_of(_usage(counted, {**caches, "cost_usd": cost}), price)
    dearest = [each for each in (known, own_cost) if each is not None]
    return Bill(
        reported=Tokens(input_tokens=reported_in or 0, output_tokens=reported_out or 0, cost_usd=cost),
        counted=Tokens(input_tokens=counted_in, output_tokens=counted_out, cost_usd=known),
        charged=Tokens(input_tokens=charged[0], output_tokens=charged[1], cost_usd=max(dearest, default=None)),
        cached_input_tokens=cached,
        written_input_tokens=written,
        estimated=(counted_in if reported_in is None else 0) + (counted_out if reported_out is None else 0),
        findings=tuple(reader.findings),
    )


def _usage(tokens: tuple[int, int], more: dict[str, Any]) -> Usage:
    return Usage(input_tokens=tokens[0], output_tokens=tokens[1], **more)
