"""What pages read from the cache: opened once a process, shared by all sessions, read-only."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import streamlit as st

from core.errors import Mistake
from core.labels import Compared, Labels, compare, kept_labels, kept_sources
from core.manifest import Manifest
from core.merging import topic_similarity
from core.neighbours import Neighbours, lengths, nearest
from core.report import Tables, read_tables
from core.results import Topics, labels_of, read_analysis, read_map, read_own_similarity, read_topics
from core.stages import split_heads
from core.store import Run, default_cache, open_run, run_names
from pages.shared.steady import ATTENTION, DOCUMENTS, FIGURES, RETRIEVAL, VECTORS, steady, version_of


@dataclass(frozen=True)
class RunState:
    """A run as the app sees it now: ``manifest`` is None where it cannot be read, and ``problem`` says why."""

    run: Run
    manifest: Manifest | None
    problem: str = ""

    @property
    def finished(self) -> bool:
        return self.manifest is not None and self.manifest.is_done("embed")

    @property
    def analysed(self) -> bool:
        return self.finished and self.manifest is not None and self.manifest.is_done("analyse")

    @property
    def projected(self) -> bool:
        return self.finished and self.manifest is not None and self.manifest.is_done("project")

    @property
    def version(self) -> str:
        """Changes whenever the run's vectors do: the key of everything that is cached about them."""
        return self._version(*VECTORS)

    @property
    def analysis_version(self) -> str:
        """Changes whenever the run's labels, figures or maps do."""
        return self._version(*FIGURES)

    @property
    def documents_version(self) -> str:
        """Changes whenever the documents or their labels do."""
        return self._version(*DOCUMENTS)

    @property
    def retrieved(self) -> bool:
        return self.finished and self.manifest is not None and self.manifest.is_done("retrieve")

    @property
    def retrieval_version(self) -> str:
        """Changes whenever the labels, the queries or what heads find do."""
        return self._version(*RETRIEVAL)

    @property
    def attention_version(self) -> str:
        """Changes whenever what the heads look at does."""
        return self._version(*ATTENTION)

    @property
    def outdated(self) -> bool:
        """Whether there are figures, but of other labels than the documents have now."""
        return self.manifest is not None and self.manifest.is_outdated("analyse")

    def _version(self, *steps: str) -> str:
        assert self.manifest is not None
        return version_of(self.manifest, steps)


def cache_folder() -> Path:
    return default_cache()


def runs() -> list[RunState]:
    """All runs of the cache, finished or not."""
    found = []
    for name in run_names(cache_folder()):
        with contextlib.suppress(Mistake):  # it has gone since it was listed
            found.append(run_state(name))
    return found


def run_state(name: str) -> RunState:
    run = open_run(cache_folder(), name)
    try:
        return RunState(run, run.manifest())
    except Mistake as mistake:
        return RunState(run, None, str(mistake))


def documents(state: RunState) -> pa.Table:
    """The documents' own columns and the corpus's, texts included."""
    return _documents(state.run, state.documents_version)


def head_vectors(state: RunState, stage: int, head: int) -> np.ndarray:
    """``[doc, dim]``; head 0 is the full embedding."""
    return _head_vectors(state.run, state.version, stage, head)


def neighbours(state: RunState, stage: int, head: int, doc: int, count: int) -> Neighbours:
    """The documents nearest to one in a head, or in the full embedding (head 0)."""
    return _neighbours(state.run, state.version, stage, head, doc, count)


def tables(state: RunState) -> Tables:
    """The rows of the run's figures, for a run that is analysed."""
    return _tables(state.run, state.analysis_version)


def analysis(state: RunState, name: str) -> pa.Table:
    """One table of ``analysis/``, whole."""
    return _analysis(state.run, state.analysis_version, name)


def topics(state: RunState, original: bool = False) -> Topics:
    """The run's topics, or the study's 39 original ones, with their vectors."""
    return _topics(state.run, state.analysis_version, original)


def topic_cosines(state: RunState, stage: int, original: bool = False) -> np.ndarray:
    """``[topic, topic]``: how near the topics' names are to each other."""
    return _topic_cosines(state.run, state.analysis_version, stage, original)


def labels(state: RunState) -> np.ndarray:
    """``[doc]``: each document's topic as an index into ``topics``, -1 for none."""
    return _labels(state.run, state.analysis_version)


