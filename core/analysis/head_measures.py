"""Every per-head measure of one way of cutting a stage's vectors: the heads themselves, or random slices."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from core.analysis.examples import LEAST_EXAMPLES, examples_of
from core.analysis.profiles import correlation_with_full, minus_topic_means, selectivity, sparsity
from core.analysis.similarity import similarity, unit
from core.analysis.topic_match import nearest_is_own
from core.model.share_space import ShareSpace
from core.runs.labels import own

NEIGHBOUR_SAMPLE = 500
"""Documents among which nearest neighbours are looked for, at most: their cost grows with the square."""
LEAST_LABELLED = 20
"""Documents: with fewer, heads and slices cannot be compared."""

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
LAYER_MEASURES = ("names", "examples", "selectivity", "alignment", "mean", "spread", "sparsity")
"""Those that are cheap enough for every layer; roles need all but the first two."""


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
    space: ShareSpace | None = None
    """Of stage 4: what random slices are cut in, and what full embeddings are sums in."""

    @property
    def width(self) -> int:
        """How many numbers a random slicing shuffles."""
        return self.vectors.shape[1] if self.space is None else self.heads * self.space.triangle.shape[2]

    @cached_property
    def _outputs(self) -> tuple[np.ndarray, ...]:
        """Documents, topics and mean before the projection: solved for once, sliced many times."""
        assert self.space is not None
        return tuple(self.space.outputs(rows) for rows in (self.vectors, self.topics, self.mean[None]))

    @cached_property
    def full(self) -> tuple[np.ndarray, np.ndarray]:
        """Documents and topics as full embeddings, which no slicing changes."""
        shift = self.mean if self.centre else np.float32(0)
        docs, topics = self.vectors - shift, self.topics - shift
        return (docs, topics) if self.space is None else (self.space.full(docs), self.space.full(topics))

    @property
    def whole(self) -> LabelledSample:
        """The same with the full embedding as the only head."""
        if self.space is None:
            return replace(self, heads=1)
        docs, topics, mean = (self.space.full(rows) for rows in (self.vectors, self.topics, self.mean[None]))
        return replace(self, vectors=docs, topics=topics, mean=mean[0], heads=1, space=None)

    @property
    def comparable(self) -> bool:
        """Whether there are documents, topics and heads enough to compare heads with slices."""
        return len(self.labels) >= LEAST_LABELLED and len(np.unique(self.labels)) > 1 < self.heads

    def measurable(self, measures: Collection[str]) -> list[str]:
        """Those of ``measures`` that these documents allow: examples of two topics, more documents than topics."""
        counts = np.bincount(self.labels)
        lacking = {
            "examples": (counts >= LEAST_EXAMPLES).sum() < 2,
            "selectivity": (counts > 0).sum() >= len(self.labels),
        }
        return [name for name in measures if not lacking.get(name, False)]

    def measure(self, order: np.ndarray | None = None, measures: Collection[str] = tuple(MEASURES)) -> Measured:
        """The dimensions cut in this ``order[dim]``; without one, where the heads are.

        Several orders one after the other give the slices of all of them, but for stage 4.
        """
        docs, topics, mean = self.cut(order)
        centred = docs - mean
        names = topics - mean if self.centre else topics
        values = similarity(centred if self.centre else docs, names, self.full)
        to_own = own(values, self.labels)
        heads, above = to_own[:, 1:], minus_topic_means(to_own, values.mean(axis=0), self.labels)
        found: dict[str, Callable[[], np.ndarray]] = {
            "names": lambda: nearest_is_own(values[:, 1:], self.labels),
            "examples": lambda: self._by_examples(centred),
            "neighbour": lambda: self._neighbours(centred),
            "selectivity": lambda: selectivity(above, self.labels)[1:],
            "alignment": lambda: correlation_with_full(to_own, self.labels)[1:],
            "mean": lambda: heads.mean(axis=0),
            "spread": lambda: heads.std(axis=0),
            "sparsity": lambda: sparsity(np.abs(heads - np.median(heads, axis=0))),
        }
        return Measured(
            {name: found[name]() for name in PER_DOCUMENT if name in measures},
            {name: found[name]() for name in PER_HEAD if name in measures},
        )

    def cut(self, order: np.ndarray | None) -> list[np.ndarray]:
        """Documents, topics and mean: ``[…, head, dim]``, or slices of the dimensions in ``order``."""
        rows = (self.vectors, self.topics, self.mean[None])
        if order is not None and self.space is not None:
            slices = self.space.slices(order)
            return [slices(outputs) for outputs in self._outputs]
        ordered = rows if order is None else tuple(one[:, order] for one in rows)
        return [one.reshape(len(one), -1, self.width // self.heads) for one in ordered]

    def _by_examples(self, centred: np.ndarray) -> np.ndarray:
        examples = examples_of(centred, self.labels, len(self.topics))
        return nearest_is_own(examples.similarity(centred, self.labels), self.labels)

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
