"""The SHA-256 of every file of a run: written by the step that made it, compared by ``verify``."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from core.runs.checksums import begun, checksums
from core.runs.manifest import is_unchanged
from core.runs.run import Run
from core.runs.verify import verify
from precompute.job.fingerprint import part_digest
from precompute.job.step import StepRecord
from precompute.steps.analyse import step as analyse
from precompute.steps.label import step as label
from precompute.steps.label.config import LabelConfig
from precompute.steps.layers import step as layers
from precompute.steps.project import step as project
from precompute.steps.project.config import ProjectConfig
from precompute.steps.retrieve import step as retrieve
from precompute.steps.search import step as search
from tests.support.hostile import SHAPE, _attention, _layers
from tests.support.synthetic import PlantedLayers, PlantedTopics, write_run

FLIPS = 40


def problems(run: Run) -> tuple[str, ...]:
    return verify(run, part_digest).problems


def without_checksums(run: Run) -> None:
    """As a version wrote it that knew none."""
    path = run.folder / "manifest.json"
    found = json.loads(path.read_text())
    del found["files"], found["sha256"]
    path.write_text(json.dumps(found, indent=1) + "\n")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with files of every kind; the vectors and documents get their checksums with the first step, 'label'."""
    cache, labels = tmp_path_factory.mktemp("finished"), [f"topic {doc % 3}" for doc in range(42)]
    chance = np.random.default_rng(0)
    vectors = chance.normal(size=(3, 32))[np.arange(42) % 3] + 2 * chance.normal(size=(42, 32))
    run = write_run(cache, "run", SHAPE, lambda stage, first, size: vectors[first : first + size] * stage, labels, 20)
    label.run(LabelConfig(cache, "run"))
    analyse.run(analyse.AnalyseConfig(cache, "run", model=PlantedTopics(SHAPE, {})))
    project.run(ProjectConfig(cache, "run", iterations=30))
    layers.run(layers.LayersConfig(cache, "run", model=PlantedLayers(_layers)))
    retrieve.run(retrieve.RetrieveConfig(cache, "run", limit=12))
    _attention(run)
    search.run(search.SearchConfig(cache, "run"))
    return run


@pytest.fixture
def run(finished: Run, tmp_path: Path) -> Run:
    shutil.copytree(finished.folder, tmp_path / "run")
    return Run(tmp_path, "run")


