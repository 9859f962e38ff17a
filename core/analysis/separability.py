"""Are heads more distinguishable than random slices? A linear probe over many splits and slicings, paired by split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from core.analysis.bootstrap import Interval
from core.analysis.null import random_orders
from core.model.share_space import ShareSpace

SLICINGS = 20
"""Each with a split of its own: a single split moved the accuracy by up to 0.05."""
SAMPLE = 400
"""Documents, at most."""
LEAST_DOCUMENTS = 20
_TEST = 0.2
_RIDGE = 1e-3
"""Of the mean variance, added to the pooled covariance: slices wider than the sample stay solvable."""


@dataclass(frozen=True)
class Separability:
    """Linear discriminant analysis names the head from its vector; documents are split, never a document's heads."""

    heads: np.ndarray
    """``[split]``: accuracy."""
    slices: np.ndarray
    """``[split]``: accuracy on random slices, another slicing for each split."""
    recall: np.ndarray
    """``[head]``: mean over the splits."""
    null: np.ndarray
    """``[slicing, slice]``: the same for random slices."""
    documents: int

    @property
    def difference(self) -> Interval:
        """Heads less slices, paired by split."""
        return over_splits(self.heads - self.slices)


def separability(
    vectors: np.ndarray,
    heads: int,
    seed: int = 0,
    progress: Callable[[float], None] = lambda share: None,
    space: ShareSpace | None = None,
) -> Separability | None:
    """From ``vectors[doc, width]``, in random order; None where there are too few documents or a single head.

    ``space`` is that of stage 4, whose random slices are cut in it.
    """
    docs = vectors[:SAMPLE].astype(np.float32)
    if len(docs) < LEAST_DOCUMENTS or heads < 2:
        return None
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    chance = np.random.default_rng([seed, 2])
    own, random = [], []
    shuffled = docs if space is None else space.outputs(docs)
    with threadpool_limits(1):  # small matrices
        for number, order in enumerate(random_orders(shuffled.shape[1], SLICINGS, seed)):
            test = chance.permutation(len(docs)) < round(_TEST * len(docs))
            own.append(_recall(docs.reshape(len(docs), heads, -1), test))
            slices = docs[:, order].reshape(len(docs), heads, -1) if space is None else space.slices(order)(shuffled)
            random.append(_recall(slices, test))
            progress((number + 1) / SLICINGS)
    recall, null = np.stack(own), np.stack(random)
    return Separability(recall.mean(axis=1), null.mean(axis=1), recall.mean(axis=0), null, len(docs))


def over_splits(values: np.ndarray) -> Interval:
    """The mean of ``values[split]`` with a 95 % interval for splits that share documents (Nadeau and Bengio, 2003)."""
    from scipy.special import stdtrit

    count = len(values)
    error = np.sqrt(values.var(ddof=1) * (1 / count + _TEST / (1 - _TEST)))
    margin = stdtrit(count - 1, 0.975) * error
    mean = values.mean()
    return Interval(mean, mean - margin, mean + margin)


def _recall(slices: np.ndarray, test: np.ndarray) -> np.ndarray:
    """``[head]``: how many of the tested documents' vectors are named rightly, from ``slices[doc, head, dim]``."""
    train, heads = slices[~test], slices.shape[1]
    means = train.mean(axis=0)
    within = (train - means).reshape(-1, slices.shape[2])
    covariance = within.T @ within / len(within)
    covariance += _RIDGE * max(float(np.trace(covariance)) / len(covariance), 1e-12) * np.eye(len(covariance))
    weights = np.linalg.solve(covariance, means.T)  # [dim, head]
    scores = slices[test] @ weights - 0.5 * (means.T * weights).sum(axis=0)
    return np.asarray((scores.argmax(axis=2) == np.arange(heads)).mean(axis=0))
