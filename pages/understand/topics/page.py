"""Topics: how well embeddings know them, where label and embedding disagree, and how near topics are to each other."""

import streamlit as st

from pages.shared.controls import choose_run, choose_stage
from pages.shared.empty_states import ready
from pages.understand.topics.labels import label_section
from pages.understand.topics.merging import merging
from pages.understand.topics.mismatches import mismatch_list
from pages.understand.topics.sections import label_distribution, topic_map, topic_match

st.title("Topics")
state = choose_run()
if ready(state, "analyse"):
    assert state.manifest is not None
    stage = choose_stage(state.manifest)
    if state.manifest.steps["analyse"].options.get("centre"):
        st.caption("Cosines of documents and topics are of vectors centred by the corpus mean.")
    topic_match(state, stage)
    mismatch_list(state, stage)
    topic_map(state, stage)
    merging(state, stage)
    label_distribution(state)
    label_section(state)
