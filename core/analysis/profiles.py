"""What a head does with topics: level, spread, selectivity, alignment and sparsity of its similarities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from core.analysis.auc import Auc, auc
from core.analysis.bootstrap import GROUPS, Interval, folded, groups_of, means, moved_back, resamples

LEAST_IN_TOPIC = 5
"""Documents that a topic needs to be the one a head is selective for."""
FEW = 0.02
"""The share of documents that sparsity looks at."""
_LEAST_VARIANCE = 1e-12
"""Below, a head does not vary but for rounding."""


@dataclass(frozen=True)
class Profiles:
    """One entry a row: the full embedding, then the heads. Similarities are those to the documents' own topics."""

    mean: Interval
    spread: np.ndarray
    low_percentile: np.ndarray
    """The 5th percentile over documents."""
    positive: np.ndarray
    """The share of documents with a similarity above 0."""
    explained: np.ndarray
    """How much of the variance topics explain, raw; ``explained_by_chance`` is what random topics would."""
    explained_by_chance: float
    selectivity: Interval
    """The same, less what chance explains: 0 for no effect, 1 if topics explain all."""
    topic: np.ndarray
    """The topic with the largest gap to the rest, as an index; -1 where no topic has enough documents."""
    gap: np.ndarray
    next_gap: np.ndarray
    auc: Auc
    """Of that topic's documents against the rest, by the similarity to their own topics: 0.5 is chance."""
    alignment: Interval
    """Rank correlation with the full embedding's similarities, within topics."""
    sparsity: np.ndarray
    """The share of all squared deviation from the median that the 2 % farthest documents have."""
    farthest: np.ndarray
    """The largest deviation from the median."""


def profiles(
    own: np.ndarray, labels: np.ndarray, topics: int, seed: int = 0, topic_means: np.ndarray | None = None
) -> Profiles:
    """From ``own[doc, 1 + head]``, similarities to the own topic, and ``labels[doc]`` of the labelled documents.

    ``topic_means[1 + head, topic]`` is each topic's mean similarity over all documents. It is subtracted before topics
    are compared with each other: a name that is near every text does not make its documents stand out.
    """
    own = own.astype(np.float32, copy=False)
    counts = np.bincount(labels, minlength=topics)
    above = own if topic_means is None else minus_topic_means(own, topic_means, labels)
    gaps = _gaps(above, labels, counts)
    order = np.argsort(-gaps, axis=0, kind="stable")
    rows = np.arange(own.shape[1])
    found = np.isfinite(gaps).any(axis=0)
    topic = np.where(found, order[0], -1)
    deviation = np.abs(own - np.median(own, axis=0))
    return Profiles(
        mean=means(own, seed),
        spread=own.std(axis=0),
        low_percentile=np.percentile(own, 5, axis=0),
        positive=(own > 0).mean(axis=0),
        explained=_explained(above, labels, counts),
        explained_by_chance=_by_chance(len(own), int((counts > 0).sum())),
        selectivity=_selectivity(above, labels, counts, seed),
        topic=topic,
        gap=np.where(found, gaps[order[0], rows], np.nan),
        next_gap=_second(gaps, order),
        auc=Auc.stacked([auc(above[:, row], labels == topic[row]) for row in rows]),
        alignment=_alignment(own, labels, seed),
        sparsity=sparsity(deviation),
        farthest=deviation.max(axis=0),
    )


