"""How well one number parts some documents from the rest: the area under the ROC curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_Z = 1.959964
BINS = 1_024


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
        low, high = (bound, 1.0) if value >= 0.5 else (0.0, 1 - bound)
    return Auc(np.array(value), np.array(max(low, 0.0)), np.array(min(high, 1.0)))


class Histograms:
    """AUCs of every head and topic, from counts alone: memory does not grow with the documents."""

    def __init__(self, rows: int, topics: int) -> None:
        self._counts = np.zeros((2, rows, topics, BINS), dtype=np.int32)

    def add(self, values: np.ndarray, labels: np.ndarray) -> None:
        """``values[doc, row, topic]``, cosines, and ``labels[doc]`` of documents that have one."""
        rows, topics = self._counts.shape[1:3]
        bins = np.minimum(((values + 1) * (BINS / 2)).astype(np.int64), BINS - 1)
        mine = labels[:, None] == np.arange(topics)  # [doc, topic]
        cell = (np.arange(rows)[:, None] * topics + np.arange(topics)) * BINS
        for side, chosen in enumerate((~mine, mine)):
            docs, topic = np.nonzero(chosen)
            places = (bins[docs, :, topic] + cell[:, topic].T).ravel()
            self._counts[side] += np.bincount(places, minlength=rows * topics * BINS).reshape(rows, topics, BINS)

    def auc(self) -> np.ndarray:
        """``[row, topic]``: a topic's documents against the rest, by the similarity to that topic."""
        rest, mine = self._counts.astype(np.float64)
        below = np.cumsum(rest, axis=2) - rest / 2
        pairs = mine.sum(axis=2) * rest.sum(axis=2)
        won = (mine * below).sum(axis=2)
        return np.divide(won, pairs, out=np.full(pairs.shape, np.nan), where=pairs > 0)
