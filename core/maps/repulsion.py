"""The two forces of t-SNE: neighbours attract along the graph, all points repel each other over a grid.

openTSNE asks for them through its ``negative_gradient_method``. Its own repulsion interpolates with three polynomials
by box, and four transforms an iteration on one thread; here the potential ``sum 1 / (1 + d²)`` is a cubic spline on
one grid, so that one transform there and one back give the potential, and its slope is the force.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.fft
from numba import config as numba_config
from numba import njit, prange, set_num_threads

SPACING = 0.35
"""Of the grid, in the map's units, in which the kernel has width 1; measured in benchmarks/project.py."""
_LEAST_SPACING = 0.02
"""A finer grid would lose the slope in float32: neighbouring nodes would differ by less than its last digit."""
_MOST_NODES_OF_SMALL, _LEAST_NODES = 64, 16
_MARGIN = 5
"""Nodes of the grid beyond the outermost points: a cubic spline reaches two to either side."""


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    try:
        return njit(function, parallel=True, fastmath=True, cache=True)
    except RuntimeError:  # there is no folder in which compiled code could be kept
        return njit(function, parallel=True, fastmath=True)


@_compiled
def _attract(
    starts: np.ndarray, others: np.ndarray, weights: np.ndarray, here: np.ndarray, there: np.ndarray, out: np.ndarray
) -> None:
    for i in prange(len(starts) - 1):
        x, y = here[i, 0], here[i, 1]
        pull_x = pull_y = np.float32(0)
        for k in range(starts[i], starts[i + 1]):
            j = others[k]
            dx, dy = x - there[j, 0], y - there[j, 1]
            w = weights[k] / (np.float32(1) + dx * dx + dy * dy)
            pull_x += w * dx
            pull_y += w * dy
        out[i, 0], out[i, 1] = pull_x, pull_y


@_compiled
def _divergence(
    starts: np.ndarray, others: np.ndarray, weights: np.ndarray, here: np.ndarray, there: np.ndarray, out: np.ndarray
) -> None:
    """``sum p log p (1 + d²)`` of each point: what of KL(P‖Q) does not need the normaliser of Q."""
    for i in prange(len(starts) - 1):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            j = others[k]
            dx, dy = here[i, 0] - there[j, 0], here[i, 1] - there[j, 1]
            p = np.float64(weights[k])
            if p > 0:
                total += p * np.log(p * (1.0 + dx * dx + dy * dy))
        out[i] = total


