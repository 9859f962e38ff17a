"""Layers: where in depth the structure appears, and what a head does at any layer."""

import streamlit as st

from pages.shared.components.beside import GRID_BESIDE, beside
from pages.shared.controls import choose_run
from pages.shared.data import RunState
from pages.shared.empty_states import no_labels, ready
from pages.shared.glossary import why
from pages.shared.notices import shows_mistakes
from pages.shared.section import section
from pages.understand.layers.parts import parts
from pages.understand.layers.profile import profile
from pages.understand.layers.sections import TERMS, choose_view, close_details, curves, grid, headline
from pages.understand.layers.state import layer_sweep


@st.fragment
@shows_mistakes
def browse(state: RunState) -> None:
    """Controls, curves, grid and what a click on it opens beside it: they rerun alone."""
    sweep = layer_sweep(state)
    view = choose_view(sweep)
    headline(sweep, view)
    if not sweep.labelled:
        no_labels("Topic match and topic selectivity")
    curves(sweep, view)
    section("Layers × heads", "grid", *TERMS[view.measure])
    places = beside("grid", below=sweep.manifest.shape.heads > GRID_BESIDE, is_open=view.details)
    with places.picture:
        grid(sweep, view)
    if view.details:
        with places.result(f"Layer {view.layer}, {view.who}", close_details):
            profile(state, sweep, view)
    parts(state, view)


state = choose_run()

st.title("Layers", help=why("layer", "stage"))
st.markdown("The other pages show one layer. **At which depth does the structure appear**, and in which heads?")

if ready(state, "layers"):
    browse(state)
