"""LEACE, the closed-form linear eraser (Belrose et al., 2023): after it no linear probe reads the concept any more.

Whiten, project out the directions that covary with the labels, undo the whitening: of all affine maps after which
vectors and labels have no covariance, the one that moves the vectors least.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_SMALLEST = 1e-10
"""Directions with less than this share of the largest variance are taken for rounding."""
_RANK, _ROUNDING = 1e-6, 1e-10
"""Whitened covariances below this share of the largest, or below this size, are rounding too."""


@dataclass(frozen=True)
class Eraser:
    """``x - matrix @ (x - mean)`` has no covariance with the labels that it was fitted to."""

    mean: np.ndarray
    """``[dim]``."""
    matrix: np.ndarray
    """``[dim, dim]``: an oblique projection onto what is erased."""
    rank: int
    """Dimensions that are erased: at most one less than there are values."""

    def erased(self, vectors: np.ndarray) -> np.ndarray:
        """Of ``vectors[doc, dim]``, in float64; fitted documents or others."""
        return np.asarray(vectors - (vectors - self.mean) @ self.matrix.T)


def fit_eraser(vectors: np.ndarray, codes: np.ndarray) -> Eraser:
    """From ``vectors[doc, dim]`` and ``codes[doc]``, whole numbers from 0; documents with -1 have no part in it.

    The covariance is shrunk towards a multiple of the identity (oracle approximating shrinkage, Chen et al., 2010), so
    that fewer documents than dimensions do. What is erased is erased exactly in any case.
    """
    known = codes >= 0
    vectors, codes = vectors[known].astype(np.float64), codes[known]
    dim = vectors.shape[1]
    if not len(vectors):
        return Eraser(np.zeros(dim), np.zeros((dim, dim)), 0)
    mean = vectors.mean(axis=0)
    centred = vectors - mean
    _, values = np.unique(codes, return_inverse=True)
    crossed = np.stack([centred[values == value].sum(axis=0) for value in range(values.max() + 1)], axis=1)
    crossed /= len(centred)
    variances, axes = np.linalg.eigh(_covariance(centred))
    real = variances > variances.max() * _SMALLEST
    axes, roots = axes[:, real], np.sqrt(variances[real])
    left, strengths, _ = np.linalg.svd((axes.T @ crossed) / roots[:, None], full_matrices=False)
    left = left[:, strengths > max(strengths.max(initial=0) * _RANK, _ROUNDING)]
    matrix = (axes * roots) @ left @ left.T @ (axes / roots).T
    return Eraser(mean, matrix, left.shape[1])


def _covariance(centred: np.ndarray) -> np.ndarray:
    count, dim = centred.shape
    raw = centred.T @ centred / count
    variance, squares = np.trace(raw) / dim, (raw**2).mean()
    spread = (count + 1) * (squares - variance**2 / dim)
    shrinkage = 1.0 if spread <= 0 else min((squares + variance**2) / spread, 1.0)
    found: np.ndarray = (1 - shrinkage) * raw + shrinkage * variance * np.eye(dim)
    return found
