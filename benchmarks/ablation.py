"""A sweep of every head against one plain pass over the same documents: ``python -m benchmarks.ablation``.

The sweep as the step ``ablate`` does it, a layer at a time: first every head of it, then all of them together; without
random removals. Before every layer the plain pass is timed again: a ratio is what counts, for the machine's speed
drifts. The peak of memory is that of a process each.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np

from benchmarks.extract import seconds
from benchmarks.result import Result
from core.model.embedder import Embedder, EmbedderConfig
from tests.support.peer import demo_texts

MODEL, DOCUMENTS, TOKENS = "all-MiniLM-L6-v2", 325, 256
MOST_PASSES, MOST_MEMORY = 45.0, 1.5
PLAIN, SWEEP = "plain", "sweep"


def sweep_layer(model: Embedder, texts: list[str], layer: int, whole: bool = False) -> np.ndarray:
    """Every head of ``layer`` (from 1) off, or all of them at once: ``[change, doc, hidden]``."""
    shape = model.info.shape
    each = [(layer, head) for head in range(1, shape.heads + 1)]
    changes = [model.without(each)] if whole else [model.without([one]) for one in each]
    rows = np.empty((len(changes), len(texts), shape.hidden), dtype=np.float32)
    for batch, swept in model.sweep(texts, changes):
        rows[swept.change, batch] = swept.output.float().cpu().numpy()
    return rows


def compare(model: Embedder, texts: list[str]) -> dict[str, Any]:
    model.embed(texts[:2])
    plain, swept, whole = [], [], []
    for layer in range(1, model.info.shape.layers + 1):
        plain.append(seconds(lambda: model.embed(texts)))
        swept.append(seconds(lambda layer=layer: sweep_layer(model, texts, layer)))  # type: ignore[misc]
        whole.append(seconds(lambda layer=layer: sweep_layer(model, texts, layer, True)))  # type: ignore[misc]
    return {
        "documents": len(texts),
        "tokens": model.info.max_tokens,
        "heads": model.info.shape.layers * model.info.shape.heads,
        "seconds_of_a_plain_pass": [round(one, 2) for one in plain],
        "seconds_of_each_layer": [round(one, 1) for one in swept],
        "passes": round(sum(swept) / statistics.mean(plain), 1),
        "passes_of_whole_layers": round(sum(whole) / statistics.mean(plain), 1),
    }


def peak(options: argparse.Namespace, way: str) -> float:
    """Megabytes at most of a process that embeds in one of the ways."""
    given = ("--model", options.model, "--documents", str(options.documents), "--tokens", str(options.tokens))
    command = [sys.executable, "-m", "benchmarks.ablation", *given, "--peak", way]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--tokens", type=int, default=TOKENS, help="cut texts to so many")
    parser.add_argument("--peak", choices=(PLAIN, SWEEP), help=argparse.SUPPRESS)
    options = parser.parse_args()
    from transformers.utils import logging

    logging.disable_progress_bar()
    texts = demo_texts()[: options.documents]
    model = Embedder.load(EmbedderConfig(model=options.model, max_tokens=options.tokens))
    if options.peak:
        middle = model.info.shape.layers // 2
        ways: dict[str, Callable[[], object]] = {
            PLAIN: lambda: model.embed(texts),
            SWEEP: lambda: sweep_layer(model, texts, middle),  # what is in memory is of one layer at any time
        }
        ways[options.peak]()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
        return
    found = compare(model, texts)
    print(json.dumps(found, indent=1))
    memory = {way: peak(options, way) for way in (PLAIN, SWEEP)}
    ratio = memory[SWEEP] / memory[PLAIN]
    for result in (
        Result("time", f"{found['passes']} plain passes", f"≤ {MOST_PASSES:.0f}", found["passes"] <= MOST_PASSES),
        Result(
            "peak of memory",
            f"{memory[SWEEP]:,.0f} MB, {ratio:.2f} × a plain pass ({memory[PLAIN]:,.0f} MB)",
            f"≤ {MOST_MEMORY} ×",
            ratio <= MOST_MEMORY,
        ),
    ):
        print(f"{'reached' if result.reached else 'MISSED '}  {result.what}: {result.measured}, target {result.target}")


if __name__ == "__main__":
    main()
