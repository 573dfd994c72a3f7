"""What tokens cost: the host's prices, what a provider reports, and what nobody knows."""

from __future__ import annotations

from typing import Any

import pytest

from rlm.errors import ConfigurationError
from rlm.providers import OpenAIProvider, Price, ScriptedProvider, Usage
from rlm.providers.local import LocalProvider
from rlm.providers.prices import FREE, cost_of, price_of
from tests.providers.sending import a_request, provider, sent
from tests.support.loopback import Loopback, answers

PRICE = Price(input_per_million=3, output_per_million=15)
CACHED = Price(input_per_million=3, output_per_million=15, cached_input_per_million=0.3)


@pytest.mark.parametrize(
    ("price", "usage", "dollars"),
    [
        (PRICE, Usage(input_tokens=1_000_000, output_tokens=0), 3),
        (PRICE, Usage(input_tokens=1000, output_tokens=200), 0.006),
        (PRICE, Usage(input_tokens=1000, output_tokens=200, cached_input_tokens=1000), 0.006),
        (CACHED, Usage(input_tokens=1000, output_tokens=0, cached_input_tokens=600), 0.00138),
        (CACHED, Usage(input_tokens=10, output_tokens=0, cached_input_tokens=600), 0.000003),
        (FREE, Usage(input_tokens=1000, output_tokens=200), 0),
        (PRICE, Usage(input_tokens=1000), None),
        (PRICE, Usage(output_tokens=1000), None),
        (PRICE, Usage(), None),
    ],
)
def test_what_a_usage_costs(price: Price, usage: Usage, dollars: float | None) -> None:
    assert price.cost(usage) == (None if dollars is None else pytest.approx(dollars))


def test_what_is_reported_counts_before_what_is_computed() -> None:
    usage = Usage(input_tokens=1000, output_tokens=200, cost_usd=0.5)
    assert cost_of(usage, PRICE) == cost_of(usage, None) == 0.5
    assert cost_of(Usage(input_tokens=1000, output_tokens=200), PRICE) == pytest.approx(0.006)
    assert cost_of(Usage(input_tokens=1000, output_tokens=200), None) is None


def test_prices_are_the_hosts_and_only_what_runs_here_is_free() -> None:
    remote = OpenAIProvider("m", "http://127.0.0.1:1/v1")
    assert price_of(remote, {}) is None
    assert price_of(remote, {"m": PRICE}) is PRICE
    assert price_of(remote, {"m": PRICE, "openai:m": CACHED}) is CACHED
    assert price_of(remote, {"other": PRICE}) is None
    assert price_of(ScriptedProvider([]), {}) is LocalProvider.price is FREE
    assert price_of(ScriptedProvider([], model="m"), {"scripted:m": PRICE}) is PRICE


@pytest.mark.parametrize(
    "fields",
    [
        {"input_per_million": -1, "output_per_million": 1},
        {"input_per_million": 1, "output_per_million": float("nan")},
        {"input_per_million": 1},
        {"input_per_million": 1, "output_per_million": 1, "per_request": 1},
    ],
)
def test_a_price_that_is_none_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        Price(**fields)


@pytest.mark.anyio
async def test_what_a_gateway_reports_is_kept_whole_and_streamed(loopback: Loopback) -> None:
    loopback.script(answers(cost=0.0125))
    for delivery in ("whole", "streamed"):
        reply = await sent(provider(loopback), a_request(delivery=delivery))
        assert cost_of(reply.usage, PRICE) == 0.0125
