"""Learned head weights: relevant documents above others, by no more than the queries can tell."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from core.analysis.bootstrap import Interval, means, near_best
from core.machine import cores
from core.retrieval.judge import METRIC, PLACES, Judge

STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0, np.inf)
"""How strongly weights are drawn to 1; with the last they are all the same."""
FOLDS = 5
_NEAR, _ANY = 32, 64
"""Documents that a relevant one is held against: the highest ranked wrong ones, and some at random."""
_WANTED = 10
"""Relevant documents of a query that are learned from; of more, some at random."""


@dataclass(frozen=True)
class Learned:
    """``weights[head]``, not negative, 1 on average; chosen by cross-validation over queries."""

    weights: np.ndarray
    strength: float
    by_strength: Interval
    """``[strength]``: the metric on queries left out, in the order of ``STRENGTHS``."""


def learn(judge: Judge, metric: str = METRIC, places: int = PLACES, seed: int = 0) -> Learned:
    """Weights for the mean of head cosines; ``judge`` has the queries to learn from.

    Of the strengths within one standard error of the best the largest is taken: weights that differ for no reason that
    can be shown do not.
    """
    if judge.way not in ("mean", "weighted"):
        raise ValueError(f"Weights are learned for head cosines, not for the way '{judge.way}'.")
    queries = len(judge.asked.seen)
    folds = np.random.default_rng(seed).permutation(queries) % min(FOLDS, queries)
    pairs, owner = _pairs(judge, seed)
    left_out = np.empty((queries, len(STRENGTHS)))

    def leave_out(fold: int) -> None:
        learning = np.isin(owner, np.flatnonzero(folds != fold))
        for place, weights in enumerate(_fit(pairs[learning], STRENGTHS)):
            left_out[folds == fold, place] = judge.verdict(judge.total(weights), metric, places)[folds == fold]

    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    with threadpool_limits(1), ThreadPoolExecutor(cores()) as pool:
        list(pool.map(leave_out, np.unique(folds)))
    chosen = int(np.flatnonzero(near_best(left_out))[-1])
    return Learned(_fit(pairs, STRENGTHS[chosen : chosen + 1])[0], STRENGTHS[chosen], means(left_out))


def _pairs(judge: Judge, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosines of a relevant document minus those of another, ``[pair, head]``, and each pair's query."""
    chance = np.random.default_rng(seed)
    ranked = judge.ranked(judge.total(np.ones(judge.heads)), _NEAR + judge.answers.relevant.sum(axis=1).max())
    found, owner = [], []
    for query, good in enumerate(judge.answers.relevant):
        wrong = ~good
        if judge.asked.own[query] >= 0:
            wrong[judge.asked.own[query]] = False
        near = [doc for doc in ranked[query] if wrong[doc]][:_NEAR]
        others = np.flatnonzero(wrong)
        drawn = chance.choice(others, size=min(_ANY, len(others)), replace=False)
        against = judge.parts[:, query, np.union1d(near, drawn).astype(int)]
        relevant = np.flatnonzero(good)
        chosen = relevant if len(relevant) <= _WANTED else np.sort(chance.choice(relevant, _WANTED, replace=False))
        wanted = judge.parts[:, query, chosen]
        differences = (wanted[:, :, None] - against[:, None, :]).reshape(judge.heads, -1).T
        found.append(differences)
        owner.append(np.full(len(differences), query))
    return np.concatenate(found).astype(np.float64), np.concatenate(owner)


def _fit(pairs: np.ndarray, strengths: Sequence[float]) -> list[np.ndarray]:
    """By strength, the weights ``[head]``, none negative, with the least logistic loss of ``pairs[pair, head]``.

    They are drawn to 1 and are 1 on average. Margins are counted in what they vary by with equal weights, so that a
    strength means the same for any model.
    """
    from scipy.optimize import minimize  # late: the app only reads what was learned

    heads = pairs.shape[1]
    spread = pairs.sum(axis=1).std() if len(pairs) else 0.0
    scaled = pairs / spread if spread else pairs

    def loss(weights: np.ndarray, strength: float) -> tuple[float, np.ndarray]:
        margins, apart = scaled @ weights, weights - 1
        # With e = exp(-|m|): log(1 + exp(-m)) is log(1 + e) - min(m, 0), and its slope 1 / (1 + exp(m)) needs no more.
        small = np.exp(-np.abs(margins))
        value = (np.log1p(small) - np.minimum(margins, 0)).mean() + strength * (apart**2).mean() / 2
        wrong = np.where(margins > 0, small, 1) / (1 + small)
        return value, -(wrong @ scaled) / len(scaled) + strength * apart / heads

    def fitted(strength: float) -> np.ndarray:
        if np.isinf(strength) or spread == 0:
            return np.ones(heads)
        start, bounds = np.ones(heads), [(0, None)] * heads
        found = minimize(loss, start, (strength,), jac=True, method="L-BFGS-B", bounds=bounds).x
        return found * heads / found.sum() if found.any() else start

    return [fitted(strength) for strength in strengths]
