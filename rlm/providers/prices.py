"""The prices of tokens. The host sets them: a vendor's price in this file would soon be wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from rlm.model.base import Noun
from rlm.providers.base import Provider, Usage

Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]
MILLION = 1_000_000


WRITTEN, HOUR = 1.25, 2.0
"""What input that is written to a cache costs, for five minutes and for an hour, as a multiple of other input, where
the host does not say: as Anthropic bills it (its documentation of prompt caching), the one that reports it."""


class Price(Noun):
    """USD for a million tokens.

    Where nothing else is said, input that is read from a cache costs as other input, and input that is written to one
    ``WRITTEN`` times as much, or ``HOUR`` times where it is to stay for an hour.
    """

    input_per_million: Dollars
    output_per_million: Dollars
    cached_input_per_million: Dollars | None = None
    written_input_per_million: Dollars | None = None
    hour_input_per_million: Dollars | None = None

    def cost(self, usage: Usage) -> float | None:
        """Return the USD of a usage; None if it lacks input or output tokens.

        It ignores the cost that the provider reported; ``cost_of`` uses it.
        """
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        cached = min(usage.cached_input_tokens or 0, usage.input_tokens)
        written = min(usage.written_input_tokens or 0, usage.input_tokens - cached)
        hour = min(usage.hour_input_tokens or 0, written)
        dollars = (usage.input_tokens - cached - written) * self.input_per_million
        dollars += cached * self._or(self.cached_input_per_million, 1)
        dollars += (written - hour) * self._or(self.written_input_per_million, WRITTEN)
        dollars += hour * self._or(self.hour_input_per_million, HOUR)
        return (dollars + usage.output_tokens * self.output_per_million) / MILLION

    def _or(self, own: float | None, factor: float) -> float:
        return self.input_per_million * factor if own is None else own


FREE = Price(input_per_million=0, output_per_million=0)


def price_of(provider: Provider, prices: Mapping[str, Price]) -> Price | None:
    """Return the price of a provider's model, or None.

    The order is: the host's price for ``"provider:model"``, the host's price for the model, the provider's own
    ``price``. For example the local and the scripted provider have ``FREE``.
    """
    for name in (f"{provider.name}:{provider.model}", provider.model):
        if name in prices:
            return prices[name]
    own = getattr(provider, "price", None)
    return own if isinstance(own, Price) else None


def cost_of(usage: Usage, price: Price | None) -> float | None:
    """Return the USD that the provider reported (such as OpenRouter), else the USD by the price, else None."""
    if usage.cost_usd is not None or price is None:
        return usage.cost_usd
    return price.cost(usage)
