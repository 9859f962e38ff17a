"""One document through every head, against one plain vector: ``python -m benchmarks.document``.

A document of 250 words, the model loaded, a corpus of 10,000: embedding at three stages, the profile and the nearest
documents in all heads at one of them, against sentence-transformers' ``encode`` of the same text and one product with
10,000 vectors. In the same process, turn by turn; a round's ratio is what counts, for the machine's speed drifts. Then
the memory after each hundred documents more.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np

from benchmarks.extract import seconds
from core.analysis.document_profile import Ranks, Yardstick, consensus, profile
from core.analysis.similarity import similarity
from core.model.embedder import Embedder
from core.retrieval.head_index import HeadIndex, nearest_by_head
from core.retrieval.votes import Say, vote
from tests.support.peer import demo_texts, peer

WORDS = 250
TOPICS = 25
NEAREST = 20
CHUNK = 1_000


@dataclass(frozen=True)
class Corpus:
    """What the app keeps of a stage once it is opened."""

    index: HeadIndex
    yardstick: Yardstick
    say: Say


def corpus(documents: int, heads: int, dim: int) -> Corpus:
    """A synthetic one: a mean of its own for every head, and noise."""
    chance = np.random.default_rng(0)
    mean, topics = chance.normal(size=heads * dim), chance.normal(size=(TOPICS, heads, dim)).astype(np.float32)
    parts = [
        (0.5 * mean + chance.normal(size=(min(CHUNK, documents - first), heads * dim))).astype(np.float16)
        for first in range(0, documents, CHUNK)
    ]
    index = HeadIndex.of(parts, heads)
    values = (similarity(part.reshape(len(part), heads, dim).astype(np.float32), topics) for part in parts)
    yardstick = Yardstick(
        topics, Ranks.of(value.astype(np.float16) for value in values), Ranks.of([index.activations.T])
    )
    return Corpus(index, yardstick, Say.of(parts, heads))


def through_every_head(embedder: Embedder, against: Corpus, text: str, stage: int = 3) -> Any:
    """What the page computes between a paste and a profile."""
    vectors = embedder.embed([text]).stage(stage)[0].reshape(embedder.info.shape.heads, -1)
    found = profile(vectors, against.yardstick)
    nearest = nearest_by_head(against.index.cosines(vectors), NEAREST)
    return found, consensus(found), nearest, vote(nearest.docs[1:], against.say.weight)


def compare(embedder: Embedder, against: Corpus, text: str, rounds: int, repeats: int) -> dict[str, Any]:
    """Times both, turn by turn, the order changing every round."""
    other = peer(embedder.info.name, embedder.info.max_tokens)
    plain = np.random.default_rng(1).normal(size=(against.index.docs, embedder.info.shape.hidden))
    plain = plain.astype(np.float32)
    work: dict[str, Callable[[], object]] = {
        "headscope": lambda: [through_every_head(embedder, against, text) for _ in range(repeats)],
        "sentence-transformers": lambda: [plain @ other.encode([text])[0] for _ in range(repeats)],
    }
    for each in work.values():  # warms both up
        each()
    times: dict[str, list[float]] = {name: [] for name in work}
    for turn in range(rounds):
        for name in list(work) if turn % 2 else list(work)[::-1]:
            times[name].append(seconds(work[name]) / repeats)
    vectors = embedder.embed([text]).stage(3)[0].reshape(embedder.info.shape.heads, -1)
    alone = [seconds(lambda: profile(vectors, against.yardstick)) for _ in range(20)]
    near = [seconds(lambda: nearest_by_head(against.index.cosines(vectors), NEAREST)) for _ in range(20)]
    ratios = [a / b for a, b in zip(times["headscope"], times["sentence-transformers"], strict=True)]
    return {
        "documents": against.index.docs,
        "words": len(text.split()),
        "rounds": rounds,
        "milliseconds": {name: round(1_000 * statistics.median(values), 1) for name, values in times.items()},
        "milliseconds_of_it": {
            "profile": round(1_000 * statistics.median(alone), 2),
            "nearest": round(1_000 * statistics.median(near), 2),
        },
        "ratio_of_time": round(statistics.median(ratios), 2),
        "ratios": [round(ratio, 2) for ratio in ratios],
    }


def memory(embedder: Embedder, against: Corpus, texts: list[str]) -> dict[str, Any]:
    """Resident memory after each hundred documents, over all texts of the demo again and again.

    It grows while lengths are new, for torch keeps a plan for each, and then no more.
    """
    found = {}
    for number in range(1, 801):
        text = texts[number % len(texts)]
        through_every_head(embedder, against, text)
        embedder.attended(text)
        if number % 100 == 0:
            found[number] = round(_resident(), 1)
    return {"megabytes_after_documents": found}


def _resident() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()
    embedder = Embedder.load()
    shape = embedder.info.shape
    against = corpus(options.documents, shape.heads, shape.hidden // shape.heads)
    texts = demo_texts()
    text = " ".join(" ".join(texts).split()[:WORDS])
    print(f"{torch.get_num_threads()} threads, {os.cpu_count()} cores, torch {torch.__version__}")
    print(json.dumps(compare(embedder, against, text, options.rounds, options.repeats), indent=1))
    print(json.dumps(memory(embedder, against, texts), indent=1))


if __name__ == "__main__":
    main()
