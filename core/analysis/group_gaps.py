"""Are heads that share a key/value head more alike than others: all together, and head by head, with intervals?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.analysis.bootstrap import Interval
from core.analysis.redundancy import Redundancy, jackknife_margin
from core.model.shape import ModelShape


@dataclass(frozen=True)
class GroupGaps:
    """Means of CKA over pairs of heads, with their 95 % intervals over documents (jackknife)."""

    within: Interval
    """``[1]``: pairs that share a key/value head."""
    between: Interval
    """``[1]``: pairs that do not."""
    gap: Interval
    """``[1 + head]``: within less between; first of all pairs, then of the pairs that a head is one of."""


def group_gaps(found: Redundancy, shape: ModelShape) -> GroupGaps | None:
    """None where all heads share a key/value head or none do, or there are too few documents."""
    if shape.kv_heads in (1, shape.heads) or not np.isfinite(found.cka).all():
        return None
    group = np.array([shape.group_of(head) for head in range(shape.heads)])
    same = group[:, None] == group[None, :]
    inside, outside = same & ~np.eye(shape.heads, dtype=bool), ~same

    def mean(cka: np.ndarray, pairs: np.ndarray) -> np.ndarray:
        """``[…, 1 + head]`` of ``cka[…, head, head]``; in every group there are as many heads."""
        by_head = (cka * pairs).sum(axis=-1) / pairs.sum(axis=-1)
        return np.concatenate([by_head.mean(axis=-1, keepdims=True), by_head], axis=-1)

    def interval(statistic: np.ndarray, without: np.ndarray) -> Interval:
        if not len(without):
            nothing = np.full_like(statistic, np.nan)
            return Interval(statistic, nothing, nothing)
        margin = jackknife_margin(without)
        return Interval(statistic, statistic - margin, statistic + margin)

    cka, left_out = found.cka, found.without
    every = [mean(left_out, pairs) if len(left_out) else np.empty((0, 0)) for pairs in (inside, outside)]
    within, between = mean(cka, inside), mean(cka, outside)
    return GroupGaps(
        interval(within[:1], every[0][:, :1]),
        interval(between[:1], every[1][:, :1]),
        interval(within - between, every[0] - every[1]),
    )
