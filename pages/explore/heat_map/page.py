"""Topic heat map: how near every head is to each document's own topic (the study's Fig. 6)."""

import streamlit as st

from pages.explore.heat_map.details import chosen, close, details
from pages.explore.heat_map.sections import draw
from pages.explore.heat_map.state import choose_view
from pages.shared.components.beside import beside
from pages.shared.controls import choose_run
from pages.shared.data import RunState, labels
from pages.shared.empty_states import no_labels, ready
from pages.shared.glossary import why
from pages.shared.notices import shows_mistakes


@st.fragment
@shows_mistakes
def browse(state: RunState) -> None:
    """Controls, canvas and what a click opens beside it: they rerun alone."""
    if not (labels(state) >= 0).any():
        no_labels("The topic heat map")
        return
    view = choose_view(state)
    if view is None:
        return
    places = beside("heat")
    with places.picture:
        if not draw(state, view):
            return
        if not chosen():
            st.caption(
                "Click a cell to read its document, a head's name for its profile, or a topic's name for its documents."
            )
    if chosen():
        with places.result("Your selection on the heat map", close):
            details(state, view)


state = choose_run()

st.title("Topic heat map", help=why("similarity", "full embedding", "stage"))
st.markdown(
    "Each column is a document, each row a head. A cell is **red** where the head places the document near its own "
    "topic and **blue** where it places it away from it. A row that is red in one block only follows that topic; a row "
    "of one colour does not distinguish topics."
)

if ready(state, "analyse"):
    browse(state)
