"""Where the job's time goes, and how it grows: ``python -m benchmarks.job [--documents 2000] [--model tiny]``.

Every step is a process of its own, so that its memory is its own too; the seconds are those of its work, without start
and imports. The processor's seconds are those of the whole process: other work on the machine changes them little. The
model's own time, the forward pass over the same texts, is measured in the same run. With several sizes there are two
exponents for each step, of its seconds and of the processor's: the slope over the last two sizes, both as logarithms.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from core.runs.run import Run
from tests.support.peer import demo_texts

STEPS = ("embed", "search", "label", "analyse", "project", "retrieve", "aspects")
"""Of ``all`` but for ``layers``, ``attention`` and ``ablate``, which look at a sample of stated size."""
SENTENCES = 8
TINY = "tiny"


@dataclass(frozen=True)
class Cost:
    seconds: float
    processor: float
    megabytes: float

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s, {self.processor:.1f} s of processor, {self.megabytes:,.0f} MB"


def write_corpus(path: Path, documents: int) -> None:
    """Documents of mixed sentences of the demo, with 25 topics and 10 genres at random."""
    chance = np.random.default_rng(0)
    sentences = [one.strip() for text in demo_texts() for one in text.split(". ") if one.strip()]
    texts = [
        ". ".join(sentences[at] for at in row) for row in chance.integers(len(sentences), size=(documents, SENTENCES))
    ]
    topics, genres = chance.integers(25, size=documents), chance.integers(10, size=documents)
    with path.open("w", encoding="utf-8") as file:
        for doc, text in enumerate(texts):
            row = {"id": f"d{doc}", "text": text, "topic": f"topic {topics[doc]}", "genre": f"genre {genres[doc]}"}
            file.write(json.dumps(row) + "\n")


def tiny_model(folder: Path) -> str:
    """A BERT of 2 layers, 32 heads and hidden size 128 with random weights and MiniLM's tokenizer."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertModel

    from core.model.locate import default_models_dir, locate

    AutoTokenizer.from_pretrained(locate("all-MiniLM-L6-v2", default_models_dir()).folder).save_pretrained(folder)
    torch.manual_seed(0)
    shape = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 32, "intermediate_size": 128}
    BertModel(BertConfig(vocab_size=30_522, max_position_embeddings=256, **shape)).save_pretrained(folder)
    return str(folder)


def forward(model: str, corpus: Path) -> float:
    """Seconds of the bare forward pass with the same batches."""
    from core.model.embedder import Embedder, EmbedderConfig

    texts = [json.loads(line)["text"] for line in corpus.read_text(encoding="utf-8").splitlines()]
    embedder = Embedder.load(EmbedderConfig(model=model))
    embedder.embed(texts[:64])
    some = texts[:1_000]
    start = time.perf_counter()
    embedder.embed(some)
    return (time.perf_counter() - start) * len(texts) / len(some)


def step(cache: Path, run: str, name: str, options: list[str]) -> Cost:
    command = [sys.executable, "-m", "precompute", name, run, "--cache", str(cache), "--quiet", *options]
    process = os.posix_spawn(sys.executable, command, os.environ)
    _, status, used = os.wait4(process, 0)
    if status:
        raise SystemExit(f"'{' '.join(command[1:])}' failed.")
    seconds = Run(cache, run).manifest().steps[name].seconds
    return Cost(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def elsewhere(does: Callable[..., Any], *given: Any) -> Any:
    """What it returns in a process of its own: a step begins with the peak memory of the process that starts it."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(does, *given).result()


def measure(cache: Path, model: str, documents: int, stages: list[str]) -> tuple[float, dict[str, Cost]]:
    corpus, run = cache / f"{documents}.jsonl", f"run-{documents}"
    elsewhere(write_corpus, corpus, documents)
    kept = ["--stages", *stages] if stages else []
    own = {"embed": ["--source", str(corpus), "--model", model, *kept], "label": ["--labels", "column"]}
    if model != "all-MiniLM-L6-v2":
        own |= {name: ["--model", model] for name in ("analyse", "retrieve")}
    own["analyse"] = [*own.get("analyse", []), "--topics", "labels"]
    found = {}
    for name in STEPS:
        found[name] = step(cache, run, name, own.get(name, []))
        print(f"  {documents:,} documents, {name}: {found[name]}", flush=True)
    return elsewhere(forward, model, corpus), found


def exponent(cost: float, size: float) -> str:
    """How a cost grows with the size, from the ratios of two measurements."""
    return f"{math.log(cost) / math.log(size):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--documents", type=int, nargs="+", default=[2_000])
    parser.add_argument("--model", default="all-MiniLM-L6-v2", help=f"a preset, or '{TINY}': 32 heads, random weights")
    parser.add_argument("--stages", nargs="+", default=[], help="all four without it; each costs about as much")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        model = elsewhere(tiny_model, cache / "model") if options.model == TINY else options.model
        if options.model == TINY:
            os.environ["HEADSCOPE_MODELS"] = str(cache)
        results = {documents: measure(cache, model, documents, options.stages) for documents in options.documents}
    sizes = list(results)
    ends = ["exponent of seconds", "of processor time"] if len(sizes) > 1 else []
    print("| step | " + " | ".join([*(f"{size:,} documents" for size in sizes), *ends]) + " |")
    print("|---|" + "---|" * (len(sizes) + len(ends)))
    for name in STEPS:
        costs = [results[size][1][name] for size in sizes]
        slopes = []
        if len(sizes) > 1:
            ratio = sizes[-1] / sizes[-2]
            slopes = [exponent(costs[-1].seconds / costs[-2].seconds, ratio)]
            slopes += [exponent(costs[-1].processor / costs[-2].processor, ratio)]
        print(f"| {name} | {' | '.join([*map(str, costs), *slopes])} |")
    for size, (bare, every) in results.items():
        rest = sum(cost.seconds for cost in every.values()) - bare
        print(f"{size:,} documents: forward pass {bare:.1f} s; everything else {rest / bare:.2f} × that")


if __name__ == "__main__":
    main()