@pytest.mark.slow
def test_every_file_has_its_sha256_in_the_manifest(finished: Run) -> None:
    files = {path.relative_to(finished.folder).as_posix(): path for path in finished.folder.rglob("*.*")}
    manifest = files.pop("manifest.json")
    found = json.loads(manifest.read_text())
    assert found["files"] == {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    assert {Path(name).parts[0] for name in found["files"]} >= {
        "analysis", "documents.parquet", "heads", "labels", "map", "search.sqlite", "similarity", "topics.parquet",
    }  # fmt: skip
    assert verify(finished, part_digest).has_checksums


@pytest.mark.slow
def test_forty_flipped_bits_are_seen(run: Run) -> None:
    assert problems(run) == ()
    chance = random.Random(17)
    files = sorted(path for path in run.folder.rglob("*") if path.is_file())
    chance.shuffle(files)
    chosen = [run.folder / "manifest.json", *(files * FLIPS)[: FLIPS - 1]]
    missed = []
    for path in chosen:
        kept = path.read_bytes()
        flipped = bytearray(kept)
        flipped[chance.randrange(len(kept))] ^= 1 << chance.randrange(8)
        path.write_bytes(flipped)
        found = problems(run)
        if not any(path.name in problem or path.stem in problem for problem in found):
            missed.append(path.relative_to(run.folder))
        path.write_bytes(kept)
    assert missed == []
    assert problems(run) == ()


def test_every_bit_of_the_manifest_counts(run: Run) -> None:
    path = run.folder / "manifest.json"
    whole = path.read_bytes()
    assert is_unchanged(whole)
    for at in [*range(0, len(whole), 97), *range(len(whole) - 90, len(whole))]:
        for bit in range(8):
            flipped = bytearray(whole)
            flipped[at] ^= 1 << bit
            try:
                seen = not is_unchanged(bytes(flipped))
            except ValueError:  # no JSON any more, which is refused wherever it is read
                seen = True
            if not seen:
                path.write_bytes(flipped)
                assert problems(run), (at, bit)


def test_the_sentence_names_the_file_and_what_rebuilds_it(run: Run) -> None:
    for name, remedy in (
        ("search.sqlite", "search run --again"),
        ("labels/column.parquet", "label run --labels column --again"),
        ("analysis/maps.parquet", "project run --again"),
        ("analysis/attention.parquet", "attention run --again"),
        ("heads/stage=1/part-00000.parquet", "embed run --source … --replace"),
    ):
        manifest = run.manifest()
        run.write_manifest(replace(manifest, files={**manifest.files, name: "0" * 64}))
        assert problems(run) == (
            f"{name} has changed since it was written: its SHA-256 differs from the recorded one. "
            f"Rebuild it with 'python -m precompute {remedy}'.",
        )
        run.write_manifest(manifest)
    (run.folder / "map" / "preview.parquet").unlink()
    (problem,) = problems(run)
    assert problem.startswith("map/preview.parquet is missing.")


def test_damage_of_another_step_s_file_is_not_recorded_as_right(run: Run) -> None:
    path = run.part_path(1, 0)
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    search.run(search.SearchConfig(run.cache, "run", again=True))
    assert any("part-00000.parquet" in problem for problem in problems(run))


def test_while_a_step_is_at_work_its_files_have_no_checksum() -> None:
    files = dict.fromkeys(
        ("documents.parquet", "labels/column.parquet", "analysis/maps.parquet", "analysis/probe.parquet"), "0"
    )
    assert sorted(begun(files, "label")) == ["analysis/maps.parquet", "analysis/probe.parquet"]
    assert sorted(begun(files, "project")) == ["analysis/probe.parquet", "documents.parquet", "labels/column.parquet"]
    assert begun(files, "a step of another version") == {}


def test_a_killed_step_leaves_nothing_that_verify_reports(run: Run) -> None:
    StepRecord(run, "label", run.manifest(), "inputs", {"source": "column"})
    documents = run.documents_path.read_bytes()
    pq.write_table(pq.read_table(run.documents_path), run.documents_path)
    assert run.documents_path.read_bytes() != documents
    assert problems(run) == ()


def test_what_is_staged_or_half_written_has_no_checksum(tmp_path: Path) -> None:
    run = write_run(tmp_path, "run", SHAPE, lambda stage, first, count: np.ones((count, 32)), ["a"] * 4)
    before = set(checksums(run, {}))
    for name in (
        "staging/read.json",
        "analysis/staging/1/x.parquet",
        "topics.parquet.writing7-ab",
        ".lock",
        "files.json",
    ):
        (run.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (run.folder / name).write_bytes(b"x")
    assert set(checksums(run, {})) == before == {
        "documents.parquet", *(f"heads/stage={stage}/part-00000.parquet" for stage in (1, 2, 3))
    }  # fmt: skip


def test_a_run_of_an_older_version_opens_and_gets_checksums_when_asked(run: Run, command: Any) -> None:
    without_checksums(run)
    assert run.manifest().files == {}
    said = command("verify", "run", "--cache", run.cache)
    assert said.status == 0
    assert said.out.startswith("run: no problems found (")
    assert "Add them with 'python -m precompute verify run --add-checksums'." in said.err
    assert command("verify", "run", "--cache", run.cache, "--add-checksums").out.endswith("run: checksums added.\n")
    said = command("verify", "run", "--cache", run.cache)
    assert (said.status, said.err) == (0, "")
    assert run.manifest().files == checksums(run, {})


@pytest.mark.parametrize(
    "files", [[], {"a": 1}, {"a": "0" * 63}, {"../a": "0" * 64}, {"/etc/passwd": "0" * 64}, {"": "0" * 64}]
)
def test_checksums_that_are_none_are_refused(run: Run, files: Any) -> None:
    path = run.folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"files": files}))
    (problem,) = problems(run)
    assert "'files' must be a SHA-256 for each path" in problem
