"""All layers of all heads against one layer of the same documents: ``python -m benchmarks.layers``.

The pass of the layer sweep (30 layers × 9 heads × 3 stages of SmolLM2, rows on a memory map as in the job) against
embedding the same documents at the last layer, before any statistics. In the same process, some documents at a time,
turn by turn: a ratio is what counts, for the machine's speed drifts. The peak of memory is that of a process each.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from benchmarks.extract import seconds
from benchmarks.result import Result
from core.model.embedder import Embedder, EmbedderConfig
from precompute.steps.layers.rows import embed_layers
from tests.support.peer import demo_texts

MODEL, DOCUMENTS, TURN = "SmolLM2-135M", 300, 25
"""``TURN`` documents are embedded by both, then the next ones: a job that comes in between costs both alike."""
MOST_TIME, MOST_MEMORY = 1.5, 2.0
ONE, ALL = "one layer", "all layers"


def ways(embedder: Embedder) -> dict[str, Callable[[list[str]], object]]:
    """The same documents at the last layer, and at all."""

    def everything(texts: list[str]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            embed_layers(Path(folder), texts, embedder.info.shape, "", lambda: embedder, lambda *_: None)

    return {ONE: embedder.embed, ALL: everything}


def compare(model: str, texts: list[str], rounds: int) -> dict[str, Any]:
    """Times both, some documents at a time, the order changing every time."""
    embedder = Embedder.load(EmbedderConfig(model=model))
    work = ways(embedder)
    for each in work.values():  # warms both up
        each(texts[:2])
    totals: dict[str, list[float]] = {name: [] for name in work}
    for turn in range(rounds):
        times = dict.fromkeys(work, 0.0)
        for at, first in enumerate(range(0, len(texts), TURN)):
            for name in list(work) if (turn + at) % 2 else list(work)[::-1]:
                times[name] += seconds(lambda name=name, first=first: work[name](texts[first : first + TURN]))  # type: ignore[misc]
        for name, spent in times.items():
            totals[name].append(spent)
    ratios = [a / b for a, b in zip(totals[ALL], totals[ONE], strict=True)]
    shape = embedder.info.shape
    return {
        "model": model,
        "cells": f"{shape.layers} layers × {shape.heads} heads × {len(shape.stages)} stages",
        "documents": len(texts),
        "seconds": {name: round(statistics.median(values), 1) for name, values in totals.items()},
        "ratios": [round(ratio, 3) for ratio in ratios],
        "ratio_of_time": round(statistics.mean(ratios), 3),
    }


def peak(model: str, documents: int, way: str) -> float:
    """Megabytes at most of a process that embeds in one of the ways."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.layers",
        "--model",
        model,
        "--documents",
        str(documents),
        "--peak",
        way,
    ]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(found.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--peak", choices=(ONE, ALL), help=argparse.SUPPRESS)
    options = parser.parse_args()
    from transformers.utils import logging

    logging.disable_progress_bar()
    texts = demo_texts()[: options.documents]
    if options.peak:
        ways(Embedder.load(EmbedderConfig(model=options.model)))[options.peak](texts)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
        return
    import torch

    print(f"{torch.get_num_threads()} threads, {os.cpu_count()} cores, torch {torch.__version__}")
    found = compare(options.model, texts, options.rounds)
    print(json.dumps(found, indent=1))
    memory = {way: peak(options.model, options.documents, way) for way in (ONE, ALL)}
    ratio = memory[ALL] / memory[ONE]
    for result in (
        Result(
            "time", f"{found['ratio_of_time']} × one layer", f"≤ {MOST_TIME} ×", found["ratio_of_time"] <= MOST_TIME
        ),
        Result(
            "peak of memory",
            f"{memory[ALL]:,.0f} MB, {ratio:.2f} × one layer ({memory[ONE]:,.0f} MB)",
            f"≤ {MOST_MEMORY} ×",
            ratio <= MOST_MEMORY,
        ),
    ):
        print(f"{'reached' if result.reached else 'MISSED '}  {result.what}: {result.measured}, target {result.target}")


if __name__ == "__main__":
    main()
