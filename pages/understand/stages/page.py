"""Stages: where heads differ, which ones are redundant, and how a document's heads move."""

import streamlit as st

from pages.shared.controls import choose_run
from pages.shared.empty_states import ready, slim
from pages.understand.stages.sections import against_slices, confusion, movement, redundancy, separation

state = choose_run()

st.title("Stages")
st.markdown(
    "Heads are read at several stages of the model. **At which stage do heads differ from each other**, and do they "
    "differ more than random slices of the same numbers?"
)

if ready(state, "analyse"):
    assert state.manifest is not None
    slim(state.manifest, state.run.name)
    against_slices(state)
    separation(state)
    confusion(state)
    redundancy(state)
    movement(state)
