"""The topic heat map (Fig. 6): a row for the full embedding and each head, documents in blocks by topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

BLOCKS, PER_TOPIC = 8, 120
"""The study's: eight topics, 120 documents each."""


@dataclass(frozen=True)
class HeatMap:
    """``values[row, column]``: how near that head's slice of that document is to the document's own topic."""

    values: np.ndarray
    docs: np.ndarray
    """``[column]``: the documents."""
    topics: np.ndarray
    """``[column]``: their topics, as indices."""

    @property
    def starts(self) -> np.ndarray:
        """The first column of each block."""
        return np.flatnonzero(np.r_[True, self.topics[1:] != self.topics[:-1]]) if len(self.topics) else self.topics


def frequent_topics(labels: np.ndarray, count: int = BLOCKS) -> np.ndarray:
    """The ``count`` topics with most documents, most frequent first; ``labels[doc]`` is -1 where there is none."""
    counts = np.bincount(labels[labels >= 0])
    order = np.argsort(-counts, kind="stable")
    return order[counts[order] > 0][:count]


def heat_map(
    own: np.ndarray,
    labels: np.ndarray,
    topics: Sequence[int] | np.ndarray | None = None,
    per_topic: int = PER_TOPIC,
    seed: int = 0,
) -> HeatMap:
    """Blocks of the given topics, in their order (default: the most frequent ones).

    ``own[doc, 1 + head]`` is each document's similarity to its own topic. Where a topic has more than ``per_topic``
    documents, that many are drawn at random; within a block the full embedding's similarity falls from left to right.
    """
    columns = []
    for topic in frequent_topics(labels) if topics is None else topics:
        docs = np.flatnonzero(labels == topic)
        if len(docs) > per_topic:
            chance = np.random.default_rng([seed, int(topic)])  # its own: a topic's documents do not hang on the others
            docs = np.sort(chance.choice(docs, per_topic, replace=False))
        columns.append(docs[np.argsort(-own[docs, 0], kind="stable")])
    docs = np.concatenate(columns) if columns else np.empty(0, dtype=np.int64)
    return HeatMap(own[docs].T, docs, labels[docs])
