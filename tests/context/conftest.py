"""A store to ask, and pieces so small that every text has many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rlm.context import bodies, find
from rlm.context import byte_window as view
from rlm.context.store import Store


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture(scope="module")
def small_pieces() -> Iterator[None]:
    """Texts are read 37 bytes at a time, and patterns reach 20 bytes past that."""
    with pytest.MonkeyPatch.context() as patch:
        small: list[tuple[Any, str, int]] = [
            (bodies, "PIECE", 37),
            (view, "PIECE", 37),
            (find, "PIECE", 37),
            (find, "_NARROW", 16),
            (find.PatternNeedle, "reach", 20),
        ]
        for where, name, size in small:
            patch.setattr(where, name, size)
        yield
