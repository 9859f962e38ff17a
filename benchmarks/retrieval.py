"""Retrieval by heads at a large corpus's size: ``python -m benchmarks.retrieval``.

All heads' nearest 32 documents for one query over 100,000 × 32 × 128 float16 on a memory map, against the bare product
of the same bytes with one vector in float32, by whichever is quicker of torch and NumPy, a block at a time; turn by
turn in one process, the median of the rounds' ratios. Beside it, for information, torch's product in float16, whose
results have three digits: too few to rank by. Then what a switch of a head takes, and a whole study of pruning for
10,000 documents and 250 queries.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.extract import seconds
from benchmarks.result import Result
from core.retrieval.head_index import HeadIndex
from core.retrieval.study import Scales, prune
from core.retrieval.tasks import Posed, ask
from core.retrieval.ways import DEPTH, WAYS, Heads, Seen, rank

HEADS, DIM, DOCS, ROUNDS = 32, 128, 100_000, 7
STUDY_DOCS, STUDY_QUERIES, ASPECTS = 10_000, 250, 5
_CHUNK, _BLOCK = 2_000, 512


def memory_map(path: Path, docs: int) -> np.memmap:
    made = np.memmap(path, np.float16, "w+", shape=(docs, HEADS, DIM))
    chance = np.random.default_rng(0)
    for first in range(0, docs, _CHUNK):
        made[first : first + _CHUNK] = chance.standard_normal((min(_CHUNK, docs - first), HEADS, DIM), np.float32)
    made.flush()
    return np.memmap(path, np.float16, "r", shape=(docs, HEADS, DIM))


def bare_numpy(rows: np.ndarray, query: np.ndarray) -> np.ndarray:
    """A block at a time: NumPy has no float16 product to speak of."""
    found = np.empty(len(rows), dtype=np.float32)
    for first in range(0, len(rows), _BLOCK):
        found[first : first + _BLOCK] = rows[first : first + _BLOCK].astype(np.float32) @ query
    return found


def nearest(docs: int, rounds: int, folder: Path) -> tuple[list[Result], Seen]:
    import torch

    vectors = memory_map(folder / "vectors.f16", docs)
    query = np.random.default_rng(1).standard_normal((HEADS, DIM), np.float32)
    lengths = np.concatenate(
        [np.linalg.norm(vectors[at : at + _CHUNK].astype(np.float32), axis=2) for at in range(0, docs, _CHUNK)]
    ).T.copy()
    index, flat = HeadIndex(vectors, lengths), vectors.reshape(docs, -1)
    rows, one = torch.from_numpy(np.asarray(flat)), torch.from_numpy(query.reshape(-1)).half()
    exact, out = torch.from_numpy(query.reshape(-1)), torch.empty(docs)

    def bare_torch() -> None:
        for first in range(0, docs, _BLOCK):
            torch.mv(rows[first : first + _BLOCK].float(), exact, out=out[first : first + _BLOCK])

    ours, theirs, rough = [], [], []
    for _ in range(rounds):
        ours.append(seconds(lambda: Seen.of(index, query, DEPTH)))
        theirs.append(min(seconds(bare_torch), seconds(lambda: bare_numpy(flat, query.reshape(-1)))))
        rough.append(seconds(lambda: rows @ one))
    print(f"torch's product in float16: {statistics.median(rough):.3f} s", file=sys.stderr)
    ratio = statistics.median(mine / bare for mine, bare in zip(ours, theirs, strict=True))
    told = f"{ratio:.2f} × ({statistics.median(ours):.3f} s against {statistics.median(theirs):.3f} s)"
    seen = Seen.of(index, query, DEPTH)
    return [Result(f"all heads' top {DEPTH} of {docs:,} against the bare product", told, "≤ 2 ×", ratio <= 2)], seen


def switching(seen: Seen) -> list[Result]:
    """The slowest way when a head is switched; the vectors are not touched."""
    scores = np.random.default_rng(2).uniform(0.5, 1, HEADS)
    worst = {}
    for way in WAYS:
        times = []
        for head in range(9):
            weights = np.ones(HEADS)
            weights[head] = 0
            times.append(seconds(lambda way=way, weights=weights: rank(way, seen, Heads(weights, scores))))  # type: ignore[misc]
        worst[way] = statistics.median(times)
    way = max(worst, key=lambda name: worst[name])
    told = f"{worst[way] * 1e3:.0f} ms ('{way}')"
    return [Result(f"a head is switched, {seen.cosines.shape[1]:,} documents", told, "≤ 100 ms", worst[way] <= 0.1)]


def study(docs: int, queries: int) -> list[Result]:
    """Five heads carry the aspects, the others are noise."""
    chance = np.random.default_rng(3)
    vectors = chance.standard_normal((docs, HEADS, DIM), np.float32)
    asked, relevant = chance.standard_normal((queries, HEADS, DIM), np.float32), []
    for query in asked:
        wanted = chance.permutation(docs)[:ASPECTS]
        for head, doc in enumerate(wanted):
            query[6 * head] = vectors[doc, 6 * head] + 0.3 * chance.standard_normal(DIM)
        relevant.append(tuple(int(doc) for doc in wanted))
    began = time.perf_counter()
    index = HeadIndex.of([vectors.reshape(docs, -1).astype(np.float16)], HEADS)
    posed = Posed(asked, tuple(relevant), np.full(queries, -1), np.full(queries, ASPECTS))
    seen = ask(index, posed, np.zeros(docs, dtype=int))
    made = prune("decay", seen, Scales(np.ones(HEADS), np.ones(HEADS)), "ndcg", 10, _told)
    took = time.perf_counter() - began
    kept = sorted(int(head) + 1 for head in made.enough.heads)
    print(f"\r{' ' * 60}\rkept heads {kept}", file=sys.stderr)
    what = f"a study of pruning, {docs:,} documents × {HEADS} heads × {queries} queries"
    return [Result(what, f"{took:.0f} s", "< 300 s", took < 300)]


def _told(share: float, message: str) -> None:
    print(f"\r{share:4.0%} {message:<50}", end="", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=DOCS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--study-documents", type=int, default=STUDY_DOCS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results, seen = nearest(options.documents, options.rounds, Path(folder))
        results += switching(seen)
    del seen
    results += study(options.study_documents, STUDY_QUERIES)
    for result in results:
        print(f"{'ok  ' if result.reached else 'MISS'} {result.what}: {result.measured} (target {result.target})")
    return 0 if all(result.reached for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
