"""Head map: every head's vector of every document on one map (the study's Figs. 3–5)."""

import streamlit as st

from pages.explore.head_map.sections import one_map
from pages.shared.controls import choose_run
from pages.shared.empty_states import ready
from pages.shared.glossary import why

state = choose_run()

st.title("Head map", help=why("stage", "key/value group", "activation"))
st.markdown(
    "Every point is **one head's vector of one document**. Nearby points are similar vectors. "
    "Heads that form separate clusters encode different information."
)

if ready(state, "project"):
    one_map(state)
