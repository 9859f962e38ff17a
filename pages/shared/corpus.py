"""What a document is held against at one stage of a run: read once a process, shared by all sessions, read-only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import streamlit as st

from core.analysis.document_profile import Ranks, Reliability, Yardstick, corpus_mean
from core.analysis.examples import Examples
from core.analysis.similarity import unit
from core.maps.place import Placer
from core.model.stages import HEADS
from core.retrieval.head_index import HeadIndex
from core.retrieval.pairs import usual_pairs
from core.retrieval.votes import Say
from core.runs.results import read_examples, read_fitted_map, read_similarity, read_topics
from core.runs.run import Run
from pages.shared.data import RunState, head_index, labels, own_similarity, tables, vector_docs
from pages.shared.run_version import FIGURES, one_version

MOST_COMPARED = 50_000
"""Documents that a percentile is of: the study's 33 × 25 similarities of so many take 80 MB a stage."""
_PIECE = 4_096


def vote_weights(state: RunState, stage: int) -> np.ndarray:
    """``[head]``: how much each head's vote weighs."""
    return _vote_weights(state.run, state.version, stage, head_index(state, stage)).weight


EXAMPLES, NAMES = "examples", "names"


def references(state: RunState) -> tuple[str, ...]:
    """What a document's topics can be compared with in a run that is analysed, the better one first."""
    return (EXAMPLES, NAMES) if tables(state).rows.get("example_match") else (NAMES,)


def yardstick(state: RunState, stage: int, reference: str = NAMES) -> Yardstick:
    """The topics, and the corpus's similarities to them and activations, for a run that is analysed."""
    index = head_index(state, stage)
    if reference == EXAMPLES:
        own = labels(state)[vector_docs(state)]
        return _yardstick_by_examples(state.run, state.analysis_version, stage, index, own)
    return _yardstick(state.run, state.analysis_version, stage, index)


def own_topic_similarity(state: RunState, stage: int, reference: str = NAMES) -> np.ndarray:
    """``[doc, 1 + head]``: each document's similarity to its own topic; column 0 is the full embedding.

    NaN without a label; by examples also where the topic has too few of them or the run has no vector of the document.
    """
    if reference == EXAMPLES:
        own, docs = labels(state), vector_docs(state)
        return _own_by_examples(state.run, state.analysis_version, stage, head_index(state, stage), own, docs)
    return own_similarity(state, stage)


def reliability(state: RunState, stage: int, reference: str) -> Reliability | None:
    """How often the full embedding and each head are right on the corpus; None for a run without labels."""
    found = tables(state)
    if reference == EXAMPLES:
        rows = found.pick("example_match", stage=stage)
    else:
        rows = found.pick("topic_match", stage=stage, slicing=HEADS, within=1)
    rows = sorted((row for row in rows if row["head"] is not None), key=lambda row: int(row["head"]))
    return Reliability(np.array([row["rate"] for row in rows]), float(rows[0]["chance"])) if rows else None


def best_reliability(state: RunState, stage: int) -> Reliability | None:
    """By the better reference that the run has; None without figures or labels."""
    return reliability(state, stage, references(state)[0]) if state.analysed else None


def pairs(state: RunState, stage: int) -> Ranks | None:
    """How alike two documents of the corpus usually are, ``[1 + head, pair]``."""
    return _pairs(state.run, state.version, stage, head_index(state, stage))


def place(state: RunState, stage: int, vectors: np.ndarray) -> np.ndarray:
    """Where a document's ``vectors[head, dim]`` lie on the stage's map, ``[head, 2]``, for a run that has maps."""
    assert state.manifest is not None
    cosine = state.manifest.steps["project"].options.get("metric") == "cosine"
    return _placer(state.run, state.analysis_version, stage).place(unit(vectors) if cosine else vectors)


@st.cache_resource(max_entries=12, show_spinner=False)
def _vote_weights(run: Run, version: str, stage: int, _index: HeadIndex) -> Say:
    return Say.of(_pieces(_index), len(_index.lengths))


