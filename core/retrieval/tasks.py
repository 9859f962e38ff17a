"""What heads are judged by: a query set, or, so that every labelled run has something, its own topics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from core.analysis.stratify import stratified
from core.retrieval.head_index import HeadIndex
from core.retrieval.judge import METRIC, PLACES, Asked
from core.retrieval.ways import Seen

MOST_NUMBERS = 2**28
"""Cosines of all queries with all documents in all heads that are held at once: 1 GB."""
MOST_DOCUMENTS = 50_000
"""Of a larger corpus so many are searched, a sample by topic with all that are to be found."""
QUERIES = 250
"""Documents that are taken as queries, where they are the queries."""


@dataclass(frozen=True)
class RetrievalTask:
    """A kind of question; heads are chosen by ``metric`` among the first ``places``."""

    title: str
    sentence: str
    metric: str = METRIC
    places: int = PLACES


QUERY_SET, SAME_TOPIC, TOPIC_MATCH = "queries", "same topic", "topic match"
TASKS = {
    QUERY_SET: RetrievalTask("Query set", "Each query should find the documents that answer it."),
    SAME_TOPIC: RetrievalTask(
        "Same topic", "Each document is a query that should find the other documents of its topic."
    ),
    TOPIC_MATCH: RetrievalTask(
        "Topic match", "Each document is a query that should find its own topic among the topic names.", "success", 1
    ),
}


@dataclass(frozen=True)
class Posed:
    """Queries of one task, before the heads have looked; all ``[query]``."""

    vectors: np.ndarray
    """``[query, head, dim]``."""
    relevant: tuple[tuple[int, ...], ...]
    """What should be found, at least one each."""
    own: np.ndarray
    """The document that the query is itself; -1 where it is none."""
    aspects: np.ndarray

    def some(self, queries: np.ndarray) -> Posed:
        """The same with these queries only."""
        relevant = tuple(self.relevant[int(query)] for query in queries)
        return Posed(self.vectors[queries], relevant, self.own[queries], self.aspects[queries])


def ask(
    index: HeadIndex, posed: Posed, topics: np.ndarray, progress: Callable[[float], None] = lambda share: None
) -> Asked:
    """Every head looks with every query; ``topics[doc]`` are numbers, -1 without."""
    seen = []
    for query, vectors in enumerate(posed.vectors):
        seen.append(Seen.of(index, vectors, own=int(posed.own[query])))
        progress((query + 1) / len(posed.vectors))
    return Asked(tuple(seen), posed.relevant, topics, posed.own)


def queries_that_fit(queries: int, docs: int, heads: int, numbers: int = MOST_NUMBERS) -> int:
    """Of so many queries, how many can be judged at once; two at least."""
    return min(queries, max(2, numbers // max(1, docs * heads)))


def searched(labels: np.ndarray, wanted: np.ndarray, most: int = MOST_DOCUMENTS, seed: int = 0) -> np.ndarray:
    """The documents that are searched, in their order: all, or a sample by topic that has all of ``wanted``."""
    if len(labels) <= most:
        return np.arange(len(labels))
    found = np.union1d(stratified(labels, max(1, most - len(wanted)), seed), wanted)
    return found.astype(int)


def same_topic_queries(labels: np.ndarray, count: int = QUERIES, seed: int = 0) -> np.ndarray:
    """Documents that can look for others of their topic: ``count`` of them, a sample by topic, in their order."""
    topics, sizes = np.unique(labels[labels >= 0], return_counts=True)
    return _sample(np.flatnonzero(np.isin(labels, topics[sizes > 1])), labels, count, seed)


def topic_match_queries(labels: np.ndarray, count: int = QUERIES, seed: int = 0) -> np.ndarray:
    """Documents that have a topic to be found: ``count`` of them, a sample by topic, in their order."""
    return _sample(np.flatnonzero(labels >= 0), labels, count, seed)


def pose_query_set(
    vectors: np.ndarray, relevant: Sequence[Sequence[int]], aspects: np.ndarray, among: np.ndarray
) -> Posed:
    """Queries with ``vectors[query, head, dim]`` over the documents ``among``, whose places count.

    A query that looks for none of them is not posed.
    """
    place = {int(doc): at for at, doc in enumerate(among)}
    found = [tuple(place[doc] for doc in docs if doc in place) for docs in relevant]
    asked = np.array([query for query, docs in enumerate(found) if docs], dtype=int)
    return Posed(vectors[asked], tuple(found[query] for query in asked), np.full(len(asked), -1), aspects[asked])


def pose_same_topic(docs: np.ndarray, vectors: np.ndarray, labels: np.ndarray, among: np.ndarray) -> Posed:
    """``docs`` as queries with ``vectors[query, head, dim]``, over the documents ``among``, whose places count."""
    place = {int(doc): at for at, doc in enumerate(among)}
    own = np.array([place[int(doc)] for doc in docs], dtype=int)
    found = labels[among]
    relevant = tuple(
        tuple(int(at) for at in np.flatnonzero(found == labels[doc]) if at != itself)
        for doc, itself in zip(docs, own, strict=True)
    )
    return Posed(vectors, relevant, own, np.ones(len(docs), dtype=int))


def pose_topic_match(docs: np.ndarray, vectors: np.ndarray, labels: np.ndarray) -> Posed:
    """``docs`` as queries over the topics' names, of which each should find its own."""
    relevant = tuple((int(label),) for label in labels[docs])
    return Posed(vectors, relevant, np.full(len(docs), -1), np.ones(len(docs), dtype=int))


def _sample(docs: np.ndarray, labels: np.ndarray, count: int, seed: int) -> np.ndarray:
    found: np.ndarray = docs[stratified(labels[docs], count, seed)] if len(docs) else docs
    return found
