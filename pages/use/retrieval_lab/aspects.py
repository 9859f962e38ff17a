"""Follow or ignore an aspect: switches that set the heads' weights, and what that does to documents held out."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import streamlit as st

from core.retrieval.aspect_judge import OWN, SWITCHED, WAYS, Switched, judge_switch
from core.retrieval.aspect_switch import FOLLOW, IGNORE, NEUTRAL, PLACES, POSITIONS
from core.retrieval.findings import switch_sentences
from core.runs.aspects import Aspect, aspects_of
from core.runs.run import Run
from core.runs.shares import space_of
from core.runs.tables import Row
from pages.shared.data import RunState, vector_docs
from pages.shared.figures.table import figure_table
from pages.shared.glossary import why
from pages.shared.heads_in_address import format_weights
from pages.shared.notices import among, shows_mistakes
from pages.shared.run_version import RETRIEVAL, one_version
from pages.shared.show import downloads
from pages.shared.text import plain, safe, shortened
from pages.shared.url import choice_from_url, choices_to_url, decide, linked

SAMPLE = 1_200
"""Documents that weights are learned from and judged by, at most: one second on two cores."""
_MOST = 8
"""Aspects that have a switch."""
_LEAST_DOCUMENTS = 40
_OUTPUT = 3
"""The stage of the model's own embedding; a run without it is compared with the last one that it has before it."""
_MOVED, _OF = "an aspect's switch was moved", "the run and stage whose heads follow aspects"
_ICONS = {FOLLOW: ":material/add_circle:", NEUTRAL: ":material/remove:", IGNORE: ":material/block:"}


@dataclass(frozen=True)
class SwitchFigures:
    """What was learned for a set of positions, and its rows with intervals."""

    switched: Switched
    rows: list[Row]
    documents: int
    own_stage: int


@shows_mistakes
def switch_section(state: RunState, stage: int) -> None:
    """Comes before the ways and the heads are drawn: a switch that was moved decides both."""
    aspects = _aspects(state.run, state.retrieval_version)
    if not aspects or len(vector_docs(state)) < _LEAST_DOCUMENTS:
        return
    positions = _positions(aspects)
    figures = _figures(state, stage, positions)
    _take((state.run.name, stage), positions, figures)
    with st.expander("Follow or ignore an aspect", icon=":material/label:", expanded=figures is not None):
        st.caption(
            "Learns head weights: documents with the same value rank first for aspects you follow, and no longer do so "
            "for aspects you ignore."
        )
        with st.container(horizontal=True, gap="medium"):
            for aspect in aspects:
                linked(
                    st.segmented_control,
                    _label(aspect.name),
                    _key(aspect.name),
                    POSITIONS,
                    NEUTRAL,
                    required=True,
                    format_func=lambda position: f"{_ICONS[position]} {position}",
                    help=plain(shortened(", ".join(aspect.values), 300)),
                    on_change=_moved,
                )
        if figures is not None:
            _show(state, figures)


def _label(aspect: str) -> str:
    """Streamlit reads labels as Markdown and aloud: what Markdown could act on is left out instead of escaped."""
    return " ".join(re.findall(r"[^\W_]+", shortened(aspect, 40))) or "aspect"


def _key(aspect: str) -> str:
    return f"aspect.{aspect}"


def _moved() -> None:
    st.session_state[_MOVED] = True


def _positions(aspects: tuple[Aspect, ...]) -> dict[str, str]:
    """As the address or the switches say; read before they are drawn."""
    for aspect in aspects:
        choice_from_url(_key(aspect.name), POSITIONS, NEUTRAL)
    return {aspect.name: str(st.session_state[_key(aspect.name)]) for aspect in aspects}


def _figures(state: RunState, stage: int, positions: dict[str, str]) -> SwitchFigures | None:
    moved = tuple((name, position) for name, position in positions.items() if position != NEUTRAL)
    return _learned(state.run, state.retrieval_version, stage, moved) if moved else None


def _take(of: tuple[str, int], positions: dict[str, str], figures: SwitchFigures | None) -> None:
    """Sets weights and way where a switch, the stage or the run has changed, or a link has positions without weights.

    All in one step of the browser's history. Weights that somebody changes afterwards stay as they are.
    """
    moved = st.session_state.pop(_MOVED, False)
    before, st.session_state[_OF] = st.session_state.get(_OF), of
    other = "mix" not in st.query_params if before is None else before != of
    if not moved and (figures is None or not other):
        return
    weights = "" if figures is None else format_weights(figures.switched.weights)
    decide("mix", weights)
    decide("way", "full" if figures is None else "weighted")
    choices = {_key(name): (position, NEUTRAL) for name, position in positions.items()}
    choices_to_url(choices | {"mix": (weights, ""), "way": (st.session_state["way"], "full")})


