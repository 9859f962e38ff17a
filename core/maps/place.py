"""Placing new points on a map that is there: the map's points stay where they are.

All that is needed is kept with the run anyway, the fitted points' vectors and their coordinates: there is no fitted
object to be pickled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.maps.neighbours import Index

_PERPLEXITY = 5.0
_NEIGHBOURS = 15
_NEAREST = 10
_ITERATIONS = 150
_RATE, _MOMENTUM, _LONGEST = 0.5, 0.8, 0.25


@dataclass(frozen=True)
class Placer:
    """A map that new points can be placed on; each is placed by itself, whatever else is placed with it."""

    index: Index
    coordinates: np.ndarray
    """``[point, 2]`` of the fitted points."""
    threads: int = 1

    @classmethod
    def of(cls, vectors: np.ndarray, coordinates: np.ndarray, threads: int = 1) -> Placer:
        """From the fitted points' ``vectors[point, dim]`` and ``coordinates[point, 2]``."""
        return cls(Index(vectors, threads), np.ascontiguousarray(coordinates, dtype=np.float32), threads)

    def place(self, vectors: np.ndarray) -> np.ndarray:
        """``[point, 2]`` for new ``vectors[point, dim]``.

        A point starts where, among its nearest neighbours, its own share of t-SNE's divergence is least, and goes
        downhill from there. One that is on the map already so comes to lie on its own place, though its neighbours
        may be spread over half the map.
        """
        from openTSNE.affinity import joint_probabilities_nn

        from core.maps.repulsion import RepulsionGrid, attraction, divergence

        if not len(vectors):
            return np.empty((0, 2), dtype=np.float32)
        found = self.index.search(vectors, _NEIGHBOURS)
        count = found.points.shape[1]
        graph = joint_probabilities_nn(
            found.points,
            found.distances,
            [min(_PERPLEXITY, max(1.0, count / 3))],
            symmetrize=False,
            normalization="point-wise",
            n_reference_samples=len(self.coordinates),
            n_jobs=self.threads,
        ).astype(np.float32)
        field = RepulsionGrid(threads=self.threads).field(self.coordinates)
        places = np.median(self.coordinates[found.points[:, :_NEAREST]], axis=1).astype(np.float32)
        least = np.full(len(places), np.inf)
        for start in (places.copy(), *(self.coordinates[points] for points in found.points.T)):
            cost = divergence(graph, start, self.coordinates) + np.log(np.maximum(field.at(start).potential, 1e-6))
            better = cost < least
            least[better], places[better] = cost[better], start[better]
        step = np.zeros_like(places)
        for _ in range(_ITERATIONS):
            repulsion = field.at(places)
            push = repulsion.force / np.maximum(repulsion.potential, 1e-6)[:, None]
            slope = attraction(graph, places, self.coordinates) - push
            length = np.linalg.norm(slope, axis=1, keepdims=True)
            slope *= np.minimum(1, _LONGEST / np.maximum(length, 1e-12))
            step = _MOMENTUM * step - _RATE * slope
            places += step
        return places
