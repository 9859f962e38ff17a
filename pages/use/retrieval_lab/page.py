"""Retrieval lab: switch heads on and off, see what that does to retrieval, and take the heads away."""

import streamlit as st

from core.model.stages import SHARE
from pages.shared.controls import choose_run, choose_stage
from pages.shared.corpus import vote_weights
from pages.shared.data import RunState, row_of
from pages.shared.empty_states import not_made, ready
from pages.shared.notices import shows_mistakes
from pages.use.retrieval_lab.aspects import switch_section
from pages.use.retrieval_lab.controls import LabView, heads_control, question_control, task_control, ways_control
from pages.use.retrieval_lab.data import query_set, seen, tasks
from pages.use.retrieval_lab.export import take_away_section
from pages.use.retrieval_lab.sections import (
    metrics_section,
    pruning_section,
    results_section,
    turned_section,
    ways_section,
    weights_section,
)


@shows_mistakes
def lab(state: RunState) -> None:
    assert state.manifest is not None
    names = tasks(state) if state.retrieved else []
    left, right = st.columns(2, gap="medium")
    with left:
        stage = choose_stage(state.manifest)
    with right:
        task = task_control(names) if names else None
    question = question_control(state, stage, query_set(state))
    switch_section(state, stage)
    ways = ways_control(stage)
    weights = heads_control(state, stage, task)
    if question is None:
        return
    if not (weights > 0).any():
        st.info("Every head is switched off. Switch at least one on.", icon=":material/toggle_off:")
        return
    shown = LabView(state, stage, task, question, ways, weights, vote_weights(state, stage))
    if stage == SHARE:
        turned_section(shown)
    results_section(shown, seen(state, stage, question.vectors[stage], row_of(state, question.own)))
    if task is None:
        not_made(state, "retrieve")
    else:
        metrics_section(shown)
        pruning_section(shown)
        ways_section(shown)
        weights_section(shown)
    if stage != SHARE:
        take_away_section(shown)


state = choose_run()
st.title("Retrieval lab")
st.markdown(
    "Which heads are worth keeping? Ask something, switch heads on and off, and see at once **what is found, which "
    "head gave it how much, and what that does to all queries**."
)
if ready(state):
    lab(state)
