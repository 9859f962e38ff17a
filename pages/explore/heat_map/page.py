"""Topic heat map: how near every head is to each document's own topic (the study's Fig. 6)."""

import streamlit as st

from pages.explore.heat_map.details import details
from pages.explore.heat_map.sections import draw
from pages.explore.heat_map.state import choose_view
from pages.shared.controls import choose_run
from pages.shared.data import RunState, labels
from pages.shared.empty_states import no_labels, ready
from pages.shared.glossary import why
from pages.shared.notices import shows_mistakes


@st.fragment
@shows_mistakes
def browse(state: RunState) -> None:
    """Controls, canvas and what a click opens: they rerun alone."""
    if not (labels(state) >= 0).any():
        no_labels("The topic heat map")
        return
    view = choose_view(state)
    if view is not None:
        draw(state, view)
        details(state, view)


state = choose_run()

st.title("Topic heat map", help=why("similarity", "full embedding", "stage"))
st.markdown(
    "Every column is a document, every row a head. A cell is **red** where the head places the document near its own "
    "topic (the topic's name, as in the study, or its examples), **blue** where it points away from it. Rows that are "
    "red in one block only follow that topic; rows of one colour throughout do not tell topics apart."
)

if ready(state, "analyse"):
    browse(state)