def _pieces(index: HeadIndex) -> Iterator[np.ndarray]:
    """The corpus's vectors ``[doc, width]``, some documents at a time."""
    for first in range(0, index.docs, _PIECE):
        part = index.vectors[first : first + _PIECE]
        yield part.reshape(len(part), -1)


@st.cache_resource(max_entries=3, show_spinner="Reading the corpus's similarities …")
@one_version(*FIGURES)
def _yardstick(run: Run, version: str, stage: int, _index: HeadIndex) -> Yardstick:
    manifest, topics = run.manifest(), read_topics(run)
    heads, docs = manifest.shape.heads, compared_with(int(manifest.corpus["documents"]))
    centred = manifest.steps["analyse"].options.get("centre")
    return Yardstick(
        topics.vectors[stage].reshape(len(topics.names), heads, -1),
        Ranks.of(_chosen(read_similarity(run, stage, len(topics.names)), docs)),
        Ranks.of([_index.activations[:, compared_with(_index.docs)].T]),
        corpus_mean(_pieces(_index), heads) if centred else None,
        topics.names,
        _index.space,
    )


@st.cache_resource(max_entries=3, show_spinner="Comparing the corpus with its topics' examples …")
@one_version(*FIGURES)
def _yardstick_by_examples(run: Run, version: str, stage: int, _index: HeadIndex, _labels: np.ndarray) -> Yardstick:
    stored, docs = read_examples(run, stage), compared_with(_index.docs)
    return Yardstick.by_examples(
        stored.names,
        Examples(stored.sums, stored.counts),
        stored.mean,
        (_index.vectors[docs[first : first + _PIECE]] for first in range(0, len(docs), _PIECE)),
        _labels[docs],
        Ranks.of([_index.activations[:, docs].T]),
        _index.space,
    )


@st.cache_resource(max_entries=12, show_spinner="Comparing the documents with their topics' examples …")
@one_version(*FIGURES)
def _own_by_examples(
    run: Run, version: str, stage: int, _index: HeadIndex, _labels: np.ndarray, _docs: np.ndarray
) -> np.ndarray:
    stored = read_examples(run, stage)
    examples = Examples(stored.sums, stored.counts)
    found = np.full((len(_labels), 1 + len(_index.lengths)), np.nan, dtype=np.float32)
    for first in range(0, _index.docs, _PIECE):
        docs, part = _docs[first : first + _PIECE], _index.vectors[first : first + _PIECE]
        known = _labels[docs] >= 0
        own = _labels[docs][known]
        near = examples.with_full(part[known].astype(np.float32) - stored.mean, own, _index.space)
        found[docs[known]] = near[np.arange(len(own)), :, own]
    found[~np.isfinite(found)] = np.nan
    found.setflags(write=False)
    return found


def compared_with(documents: int) -> np.ndarray:
    """The documents that percentiles are of: all, or as many as can be held, drawn at random."""
    return np.sort(np.random.default_rng(0).permutation(documents)[:MOST_COMPARED])


def _chosen(chunks: Iterable[np.ndarray], docs: np.ndarray) -> Iterator[np.ndarray]:
    """Of ``[doc, …]``, some documents at a time, those of ``docs``."""
    first = 0
    for chunk in chunks:
        own = docs[slice(*np.searchsorted(docs, [first, first + len(chunk)]))]
        yield chunk[own - first]
        first += len(chunk)


@st.cache_resource(max_entries=12, show_spinner=False)
def _pairs(run: Run, version: str, stage: int, _index: HeadIndex) -> Ranks | None:
    return usual_pairs(_index)


@st.cache_resource(max_entries=3, show_spinner="Reading the map …")
@one_version(*FIGURES)
def _placer(run: Run, version: str, stage: int) -> Placer:
    fitted = read_fitted_map(run, stage)
    return Placer.of(fitted.vectors, fitted.places)
