"""Two runs and their shared documents: read once per process, shared by all sessions, read-only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from core.analysis.head_matching import LEAST_DOCS, MOST_DOCS, HeadMatches, match_heads
from core.model.stages import split_heads
from core.runs.manifest import Manifest
from core.runs.run import Run
from core.runs.shared_documents import shared_documents
from pages.shared.components.map_data import inside, read_area, stage_map
from pages.shared.data import RunState, vector_docs
from pages.shared.run_version import DOCUMENTS, VECTORS, one_version
from pages.shared.url import choice_to_url

MOST_POINTS = 20_000
"""Points per map."""


@dataclass(frozen=True)
class Pair:
    """The chosen run (``here``) and the one beside it (``there``)."""

    here: RunState
    there: RunState
    shared: np.ndarray
    """``[pair, 2]``: the documents, counted from 0, that are in both runs."""

    @property
    def both(self) -> tuple[RunState, RunState]:
        return self.here, self.there

    @property
    def manifests(self) -> tuple[Manifest, Manifest]:
        assert self.here.manifest is not None
        assert self.there.manifest is not None
        return self.here.manifest, self.there.manifest

    @property
    def stages(self) -> tuple[int, ...]:
        """The stages that both runs store."""
        one, other = self.manifests
        return tuple(stage for stage in one.stages if stage in other.stages)


@dataclass(frozen=True)
class PairMaps:
    """The same documents on both maps of a stage: ``places[run][doc, head, axis]`` on the maps' grids."""

    docs: np.ndarray
    """``[doc, run]``: their numbers in either run, from 0."""
    places: tuple[np.ndarray, np.ndarray]
    left_out: int
    """Shared documents that are not drawn."""


@dataclass(frozen=True)
class Brush:
    """A polygon on the map of one of the runs (0 or 1)."""

    side: int
    corners: np.ndarray


def pair_of(here: RunState, there: RunState) -> Pair:
    found = _shared(here.run, here.documents_version, there.run, there.documents_version)
    return Pair(here, there, found)


def matches(pair: Pair, stage: int) -> HeadMatches | None:
    """The heads of one run matched with the other's; None where too few shared documents have vectors in both."""
    known = np.isin(pair.shared[:, 0], vector_docs(pair.here)) & np.isin(pair.shared[:, 1], vector_docs(pair.there))
    docs = pair.shared[known]
    if len(docs) < LEAST_DOCS:
        return None
    chosen = docs[np.sort(np.random.default_rng(0).permutation(len(docs))[:MOST_DOCS])]
    return _matches(pair.here.run, pair.here.version, pair.there.run, pair.there.version, stage, chosen)


def pair_maps(pair: Pair, stage: int) -> PairMaps | None:
    """The shared documents on both maps; None if the maps have no document in common."""
    if not len(pair.shared):
        return None
    drawn = [stage_map(one, stage) for one in pair.both]
    most = max(1, MOST_POINTS // max(one.places.shape[1] for one in drawn))
    kept = np.sort(np.random.default_rng(0).permutation(len(pair.shared))[:most])
    here, there = (one.places[pair.shared[kept, side]] for side, one in enumerate(drawn))
    return PairMaps(pair.shared[kept], (here, there), len(pair.shared) - len(kept))


def brushed(maps: PairMaps, brush: Brush, head: int | None) -> np.ndarray:
    """The documents of the maps, from 0, with a point inside the brush: of any head, or of one (from 0)."""
    places = maps.places[brush.side]
    hit = inside(places if head is None else places[:, head : head + 1], brush.corners)
    return np.flatnonzero(hit.any(axis=1))


def brush_name(stage: int, side: int) -> int:
    """The prefix of a brush in the address: a brush belongs to the map it was drawn on."""
    return 10 * stage + side + 1


def brush_from_address(stage: int) -> Brush | None:
    """The brush in the address. One of another stage is dropped; an invalid one is dropped with a notice."""
    text = st.query_params.get("brush", "")
    for side in (0, 1):
        corners = read_area(text, brush_name(stage, side))
        if corners is not None:
            return Brush(side, corners)
    if text:
        if not text[:2].isdecimal():
            st.toast("The link names a selection that does not exist; it is ignored.", icon=":material/link_off:")
        choice_to_url("brush", "", "")
    return None


@st.cache_resource(max_entries=8, show_spinner="Finding the documents that both runs share …")
def _shared(here: Run, version: str, there: Run, other_version: str) -> np.ndarray:
    found = _read_shared(here, version, there)
    found.setflags(write=False)
    return found


@one_version(*DOCUMENTS)
def _read_shared(run: Run, version: str, there: Run) -> np.ndarray:
    return shared_documents(run, there)


@st.cache_resource(max_entries=24, show_spinner="Matching the heads of the two runs …")
def _matches(here: Run, version: str, there: Run, other_version: str, stage: int, docs: np.ndarray) -> HeadMatches:
    return match_heads(_vectors(here, version, stage, docs[:, 0]), _vectors(there, other_version, stage, docs[:, 1]))


@one_version(*VECTORS)
def _vectors(run: Run, version: str, stage: int, docs: np.ndarray) -> np.ndarray:
    """``[doc, head, dim]`` of some documents, read a part at a time."""
    order = np.argsort(docs)
    wanted = np.searchsorted(run.vector_docs(), docs[order])
    found, first = [], 0
    for part in run.finite_vectors(stage):
        inner = wanted[slice(*np.searchsorted(wanted, [first, first + len(part)]))]
        found.append(part[inner - first])
        first += len(part)
    rows = np.empty((len(docs), found[0].shape[1]), dtype=np.float32)
    rows[order] = np.concatenate(found)
    return split_heads(rows, stage, run.manifest().shape)