@_compiled
def _spread(places: np.ndarray, density: np.ndarray) -> None:
    """Adds each point to the grid with its spline's weights; ``density[thread, row, column]``, ``places`` in nodes."""
    threads, count = len(density), len(places)
    for thread in prange(threads):
        w, v = np.empty(4, np.float32), np.empty(4, np.float32)
        for i in range(thread * count // threads, (thread + 1) * count // threads):
            row, column = int(places[i, 0]), int(places[i, 1])
            for axis in range(2):
                u = places[i, axis] - (row if axis == 0 else column)
                weights = w if axis == 0 else v
                weights[0] = (1 - u) ** 3 / 6
                weights[1] = (3 * u * u * u - 6 * u * u + 4) / 6
                weights[3] = u * u * u / 6
                weights[2] = 1 - weights[0] - weights[1] - weights[3]
            for a in range(4):
                for b in range(4):
                    density[thread, row - 1 + a, column - 1 + b] += w[a] * v[b]


@_compiled
def _gather(places: np.ndarray, potential: np.ndarray, out: np.ndarray) -> None:
    """The spline's slope along both axes and its value at each point: ``out[point, 3]``."""
    for i in prange(len(places)):
        row, column = int(places[i, 0]), int(places[i, 1])
        u, s = places[i, 0] - row, places[i, 1] - column
        w0, w1, w3 = (1 - u) ** 3 / 6, (3 * u * u * u - 6 * u * u + 4) / 6, u * u * u / 6
        d0, d1, d3 = -((1 - u) ** 2) / 2, (3 * u * u - 4 * u) / 2, u * u / 2
        v0, v1, v3 = (1 - s) ** 3 / 6, (3 * s * s * s - 6 * s * s + 4) / 6, s * s * s / 6
        e0, e1, e3 = -((1 - s) ** 2) / 2, (3 * s * s - 4 * s) / 2, s * s / 2
        w2, d2, v2, e2 = 1 - w0 - w1 - w3, -d0 - d1 - d3, 1 - v0 - v1 - v3, -e0 - e1 - e3
        value = slope_x = slope_y = 0.0
        for a in range(4):
            f = potential[row - 1 + a]
            across = f[column - 1] * v0 + f[column] * v1 + f[column + 1] * v2 + f[column + 2] * v3
            along = f[column - 1] * e0 + f[column] * e1 + f[column + 1] * e2 + f[column + 2] * e3
            w = w0 if a == 0 else (w1 if a == 1 else (w2 if a == 2 else w3))
            d = d0 if a == 0 else (d1 if a == 1 else (d2 if a == 2 else d3))
            value += w * across
            slope_x += d * across
            slope_y += w * along
        out[i, 0], out[i, 1], out[i, 2] = slope_x, slope_y, value


@dataclass(frozen=True)
class Repulsion:
    """``force[point, 2]``: the sum over others of ``(1 + d²)⁻² (here - there)``; ``potential[point]``: ``(1 + d²)⁻¹``.

    Each point's own share in its potential, which is 1, is included where the point is one of those that repel.
    """

    force: np.ndarray
    potential: np.ndarray


@dataclass(frozen=True)
class Field:
    """The potential of some points on a grid, ready to be read anywhere within it."""

    low: np.ndarray
    spacing: float
    potential: np.ndarray
    """``[row, column]``: the spline's coefficients."""

    @property
    def high(self) -> np.ndarray:
        return self.low + (len(self.potential) - _MARGIN) * self.spacing

    def at(self, points: np.ndarray) -> Repulsion:
        """The field at ``points[point, 2]``; those beyond the grid feel it at its edge."""
        inside = np.clip(points, self.low, self.high)
        found = np.empty((len(points), 3), dtype=np.float32)
        _gather(_places(inside, self.low, self.spacing), self.potential, found)
        return Repulsion(found[:, :2] * np.float32(-0.5 / self.spacing), found[:, 2])


class RepulsionGrid:
    """Makes fields, and keeps the kernel's transform for as long as the grid's size stays the same."""

    def __init__(self, spacing: float = SPACING, threads: int = 1) -> None:
        # numba refuses more threads than the machine has.
        self._spacing, self._threads = spacing, min(threads, numba_config.NUMBA_NUM_THREADS)
        self._kernel_of: tuple[int, float] | None = None
        self._kernel = np.empty(0)

    def field(self, points: np.ndarray) -> Field:
        """The potential of ``points[point, 2]``."""
        set_num_threads(self._threads)
        axes = np.ascontiguousarray(points.T)  # numpy takes 25 times as long over two columns as over two rows
        low = axes.min(axis=1)
        extent = float((axes.max(axis=1) - low).max())
        # While the map is still a small cloud, the grid shrinks with it.
        spacing = min(self._spacing, max(extent / (_MOST_NODES_OF_SMALL - _MARGIN - 1), _LEAST_SPACING))
        nodes = max(_LEAST_NODES, int(np.ceil(extent / spacing)) + _MARGIN)
        step = max(8, 1 << (nodes.bit_length() - 4))
        nodes = -(-nodes // step) * step
        density = np.zeros((self._threads, nodes, nodes), dtype=np.float32)
        _spread(_places(points, low, spacing), density)
        return Field(low, spacing, self._convolved(density.sum(axis=0), spacing))

    def _convolved(self, density: np.ndarray, spacing: float) -> np.ndarray:
        """The density with the kernel, free of wrapping around: twice the size, of which half stays empty."""
        nodes, workers = len(density), self._threads
        size = scipy.fft.next_fast_len(2 * nodes, real=True)
        kernel = self._transformed(size, spacing)
        waves = scipy.fft.rfft(density, size, axis=1, workers=workers)
        waves = scipy.fft.fft(waves, size, axis=0, workers=workers, overwrite_x=True)
        waves *= kernel
        waves = scipy.fft.ifft(waves, axis=0, workers=workers, overwrite_x=True)[:nodes]
        return np.ascontiguousarray(scipy.fft.irfft(waves, size, axis=1, workers=workers)[:, :nodes])

    def _transformed(self, size: int, spacing: float) -> np.ndarray:
        if self._kernel_of != (size, spacing):
            steps = np.arange(size)
            squared = (np.minimum(steps, size - steps) * spacing).astype(np.float32) ** 2
            kernel = scipy.fft.rfft2(1 / (1 + squared[:, None] + squared[None, :]), workers=self._threads).real
            # A spline through the nodes has other coefficients than values: once for spreading, once for reading.
            spline = ((2 + np.cos(2 * np.pi * steps / size)) / 3).astype(np.float32) ** 2
            self._kernel = kernel / (spline[:, None] * spline[None, : size // 2 + 1])
            self._kernel_of = (size, spacing)
        return self._kernel


def attraction(graph: Any, here: np.ndarray, there: np.ndarray) -> np.ndarray:
    """``sum_j p_ij (1 + d²)⁻¹ (here_i - there_j)``, ``[point, 2]``; ``graph`` is a CSR matrix with float32 data."""
    out = np.empty((len(here), 2), dtype=np.float32)
    _attract(graph.indptr, graph.indices, graph.data, _float32(here), _float32(there), out)
    return out


def divergence(graph: Any, here: np.ndarray, there: np.ndarray) -> np.ndarray:
    """``[point]``: ``sum_j p_ij log p_ij (1 + d²)``."""
    out = np.empty(len(here))
    _divergence(graph.indptr, graph.indices, graph.data, _float32(here), _float32(there), out)
    return out


def _places(points: np.ndarray, low: np.ndarray, spacing: float) -> np.ndarray:
    return np.ascontiguousarray((points - low) / spacing + 1, dtype=np.float32)


def _float32(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=np.float32)