def label_sources(state: RunState) -> dict[str, Labels]:
    """The labels of every source that the run keeps, by source."""
    return _label_sources(state.run, state.analysis_version)


def compared(state: RunState, first: str, second: str) -> Compared:
    """How two kept sources of labels agree."""
    return _compared(state.run, state.analysis_version, first, second)


def places(state: RunState, stage: int) -> np.ndarray:
    """``[doc, head, 2]``: where every head vector lies on the stage's map."""
    return _places(state.run, state.analysis_version, stage)


def own_similarity(state: RunState, stage: int) -> np.ndarray:
    """``[doc, 1 + head]``: similarity to the own topic; column 0 is the full embedding, NaN without a label."""
    return _own_similarity(state.run, state.analysis_version, stage)


@st.cache_resource(max_entries=8, show_spinner="Reading the documents …")
@steady(*DOCUMENTS)
def _documents(run: Run, version: str) -> pa.Table:
    return run.documents()


@st.cache_resource(max_entries=6, show_spinner="Reading the heads' vectors …")
@steady(*VECTORS)
def _stage_vectors(run: Run, version: str, stage: int) -> np.ndarray:
    """``[doc, head, dim]``: read and held once for all heads, since a file's parts hold them side by side anyway."""
    vectors = split_heads(run.head_vectors(stage, 0), stage, run.manifest().shape)
    vectors.setflags(write=False)
    return vectors


def _head_vectors(run: Run, version: str, stage: int, head: int) -> np.ndarray:
    """A view of the stage's, however many heads are looked at."""
    vectors = _stage_vectors(run, version, stage)
    return vectors[:, head - 1] if head else vectors.reshape(len(vectors), -1)


@st.cache_resource(max_entries=256, show_spinner=False)
def _lengths(run: Run, version: str, stage: int, head: int) -> np.ndarray:
    found = lengths(_head_vectors(run, version, stage, head))
    found.setflags(write=False)
    return found


@st.cache_resource(max_entries=256, show_spinner=False)
def _neighbours(run: Run, version: str, stage: int, head: int, doc: int, count: int) -> Neighbours:
    return nearest(_head_vectors(run, version, stage, head), doc, count, _lengths(run, version, stage, head))


@st.cache_resource(max_entries=8, show_spinner="Reading the figures …")
@steady(*FIGURES)
def _tables(run: Run, version: str) -> Tables:
    return read_tables(run)


@st.cache_resource(max_entries=32, show_spinner="Reading the figures …")
@steady(*FIGURES)
def _analysis(run: Run, version: str, name: str) -> pa.Table:
    return read_analysis(run, name)


@st.cache_resource(max_entries=16, show_spinner=False)
@steady(*FIGURES)
def _topics(run: Run, version: str, original: bool) -> Topics:
    return read_topics(run, original)


@st.cache_resource(max_entries=24, show_spinner=False)
def _topic_cosines(run: Run, version: str, stage: int, original: bool) -> np.ndarray:
    found = topic_similarity(_topics(run, version, original).vectors[stage])
    found.setflags(write=False)
    return found


@st.cache_resource(max_entries=8, show_spinner=False)
@steady(*FIGURES)
def _labels(run: Run, version: str) -> np.ndarray:
    found = labels_of(run.documents(["topic"])["topic"].to_pylist(), read_topics(run).names)
    found.setflags(write=False)
    return found


@st.cache_resource(max_entries=8, show_spinner="Reading the labels …")
@steady(*FIGURES)
def _label_sources(run: Run, version: str) -> dict[str, Labels]:
    return {source: kept_labels(run, source) for source in kept_sources(run)}


@st.cache_resource(max_entries=16, show_spinner="Comparing the labels …")
def _compared(run: Run, version: str, first: str, second: str) -> Compared:
    found = _label_sources(run, version)
    return compare(found[first], found[second])


@st.cache_resource(max_entries=12, show_spinner="Reading the map …")
@steady(*FIGURES)
def _places(run: Run, version: str, stage: int) -> np.ndarray:
    table = read_map(run, stage)
    found = np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=1)
    found = found.reshape(-1, run.manifest().shape.heads, 2)
    found.setflags(write=False)
    return found


@st.cache_resource(max_entries=12, show_spinner="Reading the similarities …")
@steady(*FIGURES)
def _own_similarity(run: Run, version: str, stage: int) -> np.ndarray:
    found = read_own_similarity(run, stage, _labels(run, version), len(read_topics(run).names))
    found.setflags(write=False)
    return found
