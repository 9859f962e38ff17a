"""The parts of the Stages page, from top to bottom."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
import pyarrow.compute as pc
import streamlit as st

from core.analysis.head_measures import TITLES
from core.analysis.probe import BY_DOCUMENT, SPLITS, mistakes_within_groups
from core.analysis.report import most_redundant
from core.analysis.wording import percent, plural
from core.model.stages import HEADS
from pages.shared.controls import choose_document, choose_stage
from pages.shared.data import RunState, analysis, places, preview, tables
from pages.shared.empty_states import not_made
from pages.shared.figures.maps import stage_maps_figure
from pages.shared.figures.random_slices import slices_alt, slices_figure, slices_rows
from pages.shared.findings import show_findings
from pages.shared.glossary import why
from pages.shared.notices import shows_mistakes
from pages.shared.section import section
from pages.shared.show import Remake, drawn_once, figure, theme
from pages.shared.url import linked
from pages.understand.stages.figures import groups_figure, matrix_figure, probe_figure


def _drawn(state: RunState, name: str, stage: int, draw: Callable[[], go.Figure]) -> go.Figure:
    return drawn_once(state.run, state.analysis_version, name, stage, theme(), draw)


@st.fragment
@shows_mistakes
def against_slices(state: RunState) -> None:
    """Every head on the band of random slices, by a measure of one's choice."""
    found = tables(state)
    known = [name for name in TITLES if found.pick("null_summary", measure=name)]
    if not known:
        show_findings(state, "older")
        return
    st.subheader(
        "Do heads differ more than random slices?",
        help=why("random slices", "topic match", "untrained model"),
        anchor="random-slices",
    )
    left, right = st.columns([3, 2], gap="medium")
    with right:
        measure = linked(st.selectbox, "Measure", "measure", known, known[0], format_func=TITLES.__getitem__)
    with left:  # before the sentences: on a phone they are below it, and would be moved by a figure that comes late
        drawn = _drawn(state, f"random slices {measure}", 0, lambda: slices_figure(found, measure, theme(), height=400))
        row = found.pick("null_summary", measure=measure)[0]
        figure(
            drawn,
            "random-slices",
            pa.Table.from_pylist(slices_rows(found, measure)),
            f"{row['slicings']} random slicings on {row['documents']:,} documents. Numbered heads lie beyond random "
            f"slices (5 %, corrected for the number of heads); the same rule flags {percent(row['flagged'], 1)} of "
            "random slices.",
            alt=slices_alt(found, measure),
            remake=Remake("random slices", {"measure": measure}),
        )
    with right:
        show_findings(state, "specialisation", "heads", "stage")


@shows_mistakes
def separation(state: RunState) -> None:
    """The probe at each stage."""
    st.subheader(
        "Are heads distinguishable?",
        help=why("probe", "by sample", "by document", "random slices", "chance", "interval"),
        anchor="probe",
    )
    found = tables(state)
    if not found.pick("probe"):
        st.info("The probe needs at least ten documents and two heads.", icon=":material/info:")
        return
    left, right = st.columns([3, 2], gap="medium")
    with left:
        rows = [row for row in found.pick("probe") if row["head"] == 0]
        drawn = _drawn(state, "probe", 0, lambda: probe_figure(found, theme()))
        figure(
            drawn,
            "probe",
            pa.Table.from_pylist(rows),
            "Error bars: 95 % CI.",
            alt="The probe's accuracy at each stage: heads by sample and by document, random slices, and the study.",
            remake=Remake("probe"),
        )
    with right:
        show_findings(state, "separation")


@st.fragment
@shows_mistakes
def confusion(state: RunState) -> None:
    """Which heads the probe confuses with which."""
    assert state.manifest is not None
    found, shape = tables(state), state.manifest.shape
    if not found.pick("probe"):
        return
    st.subheader("Which heads does the probe confuse?", help=why("probe", "key/value group"), anchor="confusion")
    left, right = st.columns([3, 2], gap="medium")
    with right:
        stage = choose_stage(state.manifest)
        split = st.segmented_control(
            "Split", SPLITS, default=BY_DOCUMENT, required=True, key="split", help=why("by sample", "by document")
        )
    rows = _confusion_rows(state, stage, str(split or BY_DOCUMENT))
    counts = np.zeros((shape.heads, shape.heads))
    for row in rows:
        counts[row["head"] - 1, row["predicted"] - 1] = row["samples"]
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    predicted = float(np.diag(shares).mean())
    with left:
        heads = range(shape.heads)
        drawn = _drawn(
            state,
            f"confusion {split}",
            stage,
            lambda: matrix_figure(shares, heads, shape, theme(), "predicted:", ("predicted head", "true head")),
        )
        figure(
            drawn,
            "confusion",
            pa.Table.from_pylist(rows),
            "Share of each head's vectors (row) that the probe assigns to each head (column). Rows add up to 1.",
            alt=f"Heads predicted by the probe for each head at stage {stage}; {percent(predicted)} are right.",
        )
    with right:
        mistakes = mistakes_within_groups(counts, shape)
        if mistakes is not None:
            st.markdown(
                f"**{percent(mistakes.share)}** of {plural(mistakes.wrong, 'mistake')} are within a key/value group. "
                f"If mistakes were random, {percent(mistakes.chance)} would be."
            )


