"""What pages read from the cache: opened once a process, shared by all sessions, read-only."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import streamlit as st

from core.analysis.agreement import Compared, compare
from core.analysis.merging import topic_similarity
from core.errors import Mistake
from core.model.stages import split_heads
from core.remote.mirror import default_cache, for_readers
from core.retrieval.head_index import HeadIndex
from core.retrieval.nearest import Neighbours, nearest_by
from core.runs.labels import Labels, label_codes
from core.runs.manifest import Manifest
from core.runs.parquet import RowLookup
from core.runs.results import (
    Preview,
    Topics,
    kept_labels,
    kept_sources,
    map_lookup,
    read_analysis,
    read_own_similarity,
    read_preview,
    read_tables,
    read_topics,
    similarity_lookup,
)
from core.runs.run import Run, open_run, row_among, run_names
from core.runs.shares import full_topics, space_of
from core.runs.tables import Tables
from core.search.index import SearchHits, find, scan
from pages.shared.run_version import (
    ASPECTS,
    ATTENTION,
    DOCUMENTS,
    FIGURES,
    RETRIEVAL,
    SEARCH,
    VECTORS,
    one_version,
    version_of,
)

MOST_VECTORS = 2 * 2**30
"""Bytes of one stage's vectors that pages hold: a hundred thousand documents of the study's model take 0.8 GB."""
PREVIEWED = 2_500
"""Points of a small map."""


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
    def aspects_version(self) -> str:
        """Changes whenever the labels or what heads carry do."""
        return self._version(*ASPECTS)

    @property
    def outdated(self) -> bool:
        """Whether there are figures, but of other labels than the documents have now."""
        return self.manifest is not None and self.manifest.is_outdated("analyse")

    def _version(self, *steps: str) -> str:
        assert self.manifest is not None
        return version_of(self.manifest, steps)


def cache_folder() -> Path:
    return for_readers(default_cache())


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
        version = run.manifest_version()
        found = _manifest(run, *version) if version else run.manifest()  # of a run on its way nothing is kept
    except Mistake as mistake:
        found = str(mistake)
    return RunState(run, None, found) if isinstance(found, str) else RunState(run, found)


@lru_cache(maxsize=1_000)
def _manifest(run: Run, *version: int) -> Manifest | str:
    """A run's manifest, or what is wrong with it: read once as long as the file is the same one."""
    try:
        return run.manifest()
    except Mistake as mistake:
        if isinstance(mistake.__cause__, OSError):  # perhaps it can be read the next time
            raise
        return str(mistake)


def documents(state: RunState) -> RowLookup:
    """The documents, row by row: their own columns and the corpus's, texts included."""
    return _documents(state.run, state.documents_version)


def search(state: RunState, words: str) -> SearchHits:
    """The documents that have all of the words: through the run's index, or among its first documents."""
    assert state.manifest is not None
    if not state.manifest.is_done("search"):
        return scan(documents(state), words)
    return _search(state.run, version_of(state.manifest, SEARCH), words)


def head_index(state: RunState, stage: int) -> HeadIndex:
    """All heads' vectors of all documents that have some, as they are stored."""
    return _head_index(state.run, state.version, stage)


def document_vectors(state: RunState, stage: int, doc: int) -> np.ndarray:
    """``[head, dim]`` of one document: only its part is read."""
    return _document_vectors(state.run, state.version, stage, doc)


def held_vectors(state: RunState, stage: int, doc: int) -> np.ndarray:
    """The same, for a page that holds all vectors anyway: nothing is read."""
    return head_index(state, stage).vectors[row_of(state, doc)].astype(np.float32)


def vector_docs(state: RunState) -> np.ndarray:
    """The documents that have vectors, in order: row i of ``head_index`` is of the i-th of them."""
    return _vector_docs(state.run, state.version)


def row_of(state: RunState, doc: int) -> int:
    """Where a document stands among those that have vectors; -1 where it has none, or is none."""
    return row_among(vector_docs(state), doc)


def neighbours(state: RunState, stage: int, head: int, doc: int, count: int) -> Neighbours:
    """The documents nearest to one that has vectors, among all that have, in a head or the full embedding (0)."""
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


def preview(state: RunState) -> Preview:
    """The points of small maps."""
    return _preview(state.run, state.analysis_version)


def places(state: RunState, stage: int, docs: Sequence[int] | np.ndarray) -> np.ndarray:
    """``[doc, head, 2]``: where the head vectors of these documents lie on the stage's map."""
    found = points(state, stage, docs)
    return np.stack([found["x"].to_numpy(), found["y"].to_numpy()], axis=1).reshape(len(docs), -1, 2)


def points(state: RunState, stage: int, docs: Sequence[int] | np.ndarray) -> pa.Table:
    """The rows of these documents in the stage's map, all heads of the first one first."""
    assert state.manifest is not None
    heads = state.manifest.shape.heads
    rows = np.asarray(docs, dtype=np.int64)[:, None] * heads + np.arange(heads)
    return _map_lookup(state.run, state.analysis_version, stage).rows(rows.reshape(-1))


def similarities(state: RunState, stage: int, doc: int) -> np.ndarray:
    """``[1 + head, topic]`` of one document; row 0 is the full embedding."""
    count = len(topics(state).names)
    row = _similarity_lookup(state.run, state.analysis_version, stage, count).row(doc, ["values"])
    return np.array(row["values"], dtype=np.float16).reshape(-1, count)


