"""Is it about heads? Each per-head measure against the same measure on random slices of the same size (DESIGN §7)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from core.analysis.bootstrap import Interval, means
from core.analysis.head_measures import MEASURES, LabelledSample
from core.machine import cores

SLICINGS = 200
"""Random slicings: seeded permutations of a stage's dimensions, each cut into as many slices as there are heads."""
SAMPLE = 1_000
"""Labelled documents that heads and slices are compared on, at most; stratified by topic."""
LEVEL = 0.05
_AT_ONCE = 2**18
"""Numbers of slicings that are measured together, at most: what has to be said to numpy costs more than small sums."""
ABOVE, WITHIN, BELOW = "above", "within", "below"


@dataclass(frozen=True)
class Comparison:
    """One measure of one stage: the heads' values, and where they lie among random slices'."""

    values: np.ndarray
    """``[head]``."""
    null: np.ndarray
    """``[slicing, slice]``."""
    percentile: np.ndarray
    """``[head]``: the share of random slices below, between 0 and 1."""
    p: np.ndarray
    """``[head]``: two-sided."""
    adjusted: np.ndarray
    """``[head]``: after Benjamini–Hochberg over the heads."""
    difference: Interval | None
    """The mean over heads less that over slices, paired by document; None for measures that are not per document."""
    best: BestOfHalf | None

    @property
    def verdicts(self) -> list[str]:
        """``[head]``: above, within or below random slices."""
        return self.verdicts_of(self.values)

    def verdicts_of(self, values: np.ndarray) -> list[str]:
        """The same for the slices of another slicing, ``values[slice]``."""
        side = np.where(values > np.median(self.null), ABOVE, BELOW)
        return [str(name) for name in np.where(self._flagged(values), side, WITHIN)]

    @property
    def flagged_slices(self) -> float:
        """The share of random slices that would be flagged if their slicing were the heads: the rule's false alarms."""
        return float(self._flagged(self.null).mean())

    def _flagged(self, values: np.ndarray) -> np.ndarray:
        """``[…, slice]``, each slicing by itself."""
        return benjamini_hochberg(two_sided(values, self.null)) <= LEVEL

    @property
    def spread(self) -> float:
        """The standard deviation over heads."""
        return float(self.values.std())

    @property
    def null_spreads(self) -> np.ndarray:
        """``[slicing]``: the same over the slices of each slicing."""
        return np.asarray(self.null.std(axis=1))

    @property
    def spread_p(self) -> float:
        """One-sided: how often slices differ as much among themselves as heads do. The test of specialisation."""
        return _upper(self.spread, self.null_spreads)

    @property
    def largest_p(self) -> float:
        """One-sided: how often the largest of as many slices is as large as the largest head."""
        return _upper(float(self.values.max()), self.null.max(axis=1))


@dataclass(frozen=True)
class BestOfHalf:
    """The best head chosen on one half of the documents and reported on the other; the best slice in the same way."""

    head: int
    """From 0."""
    value: float
    null: np.ndarray
    """``[slicing]``."""

    @property
    def p(self) -> float:
        """One-sided."""
        return _upper(self.value, self.null)


def compare_with_slices(
    sample: LabelledSample,
    slicings: int = SLICINGS,
    seed: int = 0,
    progress: Callable[[float], None] = lambda share: None,
    measures: Collection[str] = tuple(MEASURES),
) -> dict[str, Comparison]:
    """The sample's heads against ``slicings`` random slicings, by those of ``measures`` that its documents allow."""
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    # Slices are small matrices, on which several threads lose more than they win: a thread for each slicing instead.
    with threadpool_limits(1), ThreadPoolExecutor(cores()) as threads:
        return _compare(sample, slicings, seed, progress, sample.measurable(measures), threads)


