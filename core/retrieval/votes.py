"""Multi-head voting: every head names its nearest documents, and heads that say more have a larger say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from core.analysis.similarity import unit

DEPTH = 20
"""Places of a head that count. Place 20 would have a millionth of the first one's say."""


@dataclass(frozen=True)
class Say:
    """How much each head's vote weighs, and why: ``weight = activation * distance``, each ``[head]``."""

    activation: np.ndarray
    """Mean length of the head's vectors over the corpus."""
    distance: np.ndarray
    """Mean of 1 - cosine over all pairs of documents: a head that sees all documents alike has little to say."""

    @property
    def weight(self) -> np.ndarray:
        weight: np.ndarray = self.activation * self.distance
        return weight

    @classmethod
    def of(cls, parts: Iterable[np.ndarray], heads: int) -> Say:
        """From the corpus's vectors ``[doc, head * dim]``, some documents at a time; one pass, exact.

        With u the unit vectors, the cosines of all ordered pairs, own ones included, add up to |Σu|²; what is left
        after the own ones, Σ|u|², is over n(n-1) pairs.
        """
        count, lengths, own = 0, np.zeros(heads), np.zeros(heads)
        total: np.ndarray | None = None
        for part in parts:
            vectors = part.reshape(len(part), heads, -1).astype(np.float64)
            lengths += np.linalg.norm(vectors, axis=2).sum(axis=0)
            units = unit(vectors)
            own += (units**2).sum(axis=(0, 2))
            total = units.sum(axis=0) if total is None else total + units.sum(axis=0)
            count += len(part)
        if total is None or count < 2:
            return cls(lengths / max(1, count), np.zeros(heads))  # one document has no pairs
        cosine = ((total**2).sum(axis=1) - own) / (count * (count - 1))
        return cls(lengths / count, np.maximum(1 - cosine, 0))  # rounding may leave -1e-16


@dataclass(frozen=True)
class Ballot:
    """Documents by their votes, most first."""

    docs: np.ndarray
    """``[rank]``."""
    scores: np.ndarray
    """``[rank]``: the sum over the heads."""
    by_head: np.ndarray
    """``[rank, head]``: what each head gave; 0 where the document was not among its nearest."""


def vote(nearest: np.ndarray, weight: np.ndarray, count: int = 10) -> Ballot:
    """Ranks documents by ``nearest[head, rank]``, each head's nearest documents, nearest first.

    The r-th of head h, r from 0, gets ``weight[h] * 2**-r``. Equal sums come in order of the documents.
    """
    nearest = nearest[:, :DEPTH]
    heads, depth = nearest.shape
    docs, place = np.unique(nearest, return_inverse=True)
    by_head = np.zeros((len(docs), heads))
    given = weight[:, None] * 0.5 ** np.arange(depth)
    # Added, not set: a document is in a head's list once, but nothing here depends on that.
    np.add.at(by_head, (place.reshape(heads, depth), np.arange(heads)[:, None]), given)
    scores = by_head.sum(axis=1)
    order = np.argsort(-scores, kind="stable")[:count]
    return Ballot(docs[order], scores[order], by_head[order])
