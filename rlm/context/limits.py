"""The limits of one action on a context, and the guard that watches its time."""

from __future__ import annotations

import time
from typing import Any

from pydantic import Field

from rlm.model.base import Noun


class ActionLimits(Noun):
    """The bounds of one action.

    ``seconds`` is wall time. ``results`` is the most matches of a search, or parts of a partition. ``bytes`` is the
    most UTF-8 of the text in the action's value.
    """

    seconds: float = Field(default=10.0, gt=0, allow_inf_nan=False)
    results: int = Field(default=1000, ge=1)
    bytes: int = Field(default=32_768, ge=4096)


class OutOfTime(Exception):
    """The time of an action is over, or its caller has gone."""


class Guard:
    """The seconds that an action may take, from now.

    ``partial`` is the value that an action has so far, where a part is of use by itself. The waiting task may copy it
    at any time.
    """

    def __init__(self, seconds: float) -> None:
        self.until = time.monotonic() + seconds
        self.partial: dict[str, Any] | None = None
        self._ended = False

    def check(self) -> None:
        """Check the time between pieces of work. Raises: OutOfTime."""
        if self._ended or time.monotonic() >= self.until:
            raise OutOfTime

    def end(self) -> None:
        """Let the work stop at its next check."""
        self._ended = True
