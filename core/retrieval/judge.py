"""Judges a choice of heads by queries whose documents are known: each head's part is worked out once, then added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.retrieval.head_index import largest_in_rows
from core.retrieval.metrics import METRICS, Relevance, measured
from core.retrieval.ways import DEPTH, SIDE_BY_SIDE, WAYS, Heads, Seen

METRIC, PLACES = "ndcg", 10
"""What heads are chosen by, unless somebody says otherwise."""


@dataclass(frozen=True)
class Asked:
    """Queries as all heads see them, and what they should find."""

    seen: tuple[Seen, ...]
    relevant: tuple[tuple[int, ...], ...]
    """``[query]``: documents, at least one each."""
    topics: np.ndarray
    """``[doc]``: a number each, -1 without."""
    own: np.ndarray
    """``[query]``: the document that the query is itself, which is not to be found; -1 where it is none."""

    def __post_init__(self) -> None:
        if not len(self.seen) == len(self.relevant) == len(self.own):
            raise ValueError(f"{len(self.seen)} queries, {len(self.relevant)} answers, {len(self.own)} own documents")

    def some(self, queries: Sequence[int] | np.ndarray) -> Asked:
        """The same with these queries only."""
        chosen = [int(query) for query in queries]
        seen, relevant = tuple(self.seen[at] for at in chosen), tuple(self.relevant[at] for at in chosen)
        return Asked(seen, relevant, self.topics, self.own[chosen])


@dataclass(frozen=True)
class Total:
    """What some heads give together, so that one more or one fewer is a single sum."""

    given: np.ndarray
    """``[query, doc]``."""
    squares: np.ndarray | None
    """``[doc]``: squared lengths of what is kept, where the way divides by the length."""

    @classmethod
    def nothing(cls, judge: Judge) -> Total:
        start = np.float32(-np.inf if judge.way == "max" else 0)
        given = np.full(judge.parts.shape[1:], start, dtype=np.float32)
        return cls(given, None if judge.squares is None else np.zeros(judge.squares.shape[1], dtype=np.float32))


@dataclass(frozen=True)
class Judge:
    """One way to rank, ready to be asked about any choice of heads."""

    way: str
    parts: np.ndarray
    """``[head, query, doc]``, float32: what each head would give with weight 1."""
    squares: np.ndarray | None
    """``[head, doc]``: squared lengths, where the way divides by the length of what is kept."""
    asked: Asked
    answers: Relevance

    @classmethod
    def of(cls, way: str, asked: Asked, scores: np.ndarray) -> Judge:
        """For one of ``WAYS``; ``scores`` are MRAG's, ``[head]``."""
        everyone = Heads(np.ones(len(scores)), scores)
        side_by_side = way in ("full", SIDE_BY_SIDE)
        parts = np.empty((len(scores), len(asked.seen), len(asked.topics)), dtype=np.float32)
        for query, seen in enumerate(asked.seen):
            if side_by_side:
                parts[:, query] = seen.lengths[:, None] * seen.doc_lengths * seen.cosines
            elif way in ("mean", "weighted", "max"):
                parts[:, query] = seen.cosines
            else:
                parts[:, query] = WAYS[way].given(seen, everyone)
        squares = asked.seen[0].doc_lengths.astype(np.float32) ** 2 if side_by_side else None
        return cls(way, parts, squares, asked, Relevance.of(asked.relevant, asked.topics))

    @property
    def heads(self) -> int:
        return len(self.parts)

    def total(self, weights: np.ndarray) -> Total:
        """What the heads give together; a document's sum does not depend on where it stands."""
        on = np.flatnonzero(weights > 0)
        found = Total.nothing(self)
        for head in on:
            found = self.plus(found, int(head), float(weights[head]))
        return found

    def plus(self, total: Total, head: int, weight: float = 1.0) -> Total:
        """The same with one more head."""
        if self.way == "max":
            return Total(np.maximum(total.given, self.parts[head]), None)
        squares = None if total.squares is None or self.squares is None else total.squares + weight * self.squares[head]
        more = self.parts[head] if weight == 1 else np.float32(weight) * self.parts[head]
        return Total(total.given + more, squares)

    def less(self, total: Total, head: int) -> Total:
        """The same without one of its heads, whose weight is 1; not for the way 'max', which cannot be taken back."""
        if self.squares is None or total.squares is None:
            return Total(total.given - self.parts[head], None)
        return Total(total.given - self.parts[head], np.maximum(total.squares - self.squares[head], 0))

    def scores(self, total: Total) -> np.ndarray:
        """``[query, doc]``, equal to the way's own up to a factor of the query's."""
        if total.squares is None:
            return total.given.copy()
        lengths = np.sqrt(total.squares)
        return np.divide(total.given, lengths, out=np.zeros_like(total.given), where=lengths > 0)

    def ranked(self, total: Total, depth: int = DEPTH) -> np.ndarray:
        """``[query, rank]``: documents, best first; fewer than ``depth`` where the corpus is smaller."""
        scores = self.scores(total)
        own = self.asked.own
        here = np.flatnonzero(own >= 0)
        scores[here, own[here]] = -np.inf
        depth = min(depth, scores.shape[1] - bool(len(here)))
        return largest_in_rows(scores, depth)

    def measured(self, total: Total, depth: int = DEPTH) -> np.ndarray:
        """``[metric, query, k]``, see ``retrieval_metrics``."""
        return measured(self.ranked(total, depth), self.answers)

    def verdict(self, total: Total, metric: str = METRIC, places: int = PLACES) -> np.ndarray:
        """``[query]``: one metric among the first ``places``."""
        found: np.ndarray = self.measured(total, places)[list(METRICS).index(metric), :, -1]
        return found
