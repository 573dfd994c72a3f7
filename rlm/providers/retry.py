"""Whether to ask again, and when. Pure: nothing waits here, and nothing is sent."""

from __future__ import annotations

import math
import random
from typing import Literal

from pydantic import Field

from rlm.errors import ProviderError
from rlm.model.base import Noun

WAITING_SHARE = 0.5
"""The part of the time left that waiting of our own may take: a retry needs the rest for its reply."""


class Retry(Noun):
    """How often the same request is sent, and how long is waited in between.

    ``attempts`` counts the first one. After the nth failure the wait grows to ``base * 2**(n-1)`` seconds, at most
    ``cap``; with ``full`` jitter it is drawn evenly from nothing to that, so that children that failed together do
    not come back together (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
    """

    attempts: int = Field(default=3, ge=1, le=20)
    base: float = Field(default=0.5, gt=0, allow_inf_nan=False)
    cap: float = Field(default=8.0, gt=0, allow_inf_nan=False)
    jitter: Literal["full", "none"] = "full"

    def delay(self, attempt: int, error: ProviderError, rng: random.Random, *, left: float) -> float | None:
        """Seconds to wait before the next attempt; None where there is to be none.

        Only what is ``retryable`` is asked again: 408, 429, 5xx, faults of the line, replies that are none. The
        wait that the refusal names is kept in full, and the wait of our own comes on top; where the other side
        wants more than is ``left``, there is no next attempt.

        Args:
            attempt: how many were made so far, from 1.
            error: why the last one failed.
            rng: draws the jitter: seeded, the same waits.
            left: seconds until the deadline; the delay is always less.
        """
        asked = _asked(error)
        if not error.retryable or attempt >= self.attempts or left <= asked:
            return None
        ceiling = min(self.cap, self.base * 2.0 ** (attempt - 1), (left - asked) * WAITING_SHARE)
        return float(asked + (rng.uniform(0, ceiling) if self.jitter == "full" else ceiling))


def _asked(error: ProviderError) -> float:
    """Seconds that the refusal named; nothing where it did not, or where it is no time to wait."""
    seconds = error.detail.get("retry_after_seconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        return 0.0
    return float(seconds) if seconds < 1e300 else math.inf
