"""What pages know of heads' attention, where the step ``attention`` has been done."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import streamlit as st

from core.analysis.attention_measures import OFFSETS
from core.analysis.attention_types import AttentionEvidence, because
from core.analysis.wording import PERCENT
from core.runs.results import read_analysis
from core.runs.run import Run
from core.runs.steps import STEPS
from core.runs.tables import Row
from pages.shared.data import RunState
from pages.shared.run_version import ATTENTION, LAYERS, one_version, version_of
from pages.shared.text import plain

LETTERS = {
    "subject–verb": "sv", "verb–object": "vo", "modifier": "mo", "coreference": "co", "induction": "in",
    "duplicate token": "du", "semantic similarity": "se",
    "previous token": "pr", "next token": "nx", "sink": "si", "delimiter": "de", "rare token": "ra", "local": "lo",
    "long-range": "lr", "broad": "br", "mixed": "",
}  # fmt: skip
"""In the cells of the grid: not everybody can distinguish so many colours."""


@dataclass(frozen=True)
class Patterns:
    """The average patterns: ``share[layer, head, offset]`` and ``shuffled[layer, offset]``, NaN where unknown."""

    share: np.ndarray
    shuffled: np.ndarray


@dataclass(frozen=True)
class Shown:
    """What experiments gave: by layer and head the scores and the examples, and all rows of relations."""

    scores: dict[tuple[int, int], Row]
    relations: list[Row]
    examples: dict[tuple[int, int], list[Row]]


def experiments(state: RunState) -> Shown | None:
    """None for a run whose attention an older version measured."""
    if not all(state.run.has(state.run.analysis_path(name)) for name in STEPS["attention"].newer):
        return None
    return _shown(state.run, state.attention_version)


def layer_roles(state: RunState, stage: int) -> dict[tuple[int, int], str | None]:
    """By layer and head: the role at a stage, where the step ``layers`` has found them; otherwise nothing."""
    if state.manifest is None or not state.manifest.is_done("layers"):
        return {}
    rows = _layer_roles(state.run, version_of(state.manifest, LAYERS))
    return {(row["layer"], row["head"]): row["role"] for row in rows if row["stage"] == stage and row["head"]}


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
    for name, said in zip(row["types"] or [], row.get("evidence") or [], strict=False):
        if name == type_:
            return re.sub(r"(?<=\d)%", PERCENT, str(said))  # older versions wrote 36%
    return because(AttentionEvidence.of(row), type_)


@st.cache_resource(max_entries=8, show_spinner="Reading the figures …")
@one_version(*ATTENTION)
def _rows(run: Run, version: str) -> dict[tuple[int, int], Row]:
    rows: dict[tuple[int, int], Row] = {
        (row["layer"], row["head"]): {**row, "evidence": [], "strength": []}
        for row in read_analysis(run, "attention").to_pylist()
    }
    if run.has(run.analysis_path("attention_claims")):
        claims = read_analysis(run, "attention_claims").to_pylist()
        for claim in sorted(claims, key=lambda claim: int(claim["nth"])):
            row = rows[claim["layer"], claim["head"]]
            row["evidence"].append(claim["because"])
            row["strength"].append(claim["strength"])
    return rows


@st.cache_resource(max_entries=8, show_spinner="Reading the figures …")
@one_version(*ATTENTION)
def _shown(run: Run, version: str) -> Shown:
    examples: dict[tuple[int, int], list[Row]] = {}
    for row in read_analysis(run, "relation_examples").to_pylist():
        examples.setdefault((row["layer"], row["head"]), []).append(row)
    scores = {(row["layer"], row["head"]): row for row in read_analysis(run, "attention_scores").to_pylist()}
    return Shown(scores, read_analysis(run, "relations").to_pylist(), examples)


@st.cache_resource(max_entries=8, show_spinner="Reading the figures …")
@one_version(*LAYERS)
def _layer_roles(run: Run, version: str) -> list[Row]:
    return read_analysis(run, "layer_profiles").select(["layer", "stage", "head", "role"]).to_pylist()


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
