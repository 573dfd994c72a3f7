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


LONG = Path(__file__).with_name("long.txt")
"""Tests that take more than about two seconds, one a line: ``file::test``, for all its cases. They run with
``-m long`` and in CI. A file name alone stands for all tests in it."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of ``long.txt``, before ``-m`` chooses among the marks."""
    lines = LONG.read_text(encoding="utf-8").splitlines()
    long = {line.strip() for line in lines if line.strip() and not line.startswith("#")}
    for item in items:
        name = item.nodeid.partition("[")[0]
        if name in long or name.partition("::")[0] in long:
            item.add_marker(pytest.mark.long)


@pytest.fixture
def anyio_backend() -> str:
    """The event loop of tests marked ``anyio``."""
    return "asyncio"


@pytest.fixture
def server() -> Iterator[Loopback]:
    """A real HTTP server on loopback."""
    with Loopback() as loopback:
        yield loopback
