"""Stages: where heads can be told apart, which ones say the same, and how a document's heads move."""

import streamlit as st

from pages.shared.empty_states import empty_cache, half_built, not_analysed
from pages.shared.sidebar import choose_run
from pages.shared.text import plain
from pages.understand.stages_parts import confusion, movement, redundancy, separation

state = choose_run()

st.title("Stages")
st.markdown(
    "Each head is read three times on its way through the model. **At which stage are heads something of their own**, "
    "and how much of that would any slice of the same numbers show?"
)

if state is None:
    empty_cache()
elif state.manifest is None:
    st.error(plain(state.problem), icon=":material/error:")
elif not state.finished:
    half_built(state)
elif not state.analysed:
    not_analysed(state)
else:
    separation(state)
    confusion(state)
    redundancy(state)
    movement(state)
