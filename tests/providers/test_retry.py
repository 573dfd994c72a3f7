"""Whether to ask again, and when: pure arithmetic, and what a real server says about it."""

from __future__ import annotations

import datetime
import random
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlm.errors import ConfigurationError, ProviderError
from rlm.providers import Retry
from tests.providers.sending import failure, provider
from tests.support.loopback import Loopback, drops, fails, raw, resets

LONG = 1000.0


def an_error(*, retryable: bool = True, after: float | None = None) -> ProviderError:
    detail = {} if after is None else {"retry_after_seconds": after}
    return ProviderError("server_error", "no", detail, status=503, retryable=retryable)


def rng() -> random.Random:
    return random.Random(7)


def test_without_jitter_the_wait_doubles_up_to_the_cap() -> None:
    retry = Retry(attempts=7, base=0.5, cap=4, jitter="none")
    waits = [retry.delay(attempt, an_error(), rng(), left=LONG) for attempt in range(1, 8)]
    assert waits == [0.5, 1, 2, 4, 4, 4, None]


def test_a_wait_of_our_own_leaves_time_for_the_reply() -> None:
    retry = Retry(base=100, cap=100, jitter="none")
    assert retry.delay(1, an_error(), rng(), left=4) == 2
    assert retry.delay(1, an_error(after=3), rng(), left=4) == 3.5


def test_full_jitter_spreads_over_all_of_it() -> None:
    draw = rng()
    waits = [Retry(base=2).delay(1, an_error(), draw, left=LONG) or 0.0 for _ in range(500)]
    assert 0 <= min(waits) < 0.1
    assert 1.9 < max(waits) <= 2
    assert 0.9 < sum(waits) / 500 < 1.1


def test_the_same_seed_gives_the_same_waits() -> None:
    once, again = (
        [Retry(attempts=9).delay(n, an_error(), draw, left=LONG) for n in range(1, 9)] for draw in (rng(), rng())
    )
    assert once == again


def test_what_the_other_side_asked_for_is_waited_in_full_beyond_the_cap_too() -> None:
    waited = Retry(cap=1).delay(1, an_error(after=30), rng(), left=LONG)
    assert waited is not None
    assert 30 <= waited <= 31
    assert Retry(jitter="none").delay(1, an_error(after=30), rng(), left=LONG) == 30.5


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)  # a busy machine is slow to draw
@given(
    attempt=st.integers(1, 25),
    after=st.none() | st.floats(0, 1e9),
    left=st.floats(-10, 1e6),
    attempts=st.integers(1, 20),
    base=st.floats(0.001, 100),
    cap=st.floats(0.001, 100),
    jitter=st.sampled_from(["full", "none"]),
    retryable=st.booleans(),
    seed=st.integers(),
)
def test_a_delay_ends_before_the_deadline_and_never_before_it_may(
    attempt: int,
    after: float | None,
    left: float,
    attempts: int,
    base: float,
    cap: float,
    jitter: Any,
    retryable: bool,
    seed: int,
) -> None:
    retry = Retry(attempts=attempts, base=base, cap=cap, jitter=jitter)
    delay = retry.delay(attempt, an_error(retryable=retryable, after=after), random.Random(seed), left=left)
    if delay is None:
        assert not retryable or attempt >= attempts or left <= (after or 0)
    else:
        assert retryable
        assert attempt < attempts
        assert max(0.0, after or 0.0) <= delay < left
        assert delay <= (after or 0) + cap


@pytest.mark.parametrize(
    "fields", [{"attempts": 0}, {"base": 0}, {"cap": float("inf")}, {"jitter": "some"}, {"atempts": 3}]
)
def test_a_policy_that_makes_no_sense_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        Retry(**fields)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "again"),
    [
        (fails(408), True),
        (fails(429), True),
        (fails(500), True),
        (fails(502), True),
        (fails(503), True),
        (fails(504), True),
        (fails(529), True),
        (drops(), True),
        (resets(), True),
        (raw(b"{"), True),
        (fails(400), False),
        (fails(401), False),
        (fails(404), False),
        (fails(413), False),
        (fails(429, code="insufficient_quota"), False),
    ],
)
async def test_what_is_asked_again(loopback: Loopback, answer: Any, again: bool) -> None:
    loopback.script(answer)
    delay = Retry().delay(1, await failure(provider(loopback)), rng(), left=LONG)
    assert (delay is not None) is again


@pytest.mark.anyio
@pytest.mark.parametrize("dated", [True, False])
async def test_retry_after_in_seconds_and_as_a_date(loopback: Loopback, dated: bool) -> None:
    said = "20"
    if dated:
        when = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=20)
        said = format_datetime(when.replace(microsecond=0), usegmt=True)
    loopback.script(fails(503, retry_after=said))
    error = await failure(provider(loopback))
    delay = Retry().delay(1, error, rng(), left=LONG)
    assert delay is not None
    assert 17 < delay <= 20.5
    assert Retry().delay(1, error, rng(), left=15) is None
