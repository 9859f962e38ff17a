"""What pages know of heads' attention, where the step ``attention`` has been done."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from core.analysis.attention_measures import OFFSETS
from core.analysis.attention_types import Evidence, because
from core.runs.results import read_analysis
from core.runs.run import Run
from core.runs.tables import Row
from pages.shared.data import RunState
from pages.shared.run_version import ATTENTION, one_version
from pages.shared.text import plain

LETTERS = {
    "previous token": "pr", "next token": "nx", "sink": "si", "delimiter": "de", "rare token": "ra", "local": "lo",
    "long-range": "lr", "broad": "br", "mixed": "",
}  # fmt: skip
"""In the cells of the grid: not everybody can distinguish nine colours."""


@dataclass(frozen=True)
class Patterns:
    """The average patterns: ``share[layer, head, offset]`` and ``shuffled[layer, offset]``, NaN where unknown."""

    share: np.ndarray
    shuffled: np.ndarray


def attention_rows(state: RunState) -> dict[tuple[int, int], Row]:
    """By layer and head, both from 1: what the head's attention falls on; for a run whose step is done."""
    return _rows(state.run, state.attention_version)


def attention_patterns(state: RunState) -> Patterns:
    return _patterns(state.run, state.attention_version)


def types_here(state: RunState) -> dict[int, Row]:
    """By head: its row at the layer that the run's vectors are of; nothing where the step has not been done."""
    if state.manifest is None or not state.manifest.is_done("attention"):
        return {}
    layer = int(state.manifest.model["layer"])
    return {head: row for (at, head), row in attention_rows(state).items() if at == layer}


def attention_badge(row: Row | None) -> None:
    """A head's type in a line of a card; nothing where it is not known."""
    if row is not None:
        st.caption(f":material/visibility: {plain(row['type'])}", help=plain(evidence_of(row, row["type"])))


def evidence_of(row: Row, type_: str) -> str:
    """What decided one type of a head."""
    return because(Evidence.of(row), type_)


@st.cache_resource(max_entries=8, show_spinner="Reading the figures …")
@one_version(*ATTENTION)
def _rows(run: Run, version: str) -> dict[tuple[int, int], Row]:
    return {(row["layer"], row["head"]): row for row in read_analysis(run, "attention").to_pylist()}


@st.cache_resource(max_entries=8, show_spinner="Reading the figures …")
@one_version(*ATTENTION)
def _patterns(run: Run, version: str) -> Patterns:
    table = read_analysis(run, "attention_patterns").sort_by(
        [(name, "ascending") for name in ("layer", "head", "offset")]
    )
    shape = run.manifest().shape
    share, shuffled = (
        table[name].to_numpy().astype(np.float64).reshape(shape.layers, shape.heads, len(OFFSETS))
        for name in ("share", "shuffled")
    )
    found = Patterns(share, shuffled[:, 0])
    for array in (found.share, found.shuffled):
        array.setflags(write=False)
    return found
