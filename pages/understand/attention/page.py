"""Attention: what every head of every layer looks at, its type by written rules, and the words themselves."""

import streamlit as st

from pages.shared.components.beside import GRID_BESIDE, beside
from pages.shared.controls import choose_run
from pages.shared.empty_states import ready
from pages.shared.section import section
from pages.understand.attention.alike import roles, same_type
from pages.understand.attention.experiments import examples, families, ranking, scores
from pages.understand.attention.sections import (
    AttentionView,
    average,
    chosen_head,
    close_details,
    details_open,
    overview,
    verdict,
)
from pages.understand.attention.text import in_a_text

FEW_LAYERS = 14

state = choose_run()

st.title("Attention")
st.markdown(
    "**What does each head attend to**: the previous token, the first one, punctuation, a verb's subject, an earlier "
    "occurrence of the same token? Fixed rules assign each head a type."
)

if ready(state, "attention"):
    layer, head = chosen_head(state)
    shown = AttentionView(state, layer, head)
    section("All heads by type", "types", "attention type", "attention", "sink", "delimiters")
    details = details_open()
    places = beside("types", below=shown.shape.heads > GRID_BESIDE, is_open=details)
    with places.picture:
        overview(shown)
        if shown.shape.layers <= FEW_LAYERS:  # a low grid leaves room under it
            average(shown)
    if details:
        with places.result(shown.name, close_details):
            verdict(shown)
            scores(shown)
            if shown.shape.layers > FEW_LAYERS:
                average(shown)
    examples(shown)
    in_a_text(shown)
    ranking(shown)
    families(shown)
    same_type(shown)
    roles(shown)
