"""A run that an older version made: it opens, it is whole, and nothing is embedded or paid again.

``tests/support/older_run.tar.xz`` holds eight documents of the demo and their run, as ``all`` of commit f7e5331 made it
with all-MiniLM-L6-v2.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from precompute.cli import main
from tests.support import ROOT
from tests.support.apps import page_at

pytestmark = pytest.mark.slow
AGAIN = ("analyse", "retrieve", "layers", "aspects")
"""Steps that compute more than they did then, or that are new, from the same vectors and labels."""
UNTOUCHED = (
    "documents.parquet",
    "heads/",
    "labels/",
    "map/",
    "search.sqlite",
    "retrieval/",
    "analysis/attention",
    "analysis/maps",
)


@pytest.fixture
def older(tmp_path: Path) -> Path:
    with tarfile.open(ROOT / "tests" / "support" / "older_run.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_only_figures_are_made_anew_and_no_vector_label_or_map(older: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache = older / "cache"
    before = contents(cache / "older")
    assert main(["all", "older", "--source", str(older / "corpus.jsonl"), "--cache", str(cache)]) == 0
    said = "".join(capsys.readouterr())
    assert said.count("Nothing to do.") == 9 - len(AGAIN), said
    assert "Stage 4 (each head's share) is not stored: 'python -m precompute all older --stages 1 2 3 4" in said
    after = contents(cache / "older")
    kept = {path: content for path, content in before.items() if path.startswith(UNTOUCHED)}
    assert len(kept) > 10
    assert {path: after.get(path) for path in kept} == kept
    assert main(["verify", "older", "--cache", str(cache)]) == 0
    assert main(["all", "older", "--source", str(older / "corpus.jsonl"), "--cache", str(cache)]) == 0
    assert "".join(capsys.readouterr()).count("Nothing to do.") == 9


def test_it_is_whole_and_gets_checksums_when_asked(older: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache = ["--cache", str(older / "cache")]
    assert main(["verify", "older", *cache]) == 0
    assert "without checksums" in capsys.readouterr().err
    assert main(["verify", "older", "--add-checksums", *cache]) == 0
    assert main(["verify", "older", *cache]) == 0
    assert "without checksums" not in capsys.readouterr().err


@pytest.mark.parametrize("page", sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("pages/*/*/page.py")))
def test_every_page_shows_it(older: Path, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page_at(older / "cache", page, monkeypatch)
    assert app.title
    assert not app.error
