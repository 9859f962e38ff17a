"""Head map: every head's vector of every document on one map (the study's Figs. 3–5)."""

import streamlit as st

from core.errors import Mistake
from pages.explore.head_map_parts import one_map
from pages.shared.empty_states import empty_cache, half_built, not_projected
from pages.shared.glossary import why
from pages.shared.sidebar import choose_run
from pages.shared.text import plain

state = choose_run()

st.title("Head map", help=why("stage", "key/value group", "activation"))
st.markdown(
    "Every point is **one head's vector of one document**; points that lie close are vectors that are alike. "
    "Heads that keep to islands of their own each say something of their own."
)

if state is None:
    empty_cache()
elif state.manifest is None:
    st.error(plain(state.problem), icon=":material/error:")
elif not state.finished:
    half_built(state)
elif not state.projected:
    not_projected(state)
else:
    try:
        one_map(state)
    except Mistake as mistake:  # a file of the run is missing or damaged
        st.error(plain(mistake), icon=":material/error:")
