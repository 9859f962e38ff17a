"""Heads turned up and down in the model's own space: ``rest + Σ weight · share``, ranked by its cosine.

The rest is what the embedding has beside the shares of this layer's heads: earlier layers, feed-forward blocks, biases.
With all weights 1 and the rest, it is the model's embedding (stage 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from core.analysis.similarity import unit
from core.model.share_space import ShareSpace
from core.retrieval.head_index import largest, largest_in_rows

_PIECE = 2_048
"""Documents that are turned at a time."""


@dataclass(frozen=True)
class ShareRows:
    """Some documents, or queries: their shares and, where the run stores stage 3, their embeddings."""

    shares: np.ndarray
    """``[doc, head, dim]`` as stored."""
    outputs: np.ndarray | None
    """``[doc, hidden]`` as stored."""

    def pieces(self) -> Iterator[ShareRows]:
        for first in range(0, len(self.shares), _PIECE):
            own = slice(first, first + _PIECE)
            yield ShareRows(self.shares[own], None if self.outputs is None else self.outputs[own])

    def some(self, docs: np.ndarray) -> ShareRows:
        return ShareRows(self.shares[docs], None if self.outputs is None else self.outputs[docs])


@dataclass(frozen=True)
class TurnedHeads:
    """Which heads count how much, and whether the rest does."""

    space: ShareSpace
    weights: np.ndarray
    """``[head]``, not negative."""
    rest: bool

    def vectors(self, rows: ShareRows) -> np.ndarray:
        """``[doc, hidden]`` in float32."""
        flat = rows.shares.reshape(len(rows.shares), -1)
        if not self.rest:
            return self.space.weighted(flat, self.weights)
        assert rows.outputs is not None, "the rest needs stage 3"
        if (self.weights == 1).all():
            return rows.outputs.astype(np.float32)
        # rest + Σ weight · share = embedding + Σ (weight - 1) · share: where nothing is turned, it is stage 3 itself.
        return np.asarray(self.space.weighted(flat, self.weights - 1) + rows.outputs.astype(np.float32))

    def scores(self, queries: ShareRows, docs: ShareRows) -> np.ndarray:
        """Cosines ``[query, doc]``."""
        asked = unit(self.vectors(queries))
        return np.concatenate([asked @ unit(self.vectors(piece)).T for piece in docs.pieces()], axis=1)

    def ranked(self, queries: ShareRows, docs: ShareRows, own: np.ndarray, depth: int) -> np.ndarray:
        """``[query, rank]``: documents, best first; ``own[query]`` (-1 for none) is not among them."""
        scores = self.scores(queries, docs)
        here = np.flatnonzero(own >= 0)
        scores[here, own[here]] = -np.inf
        return largest_in_rows(scores, min(depth, scores.shape[1] - bool(len(here))))

    def rank(self, query: ShareRows, docs: ShareRows, count: int, own: int = -1) -> TurnedRanking:
        """The ``count`` best documents, and what each head and the rest add to their cosines."""
        scores = self.scores(query, docs)[0]
        if own >= 0:
            scores[own] = -np.inf
        best = largest(scores, min(count, len(scores) - (own >= 0)))
        found, asked = docs.some(best), unit(self.vectors(query))[0]
        lengths = np.linalg.norm(self.vectors(found), axis=1)
        along = np.einsum("nhd,hd->nh", found.shares.astype(np.float32), self.space.coordinates(asked))
        by_head = np.divide(
            along * self.weights, lengths[:, None], out=np.zeros_like(along), where=lengths[:, None] > 0
        )
        return TurnedRanking(best, scores[best], by_head, scores[best] - by_head.sum(axis=1))


@dataclass(frozen=True)
class TurnedRanking:
    """Documents, best first; ``by_head`` and ``rest`` add up to ``scores``."""

    docs: np.ndarray
    """``[rank]``."""
    scores: np.ndarray
    """``[rank]``: cosines."""
    by_head: np.ndarray
    """``[rank, head]``: what the head's share of the document adds, along the query's turned embedding."""
    rest: np.ndarray
    """``[rank]``."""
