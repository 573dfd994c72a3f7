"""A scorer for tests: it ends its own process for one text, and raises for another."""

from __future__ import annotations

import os
from collections.abc import Sequence


def embed(texts: Sequence[str]) -> list[list[float]]:
    if any("fatal" in text for text in texts):
        os._exit(9)
    if any("broken" in text for text in texts):
        raise ValueError("this text cannot be scored")
    return [[float(len(text)), 1.0] for text in texts]