def minus_topic_means(own: np.ndarray, topic_means: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """``own[doc, row]`` less the mean similarity, over all documents, to each document's topic."""
    return np.asarray(own - topic_means.T[labels].astype(np.float32))


def selectivity(above: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """``[row]``: how much of the variance of ``minus_topic_means`` topics explain beyond chance; no interval."""
    counts = np.bincount(labels)
    present = int((counts > 0).sum())
    if len(above) <= present:
        return np.full(above.shape[1], np.nan)
    varies = above.var(axis=0) > _LEAST_VARIANCE
    return np.where(varies, _adjusted(_explained(above, labels, counts), len(above), present), 0)


def correlation_with_full(own: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """``[row]``: Spearman's correlation with row 0, of ranks taken within each topic and pooled; no interval."""
    return _correlation(_rank_products(own, labels).sum(axis=0, dtype=np.float64))


def _gaps(own: np.ndarray, labels: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """``[topic, row]``: the mean of a topic's documents less that of the rest; -inf for topics with few documents."""
    sums = np.zeros((len(counts), own.shape[1]))
    np.add.at(sums, labels, own)
    rest = len(own) - counts
    enough = (counts >= LEAST_IN_TOPIC) & (rest > 0)
    gaps = np.full(sums.shape, -np.inf)
    inside = sums[enough] / counts[enough, None]
    gaps[enough] = inside - (sums.sum(axis=0) - sums[enough]) / rest[enough, None]
    return gaps


def _second(gaps: np.ndarray, order: np.ndarray) -> np.ndarray:
    """The second largest gap of each row; NaN where no second topic has enough documents."""
    if len(gaps) < 2:
        return np.full(gaps.shape[1], np.nan)
    second = gaps[order[1], np.arange(gaps.shape[1])]
    return np.where(np.isfinite(second), second, np.nan)


def _by_chance(docs: int, topics: int) -> float:
    return (topics - 1) / (docs - 1) if docs > 1 else float("nan")


def _explained(own: np.ndarray, labels: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Between-topic over total sum of squares, ``[row]``; 0 where nothing varies."""
    centred = own - own.mean(axis=0, dtype=np.float64)
    sums = np.zeros((len(counts), own.shape[1]))
    np.add.at(sums, labels, centred)
    total = (centred**2).sum(axis=0)
    between = (sums**2 / np.maximum(counts, 1)[:, None]).sum(axis=0)
    return np.divide(between, total, out=np.zeros_like(total), where=total > _LEAST_VARIANCE * len(own))


def _adjusted(explained: np.ndarray, docs: int, topics: np.ndarray | int) -> np.ndarray:
    return 1 - (1 - explained) * (docs - 1) / np.maximum(docs - topics, 1)


def _selectivity(own: np.ndarray, labels: np.ndarray, counts: np.ndarray, seed: int) -> Interval:
    """Epsilon-squared with its interval over resampled documents."""
    docs, present = len(own), np.flatnonzero(counts)
    if docs <= len(present):  # a topic for each document explains all, and says nothing
        nothing = np.full(own.shape[1], np.nan)
        return Interval(nothing, nothing, nothing)
    centred = (own - own.mean(axis=0, dtype=np.float64)).astype(np.float32)
    varies = (centred**2).mean(axis=0) > _LEAST_VARIANCE
    value = np.where(varies, _adjusted(_explained(own, labels, counts), docs, len(present)), 0)
    groups = groups_of(docs, seed)
    squares = folded(centred**2, groups)
    drawn = []
    for times, sum_, size in _drawn(centred, labels, present, groups, seed):
        middle = sum_.sum(axis=1) ** 2 / docs
        between = np.divide(sum_**2, size, out=np.zeros_like(sum_), where=size > 0).sum(axis=1) - middle
        total = times @ squares - middle
        enough = varies & (total > _LEAST_VARIANCE * docs)
        share = np.divide(between, total, out=np.zeros_like(total), where=enough)
        drawn.append(np.where(enough, _adjusted(share, docs, (size > 0).sum(axis=1)), 0))
    found = moved_back(value, np.concatenate(drawn))
    # What topics explain is not below 0, though its estimate may be.
    return Interval(value, np.minimum(found.low, value), np.clip(found.high, np.maximum(value, 0), 1))


def _drawn(
    centred: np.ndarray, labels: np.ndarray, present: np.ndarray, groups: np.ndarray | None, seed: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """How often each document or group is drawn, and by resample and topic the sums and numbers of documents."""
    members = [np.flatnonzero(labels == topic) for topic in present]
    if groups is None:
        for times in resamples(len(centred), seed=seed):
            mine = [times[:, docs] for docs in members]
            sums = np.stack([own @ centred[docs] for own, docs in zip(mine, members, strict=True)], axis=1)
            yield times, sums, np.stack([own.sum(axis=1) for own in mine], axis=1)[:, :, None]
        return
    by_topic = np.stack([folded(centred[docs], groups[docs]) for docs in members], axis=1)  # [group, topic, row]
    sizes = np.stack([np.bincount(groups[docs], minlength=GROUPS) for docs in members], axis=1).astype(np.float32)
    for times in resamples(GROUPS, seed=seed):
        yield times, np.tensordot(times, by_topic, axes=1), (times @ sizes)[:, :, None]


def _alignment(own: np.ndarray, labels: np.ndarray, seed: int) -> Interval:
    """``correlation_with_full`` with its interval over resampled documents."""
    products = _rank_products(own, labels)
    some = folded(products, groups_of(len(products), seed))
    drawn = np.concatenate([_correlation(times @ some) for times in resamples(len(some), seed=seed)])
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    return Interval(_correlation(products.sum(axis=0, dtype=np.float64)), low, high)


def _rank_products(own: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """``[doc, 2 * row]``: each row's centred rank within the topic times row 0's, then its square."""
    from scipy.stats import rankdata

    # The topics' values are moved apart, so that one call ranks all topics.
    counts = np.bincount(labels)
    before = np.cumsum(counts) - counts
    ranks = rankdata(own + (1 + np.ptp(own.astype(np.float64))) * labels[:, None], axis=0)
    ranked = ((ranks - (before + (counts + 1) / 2)[labels, None]) / counts[labels, None]).astype(own.dtype)
    return np.concatenate([ranked * ranked[:, :1], ranked**2], axis=1).astype(np.float32)


def _correlation(sums: np.ndarray) -> np.ndarray:
    """``[…, row]`` from sums of ``_rank_products`` over documents."""
    rows = sums.shape[-1] // 2
    together, square = sums[..., :rows], sums[..., rows:]
    scale = np.sqrt(np.maximum(square * square[..., :1], 0))
    return np.divide(together, scale, out=np.zeros_like(together), where=scale > 0)


def sparsity(deviation: np.ndarray) -> np.ndarray:
    """``[row]``: the share of all squared ``deviation[doc, row]`` that the farthest documents have."""
    few = max(1, round(FEW * len(deviation)))
    squares = np.sort(deviation.astype(np.float64) ** 2, axis=0)[::-1]
    total = squares.sum(axis=0)
    return np.divide(squares[:few].sum(axis=0), total, out=np.zeros_like(total), where=total > 1e-12 * len(deviation))
