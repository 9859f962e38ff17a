"""95 % intervals by resampling documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

RESAMPLES = 1_000
_LOW, _HIGH = 2.5, 97.5
CHUNK, LEAST_ROWS = 1_000_000, 32
"""Numbers of a chunk of resamples: the memory that an interval takes does not grow with the resamples. Of many
documents a chunk has so many resamples: the documents' numbers are read once for each chunk."""
FOLDED_ABOVE, GROUPS = 200_000, 2_000
"""Of more documents than this, so many groups are resampled, each with the sums of documents drawn at random: the same
interval to within a tenth of its width, in a fraction of the time."""


@dataclass(frozen=True)
class Interval:
    """``value`` with the 95 % interval from ``low`` to ``high``; all of the same shape."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


def resamples(docs: int, count: int = RESAMPLES, seed: int = 0) -> Iterator[np.ndarray]:
    """How often each document is drawn, ``[resample, doc]`` in float32, some resamples at a time."""
    chance = np.random.default_rng(seed)
    step = max(LEAST_ROWS, CHUNK // max(docs, 1))
    for start in range(0, count, step):
        rows = min(step, count - start)
        drawn = chance.integers(docs, size=(rows, docs))
        drawn += np.arange(rows)[:, None] * docs
        yield np.bincount(drawn.ravel(), minlength=rows * docs).reshape(rows, docs).astype(np.float32)


def groups_of(docs: int, seed: int = 0) -> np.ndarray | None:
    """``[doc]``: the group that each document's numbers are added to; None where documents themselves are resampled."""
    return None if docs <= FOLDED_ABOVE else np.random.default_rng([seed, docs]).permutation(docs) % GROUPS


def folded(values: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """``values[doc, column]`` added up by group, in float32; as they are where there are no groups."""
    if groups is None:
        return values
    sums = [np.bincount(groups, values[:, column], minlength=GROUPS) for column in range(values.shape[1])]
    return np.stack(sums, axis=1).astype(np.float32)


def ratios(sums: np.ndarray, weights: np.ndarray, seed: int = 0) -> Interval:
    """``sums[doc, column]`` over ``weights[doc, column]``, both added up over documents; percentile interval.

    With weights of 1 it is the mean over documents; with counts, a mean over samples that come in documents. Weights
    that are the same for all columns are one column.
    """
    sums, weights = sums.astype(np.float32, copy=False), weights.astype(np.float32, copy=False)
    groups = groups_of(len(sums), seed)
    above, below = folded(sums, groups), folded(weights, groups)
    drawn = [_divided(counts @ above, counts @ below) for counts in resamples(len(above), seed=seed)]
    value = _divided(sums.sum(axis=0, dtype=np.float64), weights.sum(axis=0, dtype=np.float64))
    low, high = np.full((2, len(value)), np.nan)
    some = ~np.isnan(value)  # a column without any weight has no interval
    if some.any():
        low[some], high[some] = np.nanpercentile(np.concatenate(drawn)[:, some], [_LOW, _HIGH], axis=0)
    return Interval(value, low, high)


def means(values: np.ndarray, seed: int = 0) -> Interval:
    """The mean of ``values[doc, column]`` over documents."""
    return ratios(values, _each_once(values), seed)


def near_best(values: np.ndarray) -> np.ndarray:
    """``[column]``: whether the mean of ``values[doc, column]`` is within one standard error of the best one's.

    The error is that of the difference, document by document: what all columns find hard does not blur it.
    """
    behind = values[:, [int(values.mean(axis=0).argmax())]] - values
    if len(values) < 2:
        return behind.mean(axis=0) <= 0
    within: np.ndarray = behind.mean(axis=0) <= behind.std(axis=0, ddof=1) / np.sqrt(len(values))
    return within


def shares(hits: np.ndarray, weights: np.ndarray | None = None, seed: int = 0) -> Interval:
    """``means`` (or ``ratios``) of hits between 0 and 1.

    Where all are hits, or none, no resample differs; there the exact binomial bound takes the place of the bootstrap's.
    """
    found = ratios(hits, _each_once(hits) if weights is None else weights, seed)
    count = np.full(hits.shape[1], float(len(hits))) if weights is None else (weights > 0).sum(axis=0)
    bound = 0.025 ** (1 / np.maximum(count, 1))
    return Interval(
        found.value,
        np.where(found.value >= 1, np.minimum(found.low, bound), found.low),
        np.where(found.value <= 0, np.maximum(found.high, 1 - bound), found.high),
    )


def percentiles(value: np.ndarray, drawn: np.ndarray) -> Interval:
    """The interval of any statistic: the percentiles of ``drawn[resample, …]``; resamples that have none are NaN."""
    if np.isnan(drawn).all():
        return Interval(value, np.full_like(value, np.nan), np.full_like(value, np.nan))
    return Interval(value, *np.nanpercentile(drawn, [_LOW, _HIGH], axis=0))


def moved_back(value: np.ndarray, drawn: np.ndarray) -> Interval:
    """The interval of a statistic that resampling inflates: the percentiles of ``drawn[resample, …]``, moved back."""
    low, high = np.nanpercentile(drawn, [_LOW, _HIGH], axis=0)
    inflated = np.nanmean(drawn, axis=0) - value
    return Interval(value, low - inflated, high - inflated)


def _each_once(values: np.ndarray) -> np.ndarray:
    return np.ones((len(values), 1), dtype=np.float32)


def _divided(sums: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return np.divide(sums, weights, out=np.full(sums.shape, np.nan), where=weights > 0, dtype=np.float64)
