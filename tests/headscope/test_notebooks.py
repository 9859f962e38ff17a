"""The notebooks run from top to bottom."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
pytestmark = pytest.mark.slow  # each starts a kernel


@pytest.fixture
def demo(hostile_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small run with every table under the name of the demo, which takes minutes to build."""
    shutil.copytree(hostile_cache / "hostile", tmp_path / "demo")
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path))


def test_there_are_three() -> None:
    assert len(NOTEBOOKS) == 3


@pytest.mark.usefixtures("demo")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(ROOT)}}).execute()
    printed = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert len(printed) >= 5
    assert not [output for output in printed if output.output_type == "error"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_without_outputs(path: Path) -> None:
    for cell in nbformat.read(path, as_version=4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
