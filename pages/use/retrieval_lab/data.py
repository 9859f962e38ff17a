"""What the Retrieval lab reads and keeps: queries, what every head sees of them, and judges of heads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import streamlit as st

from core.errors import Mistake
from core.model.stages import SHARE
from core.retrieval.head_index import HeadIndex
from core.retrieval.judge import Asked, Judge
from core.retrieval.tasks import (
    QUERY_SET,
    SAME_TOPIC,
    TOPIC_MATCH,
    ask,
    pose_query_set,
    pose_same_topic,
    pose_topic_match,
    queries_that_fit,
    same_topic_queries,
    topic_match_queries,
)
from core.retrieval.turned import ShareRows
from core.retrieval.ways import Seen
from core.runs.labels import label_codes, own_codes
from core.runs.results import QuerySet, read_analysis, read_query_set, read_topics
from core.runs.run import Run
from core.runs.tables import Row
from pages.shared.corpus import vote_weights
from pages.shared.data import RunState, document_vectors, head_index, vector_docs
from pages.shared.run_version import RETRIEVAL, one_version

OUTPUT = 3
_MOST_NUMBERS = 2**24
"""Cosines that a judge holds in the app, 64 MB: with more documents and heads it judges by fewer queries."""


@dataclass(frozen=True)
class LabQuestion:
    """A query as the heads see it at every stage, and what it should find."""

    text: str
    vectors: dict[int, np.ndarray]
    relevant: frozenset[int] = frozenset()
    own: int = -1
    """The corpus document that is the question, or -1."""


@dataclass(frozen=True)
class Bench:
    """Queries of a task that heads are judged by on the page."""

    asked: Asked
    aspects: np.ndarray
    of: int
    """Queries that there are; ``asked`` has as many of them as can be judged at once."""
    queries: np.ndarray
    """``[query, head, dim]``: of those in ``asked``."""
    index: HeadIndex
    """What they search."""


def query_set(state: RunState) -> QuerySet | None:
    return _query_set(state.run, state.retrieval_version) if state.retrieved else None


def rows(state: RunState, table: str, **wanted: object) -> list[Row]:
    """The rows of one of the step's tables in which every column of ``wanted`` has that value."""
    found = _rows(state.run, state.retrieval_version, table)
    return [row for row in found if all(row[name] == value for name, value in wanted.items())]


def tasks(state: RunState) -> list[str]:
    """What the run's heads were judged by."""
    return list(dict.fromkeys(row["task"] for row in rows(state, "retrieval", k=1, metric="success")))


@st.cache_resource(max_entries=8, show_spinner=False)
def _seen(run: Run, version: str, stage: int, own: int, key: bytes, _index: HeadIndex, _query: np.ndarray) -> Seen:
    return Seen.of(_index, _query, own=own)


def seen(state: RunState, stage: int, query: np.ndarray, own: int = -1) -> Seen:
    """What the heads see of ``query[head, dim]``; kept, so that switches do not look again.

    Its documents, and ``own``, are places among those that have vectors.
    """
    key = np.ascontiguousarray(query).tobytes()
    return _seen(state.run, state.version, stage, own, key, head_index(state, stage), query)


def bench(state: RunState, stage: int, task: str) -> Bench:
    index, docs = head_index(state, stage), vector_docs(state)
    return _bench(state.run, state.retrieval_version, stage, task, index, docs)


def share_rows(shares: np.ndarray, outputs: np.ndarray | None) -> ShareRows:
    """From ``[doc, head, dim]`` of stage 4 and of stage 3, which a run need not store."""
    return ShareRows(shares, None if outputs is None else outputs.reshape(len(outputs), -1))


def corpus_rows(state: RunState) -> ShareRows:
    """The documents that have vectors."""
    return share_rows(head_index(state, SHARE).vectors, _outputs(state))


