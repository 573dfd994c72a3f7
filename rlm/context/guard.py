"""The time of one action, looked at between pieces of work."""

from __future__ import annotations

import time
from typing import Any


class OutOfTime(Exception):
    """The time of an action is over, or nobody waits for it any more."""


class Guard:
    """Seconds that an action may take, from now.

    ``partial`` is what an action has found so far, where that is of use by itself: a value that whoever waits may
    copy at any time.
    """

    def __init__(self, seconds: float) -> None:
        self.until = time.monotonic() + seconds
        self.partial: dict[str, Any] | None = None
        self._ended = False

    def check(self) -> None:
        """Raises: OutOfTime."""
        if self._ended or time.monotonic() >= self.until:
            raise OutOfTime

    def end(self) -> None:
        """Let the work stop at its next look."""
        self._ended = True
