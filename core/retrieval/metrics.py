"""How good rankings are: what of a query's documents, and of their topics, is found among the first k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

METRICS = {
    "success": "Share of the relevant documents that are among the first k. MRAG calls it success.",
    "category": "Share of the relevant documents' topics that occur among the first k. MRAG calls it category.",
    "all found": "Share of the queries whose relevant documents are all among the first k.",
    "weighted": "Two thirds recall, one third topic recall.",
    "ndcg": "Relevant documents among the first k; earlier places count more. 1 is the best possible order.",
    "mrr": "1 divided by the place of the first relevant document; 0 if none is among the first k.",
}
SPELLED = {"success": "recall", "category": "topic recall", "weighted": "weighted recall", "ndcg": "nDCG", "mrr": "MRR"}
"""What people call those that are stored under another name."""


def metric_name(metric: str, places: int) -> str:
    """In its usual spelling: ``nDCG@10``."""
    return f"{SPELLED.get(metric, metric)}@{places}"


@dataclass(frozen=True)
class Relevance:
    """What queries should find, laid out so that many rankings of the same queries are measured quickly."""

    relevant: np.ndarray
    """``[query, doc]``, bool."""
    wanted: np.ndarray
    """``[query, topic]``, bool: topics of the relevant documents."""
    topics: np.ndarray
    """``[doc]``: a number each, -1 for a document without: it has no topic that could be found."""

    @classmethod
    def of(cls, relevant: Sequence[Sequence[int]], topics: np.ndarray) -> Relevance:
        """``relevant[query]`` has at least one document."""
        asked = np.zeros((len(relevant), len(topics)), dtype=bool)
        wanted = np.zeros((len(relevant), max(1, int(topics.max(initial=-1)) + 1)), dtype=bool)
        for query, docs in enumerate(relevant):
            asked[query, list(docs)] = True
            own = topics[list(docs)]
            wanted[query, own[own >= 0]] = True
        return cls(asked, wanted, topics)


def measured(ranked: np.ndarray, answers: Relevance) -> np.ndarray:
    """``[metric, query, k]`` in the order of ``METRICS``, k from 1 to the rankings' depth.

    ``ranked[query, rank]`` are documents, best first, each once in a row. A query whose relevant documents have no
    topic has no category ratio (NaN), and so no weighted one.
    """
    hits = np.take_along_axis(answers.relevant, ranked, axis=1)
    count = answers.relevant.sum(axis=1, keepdims=True)
    found = hits.cumsum(axis=1)
    success = found / count
    category = _category(answers.topics[ranked], answers.wanted)
    first = 1 / (1 + hits.argmax(axis=1, keepdims=True))
    ndcg = _ndcg(hits, count)
    return np.stack(
        [success, category, found == count, (2 * success + category) / 3, ndcg, np.where(found > 0, first, 0.0)]
    )


def _category(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """``[query, k]``: the share of ``wanted[query, topic]`` that the first k have, their topics being ``found``."""
    queries, depth = found.shape
    seen, share = np.zeros_like(wanted), np.empty((queries, depth))
    count = wanted.sum(axis=1)
    for place in range(depth):
        here = np.flatnonzero(found[:, place] >= 0)
        seen[here, found[here, place]] = True
        share[:, place] = (seen & wanted).sum(axis=1)
    return np.divide(share, count[:, None], out=np.full_like(share, np.nan), where=count[:, None] > 0)


def _ndcg(hits: np.ndarray, count: np.ndarray) -> np.ndarray:
    """``[query, k]``: gains of 1, discounted by the logarithm of the place, over those of the best order."""
    discounts = 1 / np.log2(np.arange(2, hits.shape[1] + 2))
    best = (discounts * (np.arange(hits.shape[1]) < count)).cumsum(axis=1)
    gained: np.ndarray = (discounts * hits).cumsum(axis=1) / best
    return gained
