"""Turning one map onto another, so that switching the stage does not flip the picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Turned:
    """``coordinates[point, 2]`` after turning; how well they follow the other map's, before and after (1: the same)."""

    coordinates: np.ndarray
    before: float
    after: float


def turn_onto(coordinates: np.ndarray, other: np.ndarray) -> Turned:
    """Turns and, if that is better, reflects ``coordinates`` so that each point is as near as can be to the same point
    of ``other`` (orthogonal Procrustes, both centred).

    Nothing is stretched: distances on a t-SNE map have a unit, and new points are placed by it.
    """
    own = coordinates - coordinates.mean(axis=0, dtype=np.float64)
    target = other - other.mean(axis=0, dtype=np.float64)
    cross = own.T @ target
    left, strength, right = np.linalg.svd(cross)
    scale = float(np.sqrt((own**2).sum() * (target**2).sum()))
    if scale == 0:
        return Turned(own.astype(np.float32), 0.0, 0.0)
    return Turned(
        (own @ (left @ right)).astype(np.float32), float(np.trace(cross)) / scale, float(strength.sum()) / scale
    )
