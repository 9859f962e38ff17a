"""The step ``project`` on planted vectors: its files, sampled, turned, interrupted and gone on with, refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from core.analysis.stratify import stratified
from core.errors import Mistake
from core.maps.place import Placer
from core.maps.tsne import Fitted, MapConfig, fit
from core.model.shape import ModelShape
from core.runs.results import read_analysis, read_fitted_map, read_map
from core.runs.run import Run
from core.runs.schema import MAP
from precompute.job.progress import Report
from precompute.steps.project import map as project_map
from precompute.steps.project import step as project
from precompute.steps.project.config import ProjectConfig
from tests.support.synthetic import write_run

Command = Callable[..., Any]
Vectors = dict[int, np.ndarray]

HEADS, DIM = 4, 8
DOCS = 40
TOPICS: tuple[str | None, ...] = ("loom", "violin", None, "loom")
OPTIONS = ("--iterations", 60, "--threads", 1)


def shape_of(heads: int, dim: int = DIM) -> ModelShape:
    return ModelShape(layers=1, heads=heads, kv_heads=heads, hidden=heads * dim, head_dim=dim)


def planted(docs: int = DOCS, heads: int = HEADS) -> Vectors:
    """``[stage][doc, width]``: each head has a place of its own; later stages are stage 1 mirrored, or shuffled."""
    chosen = np.random.default_rng(0)
    vectors = 5 * chosen.normal(size=(heads, DIM)) + chosen.normal(size=(docs, heads, DIM))
    stages = {1: vectors, 2: -vectors, 3: vectors[:, :, ::-1]}
    return {stage: rows.reshape(docs, -1).astype(np.float16) for stage, rows in stages.items()}


def plant(
    cache: Path,
    vectors: Vectors | None = None,
    labels: Sequence[str | None] | None = None,
    heads: int = HEADS,
    part_size: int = 15,
) -> Run:
    """A run 'run' with these vectors, in parts that do not come out even."""
    vectors = planted() if vectors is None else vectors
    docs = len(vectors[1])
    return write_run(
        cache,
        "run",
        shape_of(heads),
        lambda stage, first, count: vectors[stage][first : first + count],
        labels or [TOPICS[doc % len(TOPICS)] for doc in range(docs)],
        part_size,
        tuple(vectors),
    )


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def config(cache: Path) -> ProjectConfig:
    """Three maps of 40 documents × 4 heads, of which nothing is there yet."""
    plant(cache)
    return ProjectConfig(cache, "run", iterations=60, threads=1)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache in which ``config`` has been done by the real method, once."""
    cache = tmp_path_factory.mktemp("finished")
    plant(cache)
    project.run(ProjectConfig(cache, "run", iterations=60, threads=1))
    return cache


@pytest.fixture
def done(cache: Path, finished: Path) -> Run:
    shutil.copytree(finished, cache)
    return Run(cache, "run")


class Fits:
    """Stands in for ``fit`` and keeps what it was asked; without ``places``, the real one does the work.

    ``places(number, points)`` gives ``[point, 2]`` of the map of that number, counted from ``first``; its divergence is
    the number. At ``stop_at`` it breaks off.
    """

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        places: Callable[[int, int], np.ndarray] | None = None,
        stop_at: int | None = None,
        first: int = 0,
    ) -> None:
        self.vectors: list[np.ndarray] = []
        self.configs: list[MapConfig] = []
        self._places, self._stop_at, self._first = places, stop_at, first
        monkeypatch.setattr(project_map, "fit", self)

    def __call__(self, method: str, vectors: np.ndarray, config: MapConfig, on_iteration: Any) -> Fitted:
        number = self._first + len(self.vectors)
        if number == self._stop_at:
            raise KeyboardInterrupt
        self.vectors.append(vectors)
        self.configs.append(config)
        if self._places is None:
            return fit(method, vectors, config, on_iteration)
        return Fitted(self._places(number, len(vectors)).astype(np.float32), float(number))


def somewhere(number: int, points: int) -> np.ndarray:
    return np.random.default_rng([number, points]).normal(size=(points, 2))


