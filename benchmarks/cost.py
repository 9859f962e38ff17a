"""How far the cost model is from what happens: ``make bench-cost``.

One thread, and the processor's time instead of the clock's, so that a busy machine matters little: the operations a
second of a bare float32 product, and those of the embedder by the model's count, turn by turn. Their ratio is the
utilisation. Were it the same for every model and length, the cost model would be exact.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np

from benchmarks.cost_model import LAYOUTS, flops
from benchmarks.extract import demo_texts
from core.model.embedder import Embedder, EmbedderConfig

MEASURED = Path(__file__).resolve().parent.parent / "docs" / "measured.json"
CASES = {"all-MiniLM-L6-v2": {64: 160, 128: 100, 256: 50}, "SmolLM2-135M": {64: 20, 128: 12, 256: 6}}
"""By model: documents of the demo, joined in pairs, cut to so many tokens, and how many of them."""
SIDE = 1024


def processor_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def product_rate() -> float:
    """Operations a second of a plain product of two float32 matrices."""
    import torch

    left, right = torch.rand(SIDE, SIDE), torch.rand(SIDE, SIDE)
    left @ right
    return 8 * 2 * SIDE**3 / processor_seconds(lambda: [left @ right for _ in range(8)])


def measure(model: str, length: int, documents: int, rounds: int) -> dict[str, Any]:
    """The embedder on one model and length, a product before and after each round."""
    alone = demo_texts()
    texts = [f"{one}\n{other}" for one, other in zip(alone, alone[1:] + alone[:1], strict=True)][:documents]
    embedder = Embedder.load(EmbedderConfig(model=model, max_tokens=length))
    tokens = np.minimum(embedder.embed(texts).tokens, length)  # warms up, too
    operations = float(flops(LAYOUTS[model], tokens).sum())
    shares, rates = [], []
    for _ in range(rounds):
        before = product_rate()
        seconds = processor_seconds(lambda: embedder.embed(texts))
        shares.append(operations / seconds / statistics.mean((before, product_rate())))
        rates.append(documents / seconds)
    return {
        "model": model,
        "max_tokens": length,
        "documents": documents,
        "mean_tokens": round(float(tokens.mean()), 1),
        "documents_per_core_second": round(statistics.median(rates), 2),
        "gflops": round(operations / documents * statistics.median(rates) / 1e9, 1),
        "utilisation": round(statistics.median(shares), 3),
        "lowest": round(min(shares), 3),
        "highest": round(max(shares), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help=f"into docs/{MEASURED.name}; then python -m docs.numbers")
    options = parser.parse_args()
    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()
    torch.set_num_threads(1)
    found: dict[str, Any] = {"rounds": options.rounds, "torch": torch.__version__}
    found["product_gflops"] = round(statistics.median(product_rate() for _ in range(options.rounds)) / 1e9, 1)
    found["embedder"] = []
    for model, lengths in CASES.items():
        for length, documents in lengths.items():
            found["embedder"].append(measure(model, length, documents, options.rounds))
            print(json.dumps(found["embedder"][-1]), flush=True)
    print(f"a product of {SIDE} × {SIDE} matrices: {found['product_gflops']} GFLOP/s on one core")
    if options.write:
        known = json.loads(MEASURED.read_text()) if MEASURED.is_file() else {}
        MEASURED.write_text(json.dumps(known | {"processor": found}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
