"""Aspects that go together in a corpus: how much, and what is left of one within the values of another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from core.analysis.bootstrap import Interval, shares
from core.analysis.left_out_ridge import left_out, standardised
from core.analysis.null import random_orders
from core.analysis.stage_rows import StageRows
from core.model.share_space import ShareSpace

SLICINGS = 8
"""Random slicings that a figure within another aspect's values is compared with."""


def cramers_v(first: np.ndarray, second: np.ndarray) -> float:
    """Between ``first[doc]`` and ``second[doc]``, codes from 0: 0 unrelated, 1 one decides the other.

    Corrected for the bias of small samples (Bergsma 2013).
    """
    table = np.zeros((first.max() + 1, second.max() + 1))
    np.add.at(table, (first, second), 1)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    count = table.sum()
    rows, columns = table.shape
    if min(rows, columns) < 2:
        return 0.0
    expected = table.sum(axis=1, keepdims=True) @ table.sum(axis=0, keepdims=True) / count
    phi = float(((table - expected) ** 2 / expected).sum() / count)
    phi = max(0.0, phi - (rows - 1) * (columns - 1) / (count - 1))
    rows, columns = (size - (size - 1) ** 2 / (count - 1) for size in (rows, columns))
    return float(min(1.0, np.sqrt(phi / max(min(rows, columns) - 1, 1e-12))))


@dataclass(frozen=True)
class WithinFigures:
    """How well an aspect is read among documents that have the same value of another."""

    accuracy: Interval
    """``[1 + head]``: index 0 is the full embedding."""
    chance: float
    """Of always saying the value that is the most frequent with the document's value of the other aspect."""
    slices: np.ndarray
    """``[slicing, slice]``: of random slices."""


def within(
    vectors: np.ndarray,
    codes: np.ndarray,
    groups: np.ndarray,
    heads: int,
    penalties: tuple[float, float],
    seed: int = 0,
    space: ShareSpace | None = None,
) -> WithinFigures:
    """Of ``codes[doc]`` within ``groups[doc]``, each with two documents or more.

    Vectors and values are compared with their means in the group alone: what the group itself says about the value is
    its frequency there, which is known beforehand, and no more. ``penalties`` are the slices' and the full embedding's,
    ``space`` is that of stage 4.
    """
    values = np.eye(codes.max() + 1, dtype=np.float32)[codes]
    targets, stage = _minus_means(values, groups), StageRows(vectors, space)
    known_before, turned = (values - targets).T, np.ascontiguousarray(targets.T)
    penalty, full_penalty = penalties

    def within_groups(rows: np.ndarray) -> np.ndarray:
        """``[dim, doc]``."""
        return np.ascontiguousarray(standardised(_minus_means(standardised(rows), groups)).T)

    columns = within_groups(vectors)
    full = columns if space is None else within_groups(stage.full)

    def sliced(order: np.ndarray) -> Iterable[np.ndarray]:
        if space is None:
            return (columns[some] for some in order.reshape(heads, -1))
        return np.split(within_groups(stage.sliced(order)), heads)

    def hits(rows: np.ndarray, penalty: float) -> np.ndarray:
        scores = left_out(rows, turned, penalty, groups) + known_before
        return np.asarray(scores.argmax(axis=0) == codes)

    own = [hits(full, full_penalty), *(hits(rows, penalty) for rows in np.split(columns, heads))]
    null = [
        [hits(rows, penalty).mean() for rows in sliced(order)] for order in random_orders(stage.width, SLICINGS, seed)
    ]
    most = float(_sums(values, groups).max(axis=1).sum()) / len(codes)
    return WithinFigures(shares(np.stack(own, axis=1).astype(np.float32), seed=seed), most, np.array(null))


def _minus_means(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """``[doc, dim]`` less the mean of each document's group."""
    centres = _sums(values, groups) / np.maximum(np.bincount(groups), 1)[:, None]
    return np.asarray(values - centres.astype(np.float32)[groups])


def _sums(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """``[group, dim]``."""
    members = np.arange(groups.max() + 1)[:, None] == groups
    return np.asarray(members.astype(np.float32) @ values)
