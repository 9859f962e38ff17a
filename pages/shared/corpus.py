"""What a document is held against at one stage of a run: read once a process, shared by all sessions, read-only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import streamlit as st

from core.analysis.document_profile import Ranks, Yardstick, corpus_mean
from core.analysis.similarity import unit
from core.maps.place import Placer
from core.retrieval.head_index import HeadIndex
from core.retrieval.pairs import usual_pairs
from core.retrieval.votes import Say
from core.runs.results import read_fitted_map, read_similarity, read_topics
from core.runs.run import Run
from pages.shared.data import RunState, head_index
from pages.shared.run_version import FIGURES, one_version

MOST_COMPARED = 50_000
"""Documents that a percentile is of: the study's 33 × 25 similarities of so many take 80 MB a stage."""
_PIECE = 4_096


def vote_weights(state: RunState, stage: int) -> np.ndarray:
    """``[head]``: how much each head's vote weighs."""
    return _vote_weights(state.run, state.version, stage, head_index(state, stage)).weight


def yardstick(state: RunState, stage: int) -> Yardstick:
    """The topics, and the corpus's similarities to them and activations, for a run that is analysed."""
    return _yardstick(state.run, state.analysis_version, stage, head_index(state, stage))


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
    )


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
