"""The notebook of the docs runs in a real kernel, and each object is shown as HTML."""

from __future__ import annotations

from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient", reason="the package nbclient is not installed")
nbformat = pytest.importorskip("nbformat", reason="the package nbformat is not installed")

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "notebooks" / "first-steps.ipynb"


def test_the_notebook_of_the_docs_runs(tmp_path: Path) -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    pages = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert [output for output in cell.outputs if output.output_type == "stream"] == []
            pages += [output.data["text/html"] for output in cell.outputs if "text/html" in output.get("data", {})]
    assert len(pages) == 11
    assert "2 of 4 units shown" in pages[1]
    assert "nothing in this turn asks for it" in pages[2]
    assert "21 degrees in Ulm" in pages[8]
    assert "21 degrees" in pages[9]


def test_the_notebook_is_kept_without_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(cell.get("outputs", []) == [] for cell in notebook.cells)