def results(run: Run) -> dict[str, bytes]:
    """All that the step has written, the manifest apart, which has the time in it."""
    paths = [*run.folder.glob("map/**/*"), run.analysis_path("maps")]
    return {str(path.relative_to(run.folder)): path.read_bytes() for path in sorted(paths) if path.is_file()}


def places(run: Run, stage: int, by_head: bool = False) -> np.ndarray:
    """``[doc, head, 2]``."""
    table = read_map(run, stage, by_head)
    return np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=1).reshape(-1, run.manifest().shape.heads, 2)


def mistake(config: ProjectConfig) -> str:
    with pytest.raises(Mistake) as caught:
        project.run(config)
    return str(caught.value)


# The files


def test_the_files_are_those_that_are_promised(done: Run) -> None:
    maps = (f"map/stage={stage}.parquet" for stage in (1, 2, 3))
    assert list(results(done)) == ["analysis/maps.parquet", "map/preview.parquet", *maps]
    assert not list(done.folder.rglob("*.writing*"))
    assert not (done.folder / "map" / "staging").exists()


def test_a_row_a_document_and_head(done: Run) -> None:
    for stage in (1, 2, 3):
        table = read_map(done, stage)
        assert table.schema.remove_metadata() == MAP
        assert table["doc"].to_pylist() == [doc for doc in range(DOCS) for _ in range(HEADS)]
        assert table["head"].to_pylist() == [1, 2, 3, 4] * DOCS
        assert table["fitted"].to_pylist() == [True] * (DOCS * HEADS)
        assert np.isfinite(places(done, stage)).all()


def test_activations_are_the_norms_of_the_stored_vectors(done: Run) -> None:
    for stage, rows in planted().items():
        vectors = rows.astype(np.float64).reshape(DOCS * HEADS, DIM)
        expected = [sum(value**2 for value in vector) ** 0.5 for vector in vectors]
        assert read_map(done, stage)["activation"].to_pylist() == pytest.approx(expected, rel=1e-5)


def test_planted_heads_are_apart_on_every_map(done: Run) -> None:
    heads = np.tile(np.arange(HEADS), DOCS)
    for stage in (1, 2, 3):
        points = places(done, stage).reshape(-1, 2)
        apart = np.linalg.norm(points[:, None] - points, axis=2)
        np.fill_diagonal(apart, np.inf)
        assert (heads[apart.argmin(axis=1)] == heads).mean() > 0.95


def test_what_the_manifest_says(done: Run) -> None:
    step = done.manifest().steps["project"]
    assert step.state == "done"
    assert step.counts == {"points": 160, "fitted": 160, "placed": 0}
    assert step.options == {"iterations": 60}


def test_what_is_said_of_each_map(done: Run) -> None:
    table = read_analysis(done, "maps").to_pydict()
    assert table["stage"] == [1, 2, 3]
    assert table["head"] == [0, 0, 0]
    assert table["points"] == table["fitted"] == [160] * 3
    assert table["method"] == ["opentsne"] * 3
    assert table["iterations"] == [60] * 3
    assert table["perplexity"] == [30] * 3
    assert table["kept_by_chance"] == pytest.approx([10 / 159] * 3)
    assert all(0.2 < kept <= 1 for kept in table["kept"])
    assert all(0 < kl < 5 for kl in table["kl"])


def test_the_run_is_whole_afterwards(done: Run, command: Command) -> None:
    outcome = command("verify", "run", "--cache", done.cache)
    assert outcome.status == 0, outcome.out


