"""Plans run on asyncio; what only some tests need stands in ``tests.plan.world``."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
