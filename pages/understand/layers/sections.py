"""The upper parts of the Layers page: choices, the sentence, the curves, and the grid of layers and heads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import plotly.graph_objects as go
import streamlit as st

from core.analysis.layer_findings import (
    REFERENCES,
    beyond_guessing,
    depth_finding,
    difference_to_slices,
    held_against,
    probe_difference,
    specialising,
    topic_structure,
)
from core.analysis.layer_measures import DIFFERENCE, MEASURES
from core.analysis.null import WITHIN
from core.analysis.wording import percent
from core.model.stages import SHARE
from core.runs.labels import CIRCULAR_NOTE, label_facts
from core.runs.steps import command
from pages.shared.components.beside import asked
from pages.shared.components.layer_grid import GridCell, layer_grid
from pages.shared.controls import choose_stage
from pages.shared.findings import sentences
from pages.shared.glossary import why
from pages.shared.section import section
from pages.shared.show import downloads, drawn_once, figure, grid_paper, theme
from pages.shared.url import decide, linked, linked_clicks
from pages.understand.layers.figures import curves_figure, grid_of, null_figure, spread_figure
from pages.understand.layers.state import LayerSweep, LayerView

MOST_CELLS = 20_000
"""Of a grid; the largest models that people can have today have 126 layers of 128 heads."""
TERMS: dict[str, tuple[str, ...]] = {
    "topic_match": ("topic match", "full embedding", "random slices", "chance"),
    "selectivity": ("selectivity", "full embedding", "random slices"),
    "probe": ("probe", "by document", "random slices", "chance"),
    "groups": ("CKA", "key/value group"),
    "activation": ("activation",),
}
_INNER = {
    3: "At inner layers, stage 3 is the output of the layer's block without the model's final norm; at the last layer "
    "it is the model's own embedding, final norm included. If the model has a final norm, a jump at the last layer may "
    "come from it.",
    SHARE: "At inner layers too, a share is what the head adds to the model's final embedding. A layer's full "
    "embedding is the sum of its own heads' shares, without those of other layers.",
}
"""By stage: what it is at other layers than the last."""


def choose_view(sweep: LayerSweep) -> LayerView:
    """Stage and measure; the cell that was clicked, or is in the address."""
    shape = sweep.manifest.shape
    left, middle, right = st.columns([4, 3, 3], gap="medium", vertical_alignment="top")
    with left:
        stage = choose_stage(sweep.manifest, sweep.manifest.swept_stages)
        if stage in _INNER:
            st.caption(_INNER[stage])
        if sweep.manifest.swept_stages != sweep.manifest.stages:
            st.caption(f"To measure stage {SHARE} at every layer, run `{command('layers', sweep.run.name)}`.")
    with middle:
        measures = sweep.measures
        measure = linked(
            st.selectbox,
            "Measure",
            "measure",
            measures,
            measures[0],
            format_func=lambda name: MEASURES[name].name,
            help="The curves and the grid show this measure.",
        )
    with right:
        null_measure = _null_measure(sweep, stage, measure)
    with middle:
        if null_measure == "examples":
            st.caption("How often the labelled topic is the nearest one, by the mean of each topic's other documents.")
        else:
            st.caption(MEASURES[measure].sentence)
    cell = linked_clicks(
        {
            "layer": (range(1, shape.layers + 1), shape.layers),
            "head": (range(shape.heads + 1), 0),
            "details": ((0, 1), 1),
        }
    )
    return LayerView(stage, measure, cell["layer"], cell["head"], null_measure, bool(cell["details"]))


def close_details() -> None:
    """The panel beside the grid goes; a click on a cell brings it back."""
    decide("details", 0)


def _null_measure(sweep: LayerSweep, stage: int, measure: str) -> str | None:
    known = sweep.compared_by(stage)
    if measure != "topic_match":
        return measure if measure == "selectivity" and measure in known else None
    options = [name for name in REFERENCES if name in known]
    if len(options) < 2:
        return options[0] if options else None
    return linked(
        st.segmented_control,
        "Topics by",
        "reference",
        options,
        options[0],
        format_func=REFERENCES.__getitem__,
        help=why("topic match"),
    )


def headline(sweep: LayerSweep, view: LayerView) -> None:
    """At which layers heads specialise, and where in depth the full embedding finds topics."""
    stage, layers = view.stage, sweep.manifest.shape.layers
    rows = sweep.rows("layer_null_summary", stage=stage) if sweep.compared else []
    curves = sweep.rows("layer_curves", stage=stage)
    about = [
        depth_finding(rows, stage, layers, not beyond_guessing(curves, stage)),
        topic_structure(curves, stage, layers),
    ]
    found = [finding for finding in about if finding is not None]
    if found and label_facts(sweep.manifest, "layers").circular:
        found[-1] = replace(found[-1], sentence=f"{found[-1].sentence} {CIRCULAR_NOTE}")
    if found:
        with st.container(border=True):
            sentences(found)
    if not sweep.compared and sweep.labelled:
        st.info(
            "An older version measured these layers: heads are not compared with random slices, so some roles may also "
            f"occur in random slices. Run `{command('layers', sweep.run.name)}` to compare them.",
            icon=":material/info:",
        )


def curves(sweep: LayerSweep, view: LayerView) -> None:
    """The chosen measure over depth."""
    measure = MEASURES[view.measure]
    section(f"{measure.name} over depth", "depth", *TERMS[view.measure], "interval")
    if view.null_measure:
        _against_slices(sweep, view, view.null_measure)
        return
    table = sweep.table("layer_curves", stage=view.stage, measure=view.measure)
    drawn = curves_figure(table.to_pylist(), sweep.cells(view.stage, view.measure)["value"], view, theme())
    said = f"{_sample(sweep)} Band: {measure.band}."
    if view.measure != "groups":
        said += " Faint dots are single heads."
    said += " The vertical line marks the chosen layer."
    figure(
        drawn,
        f"layers {view.measure} stage {view.stage}",
        table,
        said,
        alt=f"Line chart of {measure.name.lower()} at every layer.",
    )
    if view.measure == "probe":
        _probe_difference(sweep, view)
    elif told := held_against(table.to_pylist(), view.stage, view.measure):
        st.markdown(told)


def _probe_difference(sweep: LayerSweep, view: LayerView) -> None:
    rows = sweep.rows("layer_curves", stage=view.stage, measure=view.measure, series=DIFFERENCE)
    if told := probe_difference(rows, view.stage):
        st.markdown(told)
    elif not rows:
        st.info(
            "An older version measured these layers: heads and random slices are not compared on the same splits. "
            f"Run `{command('layers', sweep.run.name)}` to compare them.",
            icon=":material/info:",
        )


def _against_slices(sweep: LayerSweep, view: LayerView, measure: str) -> None:
    """Heads as dots on the band of random slices, and how far heads and slices spread at every layer."""
    name = _name(view)
    heads = sweep.table("layer_null", stage=view.stage, measure=measure)
    summary = sweep.table("layer_null_summary", stage=view.stage, measure=measure)
    rows = sorted(summary.to_pylist(), key=lambda row: int(row["layer"]))
    flagged = sum(row["flagged"] for row in rows) / len(rows)
    figure(
        _drawn(sweep, view, "heads", lambda: null_figure(rows, heads.to_pylist(), _chance(sweep, view), view, theme())),
        f"layers {measure} stage {view.stage}",
        heads,
        f"{_sample(sweep)} Dots are single heads. The dashed line is the mean over {rows[0]['slicings']} random "
        "slicings and the band contains 95 % of their slices. Numbered heads lie outside random slices "
        f"(Benjamini–Hochberg over the heads of a layer); the same rule flags {percent(flagged, 1)} of random "
        "slices. The "
        "vertical line marks the chosen layer.",
        alt=f"{name} of every head at every layer, on the band of random slices.",
    )
    if told := difference_to_slices(rows, view.stage, measure):
        st.markdown(told)
    section("Where in depth do heads specialise?", "specialisation", "random slices", "specialising", "peak")
    found = specialising(sweep.rows("layer_null_summary", stage=view.stage), view.stage)
    known = beyond_guessing(sweep.rows("layer_curves", stage=view.stage), view.stage)
    shown = found.layers(measure) if found and known else []
    said = f"Standard deviation of {name[0].lower()}{name[1:]} over the heads of a layer and over random "
    said += "slices: their median, with a band up to the 95th percentile of slicings."
    if measure in REFERENCES:
        said += " Filled markers are above random slices, corrected over layers."
    figure(
        _drawn(sweep, view, "spread", lambda: spread_figure(rows, shown, view, theme())),
        f"layers spread {measure} stage {view.stage}",
        summary.drop_columns(["slices_spreads", "best_slices"]),
        said,
        alt=f"Spread of {name} over heads and over random slices at every layer.",
    )


def _drawn(sweep: LayerSweep, view: LayerView, name: str, draw: Callable[[], go.Figure]) -> go.Figure:
    return drawn_once(sweep.run, sweep.version, f"layers {name} {view}", view.stage, theme(), draw)


def _name(view: LayerView) -> str:
    name = MEASURES[view.measure].name
    return f"{name} by {REFERENCES[view.null_measure]}" if view.null_measure in REFERENCES else name


def _chance(sweep: LayerSweep, view: LayerView) -> float | None:
    rows = sweep.rows("layer_curves", stage=view.stage, measure=view.measure)
    return next((row["chance"] for row in rows if row["chance"] is not None), None)


def _beyond(sweep: LayerSweep, view: LayerView) -> dict[tuple[int, int], str]:
    """By layer and head: above or below random slices; those that are neither are not in it."""
    if view.null_measure is None:
        return {}
    rows = sweep.rows("layer_null", stage=view.stage, measure=view.null_measure)
    return {(row["layer"], row["head"]): f"{row['verdict']} random slices" for row in rows if row["verdict"] != WITHIN}


def grid(sweep: LayerSweep, view: LayerView) -> None:
    """Layers × heads, coloured by the measure; a click chooses a cell."""
    if by_examples := view.null_measure == "examples":
        cells = sweep.compared_cells(view.stage, "examples")
    else:
        cells = sweep.cells(view.stage, view.measure)
    if cells["value"].size > MOST_CELLS:
        st.info(f"The grid would have more than {MOST_CELLS:,} cells and is not drawn. The curves show every layer.")
        return
    roles = {
        (row["layer"], row["head"]): row["role"]
        for row in sweep.rows("layer_profiles", stage=view.stage)
        if row["role"]
    }

    def picked(place: GridCell) -> None:
        asked("grid")
        decide("details", 1)
        decide("layer", place.row + 1)
        decide("head", place.column)

    notes = _beyond(sweep, view)
    for place, role in roles.items():
        notes[place] = f"{notes[place]}, {role}" if place in notes else role
    drawn = grid_of(cells, view.measure, notes, sweep.manifest.shape, theme())
    layer_grid(drawn, "layer grid", GridCell(view.layer - 1, view.head), picked)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(
            f"{_name(view)} at stage {view.stage}. Click a cell to see what that head does at that layer. "
            f"“all” is {'all heads together' if view.measure in ('probe', 'groups') else 'the full embedding'}."
        )
        table, name = ("layer_null", "examples") if by_examples else ("layers", view.measure)
        downloads(
            f"layers-{name}-stage-{view.stage}",
            lambda: sweep.table(table, stage=view.stage, measure=name),
            grid_paper(drawn, f"{_name(view)} at stage {view.stage}", _sample(sweep)),
        )


def _sample(sweep: LayerSweep) -> str:
    total, centred = int(sweep.manifest.corpus["documents"]), " Cosines are centred." if sweep.centred else ""
    if sweep.documents < total:
        return f"A sample of {sweep.documents:,} of {total:,} documents, stratified by topic.{centred}"
    return f"All {total:,} documents.{centred}"
