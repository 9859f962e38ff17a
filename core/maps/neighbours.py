"""Nearest points among many: exactly for some thousands, within the nearest cells for more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

EXACT_BELOW = 20_000
"""Points; beyond, exact search takes longer than all else."""
_PROBES = 16
"""Cells that are looked through for a point; with 2√n cells it finds 999 of 1,000 true neighbours."""


@dataclass(frozen=True)
class Nearest:
    """Nearest first: ``points[query, rank]`` and their Euclidean ``distances[query, rank]``."""

    points: np.ndarray
    distances: np.ndarray


class Index:
    """``vectors[point, dim]``, ready to be searched."""

    def __init__(self, vectors: np.ndarray, threads: int = 1, exact: bool | None = None) -> None:
        import faiss

        self._index: Any
        self._faiss, self._threads, self._count = faiss, threads, len(vectors)
        faiss.omp_set_num_threads(threads)
        vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        dim = vectors.shape[1]
        self._index = faiss.IndexFlatL2(dim)
        self._has_cells = not (len(vectors) < EXACT_BELOW if exact is None else exact)
        if self._has_cells:
            self._index = faiss.IndexIVFFlat(self._index, dim, int(2 * len(vectors) ** 0.5))
            self._index.cp.niter = 8
            self._index.cp.max_points_per_centroid = 64
            self._index.cp.min_points_per_centroid = 1
            self._index.train(vectors)
        self._index.add(vectors)

    def search(self, queries: np.ndarray, count: int) -> Nearest:
        """The ``count`` points nearest to each of ``queries[query, dim]``; a query that is a point finds itself."""
        self._faiss.omp_set_num_threads(self._threads)
        queries, count = np.ascontiguousarray(queries, dtype=np.float32), min(count, self._count)
        squared, points = self._index.search(queries, count, params=self._within(_PROBES))
        lacking = (points < 0).any(axis=1)  # the cells that were looked through held fewer points
        if lacking.any():
            all_cells = self._within(self._index.nlist)
            squared[lacking], points[lacking] = self._index.search(queries[lacking], count, params=all_cells)
        return Nearest(points, np.sqrt(np.maximum(squared, 0)))

    def _within(self, cells: int) -> Any:
        """How one search looks; never set on the index itself, for others search it at the same time."""
        parameters: Any = self._faiss.SearchParametersIVF
        return parameters(nprobe=cells) if self._has_cells else None


def neighbour_graph(vectors: np.ndarray, count: int, threads: int = 1, exact: bool | None = None) -> Nearest:
    """The ``count`` nearest of each of ``vectors[point, dim]``, or all there are; itself left out."""
    found = Index(vectors, threads, exact).search(vectors, count + 1)
    # Among equal vectors a point need not come first in its own row, or come at all.
    own = found.points == np.arange(len(vectors))[:, None]
    own[~own.any(axis=1), -1] = True
    keep = ~own
    return Nearest(*(values[keep].reshape(len(vectors), -1) for values in (found.points, found.distances)))
