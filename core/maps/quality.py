"""How much of the neighbourhoods a map keeps."""

from __future__ import annotations

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
