"""What pages know of aspects, where the step ``aspects`` has been done: what heads carry, in rows and in words."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from core.analysis.aspect_findings import AspectRows, Carried, carried
from core.runs.results import read_analysis, read_aspects
from core.runs.run import Run
from pages.shared.data import RunState
from pages.shared.run_version import ASPECTS, one_version
from pages.shared.text import plain


def aspect_rows(state: RunState) -> AspectRows:
    """The tables of aspects; empty where the step has not been done."""
    if state.manifest is None or not state.manifest.is_done("aspects"):
        return {}
    return _rows(state.run, state.aspects_version)


def aspect_documents(state: RunState, stage: int, aspect: str) -> pa.Table:
    """What the probe says of every document that it was not trained on."""
    return _documents(state.run, state.aspects_version, stage, aspect)


def predicted(documents: pa.Table) -> np.ndarray:
    """``[doc, 1 + head]`` of ``aspect_documents``; column 0 is the full embedding."""
    return np.array(documents["predicted"].to_pylist(), dtype=np.int64).reshape(len(documents), -1)


def carried_here(state: RunState, stage: int) -> dict[int, Carried]:
    """By head; nothing where the step has not been done."""
    return carried(aspect_rows(state), stage)


def carried_in_words(state: RunState, stage: int, head: int) -> str | None:
    """``topic, not genre``; None where the step has not been done, or the run has no aspects."""
    found = carried_here(state, stage).get(head)
    return None if found is None else found.sentence or "no aspect beyond random slices"


def carried_line(found: Carried | None) -> None:
    """What a head carries in a line of a card; nothing where it is not shown to carry anything."""
    if found is not None and found.sentence:
        st.caption(
            f":material/label: {plain(found.sentence)}",
            help="Aspects that can be read from this head better than from random slices of the same size. “Not”: no "
            "better than from those.",
        )


@st.cache_resource(max_entries=8, show_spinner="Reading the aspects …")
@one_version(*ASPECTS)
def _rows(run: Run, version: str) -> AspectRows:
    return read_aspects(run)


@st.cache_resource(max_entries=24, show_spinner=False)
@one_version(*ASPECTS)
def _documents(run: Run, version: str, stage: int, aspect: str) -> pa.Table:
    table = read_analysis(run, "aspect_documents")
    return table.filter(pc.and_(pc.equal(table["stage"], stage), pc.equal(table["aspect"], aspect)))
