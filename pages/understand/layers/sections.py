"""The upper parts of the Layers page: choices, the sentence, the curves, and the grid of layers and heads."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core.analysis.layer_findings import held_against, topic_structure
from core.analysis.layer_measures import MEASURES
from core.runs.labels import CIRCULAR_NOTE, label_facts
from pages.shared.components.layer_grid import Place, layer_grid
from pages.shared.controls import choose_stage
from pages.shared.findings import sentences
from pages.shared.glossary import why
from pages.shared.show import downloads, figure, theme
from pages.shared.url import choice_from_url, choice_to_url, choices_to_url, decide
from pages.understand.layers.figures import curves_figure, grid_of
from pages.understand.layers.state import Swept, View

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


def choose_view(swept: Swept) -> View:
    """Stage and measure; the cell that was clicked, or is in the address."""
    shape = swept.manifest.shape
    left, right = st.columns(2, gap="medium", vertical_alignment="top")
    with left:
        stage = choose_stage(swept.manifest)
        if stage == 3:
            st.caption(_INNER)
    with right:
        measures = swept.measures
        choice_from_url("measure", measures, measures[0])
        measure = str(
            st.selectbox(
                "Measure",
                measures,
                key="measure",
                format_func=lambda name: MEASURES[name].name,
                help="What the curves and the grid show.",
            )
        )
        choice_to_url("measure", measure, measures[0])
        st.caption(MEASURES[measure].sentence)
    choice_from_url("layer", range(1, shape.layers + 1), shape.layers)
    choice_from_url("head", range(shape.heads + 1), 0)
    chosen = {"layer": (int(st.session_state["layer"]), shape.layers), "head": (int(st.session_state["head"]), 0)}
    choices_to_url(chosen)
    return View(stage, measure, chosen["layer"][0], chosen["head"][0])


def headline(swept: Swept, view: View) -> None:
    """Where in depth topic structure peaks."""
    rows = swept.rows("layer_curves", stage=view.stage)
    found = topic_structure(rows, view.stage, swept.manifest.shape.layers)
    if found is None:
        return
    if label_facts(swept.manifest, "layers").circular:
        found = replace(found, sentence=f"{found.sentence} {CIRCULAR_NOTE}")
    with st.container(border=True):
        sentences([found])


def curves(swept: Swept, view: View) -> None:
    """The chosen measure over depth."""
    measure = MEASURES[view.measure]
    st.subheader(f"{measure.name} over depth", help=why(*_TERMS[view.measure], "interval"), anchor=False)
    table = swept.table("layer_curves", stage=view.stage, measure=view.measure)
    drawn = curves_figure(table.to_pylist(), swept.cells(view.stage, view.measure)["value"], view, theme())
    said = f"{_sample(swept)} Around a curve: {measure.band}."
    if view.measure != "groups":
        said += " Faint dots are single heads."
    said += " The upright line is the layer that is looked at below."
    figure(drawn, f"layers {view.measure} stage {view.stage}", table, said, alt=f"{measure.name} at every layer.")
    if told := held_against(table.to_pylist(), view.stage, view.measure):
        st.markdown(told)


def grid(swept: Swept, view: View) -> None:
    """Layers × heads, coloured by the measure; a click chooses a cell."""
    measure = MEASURES[view.measure]
    st.subheader("Layers × heads", help=why(*_TERMS[view.measure]), anchor=False)
    cells = swept.cells(view.stage, view.measure)
    if cells["value"].size > MOST_CELLS:
        st.info(f"A grid of more than {MOST_CELLS:,} cells is not drawn; the curves have every layer.")
        return
    roles = {
        (row["layer"], row["head"]): row["role"]
        for row in swept.rows("layer_profiles", stage=view.stage)
        if row["role"]
    }

    def picked(place: Place) -> None:
        decide("layer", place.row + 1)
        decide("head", place.column)

    layer_grid(
        grid_of(cells, view.measure, roles, swept.manifest.shape, theme()),
        "layer grid",
        Place(view.layer - 1, view.head),
        picked,
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(
            f"{measure.name} at stage {view.stage}. Click a cell to see what that head does at that layer; "
            f"'all' is {'all heads together' if view.measure in ('probe', 'groups') else 'the full embedding'}."
        )
        downloads(
            f"layers-{view.measure}-stage-{view.stage}",
            lambda: swept.table("layers", stage=view.stage, measure=view.measure),
        )


def _sample(swept: Swept) -> str:
    total, centred = int(swept.manifest.corpus["documents"]), " Cosines are centred." if swept.centred else ""
    if swept.documents < total:
        return f"A sample of {swept.documents:,} of {total:,} documents, by topic.{centred}"
    return f"All {total:,} documents.{centred}"
