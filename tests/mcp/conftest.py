"""One server of the SDK for the tests that change nothing, over each wire and in each age of the protocol."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import rlm
from tests.mcp.support import QUICK, good, web

WIRES = ["stdio", "stdio legacy", "http", "http legacy"]


@pytest.fixture(scope="package", params=WIRES)
def catalog(request: pytest.FixtureRequest) -> Iterator[rlm.Catalog]:
    """A catalog with the server ``t``, for tests that change nothing."""
    yield from served(request.param)


@pytest.fixture(params=WIRES)
def fresh(request: pytest.FixtureRequest) -> Iterator[rlm.Catalog]:
    """The same for a test that changes it."""
    yield from served(request.param)


@pytest.fixture
def stdio() -> Iterator[rlm.Catalog]:
    """The same over stdio only, where the wire makes no difference."""
    yield from served("stdio")


def served(wire: str) -> Iterator[rlm.Catalog]:
    how, *age = wire.split()
    with rlm.Catalog() as catalog:
        if how == "stdio":
            catalog.add_mcp({"t": good(*age)}, limits=QUICK)
            yield catalog
        else:
            with web(*age) as (url, _):
                catalog.add_mcp({"t": {"url": url}}, limits=QUICK)
                yield catalog
