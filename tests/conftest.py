"""Collects the plunit files along with the Python tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plunit import PlunitFile


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    return PlunitFile.from_parent(parent, path=file_path) if file_path.suffix == ".plt" else None
