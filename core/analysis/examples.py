"""A topic's reference by its examples: the mean of its labelled documents within a head, the document itself left out.

A topic's name is one short text, and within a slice of 32 numbers its direction is mostly noise (DESIGN §11).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.analysis.similarity import full_vectors
from core.model.share_space import ShareSpace

LEAST_EXAMPLES = 5
"""Documents that a topic needs: with fewer, its mean says more about those documents than about the topic."""


@dataclass(frozen=True)
class Examples:
    """The sums of each topic's centred documents, ``sums[topic, head, dim]``, and how many there are."""

    sums: np.ndarray
    counts: np.ndarray
    """``[topic]``; topics with fewer than ``LEAST_EXAMPLES`` are no reference."""

    @property
    def usable(self) -> np.ndarray:
        """``[topic]``."""
        return np.asarray(self.counts >= LEAST_EXAMPLES)

    def similarity(self, docs: np.ndarray, labels: np.ndarray | None = None) -> np.ndarray:
        """Cosines of centred ``docs[doc, head, dim]`` and the topics' means: ``[doc, head, topic]``; -inf if unusable.

        With ``labels[doc]`` (-1 for none), the documents are among the examples, and each is left out of its own
        topic's mean.
        """
        dots = np.matmul(docs.transpose(1, 0, 2), self.sums.transpose(1, 2, 0)).transpose(1, 0, 2)
        squares = np.einsum("nhd,nhd->nh", docs, docs)
        lengths = np.broadcast_to(np.einsum("thd,thd->ht", self.sums, self.sums), dots.shape)
        if labels is not None:
            own = np.flatnonzero(labels >= 0)
            mine = (own[:, None], np.arange(docs.shape[1])[None, :], labels[own][:, None])
            lengths = lengths.copy()
            lengths[mine] += squares[own] - 2 * dots[mine]
            dots[mine] -= squares[own]
        scale = np.sqrt(np.maximum(squares[:, :, None] * lengths, 0))
        values = np.divide(dots, scale, out=np.zeros_like(dots), where=scale > 1e-12)
        values[:, :, ~self.usable] = -np.inf
        return np.asarray(values)

    def with_full(
        self, docs: np.ndarray, labels: np.ndarray | None = None, space: ShareSpace | None = None
    ) -> np.ndarray:
        """The same with the full embedding as index 0: ``[doc, 1 + head, topic]``; ``space`` is that of shares."""
        whole = Examples(full_vectors(self.sums, space)[:, None], self.counts)
        full = whole.similarity(full_vectors(docs, space)[:, None], labels)
        return np.concatenate([full, self.similarity(docs, labels)], axis=1)


def examples_of(docs: np.ndarray, labels: np.ndarray, topics: int) -> Examples:
    """From centred ``docs[doc, head, dim]`` and ``labels[doc]``, -1 for none."""
    known = labels >= 0
    member = np.zeros((topics, int(known.sum())), dtype=docs.dtype)
    member[labels[known], np.arange(member.shape[1])] = 1
    sums = (member @ docs[known].reshape(member.shape[1], -1)).reshape(topics, *docs.shape[1:])
    return Examples(sums, np.bincount(labels[known], minlength=topics))
