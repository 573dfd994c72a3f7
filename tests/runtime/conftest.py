"""A server that plays the model, and the catalogs' count before and after each test."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

import rlm
from tests.runtime.actors import WIRES


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def no_catalog_is_left() -> Iterator[None]:
    """P08-P10 in every test: what a run makes for itself is gone afterwards."""
    gc.collect()
    before = rlm.Catalog.living()
    yield
    gc.collect()
    assert rlm.Catalog.living() == before
