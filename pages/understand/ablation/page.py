"""Ablation: what happens to the embedding when a head is switched off inside the model."""

import streamlit as st

from pages.shared.components.beside import GRID_BESIDE, beside
from pages.shared.controls import choose_run
from pages.shared.empty_states import ready
from pages.shared.section import section
from pages.understand.ablation.compare import instruments, negative_heads, scatter
from pages.understand.ablation.moved import moved
from pages.understand.ablation.pruning import pruning
from pages.understand.ablation.sections import choose_view, close_details, headline, overview, title

state = choose_run()

st.title("Ablation")
st.markdown(
    "Here a head is **switched off inside the model** and the documents are embedded again. What gets worse, what gets "
    "better, and which documents move?"
)

if ready(state, "ablate"):
    shown = choose_view(state)
    headline(shown)
    section(title(shown), "grid", "ablation", "random removals", "beyond the noise")
    places = beside("ablation", below=shown.shape.heads > GRID_BESIDE, is_open=shown.details)
    with places.picture:
        overview(shown)
    if shown.details:
        with places.result(shown.name, close_details):
            instruments(shown)
    negative_heads(shown)
    scatter(shown)
    moved(shown)
    pruning(shown)