def _show(state: RunState, figures: SwitchFigures) -> None:
    weights = format_weights(figures.switched.weights)
    if st.session_state.get("mix") != weights:
        st.caption(
            "The weights below are not those learned for these switches; the figures here are for the learned ones."
        )
        st.button("Use the learned weights", key="aspect weights", on_click=_moved, type="tertiary")
    st.markdown("  \n".join(plain(sentence) for sentence in switch_sentences(figures.switched)))
    with st.popover("All aspects, before and after", icon=":material/compare_arrows:"):
        st.html(_table(figures))
        of_all = figures.documents == len(vector_docs(state))
        st.caption(
            f"Share of documents with the same value among the first {PLACES}; below it the 95 % CI, then the "
            f"difference from the model's own embedding (stage {figures.own_stage}), paired by document. Weights and "
            f"LEACE are learned on one half of {'all' if of_all else 'a sample of'} {figures.documents:,} documents "
            "and measured on the other half, then the other way round. The weights that you get are learned in the "
            f"same way from all of them.{among(state)}",
            help=why("interval", "random slices"),
        )
        downloads("aspect-switch", lambda: pa.Table.from_pylist(figures.rows))


def _table(figures: SwitchFigures) -> str:
    aspects = list(figures.switched.chance)
    positions = figures.switched.positions
    found = {(row["aspect"], row["way"]): row for row in figures.rows}
    names = [f"{safe(shortened(name, 40))}<small>{positions.get(name, NEUTRAL)}</small>" for name in aspects]
    lines = []
    for way in figures.switched.ways:
        label = f'<span title="{safe(WAYS[way])}">{safe(_LABELS.get(way, way))}</span>'
        label = f"<strong>{label}</strong>" if way == SWITCHED else label
        lines.append((label, [_cell(found[aspect, way]) for aspect in aspects]))
    lines.append(("chance", [f"{figures.switched.chance[aspect]:.3f}" for aspect in aspects]))
    return f'<div style="overflow-x: auto">{figure_table(names, -1, lines)}</div>'


_LABELS = {OWN: "model's own embedding", SWITCHED: "learned head weights", "equal weights": "equal head weights"}


def _cell(row: Row) -> str:
    said = f"{row['value']:.3f}<small>{row['low']:.3f} to {row['high']:.3f}</small>"
    if row["way"] == OWN:
        return said
    sure = row["gained_low"] > 0 or row["gained_high"] < 0
    gained = f"{row['gained']:+.3f} ({row['gained_low']:+.3f} to {row['gained_high']:+.3f})".replace("-", "−")
    return f"{said}<small>{f'<strong>{gained}</strong>' if sure else gained}</small>"


@st.cache_resource(max_entries=4, show_spinner=False)
@one_version(*RETRIEVAL)
def _aspects(run: Run, version: str) -> tuple[Aspect, ...]:
    return aspects_of(run)[:_MOST]


@st.cache_resource(max_entries=64, show_spinner="Learning head weights …")
@one_version(*RETRIEVAL)
def _learned(run: Run, version: str, stage: int, moved: tuple[tuple[str, str], ...]) -> SwitchFigures:
    heads = run.manifest().shape.heads
    own_stage = max((each for each in run.manifest().stages if each <= _OUTPUT), default=stage)
    vectors = _sample(run, version, stage)
    docs = run.vector_docs()[_rows(run)]
    labels = {aspect.name: aspect.codes[docs] for aspect in _aspects(run, version)}
    by_head, own = vectors.reshape(len(docs), heads, -1), _sample(run, version, own_stage)
    found = judge_switch(by_head, own, labels, dict(moved), space=space_of(run, run.manifest(), stage))
    return SwitchFigures(found, found.rows(), len(docs), own_stage)


def _rows(run: Run) -> np.ndarray:
    """Of the documents that have vectors: all, or a sample drawn once."""
    count = run.manifest().with_vectors
    return np.sort(np.random.default_rng(0).permutation(count)[:SAMPLE])


@st.cache_resource(max_entries=4, show_spinner="Reading vectors …")
@one_version(*RETRIEVAL)
def _sample(run: Run, version: str, stage: int) -> np.ndarray:
    """``[doc, width]`` in float32."""
    rows, first, found = _rows(run), 0, []
    for part in run.finite_vectors(stage):
        found.append(part[rows[(rows >= first) & (rows < first + len(part))] - first].astype(np.float32))
        first += len(part)
    return np.concatenate(found)
