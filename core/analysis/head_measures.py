"""Every per-head measure of one way of cutting a stage's vectors: the heads themselves, or random slices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.analysis.examples import examples_of
from core.analysis.profiles import correlation_with_full, minus_topic_means, selectivity, sparsity
from core.analysis.similarity import similarity, unit
from core.analysis.topic_match import nearest_is_own
from core.runs.labels import own

NEIGHBOUR_SAMPLE = 500
"""Documents among which nearest neighbours are looked for, at most: their cost grows with the square."""

PER_DOCUMENT = {
    "names": "topic match by names",
    "examples": "topic match by examples",
    "neighbour": "nearest document has the same topic",
}
"""Measures that are a mean over documents."""
PER_HEAD = {
    "selectivity": "selectivity",
    "alignment": "alignment",
    "mean": "mean similarity",
    "spread": "spread of similarities",
    "sparsity": "sparsity",
}
"""Measures that exist only for a head as a whole."""
MEASURES = {**PER_DOCUMENT, **PER_HEAD}
TITLES = {**MEASURES, "probe": "recall of the probe"}
"""What people read; the names of the tables ``null`` and ``null_summary``."""


@dataclass(frozen=True)
class Measured:
    """``documents[measure][doc, head]`` and ``heads[measure][head]``, of one way of cutting."""

    documents: dict[str, np.ndarray]
    heads: dict[str, np.ndarray]

    def value(self, measure: str) -> np.ndarray:
        """``[head]``."""
        if measure in self.heads:
            return self.heads[measure]
        return np.asarray(np.nanmean(self.documents[measure], axis=0))


@dataclass(frozen=True)
class LabelledSample:
    """Labelled documents of one stage, and what their slices are compared with."""

    vectors: np.ndarray
    """``[doc, width]`` in float32, as stored; in random order, for the first ones are looked at more closely."""
    labels: np.ndarray
    """``[doc]``: indices of topics; every document has one."""
    topics: np.ndarray
    """``[topic, width]``: the topics' names, embedded."""
    mean: np.ndarray
    """``[width]``: the corpus mean."""
    centre: bool
    """Whether similarities to names are of centred vectors."""
    heads: int

    def measure(self, order: np.ndarray | None = None) -> Measured:
        """All measures, the dimensions cut in this ``order[dim]``; without one, where the heads are."""
        vectors, topics, mean = self.vectors, self.topics, self.mean
        if order is not None:
            vectors, topics, mean = vectors[:, order], topics[:, order], mean[order]
        docs = vectors.reshape(len(vectors), self.heads, -1)
        centred = (vectors - mean).reshape(docs.shape)
        shift = mean if self.centre else np.float32(0)
        names = (topics - shift).reshape(len(topics), self.heads, -1)
        values = similarity(centred if self.centre else docs, names)
        by_examples = examples_of(centred, self.labels, len(topics)).similarity(centred, self.labels)
        to_own = own(values, self.labels)
        return Measured(
            {
                "names": nearest_is_own(values[:, 1:], self.labels),
                "examples": nearest_is_own(by_examples, self.labels),
                "neighbour": self._neighbours(centred),
            },
            {
                "selectivity": selectivity(minus_topic_means(to_own, values.mean(axis=0), self.labels), self.labels)[
                    1:
                ],
                "alignment": correlation_with_full(to_own, self.labels)[1:],
                "mean": to_own[:, 1:].mean(axis=0),
                "spread": to_own[:, 1:].std(axis=0),
                "sparsity": sparsity(np.abs(to_own[:, 1:] - np.median(to_own[:, 1:], axis=0))),
            },
        )

    def _neighbours(self, centred: np.ndarray) -> np.ndarray:
        """``[doc, head]``: whether the nearest other document has the same topic; NaN beyond NEIGHBOUR_SAMPLE."""
        count = min(len(centred), NEIGHBOUR_SAMPLE)
        found = np.full(centred.shape[:2], np.nan, dtype=np.float32)
        slices = unit(centred[:count]).transpose(1, 0, 2)
        labels = self.labels[:count]
        for head, rows in enumerate(slices):
            cosines = rows @ rows.T
            np.fill_diagonal(cosines, -np.inf)
            found[:count, head] = labels[cosines.argmax(axis=1)] == labels
        return found
