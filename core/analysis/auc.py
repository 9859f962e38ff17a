"""How well one number parts some documents from the rest: the area under the ROC curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_Z = 1.959964
_LEAST_BINS, _MOST_BINS, _CELLS = 512, 8_192, 2**24
"""Bins of a histogram: as fine as memory allows, for some heads' cosines lie close together."""


@dataclass(frozen=True)
class Auc:
    """``value`` with its 95 % interval (DeLong); NaN where either side is empty."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def stacked(cls, found: Sequence[Auc]) -> Auc:
        return cls(*(np.array([getattr(one, name) for one in found]) for name in ("value", "low", "high")))


def auc(scores: np.ndarray, positive: np.ndarray) -> Auc:
    """The chance that a document of ``positive[doc]`` has a higher score than one of the rest; ties count half."""
    from scipy.stats import rankdata

    inside, outside = scores[positive], scores[~positive]
    if not len(inside) or not len(outside):
        nothing = np.array(np.nan)
        return Auc(nothing, nothing, nothing)
    ranks = rankdata(np.concatenate([inside, outside]))
    above = (ranks[: len(inside)] - rankdata(inside)) / len(outside)  # of each inside: the share of the rest below it
    below = 1 - (ranks[len(inside) :] - rankdata(outside)) / len(inside)
    value = float(above.mean())
    variance = sum(part.var(ddof=1) / len(part) for part in (above, below) if len(part) > 1)
    margin = _Z * variance**0.5
    few = min(len(inside), len(outside))
    low, high = value - margin, value + margin
    if variance == 0 or few < 2:  # parted wholly: only the number of documents says how sure that is
        bound = 0.025 ** (1 / few)
        low, high = (bound, 1.0) if value > 0.5 else (0.0, 1 - bound) if value < 0.5 else (0.0, 1.0)
    return Auc(np.array(value), np.array(max(low, 0.0)), np.array(min(high, 1.0)))


class Histograms:
    """AUCs of every head and topic, from counts alone: memory does not grow with the documents."""

    def __init__(self, rows: int, topics: int) -> None:
        self._bins = int(np.clip(_CELLS // (rows * topics), _LEAST_BINS, _MOST_BINS))
        self._counts = np.zeros((2, rows, topics, self._bins), dtype=np.int32)

    def add(self, values: np.ndarray, labels: np.ndarray) -> None:
        """``values[doc, row, topic]``, cosines, and ``labels[doc]`` of documents that have one."""
        rows, topics, bins = self._counts.shape[1:]
        bin_ = np.minimum(((values + 1) * (bins / 2)).astype(np.int64), bins - 1)
        cell = (np.arange(rows)[:, None] * topics + np.arange(topics)) * bins
        mine = labels[:, None] == np.arange(topics)  # [doc, topic]
        for side, chosen in enumerate((~mine, mine)):
            docs, topic = np.nonzero(chosen)
            np.add.at(self._counts[side].reshape(-1), (bin_[docs, :, topic] + cell[:, topic].T).ravel(), 1)

    def auc(self) -> np.ndarray:
        """``[row, topic]``: a topic's documents against the rest, by the similarity to that topic."""
        rest, mine = self._counts.astype(np.float64)
        below = np.cumsum(rest, axis=2) - rest / 2
        pairs = mine.sum(axis=2) * rest.sum(axis=2)
        won = (mine * below).sum(axis=2)
        return np.divide(won, pairs, out=np.full(pairs.shape, np.nan), where=pairs > 0)