def _confusion_rows(state: RunState, stage: int, split: str) -> list[dict[str, int]]:
    table = analysis(state, "confusion")
    for name, value in (("stage", stage), ("slicing", HEADS), ("split", split)):
        table = table.filter(pc.equal(table[name], value))
    rows: list[dict[str, int]] = table.to_pylist()
    return rows


@st.fragment
@shows_mistakes
def redundancy(state: RunState) -> None:
    """Which heads are most alike."""
    assert state.manifest is not None
    section("Most redundant heads", "redundant-heads", "CKA", "key/value group")
    found, shape, stages = tables(state), state.manifest.shape, state.manifest.stages
    stage = int(
        st.segmented_control("At stage", stages, default=stages[0], required=True, key="redundancy stage") or stages[0]
    )
    rows = found.pick("redundancy", stage=stage)
    cka, order = np.full((shape.heads, shape.heads), np.nan), np.zeros(shape.heads, dtype=int)
    for row in rows:
        cka[row["head"] - 1, row["other"] - 1] = np.nan if row["cka"] is None else row["cka"]
        order[row["position"]] = row["head"] - 1
    if not np.isfinite(cka).all():
        st.info("Comparing heads needs at least four documents.", icon=":material/info:")
        return
    left, right = st.columns([3, 2], gap="medium")
    with left:
        caption = "Similar heads are next to each other."
        if shape.kv_heads not in (1, shape.heads):
            caption += " In parentheses: the key/value group."
        drawn = _drawn(state, "CKA", stage, lambda: matrix_figure(cka, order.tolist(), shape, theme(), "CKA"))
        top = most_redundant(found, stage, 1)
        alt = f", heads {top[0]['head']} and {top[0]['other']} are the most alike" if top else ""
        figure(
            drawn,
            "redundancy",
            pa.Table.from_pylist(rows),
            caption,
            alt=f"CKA of all pairs of heads{alt}.",
            remake=Remake("redundancy", {"stage": stage}),
        )
    with right:
        show_findings(state, "redundancy", "groups", stage=stage)
        if shape.kv_heads in (1, shape.heads):
            shared = "All heads share one key/value head" if shape.kv_heads == 1 else "No heads share a key/value head"
            st.caption(f"{shared} in this model, so there are no key/value groups to compare.")
        else:
            drawn = _drawn(state, "groups", stage, lambda: groups_figure(cka, shape, theme()))
            figure(
                drawn,
                "groups",
                pa.Table.from_pylist(rows),
                "Each dot is a pair of heads.",
                alt="CKA of pairs of heads within a key/value group and of pairs from different groups.",
            )


@st.fragment
@shows_mistakes
def movement(state: RunState) -> None:
    """How one document's heads move from stage to stage."""
    assert state.manifest is not None
    st.subheader("How one document's heads move", help=why("stage"), anchor="movement")
    if not state.projected:
        not_made(state, "project")
        return
    doc = choose_document(state)
    if doc is None:
        return
    stages, shape = state.manifest.stages, state.manifest.shape
    own = {stage: places(state, stage, [doc])[0] for stage in stages}
    rows = [
        {"stage": stage, "head": head + 1, "x": float(own[stage][head, 0]), "y": float(own[stage][head, 1])}
        for stage in stages
        for head in range(shape.heads)
    ]
    figure(
        stage_maps_figure(preview(state).places, shape, theme(), own, height=360),
        "movement",
        pa.Table.from_pylist(rows),
        "Numbers: this document's heads. Grey: a sample of the other documents'. Maps are rotated to match each other, "
        "not stretched.",
        alt=f"Where each head's vector of document {doc + 1} lies on the map of each stage.",
        remake=Remake("maps", {"doc": doc}),
    )
