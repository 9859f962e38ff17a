"""Head profile: what one head does, by its figures and by documents to read; and all heads by role."""

import streamlit as st

from core.analysis.headlines import standing_out
from pages.explore.head_profile.gallery import alike, beside, by_stage, gallery
from pages.explore.head_profile.sections import (
    HeadView,
    among_slices,
    arrive,
    figures,
    head_control,
    looks,
    reading,
    role,
    topics_followed,
    view_control,
)
from pages.shared.controls import choose_run, choose_stage
from pages.shared.data import RunState, tables
from pages.shared.empty_states import no_labels, ready
from pages.shared.notices import shows_mistakes


@shows_mistakes
def profile(state: RunState) -> None:
    assert state.manifest is not None
    found = tables(state)
    left, right = st.columns(2, gap="medium", vertical_alignment="top")
    with right:
        stage = choose_stage(state.manifest)
    with left:
        view = view_control()
        if view == "head":
            head = head_control(state.manifest.shape.heads, standing_out(found, stage) or 1)
    if view == "gallery":
        gallery(state, found, stage)
        return
    shown = HeadView(state, found, stage, head)
    if found.labelled:
        left, right = st.columns(2, gap="large")
        with left:
            role(shown)
            among_slices(shown)
        with right:
            topics_followed(shown)
    else:
        st.subheader(f"Head {head}", anchor="role")
        no_labels("What a head does with topics")
        looks(shown)
    figures(shown)
    if found.labelled:
        reading(shown)
    others = st.container()
    by_stage(shown)
    beside(shown)
    with others:  # last: its links are the address as the controls have left it
        alike(shown)


arrive()
state = choose_run()
st.title("Head profile")
if ready(state, "analyse"):
    profile(state)
