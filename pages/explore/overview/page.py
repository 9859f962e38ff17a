"""Overview: what was found in this run, the study's tables beside it, and one head's view of one document."""

import streamlit as st

from pages.explore.overview.one_file import save_as_one_file
from pages.explore.overview.report import beside_the_study, every_finding, what_heads_are
from pages.explore.overview.sections import facts, one_head, run_table
from pages.explore.overview.story import story
from pages.shared.components.tour import tour_button
from pages.shared.controls import choose_run, compare_link
from pages.shared.empty_states import ready
from pages.shared.whose import whose_section
from pages.shared.why_similar import explain_asked

state = choose_run()

with st.container(horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute"):
    st.title("Headscope", width="content")
    if state is not None:
        tour_button()
st.markdown(
    "A text-embedding model turns a document into one vector. Inside, many **attention heads** each contribute a part. "
    "Headscope shows what each head contributes, and whether that is more than any slice of the vector would."
)

if ready(state):
    facts(state)
    story(state)
    beside_the_study(state)
    every_finding(state)
    save_as_one_file(state)
    what_heads_are(state)
    whose_section(state)
    compare_link(state)
    one_head(state)
    explain_asked(state)
if state is not None:
    run_table()
