"""What one reply comes to: what the server reported, and what is charged for it. Pure.

Of each figure there are two: the server's and our own. The greater one is charged. A server's figure that no reply of
this request can have is not believed: what was reserved is charged in its place, and a finding says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rlm.model.budget import Tokens
from rlm.providers.base import Usage
from rlm.providers.prices import MILLION, Price, cost_of

NOT_BELIEVED = "usage_not_believed"
"""The kind of a finding about a figure of a server."""

DEAREST = 8
"""A reply costs at most so many times what the most tokens cost at the dearer of the two prices: prices of caches and
of long requests are multiples of the others."""


@dataclass(frozen=True)
class Bill:
    """One reply in the ledger.

    ``reported`` is what the server said, as far as it is believed; ``counted`` the same, with our own count where it
    said nothing; ``charged`` the greater of ``counted`` and our own count. ``estimated`` is how many tokens of
    ``counted`` are not the server's.
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
    """Reads a usage. ``most`` is the most tokens that a figure can be."""

    usage: Usage
    most: int | None
    findings: list[dict[str, Any]] = field(default_factory=list)

    def figure(self, name: str) -> tuple[int | None, bool]:
        """A figure, None where there is none to go by; and whether there was one that is not believed."""
        value = getattr(self.usage, name)
        wrong = name in self.usage.unread or (value is not None and not self._possible(value))
        if wrong:
            most = "" if self.most is None else f" of at most {self.most}"
            self._finding(name, f"no count of tokens{most}")
        return (None if wrong else value), wrong

    def count(self, name: str, own: int | None, reservation: int) -> tuple[int | None, int]:
        """The server's figure, None where there is none to go by; and the best that is known: it, else our ``own``
        count, else (where we have none, or the figure is not believed) what was reserved."""
        value, wrong = self.figure(name)
        if value is not None and (value > 0 or not own):  # a text does not take no tokens
            return value, value
        if wrong or own is None:
            return None, max(reservation, own or 0)
        return None, own

    def cost(self, price: Price | None) -> tuple[float | None, bool]:
        """The server's USD, likewise."""
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
        shown = "what it gave" if value is None else str(value)[:40]
        message = f"the provider's {name} is not believed: {shown} is {what}; what was reserved is charged"
        self.findings.append({"kind": NOT_BELIEVED, "field": name, "message": message})


def bill_of(
    usage: Usage, reserved: tuple[int, int], price: Price | None, *, received: int | None, most: int | None
) -> Bill:
    """The bill of one reply.

    Args:
        usage: what the server said.
        reserved: tokens in and out that were reserved; the first is our own count of the request.
        price: of the model, None where it is not known.
        received: our own count of the reply, tokens; None where it did not arrive, so that it is not known what was
            written.
        most: tokens that no figure can be above: the model's window and the limit on output; None for no such bound.
    """
    reader = _UsageReader(usage, most)
    taken_in, counted_in = reader.count("input_tokens", reserved[0], reserved[0])
    taken_out, counted_out = reader.count("output_tokens", received, reserved[1])
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
        reported=Tokens(input_tokens=taken_in or 0, output_tokens=taken_out or 0, cost_usd=cost),
        counted=Tokens(input_tokens=counted_in, output_tokens=counted_out, cost_usd=known),
        charged=Tokens(input_tokens=charged[0], output_tokens=charged[1], cost_usd=max(dearest, default=None)),
        cached_input_tokens=cached,
        written_input_tokens=written,
        estimated=(counted_in if taken_in is None else 0) + (counted_out if taken_out is None else 0),
        findings=tuple(reader.findings),
    )


def _usage(tokens: tuple[int, int], more: dict[str, Any]) -> Usage:
    return Usage(input_tokens=tokens[0], output_tokens=tokens[1], **more)
