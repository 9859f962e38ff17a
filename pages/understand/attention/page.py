"""Attention: what every head of every layer looks at, its type by written rules, and the words themselves."""

import streamlit as st

from pages.shared.controls import choose_run
from pages.shared.empty_states import ready
from pages.understand.attention.alike import roles, same_type
from pages.understand.attention.experiments import examples, families, ranking, scores
from pages.understand.attention.sections import AttentionView, average, chosen_head, overview, verdict
from pages.understand.attention.text import in_a_text

state = choose_run()

st.title("Attention")
st.markdown(
    "**What does each head of each layer attend to**: the token before, the first one, punctuation, a verb's subject, "
    "a token that was there before? Written rules decide its type."
)

if ready(state, "attention"):
    layer, head = chosen_head(state)
    shown = AttentionView(state, layer, head)
    overview(shown)
    left, right = st.columns([2, 3], gap="large")
    with left:
        verdict(shown)
        scores(shown)
    with right:
        average(shown)
    examples(shown)
    in_a_text(shown)
    ranking(shown)
    families(shown)
    same_type(shown)
    roles(shown)
