"""A sample in which every topic has its share."""

from __future__ import annotations

import numpy as np


def stratified(labels: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    """``count`` of the documents of ``labels[doc]``, in their order; those without a label (-1) are a topic too.

    Each topic gets its share, rounded so that the shares add up, and at least one document as long as there are enough.
    """
    if count >= len(labels):
        return np.arange(len(labels))
    topics, sizes = np.unique(labels, return_counts=True)
    exact = sizes * (count / len(labels))
    shares = np.floor(exact).astype(int)
    if count >= len(topics):
        shares = np.maximum(shares, 1)
    # The largest remainders are rounded up; where the ones have taken too much, the largest topics give.
    while shares.sum() < count:
        shares[np.argmax(np.where(shares < sizes, exact - shares, -np.inf))] += 1
    while shares.sum() > count:
        shares[np.argmax(np.where(shares > 1, shares - exact, -np.inf))] -= 1
    chance = np.random.default_rng(seed)
    chosen = [
        chance.choice(np.flatnonzero(labels == topic), share, replace=False)
        for topic, share in zip(topics, shares, strict=True)
    ]
    return np.sort(np.concatenate(chosen))
