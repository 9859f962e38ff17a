"""Ways to rank documents for a query by what its heads see: one table, each way exact on arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from core.errors import Mistake, listed
from core.model.stages import SHARE
from core.retrieval.head_index import HeadIndex, largest, nearest_by_head

DEPTH = 32
"""A head votes for so many of its nearest documents."""
SIDE_BY_SIDE = "side by side"
_FUSION = 60
_LEAST_DISTANCE = 1e-6
"""Below it float32 cosines do not tell documents apart; 1/d would be any number."""


@dataclass(frozen=True)
class Seen:
    """What the heads see of one query. Switching heads needs nothing else: the vectors are not touched again."""

    cosines: np.ndarray
    """``[head, doc]``: of the query with every document."""
    nearest: np.ndarray
    """``[head, rank]``: each head's nearest documents, nearest first; equal ones in order of the documents."""
    lengths: np.ndarray
    """``[head]``: of the query's vectors."""
    doc_lengths: np.ndarray
    """``[head, doc]``: of the documents'."""

    @classmethod
    def of(cls, index: HeadIndex, query: np.ndarray, depth: int = DEPTH, own: int = -1) -> Seen:
        """Looks with ``query[head, dim]``; ``own`` is a document that is the query itself and gets no vote."""
        cosines = index.head_cosines(query)
        lengths = np.linalg.norm(query.astype(np.float64), axis=1)
        if own < 0:
            return cls(cosines, nearest_by_head(cosines, depth).docs, lengths, index.lengths)
        others = cosines.copy()
        others[:, own] = -np.inf
        return cls(cosines, nearest_by_head(others, min(depth, index.docs - 1)).docs, lengths, index.lengths)


@dataclass(frozen=True)
class Heads:
    """Which heads count, and how much: each ``[head]``, and not negative; a weight of 0 switches a head off."""

    weights: np.ndarray
    scores: np.ndarray
    """MRAG's ``s_h``, see ``core.retrieval.votes.Say``: of the corpus, not of anybody's choice."""

    def __post_init__(self) -> None:
        if not (self.weights >= 0).all() or not np.isfinite(self.weights).all():
            raise Mistake("A head's weight must be at least 0. Correct the weights.")
        if not (self.weights > 0).any():
            raise Mistake("Every head is switched off, so nothing can be ranked. Switch at least one on.")

    @property
    def on(self) -> np.ndarray:
        return self.weights > 0


@dataclass(frozen=True)
class Way:
    """A way to rank: what each head gives each document, and how that becomes one number a document."""

    sentence: str
    given: Callable[[Seen, Heads], np.ndarray]
    """``[head, doc]``; 0 from a head that is off."""
    total: Callable[[np.ndarray, np.ndarray], np.ndarray]
    """From ``given`` and which heads are on: ``[doc]``."""
    stage: int | None = None
    """The stage whose slices it is defined on; None: any."""


@dataclass(frozen=True)
class Ranking:
    """Documents, best first."""

    docs: np.ndarray
    """``[rank]``; equal scores in order of the documents."""
    scores: np.ndarray
    """``[rank]``."""
    by_head: np.ndarray
    """``[rank, head]``: what each head gave."""


def rank(way: str, seen: Seen, heads: Heads, count: int = DEPTH) -> Ranking:
    """The ``count`` best documents by one of ``WAYS``."""
    if way not in WAYS:
        raise Mistake(f"There is no way to rank called '{way}'. Choose one of: {listed(WAYS)}.")
    given = WAYS[way].given(seen, heads)
    scores = WAYS[way].total(given, heads.on)
    docs = largest(scores, min(count, len(scores)))
    return Ranking(docs, scores[docs], given[:, docs].T)


def _sum(given: np.ndarray, on: np.ndarray) -> np.ndarray:
    total: np.ndarray = given.sum(axis=0, dtype=np.float64)
    return total


def _max(given: np.ndarray, on: np.ndarray) -> np.ndarray:
    highest: np.ndarray = given[on].max(axis=0)  # a head that is off gives 0, which is more than a negative cosine
    return highest


def _full(seen: Seen, heads: Heads) -> np.ndarray:
    """The heads' shares in the cosine of the vectors side by side, each scaled by the root of its weight."""
    weights = heads.weights[:, None]
    own = np.sqrt((heads.weights * seen.lengths**2).sum())
    theirs = np.sqrt((weights * seen.doc_lengths.astype(np.float64) ** 2).sum(axis=0))
    products = weights * seen.lengths[:, None] * seen.doc_lengths * seen.cosines
    norms = np.broadcast_to(own * theirs, products.shape)
    return np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)


def _mean(seen: Seen, heads: Heads) -> np.ndarray:
    return seen.cosines * (heads.on / heads.on.sum())[:, None]


def _weighted(seen: Seen, heads: Heads) -> np.ndarray:
    return seen.cosines * (heads.weights / heads.weights.sum())[:, None]


def _alone(seen: Seen, heads: Heads) -> np.ndarray:
    return seen.cosines * heads.on[:, None]


def _voted(seen: Seen, votes: np.ndarray) -> np.ndarray:
    """``votes[head, rank]`` for each head's nearest, laid out by document."""
    given = np.zeros(seen.cosines.shape)
    np.put_along_axis(given, seen.nearest, votes, axis=1)
    return given


def _halved(seen: Seen, say: np.ndarray) -> np.ndarray:
    return _voted(seen, say[:, None] * 0.5 ** np.arange(seen.nearest.shape[1]))


def _by_distance(seen: Seen, heads: Heads) -> np.ndarray:
    distance = 1 - np.take_along_axis(seen.cosines, seen.nearest, axis=1).astype(np.float64)
    return _voted(seen, heads.weights[:, None] / np.maximum(distance, _LEAST_DISTANCE))


def _fused(seen: Seen, heads: Heads) -> np.ndarray:
    return _voted(seen, heads.weights[:, None] / (_FUSION + 1 + np.arange(seen.nearest.shape[1])))


def _mrag(seen: Seen, heads: Heads) -> np.ndarray:
    return _halved(seen, heads.scores * heads.weights)


WAYS = {
    "full": Way("Cosine of the kept heads, side by side in one vector.", _full, _sum),
    "mean": Way("Mean of the head cosines.", _mean, _sum),
    "max": Way("Highest of the head cosines.", _alone, _max),
    "weighted": Way("Mean of the head cosines, weighted.", _weighted, _sum),
    "voting": Way(
        f"MRAG: each head's {DEPTH} nearest documents get 1, 1/2, 1/4 … times the head's score.", _mrag, _sum
    ),
    "decay": Way(
        f"Each head's {DEPTH} nearest documents get 1, 1/2, 1/4 …; all heads count equally.",
        lambda seen, heads: _halved(seen, heads.weights),
        _sum,
    ),
    "distance": Way(f"Each head's {DEPTH} nearest documents get 1 divided by their distance.", _by_distance, _sum),
    "split": Way("MRAG's voting on slices of the model's own embedding.", _mrag, _sum, stage=3),
    "fusion": Way(f"Reciprocal rank fusion: each head's {DEPTH} nearest documents get 1/61, 1/62 …", _fused, _sum),
    SIDE_BY_SIDE: Way("Cosine of the kept heads' shares, side by side.", _full, _sum, stage=SHARE),
}
"""At stage 4 'full' is the model's own embedding, the sum of the shares and the rest; see core/retrieval/turned.py."""
