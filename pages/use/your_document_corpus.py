"""What a document is held against at one stage of a run: read once a process, shared by all sessions, read-only."""

from __future__ import annotations

import numpy as np
import streamlit as st

from core.document_profile import Ranks, Yardstick, corpus_mean
from core.head_index import HeadIndex
from core.pairs import usual_pairs
from core.place import Placer
from core.results import read_placer, read_similarity, read_topics
from core.similarity import unit
from core.store import Run
from core.votes import Say
from pages.shared.data import RunState
from pages.shared.steady import FIGURES, VECTORS, steady


def head_index(state: RunState, stage: int) -> HeadIndex:
    """The corpus's unit vectors by head."""
    return _head_index(state.run, state.version, stage)


def say(state: RunState, stage: int) -> np.ndarray:
    """``[head]``: how much each head's vote weighs."""
    return _say(state.run, state.version, stage).weight


def yardstick(state: RunState, stage: int) -> Yardstick:
    """The topics, and the corpus's similarities to them and activations, for a run that is analysed."""
    return _yardstick(state.run, state.analysis_version, state.version, stage)


def pairs(state: RunState, stage: int) -> Ranks | None:
    """How alike two documents of the corpus usually are, ``[1 + head, pair]``."""
    return _pairs(state.run, state.version, stage)


def place(state: RunState, stage: int, vectors: np.ndarray) -> np.ndarray:
    """Where a document's ``vectors[head, dim]`` lie on the stage's map, ``[head, 2]``, for a run that has maps."""
    assert state.manifest is not None
    cosine = state.manifest.steps["project"].options.get("metric") == "cosine"
    return _placer(state.run, state.analysis_version, stage).place(unit(vectors) if cosine else vectors)


@st.cache_resource(max_entries=3, show_spinner="Reading the corpus's vectors …")
@steady(*VECTORS)
def _head_index(run: Run, version: str, stage: int) -> HeadIndex:
    return HeadIndex.of(run.vectors(stage), run.manifest().shape.heads)


@st.cache_resource(max_entries=12, show_spinner=False)
@steady(*VECTORS)
def _say(run: Run, version: str, stage: int) -> Say:
    return Say.of(run.vectors(stage), run.manifest().shape.heads)


@st.cache_resource(max_entries=3, show_spinner="Reading the corpus's similarities …")
@steady(*FIGURES)
def _yardstick(run: Run, version: str, vectors: str, stage: int) -> Yardstick:
    manifest, topics = run.manifest(), read_topics(run)
    heads = manifest.shape.heads
    centred = manifest.steps["analyse"].options.get("centre")
    return Yardstick(
        topics.vectors[stage].reshape(len(topics.names), heads, -1),
        Ranks.of(read_similarity(run, stage, len(topics.names))),
        Ranks.of([_head_index(run, vectors, stage).activations.T]),
        corpus_mean(run.vectors(stage), heads) if centred else None,
    )


@st.cache_resource(max_entries=12, show_spinner=False)
def _pairs(run: Run, version: str, stage: int) -> Ranks | None:
    return usual_pairs(_head_index(run, version, stage))


@st.cache_resource(max_entries=3, show_spinner="Reading the map …")
@steady(*FIGURES)
def _placer(run: Run, version: str, stage: int) -> Placer:
    return read_placer(run, stage)
