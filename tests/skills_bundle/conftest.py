"""A loopback server, so that the rows look at the bytes of requests and at nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.seen import PLACES, Asking
from tests.support.loopback import Loopback


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback() as loopback:
        yield loopback


@pytest.fixture(scope="module", params=PLACES)
def ask(request: pytest.FixtureRequest, server: Loopback) -> Asking:
    return Asking(server, request.param)
