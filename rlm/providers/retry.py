"""The decision about another attempt, and its delay. Pure: nothing waits here, and nothing is sent."""

from __future__ import annotations

import math
import random
from typing import Literal

from pydantic import Field

from rlm.errors import ProviderError
from rlm.model.base import Noun

WAITING_SHARE = 0.5
"""The share of the remaining time that our own wait may take: a retry needs the rest for its reply."""


class Retry(Noun):
    """The attempts at the same request, and the waits between them.

    ``attempts`` includes the first one. After the nth failure the wait grows to ``base * 2**(n-1)`` seconds, at most
    ``cap``; with ``full`` jitter it is drawn evenly from nothing to that, so that children that failed together do
    not come back together (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
    """

    attempts: int = Field(default=3, ge=1, le=20)
    base: float = Field(default=0.5, gt=0, allow_inf_nan=False)
    cap: float = Field(default=8.0, gt=0, allow_inf_nan=False)
    jitter: Literal["full", "none"] = "full"

    def delay(self, attempt: int, error: ProviderError, rng: random.Random, *, left: float) -> float | None:
        """Return the seconds to wait before the next attempt; None if there is none.

        Only a ``retryable`` failure is tried again, such as 408, 429, 5xx, a broken connection or a malformed reply.
        The wait that the refusal asks for is kept in full, and our own wait is added. If it is longer than ``left``,
        there is no next attempt.

        Args:
            attempt: the number of attempts so far, from 1.
            error: the failure of the last attempt.
            rng: draws the jitter; the same seed makes the same waits.
            left: seconds until the deadline; the delay is always less.
        """
        requested = _requested_wait(error)
        if not error.retryable or attempt >= self.attempts or left <= requested:
            return None
        ceiling = min(self.cap, self.base * 2.0 ** (attempt - 1), (left - requested) * WAITING_SHARE)
        return float(requested + (rng.uniform(0, ceiling) if self.jitter == "full" else ceiling))


def _requested_wait(error: ProviderError) -> float:
    """Return the seconds that the refusal asks for; 0 without a usable number."""
    seconds = error.detail.get("retry_after_seconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        return 0.0
    return float(seconds) if seconds < 1e300 else math.inf
