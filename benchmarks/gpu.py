"""SFR-Embedding-Mistral's shape on a GPU: ``make bench-gpu``; ``python -m benchmarks.gpu --rehearse`` anywhere.

Random weights in bfloat16 and texts of FineWeb's lengths go through the embedder as a job's would, four stages, from
text to arrays: padded batches, packed ones and compiled blocks, turn by turn. For each it prints tokens per second
(padding does not count), the share of the card's peak (operations as benchmarks/cost_model.py counts them), the peak
memory, and how far its vectors are from those of padded batches. The rehearsal has two layers, few short texts, and
the CPU.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np

from benchmarks.cost_model import PEAKS, flops
from benchmarks.sfr_shape import LONGEST, MEAN, layout_of, random_texts, save_without_weights
from core.model.embedder import Embedded, Embedder, EmbedderConfig, Untrained
from core.model.locate import ModelFiles
from core.runs.parts import write_part

WAYS = ("padded", "packed", "padded, compiled", "packed, compiled")


@dataclass(frozen=True)
class Size:
    layers: int
    documents: int
    mean_tokens: float
    budgets: tuple[int, ...]


FULL = Size(32, 256, MEAN, (8_192, 32_768))
REHEARSAL = Size(2, 12, 60, (512,))


def seconds(work: Callable[[], object], device: str) -> float:
    """By the clock; of the rehearsal the processor's time, for other programs may run beside it."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    start = clock()
    work()
    return clock() - start


def load(folder: Path, config: EmbedderConfig) -> Embedder:
    """The model, made on the device itself: 14 GB of random numbers."""
    import torch

    files = ModelFiles("SFR's shape", "random", folder, None)
    with torch.device(config.device or "cpu"):
        return Embedder.load(config, files, Untrained(0, lambda parameters, device: None))


def product_rate(device: str, side: int) -> float:
    """Operations per second of a product of two bfloat16 matrices on the device."""
    import torch

    left, right = (torch.rand(side, side, device=device).bfloat16() for _ in range(2))

    def work() -> None:
        for _ in range(8):
            product = left @ right
        product[0, 0].item()  # waits for the device

    work()
    return 8 * 2 * side**3 / seconds(work, device)


def peak_of(name: str) -> float | None:
    """The data sheet's, for cards of docs/scale.md; an H100 that is not SXM has another."""
    known = (peak for card, peak in PEAKS.items() if re.search(rf"\b{card.split()[0]}\b", name))
    return None if "PCIe" in name and "H100" in name else next(known, None)


def furthest(found: Embedded, plain: Embedded) -> float:
    """The largest difference at any stage, relative to the largest number there."""
    pairs = [(found.stage(stage), plain.stage(stage)) for stage in (1, 2, 3, 4)]
    return max(float(np.abs(one - other).max() / np.abs(other).max()) for one, other in pairs)


def measure(
    config: EmbedderConfig, embedder: Embedder, texts: list[str], size: Size, rounds: int, peak: float, names: list[str]
) -> None:
    import torch

    device = config.device or "cpu"
    cuda = device == "cuda"
    tokens = np.minimum(embedder.tokens.encode(texts).totals, LONGEST)
    operations = float(flops(layout_of(size.layers), tokens).sum())
    ways = {
        (name, budget): replace(config, token_budget=budget, packed="packed" in name, compile="compiled" in name)
        for name in names
        for budget in size.budgets
    }
    embedders = {
        way: Embedder(embedder.extractor, embedder.tokens, embedder.info, config) for way, config in ways.items()
    }
    plain: Embedded | None = None
    apart, memory = {}, {}
    for way, one in embedders.items():  # warms up: kernels are chosen, blocks are compiled
        if cuda:
            torch.cuda.reset_peak_memory_stats()
        found = one.embed(texts)
        memory[way] = (
            torch.cuda.max_memory_allocated() if cuda else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        )
        plain = plain or found
        apart[way] = furthest(found, plain)
    took: dict[Any, list[float]] = {way: [] for way in embedders}
    for turn in range(rounds):
        for way in list(embedders) if turn % 2 else list(embedders)[::-1]:
            took[way].append(seconds(lambda way=way: embedders[way].embed(texts), device))  # type: ignore[misc]
    print("| batches | token budget | tokens per second | TFLOP/s | share of peak | peak memory | largest difference |")
    print("|---|---|---|---|---|---|---|")
    for way, every in took.items():
        best = statistics.median(every)
        print(
            f"| {way[0]} | {way[1]:,} | {tokens.sum() / best:,.0f} | {operations / best / 1e12:.3g} | "
            f"{operations / best / peak:.2f} | {memory[way] / 1e9:.1f} GB | {apart[way]:.4f} |"
        )
    fastest = min(statistics.median(every) for every in took.values())
    beside = seconds(lambda: embedder.tokens.encode(texts), device)
    assert plain is not None
    with tempfile.TemporaryDirectory() as folder:
        docs = np.arange(len(texts), dtype=np.int32)
        for stage in (1, 2, 3, 4):
            path, rows = Path(folder) / f"{stage}.parquet", plain.stage(stage)
            beside += seconds(lambda path=path, rows=rows: write_part(path, docs, rows, "float16", ""), device)  # type: ignore[misc]
    print(
        f"Tokenising and writing take {beside / fastest:.3f} of the fastest way's time. Where that is a few percent or "
        "more, --workers 2 (two copies of the model) has one part tokenised and written while another is computed."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rehearse", action="store_true", help="two layers and few short texts, on the CPU")
    parser.add_argument(
        "--ways", nargs="+", choices=WAYS, default=list(WAYS), metavar="WAY", help=f"of {', '.join(WAYS)}"
    )
    parser.add_argument("--documents", type=int)
    parser.add_argument("--budgets", type=int, nargs="+", help="tokens in a batch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peak", type=float, metavar="TFLOPS", help="of the card, dense bfloat16, by its data sheet")
    options = parser.parse_args()
    import torch

    if not options.rehearse and not torch.cuda.is_available():
        sys.exit("There is no CUDA device here. Add --rehearse to try the benchmark on the CPU.")
    device = "cpu" if options.rehearse else "cuda"
    size = REHEARSAL if options.rehearse else FULL
    size = replace(
        size,
        documents=options.documents or size.documents,
        budgets=tuple(options.budgets or size.budgets),
    )
    card = "CPU" if options.rehearse else torch.cuda.get_device_name()
    with tempfile.TemporaryDirectory() as name:
        folder = save_without_weights(Path(name), size.layers)
        config = EmbedderConfig(
            name,
            device=device,
            dtype="bfloat16",
            max_tokens=LONGEST,
            pooling="last",
            shares=True,
            trust_remote_code=name,  # there is no code; but no weights either, against which the sizes are else checked
        )
        embedder = load(folder, config)
        product = product_rate(device, 1_024 if options.rehearse else 8_192)
        known = options.peak * 1e12 if options.peak else peak_of(card)
        print(
            f"{card}, torch {torch.__version__}, {size.layers} layers. A product of bfloat16 matrices: "
            f"{product / 1e12:.3g} TFLOP/s. Peak by the data sheet: "
            + ("not known, so the product's is taken." if known is None else f"{known / 1e12:.0f} TFLOP/s.")
        )
        texts = random_texts(folder, size.documents, size.mean_tokens)
        measure(config, embedder, texts, size, options.rounds, known or product, options.ways)


if __name__ == "__main__":
    main()