def question_rows(state: RunState, question: LabQuestion) -> ShareRows:
    vectors = dict(question.vectors)
    if question.own >= 0 and has_rest(state):
        vectors[OUTPUT] = document_vectors(state, OUTPUT, question.own)
    output = vectors[OUTPUT][None] if has_rest(state) else None
    return share_rows(vectors[SHARE][None], output)


def has_rest(state: RunState) -> bool:
    """Whether the run stores the model's own embedding, of which the rest is a part."""
    assert state.manifest is not None
    return OUTPUT in state.manifest.stages


def _outputs(state: RunState) -> np.ndarray | None:
    return head_index(state, OUTPUT).vectors if has_rest(state) else None


def judge(state: RunState, stage: int, task: str, way: str) -> Judge:
    return _judge(
        state.run, state.retrieval_version, stage, task, way, bench(state, stage, task), vote_weights(state, stage)
    )


@st.cache_resource(max_entries=4, show_spinner=False)
@one_version(*RETRIEVAL)
def _query_set(run: Run, version: str) -> QuerySet | None:
    return read_query_set(run)


@st.cache_resource(max_entries=24, show_spinner="Reading the figures …")
@one_version(*RETRIEVAL)
def _table(run: Run, version: str, name: str) -> pa.Table:
    return read_analysis(run, name)


@st.cache_resource(max_entries=24, show_spinner=False)
def _rows(run: Run, version: str, name: str) -> list[Row]:
    found: list[Row] = _table(run, version, name).to_pylist()
    return found


@st.cache_resource(max_entries=3, show_spinner="Ranking with every head …")
@one_version(*RETRIEVAL)
def _bench(run: Run, version: str, stage: int, task: str, _index: HeadIndex, _docs: np.ndarray) -> Bench:
    """``_docs`` are the documents that have vectors: what is searched, and who can ask."""
    manifest = run.manifest()
    names = run.documents(["topic"])["topic"]
    topics = read_topics(run) if manifest.is_done("analyse") else None
    labels = (label_codes(names, topics.names) if topics else own_codes(names))[_docs]
    limit = int(manifest.steps["retrieve"].options.get("limit", 250))
    index, found = _index, labels
    if task == QUERY_SET:
        asked = read_query_set(run)
        if asked is None:
            raise _no_queries(run, task)
        posed = pose_query_set(asked.vectors[stage], asked.relevant, asked.aspects, _docs)
    elif task == SAME_TOPIC:
        docs = same_topic_queries(labels, limit)
        posed = pose_same_topic(docs, _of(index, docs), labels, np.arange(len(labels)))
    else:
        assert task == TOPIC_MATCH
        if topics is None:
            raise _no_queries(run, task)
        docs = topic_match_queries(labels, limit)
        posed = pose_topic_match(docs, _of(index, docs), labels)
        index = HeadIndex.of([topics.vectors[stage]], manifest.shape.heads, space=_index.space)
        found = np.arange(len(topics.names))
    if not len(posed.own):
        raise _no_queries(run, task)
    fitting = queries_that_fit(len(posed.own), index.docs, manifest.shape.heads, _MOST_NUMBERS)
    chosen = np.sort(np.random.default_rng(0).permutation(len(posed.own))[:fitting])
    some = posed.some(chosen)
    return Bench(ask(index, some, found), some.aspects, len(posed.own), some.vectors, index)


def _no_queries(run: Run, task: str) -> Mistake:
    return Mistake(
        f"retrieval.parquet reports on '{task}', but the run has no queries for it. Rebuild it with 'python -m "
        f"precompute retrieve {run.name} --again'."
    )


def _of(index: HeadIndex, docs: np.ndarray) -> np.ndarray:
    found: np.ndarray = index.vectors[docs].astype(np.float32)
    return found


@st.cache_resource(max_entries=4, show_spinner=False)
def _judge(run: Run, version: str, stage: int, task: str, way: str, _bench: Bench, _scores: np.ndarray) -> Judge:
    return Judge.of(way, _bench.asked, _scores)
