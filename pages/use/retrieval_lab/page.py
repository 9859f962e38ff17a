"""Retrieval lab: switch heads on and off, see what that does to retrieval, and take the heads away."""

import streamlit as st

from pages.shared.controls import choose_run, choose_stage
from pages.shared.corpus import vote_weights
from pages.shared.data import RunState, documents
from pages.shared.embedding import WhyText
from pages.shared.empty_states import not_made, ready
from pages.shared.notices import shows_mistakes
from pages.shared.tabs import linked_tabs
from pages.shared.text import shortened
from pages.shared.without_head import SearchingText, without_head_section
from pages.use.retrieval_lab.aspects import switch_section
from pages.use.retrieval_lab.controls import question_control, task_control, ways_control
from pages.use.retrieval_lab.data import OUTPUT, LabQuestion, query_set, tasks
from pages.use.retrieval_lab.export import export_section
from pages.use.retrieval_lab.heads import heads_control
from pages.use.retrieval_lab.metrics import metrics_section, ways_section, weights_section
from pages.use.retrieval_lab.pruning import pruning_section
from pages.use.retrieval_lab.results import results_section, why_section
from pages.use.retrieval_lab.state import SHOWN, LabView
from pages.use.retrieval_lab.strip import empty_strip, strip, strip_place

TABS = {
    "results": "Results",
    "metrics": "Metrics",
    "pruning": "Pruning",
    "without": "Without a head",
    "export": "Export",
}
OPENED_BY = {"k": "metrics", "pruned": "pruning"}


@shows_mistakes
def lab(state: RunState) -> None:
    assert state.manifest is not None
    above = strip_place()
    names = tasks(state) if state.retrieved else []
    left, right = st.columns(2, gap="medium")
    with left:
        stage = choose_stage(state.manifest, first=OUTPUT)
    with right:
        task = task_control(names) if names else None
    question = question_control(state, stage, query_set(state))
    switch_section(state, stage)
    ways, rest = ways_control(state, stage)
    weights = heads_control(state, stage, task)
    if question is None:
        return
    if not (weights > 0).any():
        with above:
            empty_strip("No head is kept.")
        st.info("Every head is switched off. Switch at least one on.", icon=":material/toggle_off:")
        return
    shown = LabView(state, stage, task, question, ways, weights, vote_weights(state, stage), rest)
    with above:
        shows_mistakes(strip)(shown)
    tab, place = linked_tabs(TABS, OPENED_BY)
    with place:
        draw(tab, shown)


def draw(tab: str, shown: LabView) -> None:
    """What is in a tab."""
    if tab == "results":
        results_section(shown)
        why_section(shown)
    elif tab == "without":
        without_head_section(shown.state, searching(shown.state, shown.question), SHOWN)
    elif tab == "export":
        export_section(shown)
    elif shown.task is None:
        not_made(shown.state, "retrieve")
    elif tab == "metrics":
        metrics_section(shown)
        ways_section(shown)
        weights_section(shown)
    else:
        pruning_section(shown)


def searching(state: RunState, question: LabQuestion) -> SearchingText:
    """The question as the model reads it: with its prompt for queries, unless it is a document of the corpus."""
    own = question.own
    text = question.text if own < 0 else documents(state).row(own)["text"]
    return SearchingText(WhyText(shortened(question.text, 90), text, query=own < 0), question.relevant, own)


state = choose_run()
st.title("Retrieval lab")
st.markdown(
    "Which heads are worth keeping? Ask something and switch heads on and off: the strip below shows what that does to "
    "**all queries**, the tabs show **what is found and which head contributes how much**."
)
if ready(state):
    lab(state)
