"""How far two labellings of the same documents agree: their share, Cohen's kappa, and who is taken for whom."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.analysis.bootstrap import RESAMPLES, percentiles
from core.analysis.wording import percent
from core.runs.labels import Labels, labels_of

_CHUNK = 2_000_000
"""Numbers of a chunk of resamples."""


@dataclass(frozen=True)
class Agreement:
    """Of the documents that both have labelled; the others are counted, and count neither for nor against."""

    documents: int
    """Labelled by both."""
    only_first: int
    only_second: int
    neither: int
    share: float
    """Of ``documents``, those with the same topic; NaN where there are none."""
    kappa: float
    """Cohen's: the share less what the two would agree on by chance, 1 if they always agree, 0 if as by chance.

    NaN where chance alone agrees always: both know one topic only, the same.
    """
    low: float
    high: float
    """Kappa's 95 % interval, documents drawn again."""
    confusion: np.ndarray
    """``[topic, topic]``: documents by their first topic and their second."""


def agreement(first: np.ndarray, second: np.ndarray, topics: int, seed: int = 0) -> Agreement:
    """Of two labellings ``first[doc]`` and ``second[doc]``: indices of topics, -1 for none."""
    one, two = first >= 0, second >= 0
    both = one & two
    pairs = first[both].astype(np.int64) * topics + second[both]
    confusion = np.bincount(pairs, minlength=topics * topics).reshape(topics, topics)
    documents = int(both.sum())
    share, kappa, low, high = (float("nan"),) * 4
    if documents:
        share = float(np.trace(confusion)) / documents
        kappa = float(_kappa(*_sums(confusion))[0])
        low, high = _interval(confusion, kappa, share, seed)
    return Agreement(
        documents,
        int((one & ~two).sum()),
        int((two & ~one).sum()),
        int((~one & ~two).sum()),
        share,
        kappa,
        low,
        high,
        confusion,
    )


def _sums(confusion: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A confusion's hits ``[1]`` and margins ``[1, topic]``, as shares."""
    shares = confusion / confusion.sum()
    return np.trace(shares)[None], shares.sum(axis=1)[None], shares.sum(axis=0)[None]


def _kappa(hits: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """From ``hits[resample]`` and the margins ``[resample, topic]``, all as shares."""
    chance = (first * second).sum(axis=1)
    certain = chance > 1 - 1e-12
    return np.where(certain, np.nan, (hits - chance) / np.where(certain, 1, 1 - chance))


def _interval(confusion: np.ndarray, kappa: float, share: float, seed: int) -> tuple[float, float]:
    """Documents drawn again are cells drawn again: how often each comes is multinomial, however many documents."""
    if np.isnan(kappa):
        return float("nan"), float("nan")
    rows, columns = np.nonzero(confusion)
    documents, cells = int(confusion.sum()), confusion[rows, columns]
    chance, drawn = np.random.default_rng(seed), []
    step = max(1, _CHUNK // (len(cells) + 2 * len(confusion)))
    for start in range(0, RESAMPLES, step):
        counts = chance.multinomial(documents, cells / documents, size=min(step, RESAMPLES - start)) / documents
        margins = (_margin(counts, cell, len(confusion)) for cell in (rows, columns))
        drawn.append(_kappa(counts[:, rows == columns].sum(axis=1), *margins))
    found = percentiles(np.array(kappa), np.concatenate(drawn))
    low, high = float(found.low), float(found.high)
    # Where all agree, or none, no resample differs: the exact binomial bound of the share takes the bootstrap's place.
    _, first, second = _sums(confusion)
    by_chance, bound = float((first * second).sum()), 0.025 ** (1 / documents)
    if share >= 1:
        low = min(low, (bound - by_chance) / (1 - by_chance))
    if share <= 0:
        high = max(high, (1 - bound - by_chance) / (1 - by_chance))
    return low, high


def _margin(counts: np.ndarray, topic: np.ndarray, topics: int) -> np.ndarray:
    """``counts[resample, cell]`` added up by the cells' ``topic[cell]``: ``[resample, topic]``."""
    order = np.argsort(topic, kind="stable")
    present, starts = np.unique(topic[order], return_index=True)
    found = np.zeros((len(counts), topics))
    found[:, present] = np.add.reduceat(counts[:, order], starts, axis=1)
    return found


@dataclass(frozen=True)
class Compared:
    """Two sources of one run: ``topics`` name the axes of the confusion, the most frequent first."""

    first: str
    second: str
    topics: tuple[str, ...]
    agreement: Agreement

    @property
    def constant(self) -> tuple[str, ...]:
        """Sources that give every document that both have labelled the same topic."""
        axes = ((self.first, 1), (self.second, 0))
        return tuple(source for source, axis in axes if (self.agreement.confusion.sum(axis=axis) > 0).sum() == 1)

    @property
    def sentence(self) -> str:
        found = self.agreement
        if not found.documents:
            return f"{self.first} and {self.second} have labelled no document in common."
        one_topic = " and ".join(self.constant)
        kappa = (
            f"Cohen's kappa is undefined, because {one_topic} gave all of them one topic"
            if one_topic
            else f"Cohen's kappa {found.kappa:.2f} ({found.low:.2f}–{found.high:.2f})"
        )
        return (
            f"{self.first} and {self.second} agree on {percent(found.share, 1)} of {found.documents:,} documents "
            "that both "
            f"have labelled; {kappa}."
        )

    def as_json(self) -> dict[str, Any]:
        """For machines; None where a figure is not defined."""
        found = self.agreement
        figures = {name: getattr(found, name) for name in ("share", "kappa", "low", "high")}
        return {
            "first": self.first,
            "second": self.second,
            **{name: getattr(found, name) for name in ("documents", "only_first", "only_second", "neither")},
            **{name: None if np.isnan(value) else value for name, value in figures.items()},
            "topics": list(self.topics),
            "confusion": found.confusion.tolist(),
        }


def compare(first: Labels, second: Labels) -> Compared:
    """Two sources' agreement; topics that only one of them knows are on both axes."""
    names = [first.topics.to_pylist(), second.topics.to_pylist()]
    counts = Counter(name for name in itertools.chain(*names) if name is not None)
    topics = tuple(sorted(counts, key=lambda topic: (-counts[topic], topic)))
    one, two = (labels_of(each, topics) for each in names)
    return Compared(first.source, second.source, topics, agreement(one, two, len(topics)))


def all_compared(sources: Iterable[Labels]) -> list[Compared]:
    """Every two sources that have labelled anything."""
    found = [labels for labels in sources if labels.labelled]
    return [compare(first, second) for first, second in itertools.combinations(found, 2)]
