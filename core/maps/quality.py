"""How much of the neighbourhoods a map keeps; and one map turned onto another, so that stages look alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.maps.neighbours import Index

NEAREST = 10
_JUDGED = 2_000


def kept_neighbours(vectors: np.ndarray, coordinates: np.ndarray, seed: int = 0, threads: int = 1) -> float:
    """How many of a point's ten nearest ``vectors[point, dim]`` are among its ten nearest on the map, 0 to 1.

    Looked up exactly, for up to 2,000 points drawn at random.
    """
    count = min(NEAREST, len(vectors) - 1)
    chosen = np.random.default_rng(seed).choice(len(vectors), min(_JUDGED, len(vectors)), replace=False)
    near, on_map = (
        Index(space, threads, exact=True).search(space[chosen], count + 1).points for space in (vectors, coordinates)
    )
    kept = 0
    for point, one, other in zip(chosen, near, on_map, strict=True):
        kept += len(np.intersect1d(one[one != point][:count], other[other != point][:count]))
    return kept / (count * len(chosen))


def kept_by_chance(points: int) -> float:
    """What a map with its points at random keeps."""
    return min(1.0, NEAREST / max(1, points - 1))


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
