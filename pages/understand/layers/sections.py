"""The upper parts of the Layers page: choices, the sentence, the curves, and the grid of layers and heads."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core.analysis.layer_findings import held_against, topic_structure
from core.analysis.layer_measures import MEASURES
from core.runs.labels import CIRCULAR_NOTE, label_facts
from pages.shared.components.layer_grid import GridCell, layer_grid
from pages.shared.controls import choose_stage
from pages.shared.findings import sentences
from pages.shared.glossary import why
from pages.shared.show import downloads, figure, theme
from pages.shared.url import decide, linked, linked_clicks
from pages.understand.layers.figures import curves_figure, grid_of
from pages.understand.layers.state import LayerSweep, LayerView

MOST_CELLS = 20_000
"""Of a grid; the largest models that people can have today have 126 layers of 128 heads."""
_TERMS = {
    "topic_match": ("topic match", "full embedding", "random slices", "chance"),
    "selectivity": ("selectivity", "full embedding", "random slices"),
    "probe": ("probe", "by document", "random slices", "chance"),
    "groups": ("CKA", "key/value group"),
    "activation": ("activation",),
}
_INNER = (
    "At inner layers stage 3 is what the layer's block leaves to the next, without the model's final norm, whose gains "
    "were trained for the last layer alone; at the last layer it is the model's own embedding, final norm included. "
    "Where a model has such a norm, a step at the last layer may be the norm's."
)


def choose_view(sweep: LayerSweep) -> LayerView:
    """Stage and measure; the cell that was clicked, or is in the address."""
    shape = sweep.manifest.shape
    left, right = st.columns(2, gap="medium", vertical_alignment="top")
    with left:
        stage = choose_stage(sweep.manifest)
        if stage == 3:
            st.caption(_INNER)
    with right:
        measures = sweep.measures
        measure = linked(
            st.selectbox,
            "Measure",
            "measure",
            measures,
            measures[0],
            format_func=lambda name: MEASURES[name].name,
            help="What the curves and the grid show.",
        )
        st.caption(MEASURES[measure].sentence)
    cell = linked_clicks({"layer": (range(1, shape.layers + 1), shape.layers), "head": (range(shape.heads + 1), 0)})
    return LayerView(stage, measure, cell["layer"], cell["head"])


def headline(sweep: LayerSweep, view: LayerView) -> None:
    """Where in depth topic structure peaks."""
    rows = sweep.rows("layer_curves", stage=view.stage)
    found = topic_structure(rows, view.stage, sweep.manifest.shape.layers)
    if found is None:
        return
    if label_facts(sweep.manifest, "layers").circular:
        found = replace(found, sentence=f"{found.sentence} {CIRCULAR_NOTE}")
    with st.container(border=True):
        sentences([found])


def curves(sweep: LayerSweep, view: LayerView) -> None:
    """The chosen measure over depth."""
    measure = MEASURES[view.measure]
    st.subheader(f"{measure.name} over depth", help=why(*_TERMS[view.measure], "interval"), anchor=False)
    table = sweep.table("layer_curves", stage=view.stage, measure=view.measure)
    drawn = curves_figure(table.to_pylist(), sweep.cells(view.stage, view.measure)["value"], view, theme())
    said = f"{_sample(sweep)} Around a curve: {measure.band}."
    if view.measure != "groups":
        said += " Faint dots are single heads."
    said += " The upright line is the layer that is looked at below."
    figure(drawn, f"layers {view.measure} stage {view.stage}", table, said, alt=f"{measure.name} at every layer.")
    if told := held_against(table.to_pylist(), view.stage, view.measure):
        st.markdown(told)


def grid(sweep: LayerSweep, view: LayerView) -> None:
    """Layers × heads, coloured by the measure; a click chooses a cell."""
    measure = MEASURES[view.measure]
    st.subheader("Layers × heads", help=why(*_TERMS[view.measure]), anchor=False)
    cells = sweep.cells(view.stage, view.measure)
    if cells["value"].size > MOST_CELLS:
        st.info(f"A grid of more than {MOST_CELLS:,} cells is not drawn; the curves have every layer.")
        return
    roles = {
        (row["layer"], row["head"]): row["role"]
        for row in sweep.rows("layer_profiles", stage=view.stage)
        if row["role"]
    }

    def picked(place: GridCell) -> None:
        decide("layer", place.row + 1)
        decide("head", place.column)

    layer_grid(
        grid_of(cells, view.measure, roles, sweep.manifest.shape, theme()),
        "layer grid",
        GridCell(view.layer - 1, view.head),
        picked,
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(
            f"{measure.name} at stage {view.stage}. Click a cell to see what that head does at that layer; "
            f"'all' is {'all heads together' if view.measure in ('probe', 'groups') else 'the full embedding'}."
        )
        downloads(
            f"layers-{view.measure}-stage-{view.stage}",
            lambda: sweep.table("layers", stage=view.stage, measure=view.measure),
        )


def _sample(sweep: LayerSweep) -> str:
    total, centred = int(sweep.manifest.corpus["documents"]), " Cosines are centred." if sweep.centred else ""
    if sweep.documents < total:
        return f"A sample of {sweep.documents:,} of {total:,} documents, by topic.{centred}"
    return f"All {total:,} documents.{centred}"
