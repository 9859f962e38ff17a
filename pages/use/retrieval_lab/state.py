"""What the Retrieval lab is about: a question, two ways to rank and the heads that count; and how good they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from core.analysis.bootstrap import Interval, ratios
from core.analysis.document_profile import Reliability
from core.model.stages import SHARE
from core.retrieval.metrics import METRICS, Relevance, measured, metric_name
from core.retrieval.tasks import TASKS
from core.retrieval.turned import TurnedHeads
from core.retrieval.ways import WAYS, Heads, Ranking, rank
from core.runs.run import Run
from pages.shared.corpus import best_reliability
from pages.shared.data import RunState, head_index, row_of, vector_docs
from pages.use.retrieval_lab.data import (
    OUTPUT,
    LabQuestion,
    bench,
    corpus_rows,
    has_rest,
    judge,
    question_rows,
    seen,
    share_rows,
)

SHOWN = 10


@dataclass(frozen=True)
class LabView:
    """A question, two ways to rank, and heads that count."""

    state: RunState
    stage: int
    task: str | None
    """None where the heads have not been judged yet."""
    question: LabQuestion
    ways: tuple[str, str]
    weights: np.ndarray
    """``[head]``, at least one above 0."""
    scores: np.ndarray
    """``[head]``: MRAG's."""
    rest: bool = True
    """At stage 4: whether the sum has what no head of the layer adds."""

    @property
    def reliability(self) -> Reliability | None:
        return best_reliability(self.state, self.stage)

    @property
    def heads(self) -> Heads:
        return Heads(self.weights, self.scores)

    def is_sum(self, way: str) -> bool:
        """At stage 4 the full embedding is the sum of the heads' shares, not the heads side by side."""
        return (way, self.stage) == ("full", SHARE)

    def turned(self, weights: np.ndarray | None = None) -> TurnedHeads:
        space = head_index(self.state, SHARE).space
        assert space is not None
        return TurnedHeads(space, self.weights if weights is None else weights, self.rest)

    @property
    def metric(self) -> str:
        """What the task is judged by, such as nDCG@10."""
        assert self.task is not None
        return metric_name(TASKS[self.task].metric, TASKS[self.task].places)


def way_sentence(way: str, stage: int, rest: bool = True) -> str:
    if (way, stage) == ("full", SHARE):
        return (
            f"{'rest + ' if rest else ''}Σ weight × share, by cosine: "
            + ("the model's own embedding" if rest else "the sum of the heads' shares")
            + " with reweighted heads."
        )
    return WAYS[way].sentence


def ranked(shown: LabView, way: str, count: int = SHOWN) -> Ranking:
    """The best documents of the corpus; one that is the question itself is not among them."""
    question, docs = shown.question, vector_docs(shown.state)
    own = row_of(shown.state, question.own)
    if shown.is_sum(way):
        summed = shown.turned().rank(question_rows(shown.state, question), corpus_rows(shown.state), count, own)
        return Ranking(docs[summed.docs], summed.scores, summed.by_head)
    looked = seen(shown.state, shown.stage, question.vectors[shown.stage], own)
    found = rank(way, looked, shown.heads, count + 1)
    others = found.docs != own
    return Ranking(docs[found.docs[others][:count]], found.scores[others][:count], found.by_head[others][:count])


def reached(shown: LabView, way: str, weights: np.ndarray, places: int) -> np.ndarray:
    """``[metric, query]``: how good heads of these weights are on all queries of the task, among the first places."""
    assert shown.task is not None
    chosen = (shown.stage, shown.task, way, weights.tobytes(), places, shown.rest)
    return _reached(shown.state.run, shown.state.retrieval_version, *chosen, shown, weights)


@st.cache_resource(max_entries=32, show_spinner=False)
def _reached(
    run: Run,
    version: str,
    stage: int,
    task: str,
    way: str,
    weights: bytes,
    places: int,
    rest: bool,
    _shown: LabView,
    _weights: np.ndarray,
) -> np.ndarray:
    state = _shown.state
    if _shown.is_sum(way):
        own = bench(state, stage, task)
        other = bench(state, OUTPUT, task) if has_rest(state) else None
        queries = share_rows(own.queries, None if other is None else other.queries)
        searched = share_rows(own.index.vectors, None if other is None else other.index.vectors)
        order = _shown.turned(_weights).ranked(queries, searched, own.asked.own, places)
        found = measured(order, Relevance.of(own.asked.relevant, own.asked.topics))
    else:
        judged = judge(state, stage, task, way)
        depth = min(places, judged.answers.relevant.shape[1] - 1) or 1
        found = judged.measured(judged.total(_weights), depth)
    last: np.ndarray = found[:, :, -1]
    return last


def means(values: np.ndarray) -> Interval:
    """Of ``values[metric, query]``; a query that has no such metric does not count."""
    known = ~np.isnan(values.T)
    return ratios(np.where(known, values.T, 0), known.astype(np.float32))


@dataclass(frozen=True)
class Standing:
    """The task's own metric with the heads that are on, and its difference to all heads, paired by query."""

    value: float
    difference: float
    low: float
    high: float
    queries: int

    @classmethod
    def of(cls, shown: LabView) -> Standing:
        assert shown.task is not None
        about, way = TASKS[shown.task], shown.ways[0]
        these = reached(shown, way, shown.weights, about.places)
        everyone = reached(shown, way, np.ones(len(shown.weights)), about.places)
        at = list(METRICS).index(about.metric)
        gained = means(these - everyone)
        difference, low, high = (float(values[at]) for values in (gained.value, gained.low, gained.high))
        return cls(float(means(these).value[at]), difference, low, high, these.shape[1])
