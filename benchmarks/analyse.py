"""How long the analysis takes, and how much memory: ``python -m benchmarks.analyse [--documents N …]``.

Planted head vectors, 32 heads × 128, 25 topics, at three stages and at four, each size in a process of its own; the
probe is timed against one plain fit of scikit-learn on the same 32,000 samples.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from core.analysis.topics import merged
from core.model.shape import ModelShape
from core.model.stages import SHARE
from tests.support.synthetic import PlantedTopics, random_space, write_run

SHAPE = ModelShape(layers=32, heads=32, kv_heads=8, hidden=4096, head_dim=128)


def planted_topics() -> dict[int, dict[str, np.ndarray]]:
    """``[stage][topic]``: a direction for each topic at each stage."""
    return {
        stage: {
            topic: np.random.default_rng([stage, number]).normal(size=SHAPE.width(stage)).astype(np.float32)
            for number, topic in enumerate(merged())
        }
        for stage in (1, 2, 3, SHARE)
    }


def build(cache: Path, documents: int, stages: tuple[int, ...]) -> PlantedTopics:
    """A run 'big' in which documents lean towards their topics, and each head has a mean of its own."""
    topics = planted_topics()
    names = list(merged())
    labels = np.random.default_rng(0).integers(len(names), size=documents)
    means = {stage: np.random.default_rng([9, stage]).normal(size=SHAPE.width(stage)) for stage in stages}

    def vectors(stage: int, first: int, count: int) -> np.ndarray:
        chance = np.random.default_rng([stage, first])
        mine = np.stack([topics[stage][names[label]] for label in labels[first : first + count]])
        return (0.3 * means[stage] + 0.2 * mine + chance.normal(size=mine.shape)).astype(np.float16)

    space = random_space(SHAPE) if SHARE in stages else None
    write_run(cache, "big", SHAPE, vectors, [names[label] for label in labels], stages=stages, space=space)
    return PlantedTopics(SHAPE, topics)


def measure(documents: int, stages: int) -> dict[str, float]:
    from precompute.steps.analyse.step import AnalyseConfig, run

    with tempfile.TemporaryDirectory() as folder:
        model = build(Path(folder), documents, tuple(range(1, 1 + stages)))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        began, used = time.perf_counter(), time.process_time()
        run(AnalyseConfig(Path(folder), "big", model=model))
        seconds, used = time.perf_counter() - began, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {
        "documents": documents,
        "stages": stages,
        "seconds": seconds,
        "processor_seconds": used,
        "peak_gb": peak,
        "peak_before_gb": before,
    }


def probe_against_plain_fit() -> dict[str, float]:
    """The probe, with its standardising, two splits and intervals, against one fit with scikit-learn's defaults."""
    from sklearn.linear_model import LogisticRegression

    from core.analysis.probe import SPLITS, choose_samples, probe

    chance = np.random.default_rng(0)
    samples = choose_samples(10_000, 32)
    vectors = (0.3 * chance.normal(size=(32, 128))[samples.heads] + chance.normal(size=(len(samples), 128))).astype(
        np.float32
    )
    began = time.perf_counter()
    LogisticRegression(max_iter=5_000).fit(vectors[:25_600], samples.heads[:25_600])
    plain = time.perf_counter() - began
    began = time.perf_counter()
    for split in SPLITS:
        probe(vectors, samples, split)
    both = time.perf_counter() - began
    return {"plain_fit_seconds": plain, "one_probe_seconds": both / 2, "ratio": both / 2 / plain}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--documents", type=int, nargs="+", default=[2_000, 10_000])
    parser.add_argument("--stages", type=int, nargs="+", default=[3, 4], choices=(3, 4))
    parser.add_argument("--measure", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(*options.measure)))
        return
    for documents, stages in itertools.product(options.documents, options.stages):
        command = [sys.executable, "-m", "benchmarks.analyse", "--measure", str(documents), str(stages)]
        found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(json.dumps({key: round(value, 3) for key, value in found.items()}), flush=True)
    print(json.dumps({key: round(value, 3) for key, value in probe_against_plain_fit().items()}))


if __name__ == "__main__":
    main()
