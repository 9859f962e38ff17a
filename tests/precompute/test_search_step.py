"""The step 'search': built once, built again when it must be, and checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.model.shape import ModelShape
from core.runs.results import Preview, map_lookup, read_preview
from core.runs.run import Run
from core.runs.verify import verify
from core.search.index import find
from precompute.job.fingerprint import part_digest
from precompute.steps.project.config import ProjectConfig
from precompute.steps.project.step import run as project
from precompute.steps.search.step import SearchConfig
from precompute.steps.search.step import run as search
from tests.support.synthetic import write_run

SHAPE = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
TEXTS = ["a grey heron", "a red kite", "東京の鳥", "a grey kite"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    vectors = np.random.default_rng(0).normal(size=(4, 32))
    return write_run(tmp_path, "run", SHAPE, lambda stage, first, count: vectors + stage, ["b", "k"] * 2, texts=TEXTS)


def found(run: Run, words: str) -> list[int]:
    docs: list[int] = find(run.search_path, words, 4, "rebuild").docs.tolist()
    return docs


def test_it_is_built_once_and_found_through(run: Run) -> None:
    config = SearchConfig(run.cache, "run")
    assert not search(config).skipped
    assert (found(run, "grey"), found(run, "kite grey"), found(run, "京の")) == ([0, 3], [3], [2])
    assert run.manifest().steps["search"].counts["documents"] == 4
    assert search(config).skipped
    assert not search(replace(config, again=True)).skipped
    run.search_path.unlink()
    assert not search(config).skipped, "it has gone"
    assert verify(run, part_digest).problems == ()


def test_an_index_of_other_documents_is_built_again(run: Run) -> None:
    search(SearchConfig(run.cache, "run"))
    manifest = run.manifest()
    run.write_manifest(manifest.with_step("embed", replace(manifest.steps["embed"], fingerprint="other")))
    assert not search(SearchConfig(run.cache, "run")).skipped


def test_verify_tells_of_a_missing_and_of_a_torn_index(run: Run) -> None:
    search(SearchConfig(run.cache, "run"))
    run.search_path.write_bytes(run.search_path.read_bytes()[:5_000])
    assert verify(run, part_digest).problems == (
        "search.sqlite is damaged. Rebuild it with 'python -m precompute search run --again'.",
    )
    run.search_path.unlink()
    assert verify(run, part_digest).problems[0].startswith("search.sqlite is missing.")


def test_the_command_says_what_it_has_made(run: Run, command: Callable[..., Any]) -> None:
    outcome = command("search", "run", "--cache", run.cache)
    assert outcome.status == 0, outcome.err
    assert "run: 4 documents can be searched, index of 0." in outcome.err
    assert "Nothing to do" in command("search", "run", "--cache", run.cache).err


def test_small_maps_have_points_of_their_own(run: Run) -> None:
    project(ProjectConfig(run.cache, "run", iterations=30, perplexity=2))
    shown = read_preview(run, 2_500)
    assert shown.docs.tolist() == [0, 1, 2, 3]
    for stage in (1, 2, 3):
        rows = map_lookup(run, stage).rows(np.arange(16))
        np.testing.assert_array_equal(shown.places[stage][..., 0].reshape(-1), rows["x"].to_numpy())
    assert verify(run, part_digest).problems == ()
    run.preview_path.unlink()  # as in a run that was made before there were any
    older = read_preview(run, 8)
    assert isinstance(older, Preview)
    assert len(older.docs) == 2
    np.testing.assert_array_equal(older.places[2], shown.places[2][older.docs])
