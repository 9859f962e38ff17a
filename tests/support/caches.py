"""Caches with runs that take long to make, or that several rooms look at."""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def demo_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the demo run, by the real default model."""

    def make(cache: Path) -> None:
        from precompute.steps.embed.step import EmbedConfig, run

        run(EmbedConfig(cache, "demo"))

    return made_once(tmp_path_factory, "demo-cache", make)


@pytest.fixture(scope="session")
def analysed_cache(demo_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo run by the real default model, with its figures and quickly made maps."""

    def make(cache: Path) -> None:
        from precompute.steps.analyse import step as analyse
        from precompute.steps.project import step as project
        from precompute.steps.project.config import ProjectConfig

        shutil.copytree(demo_cache / "demo", cache / "demo")
        analyse.run(analyse.AnalyseConfig(cache, "demo"))
        project.run(ProjectConfig(cache, "demo", iterations=90))

    return made_once(tmp_path_factory, "analysed-cache", make)


@pytest.fixture(scope="session")
def retrieved_cache(analysed_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, its heads judged by 20 of the demo's queries and by its topics."""

    def make(cache: Path) -> None:
        from precompute.steps.retrieve import step as retrieve

        shutil.copytree(analysed_cache / "demo", cache / "demo")
        lines = retrieve.DEMO_QUERIES.read_text(encoding="utf-8").splitlines()[::7][:20]
        (cache / "queries.jsonl").write_text("\n".join(lines), encoding="utf-8")
        retrieve.run(retrieve.RetrieveConfig(cache, "demo", cache / "queries.jsonl", limit=24))

    return made_once(tmp_path_factory, "retrieved-cache", make)


@pytest.fixture(scope="session")
def pictures_cache(retrieved_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run for every page: the demo with retrieval, attention and ablation, 'mapped' and, with layers, 'planted'."""

    def make(cache: Path) -> None:
        from core.runs.run import Run
        from precompute.steps.layers import step as layers
        from tests.pages.test_page_attention import planted_attention, planted_experiments
        from tests.pages.test_page_head_map import write_mapped
        from tests.precompute.test_layers import LABELS, MODEL, SHAPE, last_layer
        from tests.support.planted_ablation import planted_ablation
        from tests.support.synthetic import write_run

        shutil.copytree(retrieved_cache / "demo", cache / "demo")
        for plant in (planted_attention, planted_experiments, planted_ablation):
            plant(Run(cache, "demo"))
        write_mapped(cache)
        write_run(cache, "planted", SHAPE, last_layer, LABELS)
        layers.run(layers.LayersConfig(cache, "planted", model=MODEL))

    return made_once(tmp_path_factory, "pictures-cache", make)


@pytest.fixture(scope="session")
def hostile_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run 'hostile' in which every text is out to do harm, with figures, maps and two sources of labels."""

    def make(cache: Path) -> None:
        from tests.support.hostile import write_hostile

        write_hostile(cache)

    return made_once(tmp_path_factory, "hostile-cache", make)


def made_once(temporary: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that takes long to make, for all workers together: the first makes it, the others wait."""
    root = temporary.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    folder, making = root / name, root / f"{name}.making"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            shutil.rmtree(making, ignore_errors=True)  # of a worker that has failed
            making.mkdir()
            make(making)
            making.rename(folder)
    return folder


def share_rows(count: int) -> list[dict[str, str]]:
    """Documents of three topics whose names they contain."""
    from tests.support.models import WORDS  # a plugin of its own

    topics, chosen = ("harbour", "violin", "glacier"), random.Random(7)
    return [
        {
            "id": f"d{number}",
            "text": f"{number} {' '.join(chosen.choices(WORDS, k=8))} {topics[number % 3]}",
            "topic": topics[number % 3],
        }
        for number in range(count)
    ]


@pytest.fixture(scope="session")
def share_cache(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run 'four' of all four stages with figures, maps and retrieval, and 'three', embedded only; by a tiny model.

    36 documents in parts of 15, in ``corpus.jsonl``.
    """

    def make(cache: Path) -> None:
        from precompute.cli import main

        (cache / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in share_rows(36)))
        common = ["--cache", str(cache), "--quiet"]
        asked = ["--source", str(cache / "corpus.jsonl"), "--model", str(tiny_model), "--part-size", "15", *common]
        assert main(["embed", "four", *asked]) == 0
        assert main(["embed", "three", *asked, "--stages", "1", "2", "3"]) == 0
        model = ["--model", str(tiny_model)]
        assert main(["analyse", "four", *common, *model, "--topics", "labels"]) == 0
        assert main(["project", "four", *common, "--iterations", "40"]) == 0
        assert main(["retrieve", "four", *common, *model]) == 0

    return made_once(tmp_path_factory, "share-cache", make)


@pytest.fixture(scope="session")
def swept_cache(share_cache: Path, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run 'four' with its aspects and all its layers at all four stages."""

    def make(cache: Path) -> None:
        from precompute.cli import main

        shutil.copytree(share_cache, cache, dirs_exist_ok=True)
        assert main(["aspects", "four", "--cache", str(cache), "--quiet"]) == 0
        assert main(["layers", "four", "--cache", str(cache), "--model", str(tiny_model), "--quiet"]) == 0

    return made_once(tmp_path_factory, "swept-cache", make)


@pytest.fixture(scope="session")
def bare_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run 'bare' of planted vectors without any labels, analysed, without maps; four heads on two."""
    import numpy as np

    from core.model.shape import ModelShape
    from precompute.steps.analyse import step as analyse
    from tests.support.synthetic import PlantedTopics, write_run

    cache = tmp_path_factory.mktemp("bare")
    shape = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
    vectors = np.random.default_rng(0).normal(size=(40, 32))
    write_run(cache, "bare", shape, lambda stage, first, count: vectors[first : first + count] + stage, [None] * 40)
    analyse.run(analyse.AnalyseConfig(cache, "bare", model=PlantedTopics(shape, {})))
    return cache


@pytest.fixture(scope="session")
def planted_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run 'planted' of 12 documents with vectors alone; the word quagga is in all of them and nowhere else."""
    import numpy as np

    from core.model.shape import ModelShape
    from tests.support.synthetic import write_run

    cache = tmp_path_factory.mktemp("planted")
    shape = ModelShape(layers=2, heads=4, kv_heads=2, hidden=32, head_dim=8)
    vectors = np.random.default_rng(0).normal(size=(12, 32))
    texts = [f"The quagga number {number} grazes." for number in range(12)]
    write_run(
        cache, "planted", shape, lambda stage, first, count: vectors[first : first + count] + stage, [None] * 12,
        texts=texts,
    )  # fmt: skip
    return cache
