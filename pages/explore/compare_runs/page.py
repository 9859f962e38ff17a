"""Compare runs: the maps of two runs under one brush, their heads matched by CKA, and their findings side by side."""

import streamlit as st

from pages.explore.compare_runs.choices import choose_pair, common_stage
from pages.explore.compare_runs.differences import differences
from pages.explore.compare_runs.heads import heads_section, matched
from pages.explore.compare_runs.maps import maps_section
from pages.shared.controls import choose_run
from pages.shared.empty_states import ready
from pages.shared.glossary import why

state = choose_run()

st.title("Compare runs", help=why("stage", "CKA"))

if ready(state, "analyse"):
    left, right = st.columns([2, 3], gap="medium")
    with left:
        pair = choose_pair(state)
    if pair is not None:
        with right:
            stage = common_stage(pair)
        if stage is not None:
            found = matched(pair, stage)
            maps_section(pair, stage, found)
            heads_section(pair, found)
        differences(pair)
