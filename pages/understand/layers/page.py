"""Layers: where in depth the structure appears, and what a head does at any layer."""

import streamlit as st

from core.errors import Mistake
from pages.shared.controls import choose_run
from pages.shared.data import RunState
from pages.shared.empty_states import no_labels, ready
from pages.shared.glossary import why
from pages.shared.problem import show_problem
from pages.understand.layers.profile import profile
from pages.understand.layers.sections import choose_view, curves, grid, headline
from pages.understand.layers.state import Swept, swept


@st.fragment
def browse(state: RunState) -> None:
    """Controls, curves, grid and what a click on it opens: they rerun alone."""
    try:
        found: Swept = swept(state)
        view = choose_view(found)
        headline(found, view)
        if not found.labelled:
            no_labels("Topic match and topic selectivity")
        curves(found, view)
        grid(found, view)
        profile(state, found, view)
    except Mistake as mistake:  # a file of the run is missing or damaged
        show_problem(mistake)


state = choose_run()

st.title("Layers", help=why("layer", "stage"))
st.markdown(
    "A text goes through the model layer by layer. **Where in depth does the structure appear** that the other pages "
    "show at one layer alone, and which heads have it?"
)

if ready(state, "layers"):
    browse(state)
