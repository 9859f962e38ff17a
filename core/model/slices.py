"""How a stage's row is cut into heads, and the control: cutting it at random instead."""

from __future__ import annotations

import numpy as np

HEADS, RANDOM = "heads", "random"
SLICINGS = (HEADS, RANDOM)
"""'heads' cuts where the heads are; 'random' cuts a fixed random permutation of the same dimensions.

What random slices show as well as heads do is no finding about heads.
"""
_SEED = 20_250_908


def permutation(width: int, slicing: str) -> np.ndarray:
    """The order of a row's ``width`` dimensions in which it is cut; always the same one."""
    if slicing not in SLICINGS:
        raise ValueError(f"There is no slicing '{slicing}'; there are {', '.join(SLICINGS)}.")
    if slicing == HEADS:
        return np.arange(width)
    return np.random.default_rng(_SEED).permutation(width)


def cut(rows: np.ndarray, heads: int, slicing: str) -> np.ndarray:
    """``[doc, width] -> [doc, head, dim]`` in float32."""
    ordered = rows if slicing == HEADS else rows[:, permutation(rows.shape[1], slicing)]
    return ordered.astype(np.float32, copy=False).reshape(len(rows), heads, -1)
