"""Layers: where in depth the structure appears, and what a head does at any layer."""

import streamlit as st

from pages.shared.controls import choose_run
from pages.shared.data import RunState
from pages.shared.empty_states import no_labels, ready
from pages.shared.glossary import why
from pages.shared.notices import shows_mistakes
from pages.understand.layers.parts import parts
from pages.understand.layers.profile import profile
from pages.understand.layers.sections import choose_view, curves, grid, headline
from pages.understand.layers.state import layer_sweep


@st.fragment
@shows_mistakes
def browse(state: RunState) -> None:
    """Controls, curves, grid and what a click on it opens: they rerun alone."""
    sweep = layer_sweep(state)
    view = choose_view(sweep)
    headline(sweep, view)
    if not sweep.labelled:
        no_labels("Topic match and topic selectivity")
    curves(sweep, view)
    grid(sweep, view)
    profile(state, sweep, view)
    parts(state, view)


state = choose_run()

st.title("Layers", help=why("layer", "stage"))
st.markdown(
    "A text goes through the model layer by layer. **Where in depth does the structure appear** that the other pages "
    "show at one layer alone, and which heads have it?"
)

if ready(state, "layers"):
    browse(state)
