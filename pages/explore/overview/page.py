"""Overview: what this run is, and one head's view of one document."""

import streamlit as st

from pages.explore.overview.report import beside_the_study, what_heads_are, what_was_found
from pages.explore.overview.sections import facts, one_head, run_table
from pages.shared.controls import choose_run, compare_link
from pages.shared.empty_states import ready
from pages.shared.whose import whose_section
from pages.shared.why_similar import explain_asked

state = choose_run()

st.title("Headscope")
st.markdown(
    "A text-embedding model turns a document into one vector. Inside, many **attention heads** each contribute a part. "
    "Here you look at those parts one by one: what a single head finds near, and how that differs from the whole."
)

if ready(state):
    facts(state)
    what_was_found(state)
    what_heads_are(state)
    whose_section(state)
    beside_the_study(state)
    compare_link(state)
    one_head(state)
    explain_asked(state)
if state is not None:
    run_table()
