"""Ridge regression that leaves each document out once, in closed form.

Leaving one document out needs no second fit: its residual is divided by one minus its leverage. Arrays are
``[dim, doc]`` and ``[value, doc]``: one matrix product gives a slice's predictions and leverages together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def left_out(rows: np.ndarray, targets: np.ndarray, penalty: float, groups: np.ndarray | None = None) -> np.ndarray:
    """What a document's dimensions say by ridge models without it: ``rows[dim, doc]`` to ``[value, doc]``.

    Both are centred, and the mean is a parameter of the model that is not part of the prediction: a value's frequency
    says nothing. With ``groups[doc]`` both are centred within each group, whose means are parameters instead.
    """
    (found,) = residuals(rows, [targets], [penalty], groups)
    return added(found, targets, groups)


def added(found: np.ndarray, targets: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
    """From ``residuals`` to predictions, in the same array."""
    found += targets / (1 - of_mean(targets.shape[1], groups))
    return found


def residuals(
    rows: np.ndarray, targets: Sequence[np.ndarray], penalties: Sequence[float], groups: np.ndarray | None = None
) -> list[np.ndarray]:
    """Per penalty ``[value, doc]``: the prediction of the model without the document less the truth, (ŷ − y) / (1 − h).

    Each penalty has its own ``targets[value, doc]``; all have one product of the rows with themselves.
    """
    width, count = rows.shape
    # The smaller of the two products: [dim, dim], or for the full embedding of a large model [doc, doc].
    fit = _by_dimensions if width <= count else _by_documents
    product = rows @ rows.T if width <= count else rows.T @ rows
    mean = of_mean(count, groups)
    found = []
    for own, penalty in zip(targets, penalties, strict=True):
        ridge = product.copy()
        ridge.flat[:: len(ridge) + 1] += penalty * count
        errors, leverage = fit(rows, own, ridge, penalty * count)
        errors /= np.maximum(1 - leverage - mean, 1e-6)
        found.append(errors)
    return found


def _by_dimensions(
    rows: np.ndarray, targets: np.ndarray, ridge: np.ndarray, penalty: float
) -> tuple[np.ndarray, np.ndarray]:
    """ŷ − y ``[value, doc]`` and the leverages ``[doc]``; ``ridge`` is ``[dim, dim]``."""
    from scipy.linalg.lapack import spotrf, strtri

    # With ridge = C Cᵀ: a leverage is |C⁻¹ x|², a prediction (C⁻ᵀ C⁻¹ X y)ᵀ x. One product with x gives both.
    factor, _ = spotrf(ridge.T, lower=1, clean=1, overwrite_a=1)
    inverse, _ = strtri(factor, lower=1, overwrite_c=1)
    weights = (inverse.T @ (inverse @ (rows @ targets.T))).T
    both = np.concatenate([inverse, weights]) @ rows
    turned = both[: len(inverse)]
    return both[len(inverse) :] - targets, np.einsum("kd,kd->d", turned, turned)


def _by_documents(
    rows: np.ndarray, targets: np.ndarray, ridge: np.ndarray, penalty: float
) -> tuple[np.ndarray, np.ndarray]:
    """The same where ``ridge`` is ``[doc, doc]``: predictions are K (K + λ)⁻¹ y = y − λ (K + λ)⁻¹ y."""
    from scipy.linalg.lapack import spotrf, spotri

    factor, _ = spotrf(ridge.T, lower=1, overwrite_a=1)
    half, _ = spotri(factor, lower=1, overwrite_c=1)
    inverse = np.tril(half)
    inverse += np.tril(half, -1).T
    return -penalty * (targets @ inverse), 1 - penalty * np.diagonal(inverse)


def of_mean(count: int, groups: np.ndarray | None) -> np.ndarray:
    """``[doc]``: a document's leverage on the mean, or on its group's."""
    sizes = np.full(count, count) if groups is None else np.bincount(groups)[groups]
    return np.asarray((1 / sizes).astype(np.float32))


def standardised(vectors: np.ndarray) -> np.ndarray:
    """``[doc, dim]`` with mean 0 and variance 1 in every dimension; one that is constant stays 0."""
    centred = vectors.astype(np.float32) - vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    scale = centred.std(axis=0)
    return np.divide(centred, scale, out=np.zeros_like(centred), where=scale > 1e-6)
