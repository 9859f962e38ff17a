"""Whether float16 holds a stage's vectors, for a run must not lose what it measures to rounding."""

from __future__ import annotations

import numpy as np

WORST_ERROR = 2.0**-8
"""Of a head vector, relative to its length. Ordinary float16 rounding stays below 2^-11 of each number."""


def fits_float16(vectors: np.ndarray, heads: int) -> bool:
    """Whether every head's vector in ``vectors[doc, head * dim]`` survives float16: nothing too large, nothing lost."""
    slices = vectors.reshape(len(vectors) * heads, -1)
    with np.errstate(over="ignore"):
        rounded = slices.astype(np.float16).astype(np.float32)
    if not np.isfinite(rounded).all():
        return False
    slices = slices.astype(np.float64)  # squares of numbers below 1e-22 are nothing in float32
    error = np.linalg.norm(rounded - slices, axis=1)
    return bool((error <= WORST_ERROR * np.linalg.norm(slices, axis=1)).all())
