"""Topics: how well embeddings find them, which heads follow one, where label and embedding disagree, and the labels."""

import streamlit as st

from pages.shared.controls import choose_run, choose_stage
from pages.shared.empty_states import ready
from pages.shared.tabs import linked_tabs
from pages.understand.topics.heads import heads_of_topic
from pages.understand.topics.labels import label_section
from pages.understand.topics.merging import merging
from pages.understand.topics.mismatches import mismatch_list
from pages.understand.topics.sections import label_distribution, topic_map, topic_match

TABS = {
    "match": "Topic match",
    "heads": "Heads of a topic",
    "disagreements": "Disagreements",
    "topics": "Topic × topic",
    "labels": "Labels",
}
OPENED_BY = {"topic": "heads", "label": "disagreements", "mismatch": "disagreements", "groups": "topics"}

state = choose_run()
st.title("Topics")
if ready(state, "analyse"):
    assert state.manifest is not None
    stage = choose_stage(state.manifest)
    if state.manifest.steps["analyse"].options.get("centre"):
        st.caption("Document and topic vectors are centred by the corpus mean before cosines are taken.")
    tab, place = linked_tabs(TABS, OPENED_BY)
    with place:
        if tab == "match":
            topic_match(state, stage)
        elif tab == "heads":
            heads_of_topic(state, stage)
        elif tab == "disagreements":
            mismatch_list(state, stage)
        elif tab == "topics":
            topic_map(state, stage)
            merging(state, stage)
        else:
            label_distribution(state)
            label_section(state)
