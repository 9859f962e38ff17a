"""A run that an older version made: it opens, it is whole, and nothing is embedded or paid again.

``tests/support/older_run.tar.xz`` holds eight documents of the demo and their run, as ``all`` of commit f7e5331 made it
with all-MiniLM-L6-v2.
"""

from __future__ import annotations

import shlex
import tarfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import headscope
from headscope.commands import main as headscope_main
from headscope.figures import FIGURES
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


def test_it_leaves_the_house_and_what_it_lacks_is_said(older: Path, tmp_path: Path) -> None:
    cache = older / "cache"
    run = headscope.open_run("older", cache=cache)
    lacking = {}
    for name in FIGURES:
        try:
            assert f"headscope figure older {shlex.quote(name)}" in headscope.caption_of(run.figure(name))
        except headscope.Mistake as mistake:
            lacking[name] = str(mistake)
    assert lacking == {
        "random slices": "The run 'older' has no table 'null_summary' yet. Run 'python -m precompute analyse older "
        "--again'.",
        "whose": "The run 'older' has no table 'parts' yet. Run 'python -m precompute layers older --again'.",
    }
    shown = run.map(stage=3, heads=[11])
    shown._picked = {"area": "3_0.0_9999.0_9999.9999_0.9999", "heads": "11"}  # the whole map
    assert shown.selected == list(range(8))
    common = ["--cache", str(cache)]
    assert headscope_main(["publish", "older", "--html", str(tmp_path / "older.html"), *common]) == 0
    assert "older" in (tmp_path / "older.html").read_text(encoding="utf-8")[:2_000]
    assert (tmp_path / "older.html").stat().st_size > 100_000  # the scripts alone are as large
    assert main(["export", "older", "--vectors", "parquet", "--to", str(tmp_path / "older.parquet"), *common]) == 0
    assert pq.read_metadata(tmp_path / "older.parquet").num_rows == 8
    assert main(["publish", "older", "--to", str(tmp_path / "older.tar.zst"), *common]) == 0
    assert main(["unpack", str(tmp_path / "older.tar.zst"), "--cache", str(tmp_path / "there")]) == 0
    before, after = contents(cache / "older"), contents(tmp_path / "there" / "older")
    assert {path: after.get(path) for path in before if path.startswith("heads/")} == {
        path: content for path, content in before.items() if path.startswith("heads/")
    }
