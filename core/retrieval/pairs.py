"""How alike two documents of a corpus usually are in each head: what a new pair is held against."""

from __future__ import annotations

import numpy as np

from core.analysis.document_profile import Ranks
from core.analysis.similarity import full_vectors, similarity, unit
from core.model.share_space import ShareSpace
from core.retrieval.head_index import HeadIndex

PAIRS = 4_000


def usual_pairs(index: HeadIndex, pairs: int = PAIRS, seed: int = 0) -> Ranks | None:
    """Cosines ``[1 + head, pair]`` of pairs of different documents, drawn at random; None where there are no two."""
    docs = index.docs
    if docs < 2:
        return None
    chance = np.random.default_rng(seed)
    one = chance.integers(docs, size=pairs)
    other = (one + chance.integers(1, docs, size=pairs)) % docs  # never the same document
    found = np.zeros((1 + len(index.lengths), pairs), dtype=np.float32)
    weighted, norms = np.zeros(pairs), np.zeros((2, pairs))
    for head in range(len(index.lengths)):
        first, second = (index.vectors[docs, head].astype(np.float32) for docs in (one, other))
        ours, theirs = index.lengths[head, one], index.lengths[head, other]
        np.divide((first * second).sum(axis=1), ours * theirs, out=found[head + 1], where=ours * theirs > 0)
        weighted += ours * theirs * found[head + 1]
        norms += np.stack([ours**2, theirs**2])
    length = np.sqrt(norms.prod(axis=0))
    found[0] = np.divide(weighted, length, out=np.zeros(pairs), where=length > 0)
    if (space := index.space) is not None:
        sums = [unit(full_vectors(index.vectors[docs].astype(np.float32), space)) for docs in (one, other)]
        found[0] = (sums[0] * sums[1]).sum(axis=1)
    return Ranks.of([found.T])


def pair_cosines(one: np.ndarray, other: np.ndarray, space: ShareSpace | None = None) -> np.ndarray:
    """Of two documents' ``vectors[head, dim]``: ``[1 + head]``, index 0 for the full embedding."""
    both = one[None].astype(np.float32), other[None].astype(np.float32)
    found: np.ndarray = similarity(*both, (full_vectors(both[0], space), full_vectors(both[1], space)))[0, :, 0]
    return found
