"""Stages: where heads can be told apart, which ones say the same, and how a document's heads move."""

import streamlit as st

from pages.shared.controls import choose_run
from pages.shared.empty_states import ready, slim
from pages.understand.stages.sections import against_slices, confusion, movement, redundancy, separation

state = choose_run()

st.title("Stages")
st.markdown(
    "Each head is read several times on its way through the model. **At which stage do heads differ from each other**, "
    "and would any slice of the same numbers show as much?"
)

if ready(state, "analyse"):
    assert state.manifest is not None
    slim(state.manifest, state.run.name)
    against_slices(state)
    separation(state)
    confusion(state)
    redundancy(state)
    movement(state)
