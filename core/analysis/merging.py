"""Which topics are near to each other (Fig. 1), and which merges that suggests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.analysis.similarity import unit
from core.errors import Mistake

STUDY_GROUPS = 25


@dataclass(frozen=True)
class Merges:
    """``group[topic]``, numbered by first appearance; ``threshold`` is the least mean cosine of two merged groups."""

    group: np.ndarray
    threshold: float


@dataclass(frozen=True)
class MergeAgreement:
    """How far two groupings agree: 1 the same, 0 no more than by chance (adjusted Rand index); pairs put together."""

    index: float
    pairs_both: int
    pairs_first: int
    pairs_second: int


def topic_similarity(vectors: np.ndarray) -> np.ndarray:
    """Cosines of ``vectors[topic, dim]``: ``[topic, topic]``."""
    length = unit(vectors.astype(np.float32))
    return np.clip(length @ length.T, -1, 1)


def suggest_merges(similarity: np.ndarray, threshold: float | None = None, groups: int = STUDY_GROUPS) -> Merges:
    """Joins the nearest groups first, by the mean cosine of their topics.

    Stops at ``threshold``, or without one at ``groups`` groups, so that the merges compare with the study's 25.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    count = len(similarity)
    if threshold is not None and not -1 <= threshold <= 1:
        raise Mistake(f"A threshold of {threshold:g} is not a cosine. Give one between -1 and 1.")
    if count < 2:
        return Merges(np.zeros(count, dtype=np.int64), float("nan") if threshold is None else threshold)
    distance = np.clip(1 - (similarity + similarity.T) / 2, 0, 2)
    np.fill_diagonal(distance, 0)
    tree = linkage(squareform(distance, checks=False), "average")
    if threshold is None:
        joins = max(0, count - groups)
        threshold = 1.0 if not joins else float(1 - tree[joins - 1, 2])
        flat = fcluster(tree, min(groups, count), "maxclust")
    else:
        # A hair further, so that a threshold that was reported gives the same groups again.
        flat = fcluster(tree, np.nextafter(1 - threshold, 2), "distance")
    _, first, inverse = np.unique(flat, return_index=True, return_inverse=True)
    return Merges(np.argsort(np.argsort(first))[inverse], threshold)


def agreement(first: Sequence[int] | np.ndarray, second: Sequence[int] | np.ndarray) -> MergeAgreement:
    """Of two groupings of the same topics."""
    from sklearn.metrics import adjusted_rand_score

    one, other = np.asarray(first), np.asarray(second)
    upper = np.triu_indices(len(one), 1)
    same_one, same_other = (values[:, None] == values[None, :] for values in (one, other))
    return MergeAgreement(
        float(adjusted_rand_score(one, other)),
        int((same_one & same_other)[upper].sum()),
        int(same_one[upper].sum()),
        int(same_other[upper].sum()),
    )