def test_a_run_of_one_stage(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = plant(cache, {1: planted()[1]})
    Fits(monkeypatch, somewhere)
    project.run(ProjectConfig(cache, "run"))
    assert list(results(run)) == ["analysis/maps.parquet", "map/preview.parquet", "map/stage=1.parquet"]
    assert read_analysis(run, "maps")["follows"].to_pylist() == [None]


def test_one_document_of_four_heads_is_the_smallest_map(cache: Path) -> None:
    run = plant(cache, planted(docs=1))
    project.run(ProjectConfig(cache, "run", iterations=30, threads=1))
    assert read_analysis(run, "maps")["perplexity"].to_pylist() == [1, 1, 1]
    assert np.isfinite(places(run, 3)).all()


# Turned onto each other


def rotation(degrees: float) -> np.ndarray:
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.array([[c, s], [-s, c]])


def test_maps_are_turned_onto_the_stage_before(config: ProjectConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Turned by 60° from stage to stage and shifted: they followed by cos 60° before, and wholly afterwards."""
    base = somewhere(0, 160)
    Fits(monkeypatch, lambda number, _: 5 * base @ rotation(60 * number) + [3 * number, -7])
    project.run(config)
    run = Run(config.cache, "run")
    expected = (5 * (base - base.mean(axis=0))).reshape(DOCS, HEADS, 2)
    for stage in (1, 2, 3):
        assert places(run, stage) == pytest.approx(expected, abs=1e-4)
    table = read_analysis(run, "maps").to_pydict()
    assert table["follows_before"] == [None, pytest.approx(0.5), pytest.approx(np.cos(np.radians(120)))]
    assert table["follows"] == [None, pytest.approx(1), pytest.approx(1)]
    assert table["kl"] == [0, 1, 2]


def test_maps_of_mirrored_vectors_follow_each_other(done: Run) -> None:
    """Stages 2 and 3 have the distances of stage 1, so their maps differ by little more than a turn."""
    table = read_analysis(done, "maps").to_pydict()
    assert all(after >= before for before, after in zip(table["follows_before"][1:], table["follows"][1:], strict=True))
    assert all(follows > 0.9 for follows in table["follows"][1:])
    first = places(done, 1)
    for stage in (2, 3):
        moved = np.linalg.norm(places(done, stage) - first, axis=2)
        assert np.median(moved) < 0.2 * np.ptp(first)


# Beyond the limit


LARGE = [*["loom"] * 30, *["violin"] * 20, *[None] * 10]
"""Of 20 documents, 10, 6.67 and 3.33 are due to each."""


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """80 of 240 points fitted: 20 of 60 documents."""
    run = plant(tmp_path_factory.mktemp("sampled"), planted(docs=60), LARGE)
    project.run(ProjectConfig(run.cache, "run", iterations=150, limit=83, threads=1))
    return run


def test_a_sample_by_topic_is_fitted_and_the_rest_placed(sampled: Run) -> None:
    labels = np.array([{"loom": 0, "violin": 1, None: -1}[label] for label in LARGE])
    chosen = stratified(labels, 20)
    for stage in (1, 2, 3):
        flags = read_map(sampled, stage)["fitted"].to_numpy().reshape(60, HEADS)
        assert (flags == flags[:, :1]).all(), "a document's heads are fitted together"
        assert np.flatnonzero(flags[:, 0]).tolist() == chosen.tolist(), "the same at every stage"
    shares = [(labels[chosen] == topic).sum() for topic in (0, 1, -1)]
    assert shares == [10, 7, 3]


def test_the_counts_say_how_many_were_placed(sampled: Run) -> None:
    assert sampled.manifest().steps["project"].counts == {"points": 240, "fitted": 80, "placed": 160}
    table = read_analysis(sampled, "maps").to_pydict()
    assert table["points"] == [240] * 3
    assert table["fitted"] == [80] * 3
    assert table["perplexity"] == pytest.approx([79 / 3] * 3)
    assert table["kept_by_chance"] == pytest.approx([10 / 79] * 3)


def test_placed_points_lie_with_their_head(sampled: Run) -> None:
    heads = np.tile(np.arange(HEADS), 60)
    for stage in (1, 2, 3):
        was_fitted = read_map(sampled, stage)["fitted"].to_numpy()
        points = places(sampled, stage).reshape(-1, 2)
        apart = np.linalg.norm(points[~was_fitted][:, None] - points[was_fitted], axis=2)
        assert (heads[was_fitted][apart.argmin(axis=1)] == heads[~was_fitted]).mean() > 0.95
        assert np.median(apart.min(axis=1)) < 0.1 * np.ptp(points)


def test_points_that_were_fitted_are_not_placed_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = plant(cache, planted(docs=60), LARGE)
    Fits(monkeypatch, somewhere)
    project.run(ProjectConfig(cache, "run", limit=80, threads=1))
    was_fitted = read_map(run, 1)["fitted"].to_numpy()
    points = places(run, 1).reshape(-1, 2)
    # Stage 1 is only centred, by the mean of all its points.
    shift = points[was_fitted] - somewhere(0, 80)
    assert shift == pytest.approx(np.tile(shift[:1], (80, 1)), abs=1e-5)


def test_what_is_fitted_are_the_chosen_documents_vectors(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = planted(docs=60)
    run = plant(cache, vectors, LARGE)
    fits = Fits(monkeypatch, somewhere)
    project.run(ProjectConfig(cache, "run", limit=80, threads=1))
    chosen = np.flatnonzero(read_map(run, 1)["fitted"].to_numpy().reshape(60, HEADS)[:, 0])
    for stage in (1, 2, 3):
        expected = vectors[stage][chosen].reshape(80, DIM).astype(np.float32)
        assert np.array_equal(fits.vectors[stage - 1], expected)


def test_the_summary_says_that_it_is_a_sample(cache: Path, command: Command) -> None:
    plant(cache)
    outcome = command("project", "run", "--cache", cache, *OPTIONS, "--point-limit", 80, "--progress", "quiet")
    assert outcome.status == 0
    assert "maps of 160 points at 3 stages" in outcome.err
    assert "80 were fitted" in outcome.err


def test_other_labels_are_another_sample_but_only_beyond_the_limit(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Fits(monkeypatch, somewhere)
    for limit, skipped in ((160, True), (80, False)):
        config = ProjectConfig(cache, "run", limit=limit, threads=1)
        run = plant(cache)
        project.run(config)
        table = run.documents()
        labels = ["violin"] * DOCS
        column = table.column_names.index("topic")
        pq.write_table(table.set_column(column, table.schema.field("topic"), [labels]), run.documents_path)
        assert project.run(config).skipped == skipped


# A map a head


@pytest.fixture
def by_head(config: ProjectConfig, monkeypatch: pytest.MonkeyPatch) -> Fits:
    fits = Fits(monkeypatch, somewhere)
    project.run(replace(config, by_head=True))
    return fits


def test_a_map_for_each_head(config: ProjectConfig, by_head: Fits) -> None:
    run = Run(config.cache, "run")
    assert [f"map/by-head/stage={stage}.parquet" in results(run) for stage in (1, 2, 3)] == [True] * 3
    # The maps of all heads come first, then stage 1 head by head.
    first = somewhere(3, DOCS)
    table = read_map(run, 1, by_head=True)
    assert table["doc"].to_pylist() == read_map(run, 1)["doc"].to_pylist()
    assert table["head"].to_pylist() == [1, 2, 3, 4] * DOCS
    assert table["activation"].equals(read_map(run, 1)["activation"])
    assert places(run, 1, by_head=True)[:, 0] == pytest.approx(first - first.mean(axis=0), abs=1e-5)
    vectors = planted()
    for number, (stage, head) in enumerate((stage, head) for stage in (1, 2, 3) for head in range(HEADS)):
        expected = vectors[stage].reshape(DOCS, HEADS, DIM)[:, head].astype(np.float32)
        assert np.array_equal(by_head.vectors[3 + number], expected)


def test_what_is_said_of_the_heads_maps(config: ProjectConfig, by_head: Fits) -> None:
    table = read_analysis(Run(config.cache, "run"), "maps").to_pydict()
    assert list(zip(table["stage"], table["head"], strict=True)) == [
        *((stage, 0) for stage in (1, 2, 3)),
        *((stage, head) for stage in (1, 2, 3) for head in (1, 2, 3, 4)),
    ]
    assert table["points"] == [160] * 3 + [DOCS] * 12
    assert table["perplexity"] == pytest.approx([30] * 3 + [13] * 12)
    assert [follows is None for follows in table["follows"]] == [True, False, False, *[True] * 4, *[False] * 8]


def test_without_by_head_those_of_before_are_removed(config: ProjectConfig, by_head: Fits) -> None:
    assert not project.run(config).skipped
    run = Run(config.cache, "run")
    assert not run.map_path(1, by_head=True).parent.exists()
    assert set(read_analysis(run, "maps")["head"].to_pylist()) == {0}


def test_a_head_s_map_has_the_whole_limit_to_itself(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = plant(cache)
    Fits(monkeypatch, somewhere)
    project.run(ProjectConfig(cache, "run", limit=20, by_head=True, threads=1))
    assert read_map(run, 1)["fitted"].to_numpy().reshape(DOCS, HEADS)[:, 0].sum() == 5
    assert read_map(run, 1, by_head=True)["fitted"].to_numpy().reshape(DOCS, HEADS)[:, 0].sum() == 20
    assert read_analysis(run, "maps")["fitted"].to_pylist() == [20] * 15


def test_by_head_as_a_command(cache: Path, command: Command) -> None:
    run = plant(cache, {1: planted()[1]})
    assert command("project", "run", "--cache", cache, *OPTIONS, "--by-head", "--quiet").status == 0
    assert np.isfinite(places(run, 1, by_head=True)).all()


# Options


def test_cosine_takes_the_lengths_away_but_not_from_the_activation(
    config: ProjectConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = Fits(monkeypatch, somewhere)
    project.run(replace(config, metric="cosine"))
    assert np.linalg.norm(fits.vectors[0], axis=1) == pytest.approx(np.ones(160), abs=1e-5)
    norms = np.linalg.norm(planted()[1].astype(np.float32).reshape(160, DIM), axis=1)
    assert read_map(Run(config.cache, "run"), 1)["activation"].to_numpy() == pytest.approx(norms, rel=1e-5)


def test_options_of_the_command_line(cache: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    run = plant(cache)
    fits = Fits(monkeypatch, somewhere)
    options = ("--perplexity", 7.5, "--iterations", 90, "--analysis-seed", 5, "--threads", 2, "--point-limit", 160)
    assert command("project", "run", "--cache", cache, *options, "--quiet").status == 0
    assert fits.configs == [MapConfig(7.5, 90, 5, 2)] * 3
    assert run.manifest().steps["project"].options == {"perplexity": 7.5, "iterations": 90, "limit": 160, "seed": 5}


def test_more_threads_than_the_machine_has(cache: Path, command: Command) -> None:
    """Either as many as there are, or refused in a sentence: not a traceback."""
    plant(cache, {1: planted()[1]})
    outcome = command("project", "run", "--cache", cache, "--iterations", 30, "--threads", 1_000, "--progress", "quiet")
    assert outcome.status in (0, 2)
    assert outcome.err.count("\n") == 1


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "method": ({"method": "umap"}, "There is no map method 'umap'. Choose one of"),
    "metric": ({"metric": "manhattan"}, "There is no metric 'manhattan'. Choose one of"),
    "iterations": ({"iterations": 29}, "--iterations 29 is too few"),
    "limit": ({"limit": 3}, "--point-limit must be at least 4, not 3"),
    "threads": ({"threads": 0}, "--threads must be at least 1, not 0"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_be_asked_for(cache: Path, wrong: str) -> None:
    given, sentence = WRONG[wrong]
    with pytest.raises(Mistake, match=re.escape(sentence)):
        ProjectConfig(cache, "run", **given)


# Again


def test_one_thread_and_one_seed_give_the_same_bytes(done: Run, tmp_path: Path) -> None:
    other = plant(tmp_path / "other")
    project.run(ProjectConfig(other.cache, "run", iterations=60, threads=1))
    assert results(other) == results(done)


def test_a_sample_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    found = []
    for name, seed in (("one", 0), ("two", 0), ("three", 1)):
        run = plant(tmp_path / name, {1: planted()[1]})
        project.run(ProjectConfig(run.cache, "run", iterations=60, limit=80, seed=seed, threads=1))
        found.append(results(run))
    assert found[0] == found[1]
    assert found[0]["map/stage=1.parquet"] != found[2]["map/stage=1.parquet"]


def test_nothing_is_done_twice(config: ProjectConfig, monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    fits = Fits(monkeypatch, somewhere)
    assert not project.run(config).skipped
    assert len(fits.vectors) == 3
    assert project.run(config).skipped
    assert project.run(replace(config, threads=2)).skipped, "threads do not decide the map"
    outcome = command("project", "run", "--cache", config.cache, *OPTIONS)
    assert (outcome.status, outcome.err) == (0, "run: project is up to date. Nothing to do.\n")
    assert len(fits.vectors) == 3
    assert command("project", "run", "--cache", config.cache, *OPTIONS, "--again", "--quiet").status == 0
    assert len(fits.vectors) == 6
    assert not project.run(replace(config, perplexity=10.0)).skipped
    assert len(fits.vectors) == 9
    assert not project.run(config).skipped, "what is there is of the other perplexity"


def test_vectors_made_anew_are_projected_anew(config: ProjectConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    Fits(monkeypatch, somewhere)
    project.run(config)
    run = Run(config.cache, "run")
    manifest = run.manifest()
    run.write_manifest(manifest.with_step("embed", replace(manifest.steps["embed"], fingerprint="another")))
    assert not project.run(config).skipped


# Interrupted


def interrupt(monkeypatch: pytest.MonkeyPatch, config: ProjectConfig, at: int) -> None:
    """Breaks off when map number ``at``, from 0, is to be fitted."""
    with monkeypatch.context() as patch:
        Fits(patch, stop_at=at)
        with pytest.raises(KeyboardInterrupt):
            project.run(config)


@pytest.mark.parametrize("at", [1, 2])
def test_interrupted_it_goes_on_and_ends_as_if_it_never_had_been(
    config: ProjectConfig, finished: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    interrupt(monkeypatch, config, at)
    run = Run(config.cache, "run")
    assert run.manifest().steps["project"].state == "running"
    half = run.map_path(3).with_name("stage=3.parquet.writing99")
    half.write_bytes(b"PAR1")  # what it was in the middle of writing
    fits = Fits(monkeypatch)
    assert not project.run(config).skipped
    assert len(fits.vectors) == 3 - at
    assert results(run) == results(Run(finished, "run"))
    assert not list(run.folder.rglob("*.writing*"))
    assert not (run.folder / "map" / "staging").exists()
    assert run.manifest().steps["project"].counts == {"points": 160, "fitted": 160, "placed": 0}


def test_interrupted_between_the_heads(config: ProjectConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(config, by_head=True)
    with monkeypatch.context() as patch:
        Fits(patch, somewhere, stop_at=9)
        with pytest.raises(KeyboardInterrupt):
            project.run(config)
    fits = Fits(monkeypatch, somewhere, first=9)
    project.run(config)
    assert len(fits.vectors) == 15 - 9
    resumed = results(Run(config.cache, "run"))
    Fits(monkeypatch, somewhere)
    project.run(replace(config, again=True))
    assert resumed == results(Run(config.cache, "run"))


@pytest.mark.parametrize("change", [{"perplexity": 10.0}, {"again": True}])
def test_maps_kept_from_before_are_not_mixed_with_others(
    config: ProjectConfig, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    interrupt(monkeypatch, config, at=2)
    fits = Fits(monkeypatch, somewhere)
    project.run(replace(config, **change))
    assert len(fits.vectors) == 3


def test_stopped_by_hand_the_command_says_how_to_go_on(
    config: ProjectConfig, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    Fits(monkeypatch, stop_at=1)
    outcome = command("project", "run", "--cache", config.cache, *OPTIONS, "--progress", "quiet")
    assert outcome.status == 1
    assert outcome.err.splitlines() == [
        "",
        "headscope: stopped. Start the same command again to continue where it stopped.",
    ]


# Refused


@pytest.mark.parametrize(("value", "stage", "doc", "head"), [(np.nan, 1, 0, 1), (np.inf, 2, 17, 3), (np.nan, 3, 39, 4)])
def test_a_number_that_is_none_is_refused_with_its_place(
    cache: Path, command: Command, value: float, stage: int, doc: int, head: int
) -> None:
    vectors = planted()
    vectors[stage][doc, (head - 1) * DIM + 2] = value
    run = plant(cache, vectors)
    outcome = command("project", "run", "--cache", cache, "--iterations", 30, "--threads", 1, "--progress", "quiet")
    assert outcome.status == 2
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    assert outcome.err.startswith(f"headscope: Head {head} of document {doc} has a number that is not finite")
    assert f"at stage {stage}" in outcome.err
    assert not run.manifest().is_done("project")
    assert not run.map_path(stage).exists()


def test_a_run_that_is_not_embedded_yet(config: ProjectConfig, command: Command) -> None:
    run = Run(config.cache, "run")
    manifest = run.manifest()
    run.write_manifest(manifest.with_step("embed", replace(manifest.steps["embed"], state="running")))
    outcome = command("project", "run", "--cache", config.cache)
    assert outcome.status == 2
    assert outcome.err.startswith("headscope: The run 'run' is not completely embedded yet.")
    assert outcome.err.count("\n") == 1


def test_a_run_that_does_not_exist(config: ProjectConfig, command: Command) -> None:
    outcome = command("project", "other", "--cache", config.cache)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == "headscope: There is no run 'other' in the cache. There are: run.\n"
    assert not (config.cache / "other").exists()


def test_one_document_of_two_heads_is_too_little(cache: Path, command: Command) -> None:
    run = plant(cache, planted(docs=1, heads=2), heads=2)
    outcome = command("project", "run", "--cache", cache)
    assert outcome.status == 2
    assert outcome.err == "headscope: A map needs at least 4 points; this run has 2. Embed more documents.\n"
    assert "project" not in run.manifest().steps


TOO_LARGE: dict[str, tuple[tuple[object, ...], int]] = {
    "all points": (("--perplexity", 53.1), 160),  # 159 / 3 = 53
    "the sample": (("--perplexity", 27, "--point-limit", 80), 80),
    "what the limit leaves after whole documents": (("--perplexity", 27, "--point-limit", 83), 80),
    "a head's points": (("--perplexity", 14, "--by-head"), 40),
    "a sample of fewer points than a head has": (("--perplexity", 6.5, "--by-head", "--point-limit", 23), 20),
}


@pytest.mark.parametrize("case", TOO_LARGE)
def test_a_perplexity_too_large_is_refused_before_anything_is_begun(cache: Path, command: Command, case: str) -> None:
    options, points = TOO_LARGE[case]
    run = plant(cache)
    outcome = command("project", "run", "--cache", cache, "--iterations", 30, "--threads", 1, *options, "--quiet")
    assert outcome.status == 2
    assert outcome.err.count("\n") == 1
    assert f"does not fit {points} points" in outcome.err
    assert "project" not in run.manifest().steps


def test_a_limit_that_leaves_fewer_than_four_points(cache: Path, command: Command) -> None:
    """One document of three heads; the remedy is a larger limit, not more documents."""
    run = plant(cache, planted(heads=3), heads=3)
    outcome = command("project", "run", "--cache", cache, "--point-limit", 5)
    assert outcome.status == 2
    assert outcome.err.count("\n") == 1
    assert "--point-limit" in outcome.err
    assert "project" not in run.manifest().steps


def test_what_is_refused_leaves_the_maps_of_before(done: Run, command: Command) -> None:
    before = results(done)
    assert command("project", "run", "--cache", done.cache, "--perplexity", 1_000).status == 2
    assert results(done) == before
    assert project.run(ProjectConfig(done.cache, "run", iterations=60, threads=1)).skipped


def test_cuml_that_is_not_here_is_told(
    config: ProjectConfig, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cuml.manifold", None)
    outcome = command("project", "run", "--cache", config.cache, "--method", "cuml", "--progress", "quiet")
    assert outcome.status == 2
    assert outcome.err.count("\n") == 1
    assert "Use --method opentsne." in outcome.err


def test_a_part_that_is_missing(config: ProjectConfig) -> None:
    Run(config.cache, "run").part_path(2, 1).unlink()
    assert "heads/stage=2 does not have its 3 parts" in mistake(config)


# Progress


def test_progress_tells_iterations_and_divergence(cache: Path, command: Command) -> None:
    plant(cache)
    options = ("--iterations", 150, "--threads", 1, "--point-limit", 100, "--progress", "json")
    outcome = command("project", "run", "--cache", cache, *options)
    assert outcome.status == 0
    reports = [json.loads(line) for line in outcome.out.splitlines()]
    assert {report["step"] for report in reports} == {"project"}
    fractions = [report["fraction"] for report in reports]
    assert fractions == sorted(fractions)
    assert fractions[0] == 0
    assert fractions[-1] <= 1
    told = [
        re.fullmatch(r"stage (\d): iteration (\d+) of 150, KL (\d+\.\d{3})", report["message"]) for report in reports
    ]
    found = [(int(match[1]), int(match[2]), float(match[3])) for match in told if match]
    assert [(stage, done) for stage, done, _ in found] == [
        (stage, done) for stage in (1, 2, 3) for done in (50, 100, 150)
    ]
    assert all(0 < kl < 10 for _, _, kl in found)
    kl = {(stage, done): kl for stage, done, kl in found}
    assert all(kl[stage, 150] < kl[stage, 50] for stage in (1, 2, 3)), "the first fifty are exaggerated"
    placing = [report["message"] for report in reports if "placing" in report["message"]]
    assert [message[:7] for message in placing] == [f"stage {stage}" for stage in (1, 2, 3) for _ in range(3)]


class Heard:
    """Keeps what is shown."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.closed = 0

    def show(self, report: Report) -> None:
        self.reports.append(report)

    def close(self) -> None:
        self.closed += 1


def test_progress_names_the_head_and_is_closed(config: ProjectConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    Fits(monkeypatch, somewhere)
    heard = Heard()
    project.run(replace(config, by_head=True), heard)
    assert [report.message for report in heard.reports][:5] == [
        "stage 1: nearest neighbours",
        "stage 2: nearest neighbours",
        "stage 3: nearest neighbours",
        "stage 1, head 1: nearest neighbours",
        "stage 1, head 2: nearest neighbours",
    ]
    assert [report.fraction for report in heard.reports] == pytest.approx([number / 15 for number in range(16)])
    assert heard.closed == 1


def test_progress_is_closed_also_when_it_is_interrupted(config: ProjectConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    Fits(monkeypatch, stop_at=0)
    heard = Heard()
    with pytest.raises(KeyboardInterrupt):
        project.run(config, heard)
    assert heard.closed == 1


def test_a_map_that_has_gone_is_made_again(config: ProjectConfig) -> None:
    project.run(config)
    path = Run(config.cache, config.run).map_path(2)
    before = path.read_bytes()
    path.unlink()
    assert not project.run(config).skipped
    assert path.read_bytes() == before


def test_new_points_are_placed_on_a_stored_map(config: ProjectConfig) -> None:
    """All that takes is in the run; a point that is on the map already comes to lie where it is."""
    project.run(config)
    run = Run(config.cache, config.run)
    fitted = read_fitted_map(run, 1)
    placed = Placer.of(fitted.vectors, fitted.places).place(
        np.concatenate(list(run.vectors(1))).astype(np.float32).reshape(-1, DIM)[:40]
    )
    table = read_map(run, 1).to_pandas()
    places = table[["x", "y"]].to_numpy()
    extent = np.ptp(places, axis=0).max()
    assert np.median(np.linalg.norm(placed - places[:40], axis=1)) < 0.1 * extent


def test_few_points_take_one_thread_and_many_all(tmp_path: Path) -> None:
    config = ProjectConfig(tmp_path, "run")
    assert config.cores(5_000) == 1
    assert config.cores(5_001) == len(os.sched_getaffinity(0))
    assert replace(config, threads=3).cores(10) == 3
