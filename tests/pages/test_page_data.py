"""What pages read from the cache: how much memory vectors may take, and how often a manifest is read."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core.errors import Mistake
from core.model.shape import ModelShape
from core.runs import manifest as manifests
from core.runs.run import Run
from pages.shared import data
from tests.support.synthetic import write_run

SHAPE = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)


@pytest.mark.parametrize(("dtype", "bytes_each"), [("float16", 2), ("int8", 2), ("float32", 4)])
def test_vectors_are_counted_as_they_are_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str, bytes_each: int
) -> None:
    """int8 is held as float16."""
    vectors = np.random.default_rng(0).normal(size=(10, 32))
    run = write_run(tmp_path, "run", SHAPE, lambda stage, first, count: vectors, [None] * 10, dtype=dtype)
    state = data.RunState(run, run.manifest())
    monkeypatch.setattr(data, "MOST_VECTORS", 10 * 32 * bytes_each - 1)
    with pytest.raises(Mistake, match="would take"):
        data._head_index.__wrapped__(run, state.version, 1)
    monkeypatch.setattr(data, "MOST_VECTORS", 10 * 32 * bytes_each)
    assert data._head_index.__wrapped__(run, state.version, 1).vectors.nbytes == 10 * 32 * bytes_each


def test_a_manifest_is_parsed_once_until_it_changes(
    planted_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two", "torn"):
        shutil.copytree(planted_cache / "planted", tmp_path / name)
    (tmp_path / "torn" / "manifest.json").write_text("{")
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path))
    parsed, real = [], json.loads
    monkeypatch.setattr(manifests.json, "loads", lambda text: parsed.append(1) or real(text))
    first = data.runs()
    assert len(parsed) == 3
    assert data.runs() == first
    assert len(parsed) == 3, "a rerun reads none again"
    assert [(state.run.name, bool(state.problem)) for state in first] == [
        ("one", False),
        ("torn", True),
        ("two", False),
    ]
    run = Run(tmp_path, "two")
    changed = run.manifest()
    run.write_manifest(changed.with_step("embed", changed.steps["embed"]))
    parsed.clear()
    assert data.runs() == first
    assert len(parsed) == 1, "only the one that was written again"
    shutil.rmtree(tmp_path / "one")
    assert [state.run.name for state in data.runs()] == ["torn", "two"]


def test_of_a_run_that_is_being_replaced_no_manifest_is_kept(
    planted_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two renames there is no file to tell versions apart by: what was read then is read again."""
    shutil.copytree(planted_cache / "planted", tmp_path / "one")
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(Run, "manifest_version", lambda run: ())
    old = data.run_state("one").manifest
    assert old is not None
    new = old.with_step("embed", replace(old.steps["embed"], fingerprint="another"))
    Run(tmp_path, "one").write_manifest(new)
    assert data.run_state("one").manifest == new
