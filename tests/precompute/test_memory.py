"""Ten times the documents, the same memory: the job holds a part at a time."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

MEASURED = """
import resource, subprocess, sys
status = subprocess.run([sys.executable, "-m", "precompute", *sys.argv[1:]]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""
"""A small process in between: a program counts as its own peak what the one that started it held just then."""


def test_memory_does_not_grow_with_the_corpus(
    tmp_path: Path,
    tiny_model: Path,
    write_corpus: Callable[..., Path],
    some_rows: Callable[..., list[dict[str, Any]]],
    start_job: Callable[..., subprocess.Popen[str]],
    finish: Callable[..., Any],
) -> None:
    jobs, sources = [], []
    for count in (500, 5_000):
        # A short text, 32 kB beside it: who keeps all documents keeps 144 MB more, over a fifth of what torch takes.
        rows = [{**row, "note": f"{row['n']:08d}" * 4_000} for row in some_rows(count, words=5)]
        sources.append(write_corpus(rows, f"{count}.jsonl"))
        options = ("--source", sources[-1], "--model", tiny_model, "--part-size", 250, "--quiet")
        jobs.append(start_job("embed", f"run-{count}", "--cache", tmp_path, *options, script=MEASURED, cold=True))
    few, many = map(finish, jobs)
    for source in sources:
        source.unlink()  # pytest keeps its folders for a while
    assert few.status == many.status == 0
    assert int(many.out) <= 1.2 * int(few.out)


ANALYSED = """
import resource, sys
from pathlib import Path
import numpy as np
from tests.support.synthetic import PlantedTopics, write_run
from core.model.shape import ModelShape
from precompute.steps.analyse.step import AnalyseConfig, run

shape, count, cache = ModelShape(1, 8, 8, 1024, 128), int(sys.argv[1]), Path(sys.argv[2])
labels = [f"topic {doc % 5}" for doc in range(count)]
noise = np.random.default_rng(0).normal(size=(250, 1024)).astype(np.float16)
write_run(cache, "big", shape, lambda stage, first, n: noise[:n], labels, part_size=250, stages=(1,))
run(AnalyseConfig(cache, "big", probe_samples=800, model=PlantedTopics(shape, {})))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_the_analysis_holds_a_part_at_a_time_too(
    tmp_path: Path, start_job: Callable[..., subprocess.Popen[str]], finish: Callable[..., Any]
) -> None:
    """Who keeps all vectors of 20,000 documents × 1,024 keeps 80 MB in float32, a quarter of what few take."""
    jobs = [start_job(count, tmp_path / str(count), script=ANALYSED, cold=True) for count in (2_000, 20_000)]
    few, many = map(finish, jobs)
    assert few.status == many.status == 0, few.err + many.err
    assert int(many.out) <= 1.15 * int(few.out)
