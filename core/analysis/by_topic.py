"""One head's topics: whose documents it finds nearer to their topic than the rest, whose farther, and how surely."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.analysis.profiles import LEAST_IN_TOPIC


@dataclass(frozen=True)
class ByTopic:
    """One entry a topic that has enough documents, the largest gap first."""

    topic: np.ndarray
    """As an index."""
    gap: np.ndarray
    """The mean similarity of the topic's documents less that of all other labelled ones."""
    low: np.ndarray
    high: np.ndarray
    """The gap's 95 % interval (Welch's t, which needs no equal spread); NaN where one side is a single document."""
    documents: np.ndarray
    left_out: int
    """Topics that have documents, but too few."""

    @property
    def side(self) -> np.ndarray:
        """1 where the head follows the topic, -1 where it avoids it, 0 where the interval has 0 in it or is unknown."""
        return (self.low > 0).astype(np.int64) - (self.high < 0)


def by_topic(own: np.ndarray, labels: np.ndarray, row: int, least: int = LEAST_IN_TOPIC) -> ByTopic:
    """From ``own[doc, row]``, similarities to the own topic, and ``labels[doc]``, -1 for none."""
    values = own[:, row].astype(np.float64)
    some = (labels >= 0) & np.isfinite(values)
    values, labels = values[some], labels[some]
    values = values - (values.mean() if len(values) else 0.0)  # gaps do not change, and squares lose less
    documents = np.bincount(labels)
    sums, squares = np.bincount(labels, values), np.bincount(labels, values**2)
    rest = len(values) - documents
    enough = np.flatnonzero((documents >= max(least, 1)) & (rest > 0))
    inside = _Side(documents[enough], sums[enough], squares[enough])
    outside = _Side(rest[enough], sums.sum() - sums[enough], squares.sum() - squares[enough])
    gap = inside.mean - outside.mean
    margin = _margin(inside, outside)
    order = np.argsort(-gap, kind="stable")
    return ByTopic(
        enough[order],
        gap[order],
        (gap - margin)[order],
        (gap + margin)[order],
        documents[enough][order],
        int((documents > 0).sum()) - len(enough),
    )


@dataclass(frozen=True)
class _Side:
    """Documents, their sum and their sum of squares, ``[topic]``."""

    count: np.ndarray
    sum: np.ndarray
    square: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        return np.asarray(self.sum / self.count)

    @property
    def error(self) -> np.ndarray:
        """The squared standard error of the mean; NaN for a single document."""
        squares = np.maximum(self.square - self.sum**2 / self.count, 0)
        return np.divide(
            squares,
            self.count * (self.count - 1.0),
            out=np.full(len(squares), np.nan),
            where=self.count > 1,
        )


def _margin(one: _Side, other: _Side) -> np.ndarray:
    """Half the width of Welch's 95 % interval of the difference of two means."""
    from scipy.special import stdtrit

    error = one.error + other.error
    weight = one.error**2 / np.maximum(one.count - 1, 1) + other.error**2 / np.maximum(other.count - 1, 1)
    freedom = np.divide(error**2, weight, out=np.ones_like(error), where=weight > 0)
    return np.asarray(stdtrit(freedom, 0.975) * np.sqrt(error))
