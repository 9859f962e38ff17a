"""Which heads say the same: linear CKA of all pairs, and whether heads that share a key/value head are more alike."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from core.model.shape import ModelShape

FOLDS = 8
"""Of documents; leaving out each in turn gives the intervals."""
_LEAST_DOCS = 4
_PERMUTATIONS = 10_000


@dataclass(frozen=True)
class Redundancy:
    """``cka[head, head]`` with its 95 % interval: 1 for the same up to rotation and scale, about 0 for independence."""

    cka: np.ndarray
    low: np.ndarray
    high: np.ndarray
    order: np.ndarray
    """Heads so ordered that alike ones stand together."""
    without: np.ndarray = field(default_factory=lambda: np.empty((0, 0, 0)))
    """``[fold, head, head]``: CKA with a fold of documents left out; empty where there are too few of them."""


@dataclass(frozen=True)
class Groups:
    """Mean CKA of pairs of heads that share a key/value head, and of pairs that do not."""

    within: float
    between: float
    p: float
    """How often a random assignment of heads to groups gives a difference at least as large."""
    pairs_within: int
    pairs_between: int


class Moments:
    """Adds up what CKA needs, some documents at a time: memory depends on the width alone."""

    def __init__(self, mean: np.ndarray, heads: int) -> None:
        """``mean[dim of all heads]`` over all documents."""
        width = len(mean)
        self._mean, self._heads = mean.astype(np.float32), heads
        self._products = np.zeros((FOLDS, width, width), dtype=np.float32)
        self._squares = np.zeros((FOLDS, heads, heads))
        self._norms = np.zeros((FOLDS, heads))
        self._docs = np.zeros(FOLDS, dtype=np.int64)

    def add(self, rows: np.ndarray, first: int) -> None:
        """``rows[doc, width]`` of the documents from number ``first`` on."""
        centred = rows.astype(np.float32) - self._mean
        norms = (centred.reshape(len(rows), self._heads, rows.shape[1] // self._heads).astype(np.float64) ** 2).sum(
            axis=2
        )
        folds = (first + np.arange(len(rows))) % FOLDS
        for fold in range(FOLDS):
            mine, own = centred[folds == fold], norms[folds == fold]
            self._products[fold] += mine.T @ mine
            self._squares[fold] += own.T @ own
            self._norms[fold] += own.sum(axis=0)
            self._docs[fold] += len(mine)

    def redundancy(self) -> Redundancy:
        """Of all documents that were added."""
        docs, heads = int(self._docs.sum()), self._heads
        if docs < _LEAST_DOCS:
            nothing = np.full((heads, heads), np.nan)
            return Redundancy(nothing, nothing, nothing, np.arange(heads))
        dim = len(self._mean) // heads
        total = self._products.sum(axis=0, dtype=np.float32)
        cka = self._cka(total, self._squares.sum(0), self._norms.sum(0), docs, dim)
        folds = [fold for fold in range(FOLDS) if self._docs[fold] > 0 and docs - self._docs[fold] >= _LEAST_DOCS]
        if len(folds) < 2:
            return Redundancy(cka, np.full_like(cka, np.nan), np.full_like(cka, np.nan), cluster_order(cka))
        without = np.stack(
            [
                self._cka(
                    total - self._products[fold],
                    self._squares.sum(0) - self._squares[fold],
                    self._norms.sum(0) - self._norms[fold],
                    docs - int(self._docs[fold]),
                    dim,
                )
                for fold in folds
            ]
        )
        margin = jackknife_margin(without)
        return Redundancy(cka, cka - margin, np.minimum(cka + margin, 1), cluster_order(cka), without)

    def _cka(self, products: np.ndarray, squares: np.ndarray, norms: np.ndarray, docs: int, dim: int) -> np.ndarray:
        """Debiased linear CKA: without the correction, independent heads of few documents would look alike."""
        heads = self._heads
        raw = (products.reshape(heads, dim, heads, dim).astype(np.float64) ** 2).sum(axis=(1, 3))
        hsic = raw - docs / (docs - 2) * squares + np.outer(norms, norms) / ((docs - 1) * (docs - 2))
        own = np.sqrt(np.maximum(np.diag(hsic), 0))
        scale = np.outer(own, own)
        # A head that does not vary, but for the rounding of its mean, has nothing in common with any other.
        size = (self._mean.reshape(heads, dim).astype(np.float64) ** 2).sum(axis=1)
        moves = norms > 1e-10 * docs * size
        varies = np.outer(moves, moves) & (scale > 1e-12 * np.outer(norms, norms))
        return np.divide(hsic, scale, out=np.zeros_like(hsic), where=varies)


_T_95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36}
"""Student's t for the interval of a jackknife, by its folds less one."""


def jackknife_margin(without: np.ndarray) -> np.ndarray:
    """Half the width of the 95 % interval of a statistic, from ``without[fold, …]``, each with a fold left out."""
    folds = len(without)
    return np.asarray(_T_95[folds - 1] * np.sqrt((folds - 1) * without.var(axis=0)))


def cluster_order(cka: np.ndarray) -> np.ndarray:
    """The heads in the order of the leaves of a clustering by average linkage."""
    from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    if len(cka) < 3:
        return np.arange(len(cka))
    distance = np.clip(1 - (cka + cka.T) / 2, 0, None)
    np.fill_diagonal(distance, 0)
    flat = squareform(distance, checks=False)
    return np.asarray(leaves_list(optimal_leaf_ordering(linkage(flat, "average"), flat)))


def group_comparison(cka: np.ndarray, shape: ModelShape, seed: int = 0) -> Groups | None:
    """Heads that share a key/value head against heads that do not; None where all or none do."""
    if shape.kv_heads in (1, shape.heads) or not np.isfinite(cka).all():
        return None
    groups = np.array([shape.group_of(head) for head in range(shape.heads)])
    first, second = np.triu_indices(shape.heads, 1)
    pairs = cka[first, second]

    def difference(assigned: np.ndarray) -> np.ndarray:
        same = assigned[..., first] == assigned[..., second]
        inside = same.sum(axis=-1)
        return (same * pairs).sum(axis=-1) / inside - (~same * pairs).sum(axis=-1) / (len(pairs) - inside)

    chance = np.random.default_rng(seed)
    random = np.concatenate(
        [
            difference(chance.permuted(np.tile(groups, (_PERMUTATIONS // 10, 1)), axis=1))  # a tenth at a time
            for _ in range(10)
        ]
    )
    same = groups[first] == groups[second]
    seen = difference(groups)
    return Groups(
        within=float(pairs[same].mean()),
        between=float(pairs[~same].mean()),
        p=float((1 + (random >= seen - 1e-12).sum()) / (1 + len(random))),
        pairs_within=int(same.sum()),
        pairs_between=int((~same).sum()),
    )
