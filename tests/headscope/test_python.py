"""``import headscope``: what a run gives from Python, its documented examples, and how it is installed."""

from __future__ import annotations

import doctest
import importlib
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

import headscope
from core.errors import Mistake
from core.model.shape import ModelShape
from headscope.figures import FIGURES
from tests.support.synthetic import write_run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def example(
    share_cache: Path, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> headscope.OpenedRun:
    """A run 'example' of 36 documents, in the cache that HEADSCOPE_CACHE names, and its model."""
    shutil.copytree(share_cache / "four", tmp_path / "cache" / "example")
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HEADSCOPE_MODELS", str(tiny_model.parent))
    return headscope.open_run("example")


@pytest.mark.slow
@pytest.mark.usefixtures("example")
@pytest.mark.parametrize("module", ["headscope", "headscope.opened", "headscope.paper"])
def test_the_examples_in_docstrings_are_true(module: str) -> None:
    result = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert result.attempted >= 3
    assert result.failed == 0


@pytest.mark.slow
def test_the_examples_of_the_document_are_true(example: headscope.OpenedRun) -> None:
    result = doctest.testfile(str(ROOT / "docs" / "python.md"), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 5
    assert result.failed == 0


@pytest.mark.slow
def test_every_figure_is_drawn_in_the_projects_template(example: headscope.OpenedRun) -> None:
    from pages.shared.figures.template import template

    for name in FIGURES.keys() - {"whose", "random slices"}:
        assert example.figure(name, theme="dark").layout.template == template("dark"), name
    with pytest.raises(Mistake, match=r"has no table 'parts' yet\. Run 'python -m precompute layers example'"):
        example.figure("whose")


@pytest.mark.slow
def test_wrong_choices_are_sentences(example: headscope.OpenedRun) -> None:
    for call, said in (
        (lambda: example.figure("heat map", depth=3), "The figure 'heat map' has no choice 'depth'. It takes: stage, "),
        (lambda: example.figure("probe", theme="pink"), "There is no theme 'pink'. There are: light, dark."),
        (lambda: example.figure("heat map", topics=["loom"]), "There is no topic 'loom'. There are: glacier, "),
        (lambda: example.vectors(9), "Stage 9 is not available here."),
        (lambda: example.nearest(0, head=9), "Head 9 does not exist"),
        (lambda: example.nearest(99), "Document 99 has no vectors in the run 'example'."),
        (lambda: example.explain(0, 99), "Document 99 does not exist (this run has documents 0–35)."),
        (lambda: example.explain(0, " "), "One of the two texts is empty."),
        (lambda: example.embed("glacier"), "embed() takes a list of texts."),
        (lambda: example.tables["prob"], "There is no table 'prob'. There are: topic_match, "),
        (lambda: example.read_documents(["txt"]), "The documents have no column 'txt'. There are: doc, id, "),
    ):
        with pytest.raises(Mistake) as mistake:
            call()
        assert str(mistake.value).startswith(said)


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """A run of three documents and two heads: in head 1 the last two agree, in head 2 the first two."""
    shape = ModelShape(layers=1, heads=2, kv_heads=2, hidden=4, head_dim=2)
    vectors = np.array([[1, 0, 3, 4], [0, 2, 3, 4], [0, 1, 4, -3]], dtype=np.float32)
    write_run(tmp_path, "three", shape, lambda _, first, count: vectors[first : first + count], ["a", None, "b"], 2)
    return tmp_path


def test_vectors_come_by_document_head_and_dimension(three: Path) -> None:
    found = headscope.open_run("three", three).vectors(stage=1)
    assert found.tolist() == [[[1, 0], [3, 4]], [[0, 2], [3, 4]], [[0, 1], [4, -3]]]


def test_the_nearest_document_depends_on_the_head(three: Path) -> None:
    run = headscope.open_run("three", three)
    assert run.nearest(1, head=1, count=1)[["doc", "similarity"]].values.tolist() == [[2, 1]]
    assert run.nearest(1, head=2, count=1)[["doc", "similarity"]].values.tolist() == [[0, 1]]
    # Full embedding: the dot products with document 1 are 25 and 2, the lengths √26, √29 and √26.
    full = run.nearest(1, count=2)
    assert full["doc"].tolist() == [0, 2]
    np.testing.assert_allclose(full["similarity"], [25 / np.sqrt(26 * 29), 2 / np.sqrt(26 * 29)], atol=1e-6)


def test_a_run_is_opened_by_its_folder_too(three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert headscope.open_run(str(three / "three")).name == "three"
    monkeypatch.chdir(three)
    assert headscope.open_run("./three").name == "three"
    with pytest.raises(Mistake, match=r"is not a run: it has no manifest.json"):
        headscope.open_run(str(three / "four"))


def test_a_run_in_an_object_store_is_opened_by_its_address(three: Path, address: str, here: Path) -> None:
    from core.runs.run import Run

    with Run(here, "three").lock():
        for path in sorted((three / "three").rglob("*"), key=lambda path: path.name == "manifest.json"):
            if path.is_file():
                there = here / "three" / path.relative_to(three / "three")
                there.parent.mkdir(parents=True, exist_ok=True)
                Run(here, "three").backend.upload(path, there)
                shutil.copy(path, there)
    found = headscope.open_run(f"{address}/three")
    assert found.vectors(1).shape == (3, 2, 2)
    assert found.documents["topic"].tolist()[::2] == ["a", "b"]


def test_what_an_older_run_lacks_is_said(tmp_path: Path) -> None:
    with tarfile.open(ROOT / "tests" / "support" / "older_run.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    folder = next(path.parent for path in tmp_path.rglob("manifest.json"))
    run = headscope.open_run(folder.name, folder.parent)
    assert run.vectors(run.stages[0]).ndim == 3
    assert run.findings
    assert "null_summary" not in run.tables
    with pytest.raises(Mistake, match=f"has no table 'null_summary' yet. Run 'python -m precompute analyse {run.name}"):
        run.figure("random slices")


def test_all_that_is_offered_is_there_and_completed() -> None:
    assert set(headscope.__all__) <= set(dir(headscope))
    assert all(getattr(headscope, name).__name__ == name for name in headscope.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'opn_run'"):
        _ = headscope.opn_run


@pytest.mark.slow
def test_importing_and_opening_load_nothing_heavy(three: Path) -> None:
    heavy = ["torch", "transformers", "sklearn", "datasets", "streamlit", "plotly", "pandas"]
    code = (
        f"import sys, headscope; run = headscope.open_run('three', {str(three)!r}); "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_an_editable_installation_works_from_anywhere_and_a_wheel_is_refused(tmp_path: Path) -> None:
    clone, target = tmp_path / "clone", tmp_path / "venv"
    clone.mkdir()
    for name in ("core", "precompute", "headscope", "deploy", "pages"):
        shutil.copytree(ROOT / name, clone / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "requirements.txt"):
        shutil.copy(ROOT / name, clone)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(target)], check=True)
    site = next(target.glob("lib/python3*/site-packages"))
    (site / "packages.pth").write_text(str(Path(np.__file__).parents[1]))  # all that is installed here
    pip = [sys.executable, "-m", "pip", "--python", str(target / "bin" / "python"), "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "-q", "--no-deps", "--no-build-isolation", "-e", str(clone)], check=True)
    code = "import headscope; print(headscope.__file__)"
    elsewhere = {"cwd": tmp_path, "capture_output": True, "text": True}
    done = subprocess.run([target / "bin" / "python", "-c", code], check=True, **elsewhere)
    assert Path(done.stdout.strip()) == clone / "headscope" / "__init__.py"
    asked = subprocess.run([target / "bin" / "headscope", "status", "--cache", tmp_path], **elsewhere)
    assert asked.returncode == 0, asked.stderr
    wheel = subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path, clone], **elsewhere)
    assert wheel.returncode != 0
    assert "run 'pip install -e .' there. There is no wheel." in wheel.stderr
    assert not list(tmp_path.glob("*.whl"))


def test_the_command_has_the_jobs_commands_and_serve(capsys: pytest.CaptureFixture[str]) -> None:
    from headscope.commands import main
    from precompute.cli import COMMANDS

    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr().out
    assert said.startswith("usage: headscope")
    for name in (*COMMANDS, "serve"):
        assert f"\n    {name}" in said
