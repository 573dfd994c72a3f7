"""Collects the plunit files along with the Python tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.plunit import PlunitFile

os.environ.pop("PYTHONUNBUFFERED", None)  # with it nothing is left to be written at the end, and no fault there shows


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    return PlunitFile.from_parent(parent, path=file_path) if file_path.suffix == ".plt" else None
