"""Smaller embeddings of the same documents, each with its bytes per document: what a pruned model is compared with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from core.analysis.bootstrap import Interval, means
from core.analysis.similarity import unit

PLACES = 10
_AT_ONCE = 64
"""Queries that are ranked at a time."""
SHARES = (2, 4, 8)
"""One in so many numbers is kept."""


@dataclass(frozen=True)
class Contender:
    """``docs[doc, dim]`` and ``queries[query, dim]``, to be compared by cosine."""

    name: str
    bytes: int
    """Per document."""
    docs: np.ndarray
    queries: np.ndarray


@dataclass(frozen=True)
class BenchRow:
    name: str
    bytes: int
    ndcg: Interval
    """nDCG@10 over queries; all three are single numbers."""
    difference: Interval
    """Against the first contender, paired by query."""


def smaller(docs: np.ndarray, queries: np.ndarray, seed: int = 0) -> Iterator[Contender]:
    """The same embeddings with fewer numbers or bits; PCA is fitted on the documents."""
    width = docs.shape[1]
    scale = np.maximum(np.abs(docs).max(axis=1, keepdims=True), 1e-12) / 127
    yield Contender("int8", width + 4, np.rint(docs / scale) * scale, queries)
    order = np.random.default_rng(seed).permutation(width)
    mean = docs.mean(axis=0)
    axes = np.linalg.svd(docs - mean, full_matrices=False)[2]
    for share in SHARES:
        size = width // share
        if not size:
            continue
        yield Contender(f"first {size} dimensions", 4 * size, docs[:, :size], queries[:, :size])
        some = order[:size]
        yield Contender(f"{size} random dimensions", 4 * size, docs[:, some], queries[:, some])
        if size <= len(axes):
            chosen = axes[:size].T
            yield Contender(f"PCA to {size}", 4 * size, (docs - mean) @ chosen, (queries - mean) @ chosen)


def ndcg_of(one: Contender, relevant: Sequence[Sequence[int]]) -> np.ndarray:
    """``[query]``: nDCG@10 with gains of 1."""
    docs, queries = unit(one.docs), unit(one.queries)
    discounts = 1 / np.log2(np.arange(2, PLACES + 2))
    found = np.empty(len(queries))
    for start in range(0, len(queries), _AT_ONCE):
        cosines = queries[start : start + _AT_ONCE] @ docs.T
        ranked = np.argsort(-cosines, axis=1, kind="stable")[:, :PLACES]
        for at, row in enumerate(ranked):
            wanted = relevant[start + at]
            hits = np.isin(row, wanted)
            found[start + at] = (discounts[: len(row)] * hits).sum() / discounts[: min(len(wanted), len(row))].sum()
    return found


def bench_rows(names: Sequence[tuple[str, int]], ndcg: np.ndarray, seed: int = 0) -> list[BenchRow]:
    """From ``ndcg[contender, query]``; ``names`` are the contenders' names and bytes, the first one all heads."""
    value = means(ndcg.T.astype(np.float32), seed)
    difference = means((ndcg - ndcg[:1]).T.astype(np.float32), seed)
    return [
        BenchRow(name, size, *(_at(interval, at) for interval in (value, difference)))
        for at, (name, size) in enumerate(names)
    ]


def _at(interval: Interval, at: int) -> Interval:
    return Interval(interval.value[at], interval.low[at], interval.high[at])
