"""Ablation: what happens to the embedding when a head is switched off inside the model."""

import streamlit as st

from pages.shared.controls import choose_run
from pages.shared.empty_states import ready
from pages.understand.ablation.compare import instruments, negative_heads, scatter
from pages.understand.ablation.moved import moved
from pages.understand.ablation.pruning import pruning
from pages.understand.ablation.sections import choose_view, headline, overview

state = choose_run()

st.title("Ablation")
st.markdown(
    "Slices and attention read a head. Here it is **switched off inside the model**, and everything is embedded again: "
    "what gets worse, what gets better, and which documents move?"
)

if ready(state, "ablate"):
    shown = choose_view(state)
    headline(shown)
    left, right = st.columns([3, 2], gap="large")
    with left:
        overview(shown)
    with right:
        instruments(shown)
    negative_heads(shown)
    scatter(shown)
    moved(shown)
    pruning(shown)