def own_similarity(state: RunState, stage: int) -> np.ndarray:
    """``[doc, 1 + head]``: similarity to the own topic; column 0 is the full embedding, NaN without a label."""
    return _own_similarity(state.run, state.analysis_version, stage)


@st.cache_resource(max_entries=8, show_spinner="Reading the documents …")
@one_version(*DOCUMENTS)
def _documents(run: Run, version: str) -> RowLookup:
    return run.document_lookup()


@st.cache_resource(max_entries=32, show_spinner=False)
@one_version(*SEARCH)
def _search(run: Run, version: str, words: str) -> SearchHits:
    count = int(run.manifest().corpus["documents"])
    return find(run.inside(run.search_path), words, count, f"python -m precompute search {run.name} --again")


@st.cache_resource(max_entries=3, show_spinner="Reading the corpus's vectors …")
@one_version(*VECTORS)
def _head_index(run: Run, version: str, stage: int) -> HeadIndex:
    manifest = run.manifest()
    docs, width = manifest.with_vectors, manifest.shape.width(stage)
    needed = docs * width * (4 if manifest.vectors["dtype"] == "float32" else 2)  # int8 is held as float16
    if needed > MOST_VECTORS:
        raise Mistake(
            f"The vectors of stage {stage} would take {needed / 2**30:.1f} GB of memory; a page may use at most "
            f"{MOST_VECTORS / 2**30:.0f} GB. Store a sample only, with 'python -m precompute slim {run.name}'."
        )
    found = HeadIndex.of(run.finite_vectors(stage), manifest.shape.heads, docs, space_of(run, manifest, stage))
    for array in (found.vectors, found.lengths):
        array.setflags(write=False)
    return found


@st.cache_resource(max_entries=8, show_spinner=False)
@one_version(*VECTORS)
def _vector_docs(run: Run, version: str) -> np.ndarray:
    found = run.vector_docs()
    found.setflags(write=False)
    return found


@st.cache_resource(max_entries=64, show_spinner=False)
@one_version(*VECTORS)
def _document_vectors(run: Run, version: str, stage: int, doc: int) -> np.ndarray:
    found = split_heads(run.document_vectors(stage, doc)[None], stage, run.manifest().shape)[0].astype(np.float32)
    found.setflags(write=False)
    return found


@st.cache_resource(max_entries=256, show_spinner=False)
def _neighbours(run: Run, version: str, stage: int, head: int, doc: int, count: int) -> Neighbours:
    index, docs = _head_index(run, version, stage), _vector_docs(run, version)
    row = row_among(docs, doc)
    found = nearest_by(index.cosines_in(head, index.vectors[row]), row, count)
    return Neighbours(docs[found.docs], found.similarity)


@st.cache_resource(max_entries=8, show_spinner="Reading the figures …")
@one_version(*FIGURES)
def _tables(run: Run, version: str) -> Tables:
    return read_tables(run)


@st.cache_resource(max_entries=32, show_spinner="Reading the figures …")
@one_version(*FIGURES)
def _analysis(run: Run, version: str, name: str) -> pa.Table:
    return read_analysis(run, name)


@st.cache_resource(max_entries=16, show_spinner=False)
@one_version(*FIGURES)
def _topics(run: Run, version: str, original: bool) -> Topics:
    return read_topics(run, original)


@st.cache_resource(max_entries=24, show_spinner=False)
def _topic_cosines(run: Run, version: str, stage: int, original: bool) -> np.ndarray:
    found = topic_similarity(full_topics(run, _topics(run, version, original), stage))
    found.setflags(write=False)
    return found


@st.cache_resource(max_entries=8, show_spinner=False)
@one_version(*FIGURES)
def _labels(run: Run, version: str) -> np.ndarray:
    found = label_codes(run.documents(["topic"])["topic"], read_topics(run).names)
    found.setflags(write=False)
    return found


@st.cache_resource(max_entries=8, show_spinner="Reading the labels …")
@one_version(*FIGURES)
def _label_sources(run: Run, version: str) -> dict[str, Labels]:
    return {source: kept_labels(run, source) for source in kept_sources(run)}


@st.cache_resource(max_entries=16, show_spinner="Comparing the labels …")
def _compared(run: Run, version: str, first: str, second: str) -> Compared:
    found = _label_sources(run, version)
    return compare(found[first], found[second])


@st.cache_resource(max_entries=8, show_spinner="Reading the map …")
@one_version(*FIGURES)
def _preview(run: Run, version: str) -> Preview:
    return read_preview(run, PREVIEWED)


@st.cache_resource(max_entries=12, show_spinner="Reading the map …")
@one_version(*FIGURES)
def _map_lookup(run: Run, version: str, stage: int) -> RowLookup:
    return map_lookup(run, stage)


@st.cache_resource(max_entries=12, show_spinner=False)
@one_version(*FIGURES)
def _similarity_lookup(run: Run, version: str, stage: int, topics: int) -> RowLookup:
    return similarity_lookup(run, stage, topics)


@st.cache_resource(max_entries=12, show_spinner="Reading the similarities …")
@one_version(*FIGURES)
def _own_similarity(run: Run, version: str, stage: int) -> np.ndarray:
    found = read_own_similarity(run, stage, _labels(run, version), len(read_topics(run).names))
    found.setflags(write=False)
    return found
