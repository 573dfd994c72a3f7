"""What tokens cost: the host's prices, what a provider reports, and what nobody knows."""

from __future__ import annotations

import json
from typing import Any

import pytest

import rlm
from rlm.errors import ConfigurationError
from rlm.providers import OpenAIProvider, Price, ScriptedProvider, Usage
from rlm.providers.local import LocalProvider
from rlm.providers.prices import FREE, cost_of, price_of
from tests.providers.sending import a_request, provider, sent
from tests.support.loopback import Loopback, answers

PRICE = Price(input_per_million=3, output_per_million=15)
CACHED = Price(input_per_million=3, output_per_million=15, cached_input_per_million=0.3)

WRITTEN = Price(input_per_million=1, output_per_million=1, written_input_per_million=1, hour_input_per_million=3)


@pytest.mark.parametrize(
    ("price", "usage", "dollars"),
    [
        (PRICE, Usage(input_tokens=1_000_000, output_tokens=0), 3),
        (PRICE, Usage(input_tokens=1000, output_tokens=200), 0.006),
        (PRICE, Usage(input_tokens=1000, output_tokens=200, cached_input_tokens=1000), 0.006),
        (CACHED, Usage(input_tokens=1000, output_tokens=0, cached_input_tokens=600), 0.00138),
        (CACHED, Usage(input_tokens=10, output_tokens=0, cached_input_tokens=600), 0.000003),
        (PRICE, Usage(input_tokens=1000, output_tokens=0, written_input_tokens=1000), 0.00375),
        (PRICE, Usage(input_tokens=1000, output_tokens=0, written_input_tokens=1000, hour_input_tokens=1000), 0.006),
        (
            CACHED,
            Usage(
                input_tokens=1000,
                output_tokens=0,
                cached_input_tokens=500,
                written_input_tokens=400,
                hour_input_tokens=100,
            ),
            (100 * 3 + 500 * 0.3 + 300 * 3.75 + 100 * 6) / 1_000_000,
        ),
        (CACHED, Usage(input_tokens=10, output_tokens=0, cached_input_tokens=8, written_input_tokens=900), 9.9e-6),
        (WRITTEN, Usage(input_tokens=30, output_tokens=0, written_input_tokens=20, hour_input_tokens=10), 50e-6),
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


@pytest.mark.anyio
@pytest.mark.parametrize("delivery", ["whole", "streamed"])
async def test_what_is_written_to_a_cache_is_counted_and_costs_more(loopback: Loopback, delivery: Any) -> None:
    """Five minutes a quarter more, an hour twice as much: as the Messages API bills it."""
    loopback.script(answers("ok", cached=1, written=(3, 2)))
    reply = await sent(provider(loopback, "anthropic"), a_request("tell me " * 20, delivery=delivery))
    seen = loopback.exchanges[-1]
    assert (reply.usage.input_tokens, reply.usage.written_input_tokens) == (seen.tokens_in, 5)
    dollars = 3 * (seen.tokens_in - 6 + 1 + 3 * 1.25 + 2 * 2) + 15 * seen.tokens_out
    assert cost_of(reply.usage, PRICE) == pytest.approx(dollars / 1_000_000)


def test_a_run_is_charged_for_what_it_wrote_to_a_cache(loopback: Loopback) -> None:
    loopback.script(answers(json.dumps({"steps": [{"op": "final", "value": 1}]}), written=(40, 60)))
    done = rlm.complete("x", model=provider(loopback, "anthropic"), prices={"m": PRICE})
    assert done.unwrap() == 1
    (seen,) = loopback.exchanges
    assert (done.usage.input_tokens, done.usage.written_input_tokens) == (seen.tokens_in, 100)
    dollars = 3 * (seen.tokens_in - 100 + 40 * 1.25 + 60 * 2) + 15 * seen.tokens_out
    assert done.usage.cost_usd == pytest.approx(dollars / 1_000_000)
