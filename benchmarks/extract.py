"""Three stages of all heads against sentence-transformers' plain ``encode``: ``python -m benchmarks.extract``.

The same model, documents, threads and precision, in the same process, turn by turn; a round's ratio is what counts,
for the machine's speed drifts. A ratio below 1 means that the heads of three stages cost less than one plain vector.
Then four stages, with each head's share, against three; and on one core, how much of the speed of a bare matrix product
is reached, by kind of batch, and where the time goes, by operation.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from benchmarks.cost import processor_seconds, product_rate
from benchmarks.cost_model import LAYOUTS, flops
from core.model.embedder import Embedder, EmbedderConfig
from tests.support.peer import demo_texts, peer

MODELS = {"all-MiniLM-L6-v2": 325, "SmolLM2-135M": 100}
"""How many documents of the demo each is tried on; SmolLM2 is ten times slower."""


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@dataclass(frozen=True)
class Took:
    seconds: float
    processor_seconds: float
    """Of all threads."""


def took(work: Callable[[], object]) -> Took:
    processor = time.process_time()
    passed = seconds(work)
    return Took(passed, time.process_time() - processor)


PEER = "sentence-transformers"


def compare(model: str, texts: list[str], rounds: int) -> dict[str, Any]:
    """Times all, turn by turn, the order changing every round; and how far their embeddings are apart."""
    import numpy as np

    embedder = Embedder.load(EmbedderConfig(model=model))
    packed = Embedder.load(EmbedderConfig(model=model, packed=True))
    other = peer(model, embedder.info.max_tokens)
    packed.embed(texts[:40])
    ours, theirs = embedder.embed(texts[:40]).output, other.encode(texts[:40])  # warms up, too
    ours = ours / np.linalg.norm(ours, axis=1, keepdims=True)
    work = {
        "headscope": lambda: embedder.embed(texts),
        "headscope, packed": lambda: packed.embed(texts),
        PEER: lambda: other.encode(texts),
    }
    times: dict[str, list[Took]] = {name: [] for name in work}
    for turn in range(rounds):
        for name in list(work) if turn % 2 else list(work)[::-1]:
            times[name].append(took(work[name]))
    return {
        "model": model,
        "documents": len(texts),
        "rounds": rounds,
        "load": [round(value, 1) for value in os.getloadavg()],
        "documents_per_second": {
            name: round(len(texts) / statistics.median(one.seconds for one in every), 1)
            for name, every in times.items()
        },
        **{name: _ratios(every, times[PEER]) for name, every in times.items() if name != PEER},
        "largest_difference": float(np.abs(ours - theirs).max()),
    }


def _ratios(ours: list[Took], theirs: list[Took]) -> dict[str, Any]:
    """Round by round; what counts is processor time, for other programs may run."""
    clock = [a.seconds / b.seconds for a, b in zip(ours, theirs, strict=True)]
    processor = [a.processor_seconds / b.processor_seconds for a, b in zip(ours, theirs, strict=True)]
    return {
        "ratio_of_time": round(statistics.mean(clock), 3),
        "ratio_of_processor_time": round(statistics.mean(processor), 3),
        "processor_ratios": [round(ratio, 3) for ratio in processor],
        "reached": statistics.mean(processor) <= MOST_RATIO,
    }


STAGES = {"three": False, "four": True}
MOST_TIME, MOST_MEMORY, MOST_RATIO = 1.10, 1.05, 0.80
WAYS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "token budget 1,024": {"token_budget": 1_024},
    "token budget 8,192": {"token_budget": 8_192},
    "packed": {"packed": True},
    "packed, token budget 1,024": {"packed": True, "token_budget": 1_024},
    "packed, token budget 8,192": {"packed": True, "token_budget": 8_192},
    "four stages": {"shares": True},
    "compiled": {"compile": True},
    "packed, compiled": {"packed": True, "compile": True},
    "bfloat16": {"dtype": "bfloat16"},
}


def with_shares(model: str, texts: list[str], rounds: int) -> dict[str, Any]:
    """Four stages against three: time turn by turn, and the peak of memory of a process for each."""
    embedders = {name: Embedder.load(EmbedderConfig(model=model, shares=shares)) for name, shares in STAGES.items()}
    for embedder in embedders.values():
        embedder.embed(texts[:40])
    ratios = []
    for turn in range(rounds):
        order = list(embedders) if turn % 2 else list(embedders)[::-1]
        times = {name: seconds(lambda name=name: embedders[name].embed(texts)) for name in order}  # type: ignore[misc]
        ratios.append(times["four"] / times["three"])
    memory = {name: peak(model, len(texts), name) for name in STAGES}
    time_, most = statistics.median(ratios), memory["four"] / memory["three"]
    return {
        "model": model,
        "documents": len(texts),
        "four_stages_over_three_time": round(time_, 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
        "four_stages_over_three_memory": round(most, 3),
        "peak_mb": {name: round(value) for name, value in memory.items()},
        "reached": time_ <= MOST_TIME and most <= MOST_MEMORY,
    }


def peak(model: str, documents: int, stages: str) -> float:
    """Megabytes at most of a process that embeds three or four stages."""
    command = [sys.executable, "-m", "benchmarks.extract", "--models", model, "--documents", str(documents)]
    found = subprocess.run([*command, "--peak", stages], check=True, capture_output=True, text=True)
    return float(found.stdout.split()[-1])


def share_of_product(model: str, texts: list[str], rounds: int) -> dict[str, Any]:
    """The counted operations by processor time, divided by those of a bare product just before and after; one core.

    Where the rest goes is told by torch's profiler: the share of each operation in the time of one pass.
    """
    import numpy as np
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    embedders = {name: Embedder.load(EmbedderConfig(model=model, **options)) for name, options in WAYS.items()}
    warm = {name: embedder.embed(texts) for name, embedder in embedders.items()}
    limit = embedders["as it is"].info.max_tokens
    operations = float(flops(LAYOUTS[model], np.minimum(warm["as it is"].tokens, limit)).sum())
    shares: dict[str, list[float]] = {name: [] for name in embedders}
    for turn in range(rounds):
        for name in list(embedders) if turn % 2 else list(embedders)[::-1]:
            before = product_rate()
            rate = operations / processor_seconds(lambda name=name: embedders[name].embed(texts))  # type: ignore[misc]
            shares[name].append(rate / statistics.mean((before, product_rate())))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        embedders["as it is"].embed(texts)
    found = sorted(profile.key_averages(), key=lambda one: -one.self_cpu_time_total)
    whole = sum(one.self_cpu_time_total for one in found)
    torch.set_num_threads(threads)
    return {
        "model": model,
        "documents": len(texts),
        "load": [round(value, 1) for value in os.getloadavg()],
        "share_of_a_bare_product": {
            name: f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"
            for name, values in shares.items()
        },
        "share_of_time": {one.key: round(one.self_cpu_time_total / whole, 3) for one in found[:8]},
    }


def one_by_one(model: str, texts: list[str], rounds: int) -> dict[str, Any]:
    """Batches against a loop of single documents, on short texts."""
    embedder = Embedder.load(EmbedderConfig(model=model))
    short = [" ".join(text.split()[:12]) for text in texts]
    embedder.embed(short[:8])
    ratios = []
    for _ in range(rounds):
        alone = seconds(lambda: [embedder.embed([text]) for text in short])
        ratios.append(alone / seconds(lambda: embedder.embed(short)))
    return {"model": model, "short_documents": len(short), "times_faster_than_one_by_one": round(min(ratios), 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--documents", type=int, default=None, help="default: as many as take a minute or so a round")
    parser.add_argument("--peak", choices=STAGES, help=argparse.SUPPRESS)
    parser.add_argument("--shares", action="store_true", help="four stages against three only")
    parser.add_argument("--product", action="store_true", help="the share of a bare product's speed only")
    options = parser.parse_args()
    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()
    texts = demo_texts()
    if options.peak:
        model = options.models[0]
        Embedder.load(EmbedderConfig(model=model, shares=STAGES[options.peak])).embed(texts[: options.documents])
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
        return
    print(f"{torch.get_num_threads()} threads, {os.cpu_count()} cores, torch {torch.__version__}")
    for model in options.models:
        some = texts[: options.documents or MODELS[model]]
        if not options.shares:
            print(
                json.dumps(
                    share_of_product(model, some[: len(some) // 5], options.rounds), indent=1, ensure_ascii=False
                )
            )
        if options.product:
            continue
        if not options.shares:
            print(json.dumps(compare(model, some, options.rounds), indent=1))
            print(json.dumps(one_by_one(model, texts[:100], options.rounds), indent=1))
        print(json.dumps(with_shares(model, some, options.rounds), indent=1))


if __name__ == "__main__":
    main()