def _compare(
    sample: LabelledSample,
    slicings: int,
    seed: int,
    progress: Callable[[float], None],
    measures: list[str],
    threads: ThreadPoolExecutor,
) -> dict[str, Comparison]:
    heads = sample.measure(measures=measures)
    halves = np.random.default_rng([seed, 1]).permutation(len(sample.labels)) % 2 == 0
    null: dict[str, list[np.ndarray]] = {name: [] for name in measures}
    best: dict[str, list[np.ndarray]] = {name: [] for name in heads.documents}
    by_document = {name: np.zeros(len(sample.labels)) for name in heads.documents}
    orders = random_orders(sample.width, slicings, seed)
    many = 1 if sample.space is not None else max(1, _AT_ONCE // sample.vectors.size)
    batches = [np.concatenate(orders[first : first + many]) for first in range(0, slicings, many)]
    for number, found in enumerate(threads.map(lambda batch: sample.measure(batch, measures), batches)):
        for name in measures:
            null[name].append(found.value(name).reshape(-1, sample.heads))
        for name, values in found.documents.items():
            by_slicing = values.reshape(len(values), -1, sample.heads)
            by_document[name] += by_slicing.mean(axis=2).sum(axis=1) / slicings
            best[name].append(_best(by_slicing, halves)[1])
        progress((number + 1) / len(batches))
    compared = {}
    for name in measures:
        difference = chosen = None
        if name in heads.documents:
            values = heads.documents[name]
            paired = values.mean(axis=1) - by_document[name]
            difference = _one(means(paired[np.isfinite(paired), None].astype(np.float32), seed))
            head, value = _best(values, halves)
            chosen = BestOfHalf(int(head), float(value), np.concatenate(best[name]))
        compared[name] = comparison(heads.value(name), np.concatenate(null[name]), difference, chosen)
    return compared


def random_orders(width: int, count: int, seed: int = 0) -> list[np.ndarray]:
    """Permutations of ``width`` dimensions, the same ones for the same seed."""
    chance = np.random.default_rng([seed, width])
    return [chance.permutation(width) for _ in range(count)]


def two_sided(values: np.ndarray, null: np.ndarray) -> np.ndarray:
    """``[…, head]``: how often one of ``null[…]`` lies as far out on the same side, times two; at most 1."""
    ordered = np.sort(null[np.isfinite(null)], axis=None)
    count = len(ordered)
    above = count - np.searchsorted(ordered, values, side="left")
    below = np.searchsorted(ordered, values, side="right")
    return np.minimum(1.0, 2 * (1 + np.minimum(above, below)) / (1 + count))


def benjamini_hochberg(p: np.ndarray) -> np.ndarray:
    """Adjusted ``p[…, head]``: rejecting those up to q keeps the expected share of false ones at q or below."""
    order, count = np.argsort(p), p.shape[-1]
    scaled = np.take_along_axis(p, order, axis=-1) * count / np.arange(1, count + 1)
    adjusted = np.empty_like(scaled)
    np.put_along_axis(adjusted, order, np.minimum.accumulate(scaled[..., ::-1], axis=-1)[..., ::-1], axis=-1)
    return np.minimum(adjusted, 1.0)


def by_head(verdicts: dict[str, list[str]]) -> list[dict[str, str]]:
    """From ``verdicts[measure][head]`` to ``[head][measure]``."""
    return [dict(zip(verdicts, each, strict=True)) for each in zip(*verdicts.values(), strict=True)]


def comparison(
    values: np.ndarray, null: np.ndarray, difference: Interval | None = None, best: BestOfHalf | None = None
) -> Comparison:
    """Of ``values[head]`` with ``null[slicing, slice]``."""
    p = two_sided(values, null)
    ordered = np.sort(null, axis=None)
    left, right = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    percentile = (left + right) / 2 / len(ordered)
    return Comparison(values, null, percentile, p, benjamini_hochberg(p), difference, best)


def _best(values: np.ndarray, halves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The best head of ``values[doc, …, head]`` on one half, and its mean on the other."""
    head = np.nanmean(values[halves], axis=0).argmax(axis=-1)
    mean = np.nanmean(values[~halves], axis=0)
    return head, np.take_along_axis(mean, head[..., None], axis=-1)[..., 0]


def _upper(value: float, null: np.ndarray) -> float:
    return float((1 + (null >= value).sum()) / (1 + len(null)))


def _one(interval: Interval) -> Interval:
    return Interval(interval.value[0], interval.low[0], interval.high[0])
