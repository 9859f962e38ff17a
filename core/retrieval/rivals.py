"""Is it the heads? What a pruned set of heads is held against: other ways to keep equally many numbers.

Where random dimensions do as well, "these heads may go" is no finding about heads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from core.analysis.bootstrap import Interval, means
from core.analysis.null import random_orders
from core.analysis.similarity import unit
from core.machine import cores
from core.retrieval.head_index import HeadIndex, largest_in_rows
from core.retrieval.judge import Judge
from core.retrieval.metrics import METRICS, Relevance, measured
from core.retrieval.pruning import backward, halves, mask
from core.retrieval.tasks import Posed, ask

DRAWS = 20
"""Random heads and random dimensions are averaged over so many draws."""
SLICINGS = 2
"""Random slicings from which slices are chosen as the heads were; each costs as much as choosing the heads."""
_NO_LENGTH = 1e-12
"""Of the longest direction's square: below it a direction is rounding."""
RIVALS = {
    "random slices": "random slices, chosen on the same half",
    "random heads": "random heads",
    "random dimensions": "random dimensions",
    "first dimensions": "the first dimensions",
    "PCA": "principal components",
}


@dataclass(frozen=True)
class Rival:
    """What a rival reaches on the held-out queries, and what the chosen heads are ahead of it, paired by query."""

    name: str
    reached: Interval
    ahead: Interval
    p: float
    """Two-sided, of the difference."""


def rivals(
    index: HeadIndex,
    posed: Posed,
    topics: np.ndarray,
    kept: np.ndarray,
    metric: str,
    places: int,
    seed: int = 0,
    progress: Callable[[float], None] = lambda share: None,
) -> list[Rival]:
    """Of cosine ranking with the heads ``kept`` (from 0), chosen on one half of the queries of ``posed``."""
    docs = index.vectors.astype(np.float32).reshape(index.docs, -1)
    queries = posed.vectors.astype(np.float32).reshape(len(posed.vectors), -1)
    heads, size = index.vectors.shape[1], len(kept)
    dim = index.vectors.shape[2]
    choose, held_out = halves(len(queries), seed)
    asked = posed.some(held_out)
    answers = Relevance.of(asked.relevant, topics)

    def verdict(columns: np.ndarray | slice) -> np.ndarray:
        return _verdict(queries[held_out][:, columns], docs[:, columns], asked.own, answers, metric, places)

    def mean_verdict(draws: Iterable[np.ndarray]) -> np.ndarray:
        from threadpoolctl import threadpool_limits  # comes with scikit-learn

        with threadpool_limits(1), ThreadPoolExecutor(cores()) as pool:
            return np.mean(list(pool.map(verdict, draws)), axis=0)

    chance = np.random.default_rng([seed, 4])
    by_head = np.arange(heads * dim).reshape(heads, dim)
    own = verdict(by_head[kept].ravel())
    width = size * dim
    found = {
        "random heads": mean_verdict(by_head[chance.permutation(heads)[:size]].ravel() for _ in range(DRAWS)),
        "random dimensions": mean_verdict(chance.permutation(heads * dim)[:width] for _ in range(DRAWS)),
        "first dimensions": verdict(slice(0, width)),
        "PCA": _verdict(*in_principal_directions(queries[held_out], docs, width), asked.own, answers, metric, places),
    }
    slices = []
    for number, order in enumerate(random_orders(index.outputs, SLICINGS, seed)):
        cut = HeadIndex.of([index.reslice(docs, order).reshape(len(docs), -1)], heads)
        other = Posed(index.reslice(queries, order), posed.relevant, posed.own, posed.aspects)
        judge = Judge.of("full", ask(cut, other.some(choose), topics), np.ones(heads))
        left = backward(judge, metric, places)[heads - size :]
        judge = Judge.of("full", ask(cut, other.some(held_out), topics), np.ones(heads))
        slices.append(judge.verdict(judge.total(mask(left, heads)), metric, places))
        progress((number + 1) / SLICINGS)
    found["random slices"] = np.mean(slices, axis=0)
    return [_rival(name, own, found[name]) for name in RIVALS]


def _rival(name: str, own: np.ndarray, other: np.ndarray) -> Rival:
    from scipy.special import ndtr

    both = means(np.stack([other, own - other], axis=1).astype(np.float32))
    difference = own - other
    error = difference.std(ddof=1) / len(difference) ** 0.5 if len(difference) > 1 else 0.0
    p = 1.0 if error == 0 else float(2 * ndtr(-abs(difference.mean()) / error))
    reached, ahead = (Interval(both.value[at], both.low[at], both.high[at]) for at in range(2))
    return Rival(name, reached, ahead, p)


def _verdict(
    queries: np.ndarray, docs: np.ndarray, own: np.ndarray, answers: Relevance, metric: str, places: int
) -> np.ndarray:
    """``[query]``: the metric of ranking by cosine."""
    scores = unit(queries) @ unit(docs).T
    here = np.flatnonzero(own >= 0)
    scores[here, own[here]] = -np.inf
    ranked = largest_in_rows(scores, min(places, scores.shape[1] - bool(len(here))))
    return np.asarray(measured(ranked, answers)[list(METRICS).index(metric), :, -1])


def in_principal_directions(queries: np.ndarray, docs: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Both in the documents' first ``width`` principal directions (not centred: cosines keep their meaning).

    Fewer documents than dimensions have no more directions than documents; further ones would not change a ranking.
    """
    exact = docs.astype(np.float64)
    if len(docs) < docs.shape[1]:  # the smaller product: at a width of 4096 the other one takes 12 s
        squares, weights = np.linalg.eigh(exact @ exact.T)
        real = squares > _NO_LENGTH * squares.max()
        vectors = exact.T @ (weights[:, real] / np.sqrt(squares[real]))
    else:
        _, vectors = np.linalg.eigh(exact.T @ exact)
    axes = vectors[:, ::-1][:, :width].astype(np.float32)
    return queries @ axes, docs @ axes
