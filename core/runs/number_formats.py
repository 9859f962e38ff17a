"""How head vectors are stored: float16 where it holds them, or int8.

As int8 the largest number of each head's vector in a document is 127 steps, and a step is its scale.
A head by itself, for heads differ in length by orders of magnitude, and a document by itself, so that no part has to
know of another. An error of half a step at most, whatever the range: nothing is too large or too small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

WORST_ERROR = 2.0**-8
"""Of a head vector in float16, relative to its length. Ordinary rounding stays below 2^-11 of each number."""
_STEPS = 127
_LEAST_SCALE, _MOST_SCALE = 2.0**-17, 65_504 / _STEPS
"""Between these, rounding to float16 adds less than a fifteenth of a step."""
_LARGEST = np.nextafter(np.float32(float(np.finfo(np.float32).max) / _STEPS), np.float32(0))
"""A scale whose 127 steps are a float32 still."""


@dataclass(frozen=True)
class Quantised:
    values: np.ndarray
    """``[doc, head * dim]``, int8."""
    scale: np.ndarray
    """``[doc, head]``, float32: a step; 0 for a head without length, NaN where a number was not finite."""


def quantise(vectors: np.ndarray, heads: int) -> Quantised:
    """``vectors[doc, head * dim]`` of any range."""
    slices = vectors.reshape(len(vectors), heads, vectors.shape[1] // heads).astype(np.float64)
    largest = np.abs(slices).max(axis=2, initial=0.0)
    finite = np.isfinite(largest)
    scale = np.where(finite, largest / _STEPS, 0.0).astype(np.float32)
    scale = np.minimum(scale, _LARGEST)
    # The smallest floats are so far apart that a step rounded down would leave the largest number out of reach.
    short = finite & (scale < np.finfo(np.float32).tiny) & (scale.astype(np.float64) * _STEPS < largest)
    scale = np.where(short, np.nextafter(scale, np.float32(np.inf)), scale)
    steps = scale.astype(np.float64)[:, :, None]
    values = np.divide(slices, steps, out=np.zeros_like(slices), where=(steps > 0) & finite[:, :, None])
    # Not finite stays so: readers refuse it, and say which document it was.
    whole = np.clip(np.rint(values), -_STEPS, _STEPS).astype(np.int8)
    return Quantised(whole.reshape(vectors.shape), np.where(finite, scale, np.float32("nan")))


def dequantised(found: Quantised) -> np.ndarray:
    """``[doc, head * dim]`` in float16 where that holds the steps, else in float32."""
    docs, heads = found.scale.shape
    used = found.scale[found.scale != 0]
    half = bool(((used >= _LEAST_SCALE) & (used <= _MOST_SCALE)).all())
    values = found.values.reshape(docs, heads, found.values.shape[1] // heads) * found.scale[:, :, None]
    return values.astype(np.float16 if half else np.float32, copy=False).reshape(found.values.shape)


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
