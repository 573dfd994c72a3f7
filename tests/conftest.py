"""Collects the plunit files along with the Python tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plunit import PlunitFile
from tests.support.loopback import Loopback

os.environ.pop("PYTHONUNBUFFERED", None)  # with it nothing is left to be written at the end, and no fault there shows


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    return PlunitFile.from_parent(parent, path=file_path) if file_path.suffix == ".plt" else None


@pytest.fixture
def anyio_backend() -> str:
    """The event loop of tests marked ``anyio``."""
    return "asyncio"


@pytest.fixture
def server() -> Iterator[Loopback]:
    """A real HTTP server on loopback."""
    with Loopback() as loopback:
        yield loopback
