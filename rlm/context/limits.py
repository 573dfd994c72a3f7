"""How much one action may take."""

from __future__ import annotations

from pydantic import Field

from rlm.model.base import Noun


class Limits(Noun):
    """What one action may take and give.

    ``seconds`` of wall time, ``results`` (matches of a search, parts of a partition), ``bytes`` of text in what it
    returns, in UTF-8.
    """

    seconds: float = Field(default=10.0, gt=0, allow_inf_nan=False)
    results: int = Field(default=1000, ge=1)
    bytes: int = Field(default=32_768, ge=4096)
