"""Stage 4 after the model is gone: from stored coordinates to the embedding's own space, and to random slices.

A head's coordinates are lengths and angles in a basis of its own. Shares of different heads meet only in the
embedding's space: there they can be added, and their sum is what the layer's heads make together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class ShareSpace:
    """``A_h = Q_h R_h`` of the heads of one layer; see core/model/shares.py."""

    directions: np.ndarray
    """``Q``: ``[head, hidden, dim]``, orthonormal columns."""
    triangle: np.ndarray
    """``R``: ``[head, dim, width]``, where ``width`` is that of a head's output."""

    @property
    def heads(self) -> int:
        return len(self.directions)

    @cached_property
    def _flat(self) -> np.ndarray:
        """``[head * dim, hidden]`` in float32."""
        heads, hidden, dim = self.directions.shape
        flat = self.directions.astype(np.float32).transpose(0, 2, 1).reshape(heads * dim, hidden)
        return np.ascontiguousarray(flat)

    def full(self, rows: np.ndarray) -> np.ndarray:
        """The sum of the heads' shares: ``[doc, head * dim]`` -> ``[doc, hidden]`` in float32."""
        return np.asarray(rows.astype(np.float32, copy=False) @ self._flat)

    def weighted(self, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The same with head ``h`` turned up or down by ``weights[h]``."""
        return self.full(rows.astype(np.float32, copy=False) * np.repeat(weights, rows.shape[1] // self.heads))

    def coordinates(self, vector: np.ndarray) -> np.ndarray:
        """``vector[hidden]`` as every head sees it, ``[head, dim]``: its products with a head's coordinates are those
        with the head's share."""
        heads, _, dim = self.directions.shape
        return np.asarray((self._flat @ vector.astype(np.float32, copy=False)).reshape(heads, dim))

    # Random slices are cut before the projection, so that a slice is a set of the heads' outputs, as a head is.

    def outputs(self, rows: np.ndarray) -> np.ndarray:
        """The heads' pooled outputs, ``[doc, head * width]``, that have these coordinates."""
        cut = rows.reshape(len(rows), self.heads, -1).transpose(1, 0, 2).astype(np.float64)
        return np.asarray((cut @ self._inverse).transpose(1, 0, 2).reshape(len(rows), -1))

    @cached_property
    def _inverse(self) -> np.ndarray:
        """``[head, dim, width]``: the pseudo-inverse of ``R``, transposed."""
        return np.asarray(np.linalg.pinv(self.triangle.astype(np.float64)).transpose(0, 2, 1))

    @cached_property
    def _products(self) -> np.ndarray:
        """``[head * width, head * width]``: inner products of what single outputs add to the embedding."""
        columns = self.directions.astype(np.float64) @ self.triangle  # [head, hidden, width]
        flat = columns.transpose(1, 0, 2).reshape(columns.shape[1], -1)
        return np.asarray(flat.T @ flat)

    def slices(self, order: np.ndarray) -> RandomSlices:
        """The heads' outputs in another ``order``, cut into as many slices as there are heads."""
        heads, dim, width = self.triangle.shape
        own = order.reshape(heads, width)
        products = self._products[own[:, :, None], own[:, None, :]]
        try:
            if dim < width:
                raise np.linalg.LinAlgError
            factors = np.linalg.cholesky(products)
        except np.linalg.LinAlgError:  # a slice's shares lie in fewer dimensions than it has outputs
            values, vectors = np.linalg.eigh(products)
            factors = (vectors * np.sqrt(np.maximum(values, 0))[:, None, :])[:, :, width - dim :]
        return RandomSlices(order, factors)

    def resliced(self, rows: np.ndarray, order: np.ndarray) -> np.ndarray:
        """``[doc, head * dim]`` -> ``[doc, slice, dim]`` with the lengths and angles of the slices' shares."""
        return self.slices(order)(self.outputs(rows))


@dataclass(frozen=True)
class RandomSlices:
    """One random slicing; ``outputs`` of ``ShareSpace`` are computed once for all of them."""

    order: np.ndarray
    factors: np.ndarray
    """``[slice, width, dim]``."""

    def __call__(self, outputs: np.ndarray) -> np.ndarray:
        """``[doc, head * width]`` -> coordinates ``[doc, slice, dim]`` in float32."""
        heads, width, _ = self.factors.shape
        cut = outputs[:, self.order].reshape(len(outputs), heads, width).transpose(1, 0, 2)
        return np.ascontiguousarray((cut @ self.factors).transpose(1, 0, 2), dtype=np.float32)
